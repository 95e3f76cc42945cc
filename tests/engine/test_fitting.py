"""Which turns go when a conversation has outgrown the context."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.fitting import fit, turns
from engine.prompt import Message

SYSTEM = Message("system", "s" * 5)


def length(messages: Sequence[Message]) -> int:
    return sum(len(message.content) for message in messages)


def chat(count: int, size: int = 10) -> list[Message]:
    """`count` turns of twice `size` tokens, the last without an answer."""
    roles = ("user", "assistant")
    return [SYSTEM, *(Message(roles[i % 2], "x" * size) for i in range(2 * count - 1))]  # type: ignore[arg-type]


def test_a_turn_is_a_message_and_what_follows_it() -> None:
    system, groups = turns(chat(3))
    assert system == [SYSTEM]
    assert [len(group) for group in groups] == [2, 2, 1]


def test_what_fits_stays_whole() -> None:
    assert fit(chat(4), 75, length) == (chat(4), 0)
    assert fit(chat(4), 75, length, dropped=2) == (chat(4), 0)


def test_the_oldest_turns_go_and_the_system_message_stays() -> None:
    kept, dropped = fit(chat(10), 100, length)
    assert dropped == 6
    assert kept == [SYSTEM, *chat(10)[13:]]
    assert length(kept) <= 75 < length([SYSTEM, *chat(10)[11:]])


def test_later_turns_are_cut_at_the_same_place_as_long_as_they_fit() -> None:
    """So that the caches can be kept: the prompt begins as it did."""
    dropped, cuts = 0, []
    for count in range(4, 40):
        kept, dropped = fit(chat(count), 100, length, dropped)
        assert length(kept) <= 100
        cuts.append(dropped)
    assert len(set(cuts)) < len(cuts) / 1.5


@pytest.mark.parametrize("count", [1, 3])
def test_the_last_message_stays_though_it_is_too_long(count: int) -> None:
    assert fit(chat(count, 500), 100, length)[0] == [SYSTEM, chat(count, 500)[-1]]


def test_nothing_to_leave_out() -> None:
    assert fit([], 0, length) == ([], 0)
    assert fit([SYSTEM], 1, length) == ([SYSTEM], 0)
