"""A conversation that has outgrown the context: which of its oldest turns are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.prompt import Message

_FILL = 0.75
"""Share of the room that a shortened conversation takes: its next turns then fit without another cut, and the caches
can be kept."""


def turns(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """(system messages at the start, the turns after them), a turn being a person's message and what follows it."""
    first = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
    groups: list[list[Message]] = []
    for message in messages[first:]:
        if message.role == "user" or not groups:
            groups.append([])
        groups[-1].append(message)
    return list(messages[:first]), groups


def fit(
    messages: Sequence[Message], room: int, length: Callable[[Sequence[Message]], int], dropped: int = 0
) -> tuple[list[Message], int]:
    """(the messages without as many of the oldest turns as it takes, how many turns that are).

    System messages at the start and the last turn stay. `length` counts the prompt's tokens; `dropped` is the last
    answer for this conversation, which is kept as long as it does, so that prompts go on beginning alike.
    """
    system, groups = turns(messages)

    def without(count: int) -> list[Message]:
        return system + [message for group in groups[count:] for message in group]

    def fits(count: int, tokens: float) -> bool:
        return length(without(count)) <= tokens

    last = len(groups) - 1
    for count in (0, dropped):
        if count <= last and fits(count, room):
            return without(count), count
    low, high = 1, max(last, 0)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle, _FILL * room) else (middle + 1, high)
    return without(high), high
