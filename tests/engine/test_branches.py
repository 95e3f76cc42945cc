"""Coming back to a branch of a conversation reads nothing again, and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine import DraftOptions, Finished, GenerateOptions, Message
from engine.branches import BranchShelf

LONG = "Count from 1 to 20, and then from 20 to 1, and then tell me a story about a fox and a lamp. " * 4
FIRST = [Message("user", "What is the capital of France?"), Message("assistant", "The capital of France is Paris.")]
LEFT = [*FIRST, Message("user", LONG), Message("assistant", "Very well."), Message("user", "Name three fruits.")]
RIGHT = [*FIRST, Message("user", "Tell me about Italy. " + LONG), Message("assistant", "No."), Message("user", "hi")]


def ask(session: engine.ChatSession, messages: list[Message], drafter: str = "mtp") -> Finished:
    options = GenerateOptions(max_new_tokens=30, draft=DraftOptions(drafter))  # type: ignore[arg-type]
    *_, done = session.reply(messages, options)
    assert isinstance(done, Finished), done
    return done


@pytest.mark.parametrize("drafter", ["none", "mtp", "ngram", "mtp+ngram"])
def test_branches_are_kept_and_say_what_a_fresh_session_says(demo: engine.Model, drafter: str) -> None:
    session = demo.new_session()
    fresh = [ask(demo.new_session(), branch, drafter).tokens for branch in (LEFT, RIGHT)]
    assert ask(session, LEFT, drafter).tokens == fresh[0]
    assert ask(session, RIGHT, drafter).tokens == fresh[1]
    for branch, expected in ((LEFT, fresh[0]), (RIGHT, fresh[1]), (LEFT, fresh[0])):
        again = ask(session, branch, drafter)
        assert again.tokens == expected
        assert again.stats.prompt_tokens - again.stats.reused_tokens < 12


def test_a_branch_goes_on_where_it_was_left(demo: engine.Model) -> None:
    session = demo.new_session()
    for branch in (LEFT, RIGHT):
        ask(session, branch)
    longer = [*LEFT, Message("assistant", "Apple."), Message("user", "What is the capital of Spain?")]
    done = ask(session, longer)
    assert done.stats.reused_tokens > 100
    assert done.tokens == ask(demo.new_session(), longer).tokens


def test_returning_copies_nothing(demo: engine.Model) -> None:
    session = demo.new_session()
    ask(session, LEFT)
    ask(session, RIGHT)
    conversation = session._conversation
    right = conversation.target
    ask(session, LEFT)
    left = conversation.target
    ask(session, RIGHT)
    assert conversation.target is right
    ask(session, LEFT)
    assert conversation.target is left
    assert len(conversation.branches) == 1


def test_memory_is_bounded_and_the_oldest_branch_goes(demo: engine.Model) -> None:
    session = demo.new_session()
    ask(session, LEFT)
    size = session._conversation.target.state.nbytes
    session._conversation.branches = BranchShelf(3 * size)
    for i in range(6):
        ask(session, [*FIRST, Message("user", f"{i} {LONG}")])
        assert session._conversation.branches.nbytes <= 3 * size
    assert 1 <= len(session._conversation.branches) <= 3
    session._conversation.branches = BranchShelf(0)
    assert ask(session, LEFT).tokens == ask(demo.new_session(), LEFT).tokens
    assert len(session._conversation.branches) == 0


def test_small_steps_back_are_not_worth_a_copy(demo: engine.Model) -> None:
    session = demo.new_session()
    ask(session, FIRST[:1])
    ask(session, FIRST[:1])
    assert len(session._conversation.branches) == 0


def test_a_branch_set_aside_is_independent(demo: engine.Model) -> None:
    session = demo.new_session()
    ask(session, LEFT)
    ask(session, RIGHT)
    (kept,) = session._conversation.branches._branches
    before = [cache.keys.copy() for cache in kept.target.state.layers if hasattr(cache, "keys")]
    ask(session, RIGHT)
    after = [cache.keys for cache in kept.target.state.layers if hasattr(cache, "keys")]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
