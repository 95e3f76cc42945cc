"""The detokeniser: no broken characters, and nothing lost or added."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.incremental import Detokeniser
from engine.text.tokenizer import Tokenizer

WAVING_FAMILY = "👋🏽 👨‍👩‍👧 你好世界 naïve"


def pushed(detokeniser: Detokeniser, ids: list[int]) -> list[str]:
    return [detokeniser.push(token) for token in ids]


def test_characters_come_whole(real: Tokenizer) -> None:
    ids = real.encode(WAVING_FAMILY)
    detokeniser = Detokeniser(real)
    parts = pushed(detokeniser, ids)
    assert "\ufffd" not in "".join(parts)
    assert "" in parts, "this text was chosen because its emoji are split over tokens"
    assert "".join(parts) == WAVING_FAMILY
    assert detokeniser.flush() == ""


def test_single_bytes(demo: Tokenizer) -> None:
    """The demo vocabulary has no emoji: each byte is a token."""
    detokeniser = Detokeniser(demo)
    ids = demo.encode("🚀")
    assert len(ids) == 4
    assert pushed(detokeniser, ids) == ["", "", "", "🚀"]


def test_special_tokens_add_nothing(demo: Tokenizer) -> None:
    end = demo.id_of("<|im_end|>")
    assert end is not None
    first, *rest = demo.encode("🚀")
    assert pushed(Detokeniser(demo), [end, first, end, *rest]) == ["", "", "", "", "", "🚀"]


def test_cut_character_is_shown_at_the_end(demo: Tokenizer) -> None:
    detokeniser = Detokeniser(demo)
    pushed(detokeniser, demo.encode("🚀")[:3])
    assert detokeniser.holding
    assert detokeniser.flush() == "\ufffd"
    assert not detokeniser.holding
    assert detokeniser.flush() == ""
    assert "".join(pushed(detokeniser, demo.encode("a"))) == "a"


def test_invalid_byte_does_not_swallow_what_follows(demo: Tokenizer) -> None:
    detokeniser = Detokeniser(demo)
    lead, letter = demo.encode("🚀")[0], demo.encode("a")[0]
    assert pushed(detokeniser, [lead, letter]) == ["", "\ufffda"]


def test_clone_is_independent(demo: Tokenizer) -> None:
    detokeniser = Detokeniser(demo)
    ids = demo.encode("🚀")
    pushed(detokeniser, ids[:2])
    other = detokeniser.clone()
    assert pushed(other, ids[2:]) == ["", "🚀"]
    assert detokeniser.holding
    assert pushed(detokeniser, ids[2:]) == ["", "🚀"]


@given(ids=st.lists(st.integers(0, 4200)), cut=st.integers(0, 50))
@settings(max_examples=300, deadline=None)
def test_pushes_make_the_decoded_whole(ids: list[int], cut: int, demo: Tokenizer) -> None:
    detokeniser = Detokeniser(demo)
    start = "".join(pushed(detokeniser, ids[:cut]))
    copy = detokeniser.clone()
    for each in (detokeniser, copy):
        assert start + "".join(pushed(each, ids[cut:])) + each.flush() == demo.decode(ids)


@given(text=st.text())
@settings(max_examples=200, deadline=None)
def test_real_text_never_breaks(text: str, real: Tokenizer) -> None:
    ids = real.encode(text)
    detokeniser = Detokeniser(real)
    whole = "".join(pushed(detokeniser, ids))
    assert whole == real.decode(ids)
    assert detokeniser.flush() == ""
