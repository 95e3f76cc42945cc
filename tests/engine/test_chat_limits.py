"""Conversations at their limits: thoughts that have to end, contexts that are full; and tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

import engine
from engine import DraftOptions, Finished, GenerateOptions, Message, Round

PLAIN = DraftOptions("none")
THINKING = GenerateOptions(thinking=True, max_new_tokens=60)


@pytest.fixture(scope="module")
def narrow() -> Iterator[engine.Model]:
    """The demo checkpoint with a context of 200 tokens."""
    model = engine.load_model("demo", options=engine.LoadOptions(threads=1, context=200))
    yield model
    model.close()


def ask(
    model: engine.Model | engine.ChatSession, messages: list[Message], options: GenerateOptions
) -> tuple[list[Round], Finished]:
    session = model.new_session() if isinstance(model, engine.Model) else model
    *records, done = session.reply(messages, options)
    assert isinstance(done, Finished), done
    return [r for r in records if isinstance(r, Round)], done


def user(text: str) -> list[Message]:
    return [Message("user", text)]


def test_a_thought_that_the_template_opened_is_one(demo: engine.Model) -> None:
    """Its opening tag stands in the prompt; the parser never saw it elsewhere."""
    rounds, done = ask(demo, user("What is the capital of France?"), THINKING)
    phases = [c.phase for r in rounds for c in r.committed]
    close = demo.tokenizer.id_of("</think>")
    end = done.tokens.index(close) + 1 if close in done.tokens else len(done.tokens)
    assert phases == ["think"] * end + ["answer"] * (len(phases) - end)


@pytest.mark.parametrize("budget", [0, 1])
@pytest.mark.parametrize("drafter", ["mtp", "ngram", "mtp+ngram"])
def test_a_think_budget_is_exact_with_drafts(demo: engine.Model, budget: int, drafter: str) -> None:
    question = user("What is the capital of France?")
    options = replace(THINKING, think_budget=budget)
    plain_rounds, plain = ask(demo, question, replace(options, draft=PLAIN))
    ending = tuple(demo.tokenizer.encode("\n</think>\n\n", special=True))
    assert plain.tokens[budget : budget + len(ending)] == ending
    assert any("thinking was closed" in note for note in plain.notes)
    rounds, done = ask(demo, question, replace(options, draft=DraftOptions(drafter, 5)))  # type: ignore[arg-type]
    assert done.tokens == plain.tokens
    assert [c.phase for r in rounds for c in r.committed] == [c.phase for r in plain_rounds for c in r.committed]


def test_answer_now_on_demand(demo: engine.Model) -> None:
    ask_for_it, session = engine.AnswerNow(), demo.new_session()
    ask_for_it.ask()
    done = list(session.reply(user("What is the capital of France?"), THINKING, None, ask_for_it))[-1]
    assert isinstance(done, Finished)
    assert done.tokens == ask(demo, user("What is the capital of France?"), replace(THINKING, think_budget=0))[1].tokens


def long_chat(turns: int) -> list[Message]:
    said = [Message("system", "You are a helpful assistant.")]
    for i in range(turns):
        said += [Message("user", f"Count from {i} to {i + 5}."), Message("assistant", "1, 2, 3, 4, 5, 6.")]
    return [*said, Message("user", "What is the capital of France?")]


def test_a_full_context_is_said_or_the_oldest_turns_go(narrow: engine.Model) -> None:
    options = GenerateOptions(max_new_tokens=40)
    (failed,) = narrow.new_session().reply(long_chat(20), options)
    assert isinstance(failed, engine.Failed)
    assert failed.kind == "ContextFullError"
    options = replace(options, context_full="drop-oldest")
    _, done = ask(narrow, long_chat(20), options)
    (note,) = done.notes
    assert note.startswith("The conversation has outgrown the context of 200 tokens")
    dropped = int(note.split("oldest ")[1].split()[0])
    shorter = [long_chat(20)[0], *long_chat(20)[1 + 2 * dropped :]]
    assert done.tokens == ask(narrow, shorter, GenerateOptions(max_new_tokens=40))[1].tokens
    assert done.stats.prompt_tokens + 40 <= 200


def test_a_chat_that_goes_on_and_on_never_fails_and_keeps_its_caches(narrow: engine.Model) -> None:
    session, messages = narrow.new_session(), [Message("system", "You are a helpful assistant.")]
    options = GenerateOptions(max_new_tokens=12, context_full="drop-oldest")
    reused = []
    for turn in range(24):
        messages.append(Message("user", f"Count from {turn} to 9."))
        _, done = ask(session, messages, options)
        reused.append(done.stats.reused_tokens)
        messages.append(Message("assistant", done.text))
    assert any("left out" in note for note in done.notes)
    assert sum(count > 60 for count in reused) > len(reused) / 3


def test_one_message_that_is_too_long_is_said(narrow: engine.Model) -> None:
    (failed,) = narrow.new_session().reply(user("word " * 300), GenerateOptions(context_full="drop-oldest"))
    assert isinstance(failed, engine.Failed)
    assert failed.kind == "ContextFullError"


def test_tool_calls_of_the_answer_are_told(demo: engine.Model) -> None:
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    tokens = demo.encode(call)
    bias = GenerateOptions(max_new_tokens=len(tokens), ignore_eos=True)
    session = demo.new_session()
    _force(session, tokens)
    *_, done = session.complete(demo.encode("The weather?"), bias)
    assert isinstance(done, Finished)
    assert done.text == call
    assert done.tool_calls == (engine.ToolCall("weather", {"city": "Paris"}),)
    assert engine.record_from_json(json.loads(json.dumps(engine.to_json(done)))) == done


def test_lookup_may_search_other_conversations(demo: engine.Model) -> None:
    question, options = user("Tell me a story about a fox and a lamp."), GenerateOptions(draft=DraftOptions("ngram", 6))
    _, alone = ask(demo, question, options)
    session = demo.new_session()
    session.search_also([[*session.prompt_tokens(question, options), *alone.tokens]])
    _, helped = ask(session, question, options)
    assert helped.tokens == alone.tokens
    assert helped.stats.prompt_tokens == alone.stats.prompt_tokens
    assert helped.stats.rounds < 0.5 * alone.stats.rounds


def _force(session: engine.ChatSession, tokens: list[int]) -> None:
    """Let the model say `tokens`: its logits are replaced by ones that know no other."""
    target, begin = session._conversation.target, []
    real = target.logits

    def logits(hidden):  # type: ignore[no-untyped-def]
        rows = real(hidden).copy()
        if not begin:
            begin.append(target.position)
        for i in range(len(rows)):
            at = target.position - len(rows) + i + 1 - begin[0]
            rows[i, tokens[min(max(at, 0), len(tokens) - 1)]] = 1e4
        return rows

    target.logits = logits  # type: ignore[method-assign]
