"""Text grows by whole characters, and ends exactly at a stop string."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.decoding.reply import Candidate, Reply, ThinkTokens
from engine.decoding.text_stream import TextStream
from engine.decoding.verification import Said
from engine.options import GenerateOptions
from tests.engine.decoding.scripted import ScriptedDetokeniser


def stream(*stops: str) -> TextStream:
    return TextStream(ScriptedDetokeniser([bytes([i]) for i in range(256)]), stops)


def pushed(stream: TextStream, text: bytes) -> list[str]:
    out = []
    for byte in text:
        if stream.stopped:
            break
        out.append(stream.push(byte))
    return out


def test_bytes_of_a_character_come_with_its_last() -> None:
    assert pushed(stream(), "a🙂b".encode()) == ["a", "", "", "", "🙂", "b"]


def test_an_unfinished_character_is_flushed_at_the_end() -> None:
    made = stream()
    assert "".join(pushed(made, "a🙂".encode()[:-1])) == "a"
    assert made.finish() == "\ufffd"


def test_text_ends_exactly_before_the_stop_string() -> None:
    made = stream("STOP")
    assert "".join(pushed(made, b"one STOP two")) == "one "
    assert made.stopped
    assert made.finish() == ""


def test_a_beginning_of_a_stop_string_is_held_until_it_is_decided() -> None:
    made = stream("STOP")
    assert pushed(made, b"aSTx") == ["a", "", "", "STx"]


def test_held_text_is_given_at_the_end() -> None:
    made = stream("STOP")
    pushed(made, b"aSTO")
    assert made.finish() == "STO"


def test_overlapping_beginnings() -> None:
    assert "".join(pushed(stream("aab"), b"aaab")) == "a"


def test_the_first_of_several_stop_strings_counts() -> None:
    made = TextStream(ScriptedDetokeniser([b"x END y STOP z"]), ("STOP", "END"))
    assert made.push(0) == "x "


def test_a_clone_is_independent() -> None:
    made = stream("STOP")
    pushed(made, b"ST")
    copy = made.clone()
    pushed(copy, b"OP")
    assert copy.stopped
    assert made.push(ord("x")) == "STx"


def test_preview_changes_nothing() -> None:
    made = stream("bc")
    assert made.preview((97, 98, 99)) == ["a", "b", "c"]
    assert made.push(97) == "a"


@given(st.text("abcü🙂", max_size=30), st.lists(st.text("abcü🙂", min_size=1, max_size=4), max_size=3))
def test_any_text_is_cut_where_the_first_stop_string_is_complete(text: str, stops: list[str]) -> None:
    made = stream(*stops)
    out = "".join(pushed(made, text.encode())) + made.finish()
    ends = [(text.find(s) + len(s.encode()), s) for s in stops if s in text]
    if not ends:
        assert out == text
        return
    grown = next(n for n in range(len(text) + 1) if any(s in text[:n] for s in stops))
    assert out == text[: min(text[:grown].find(s) for s in stops if s in text[:grown])]


def say(reply: Reply, *tokens: int) -> list[str]:
    taken = reply.consider([Candidate(Said(t, 1.0), "model", "model") for t in tokens], room=1000)
    reply.commit(taken)
    return [c.phase for c in taken.committed]


def new_reply(thinking: bool = False) -> Reply:
    detokeniser = ScriptedDetokeniser([bytes([i]) for i in range(256)])
    return Reply(detokeniser, GenerateOptions(), frozenset(), ThinkTokens(60, 62), thinking)


def test_think_tags_belong_to_the_thought() -> None:
    reply = new_reply()
    assert say(reply, 97, 60, 98) == ["answer", "think", "think"]
    assert reply.phase == "think"
    assert say(reply, 62, 99) == ["think", "answer"]


def test_a_thought_that_the_template_opened() -> None:
    """The prompt ended inside a thought; the reply may end before it is closed."""
    reply = new_reply(thinking=True)
    assert say(reply, 97, 98) == ["think", "think"]
    assert say(reply, 62, 99) == ["think", "answer"]


def test_considering_changes_nothing() -> None:
    reply = new_reply()
    reply.consider([Candidate(Said(97, 1.0), "model", "model")], room=10)
    assert (reply.tokens, reply.text, reply.left) == ([], "", 512)
