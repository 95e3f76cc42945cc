"""Decoding keeps nothing of a round but its tokens and their rows in the caches: memory does not creep up."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

import engine
from engine import DraftOptions, Finished, GenerateOptions, Message, Round

WARM = 60
"""Rounds after which every buffer has been made."""
ROUNDS = 120
A_TOKEN = 60
"""Bytes: its number in three lists and an index, each with room to grow."""
SLACK = 10_000


@pytest.mark.parametrize("drafts", [0, 3])
def test_nothing_grows_but_the_caches(demo: engine.Model, drafts: int) -> None:
    options = GenerateOptions(max_new_tokens=3000, ignore_eos=True, draft=DraftOptions(tokens=drafts))
    session, rounds = demo.new_session(), 0
    measured: list[tuple[int, int, int]] = []  # bytes in all, bytes of the caches, position
    tracemalloc.start()
    try:
        for record in session.reply([Message("user", "Count from 1 to 2000.")], options):
            assert not isinstance(record, Finished)
            rounds += isinstance(record, Round)
            if isinstance(record, Round) and rounds in (WARM, WARM + ROUNDS):
                measured.append(_measure(session))
                if rounds > WARM:
                    break
    finally:
        tracemalloc.stop()
    (before, caches_before, start), (after, caches_after, end) = measured
    assert end - start >= ROUNDS
    grown = after - before - (caches_after - caches_before)
    assert grown < A_TOKEN * (end - start) + SLACK


def _measure(session: engine.ChatSession) -> tuple[int, int, int]:
    gc.collect()
    conversation = session._conversation
    draft = conversation._mtp_model
    caches = conversation.target.state.nbytes + (0 if draft is None else draft.nbytes)
    return tracemalloc.get_traced_memory()[0], caches, conversation.target.position
