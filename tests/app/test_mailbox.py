"""Records cross the thread in order, none is lost, progress does not pile up."""

from __future__ import annotations

import threading

from app.mailbox import Mailbox
from engine import CancelToken, LoadProgress, PrefillProgress
from tests.app.scripted import finished, rounds_of


def test_records_come_out_in_order_and_only_once() -> None:
    box = Mailbox(CancelToken())
    rounds = list(rounds_of([str(i) for i in range(40)]))
    for record in rounds:
        box.put(record)
    assert box.drain(5) == tuple(rounds[:5])
    assert box.drain() == tuple(rounds[5:])
    assert box.drain() == ()


def test_unread_progress_is_replaced_by_the_next_of_its_kind_only() -> None:
    box = Mailbox(CancelToken())
    box.put(LoadProgress("weights", "", 1, 9))
    box.put(LoadProgress("weights", "", 2, 9))
    box.put(PrefillProgress(1, 9))
    first = next(rounds_of(["a"]))
    box.put(first)
    box.put(PrefillProgress(2, 9))
    assert box.drain() == (LoadProgress("weights", "", 2, 9), PrefillProgress(1, 9), first, PrefillProgress(2, 9))


def test_a_full_mailbox_holds_the_writer_until_it_is_read_and_loses_nothing() -> None:
    box = Mailbox(CancelToken(), capacity=4)
    rounds = list(rounds_of([str(i) for i in range(60)]))
    writer = threading.Thread(target=lambda: [box.put(record) for record in rounds])
    writer.start()
    taken: list[object] = []
    while len(taken) < len(rounds):
        assert len(box) <= 4
        taken += box.drain(3)
    writer.join(5)
    assert taken == rounds


def test_a_full_mailbox_does_not_hold_a_writer_that_was_cancelled() -> None:
    cancel = CancelToken()
    box = Mailbox(cancel, capacity=1)
    box.put(finished([]))
    writer = threading.Thread(target=box.put, args=(finished([]),))
    writer.start()
    cancel.cancel()
    writer.join(5)
    assert not writer.is_alive()
    assert len(box.drain()) == 2
