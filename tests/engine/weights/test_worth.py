"""Recency and frequency."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.weights.worth import Worth


def offered(worth: Worth, *experts: int) -> Worth:
    for expert in experts:
        worth.offer(("u", expert))
    return worth


def least(worth: Worth) -> int | None:
    key = worth.least(lambda _: True)
    return None if key is None else key[1]


def test_often_beats_once_and_late_beats_early() -> None:
    worth = Worth()
    worth.use("u", [1, 2])
    worth.use("u", [1])
    worth.use("u", [3])
    assert worth.of(("u", 1)) > worth.of(("u", 3)) > worth.of(("u", 2)) > worth.of(("u", 4))
    assert least(offered(worth, 1, 2, 3)) == 2
    assert least(offered(worth, 4)) == 4


def test_old_fame_fades() -> None:
    worth = Worth()
    for _ in range(10):
        worth.use("u", [1])
    for _ in range(60):
        worth.use("u", [])
    worth.use("u", [2])
    assert worth.of(("u", 2)) > worth.of(("u", 1))


def test_the_least_among_the_evictable() -> None:
    worth = Worth()
    worth.use("u", [1, 2, 3])
    worth.use("u", [2, 3])
    offered(worth, 1, 2, 3)
    assert worth.least(lambda key: key[1] != 1) in (("u", 2), ("u", 3))
    assert worth.least(lambda key: False) is None
    assert least(worth) == 1  # looking takes nothing away


def test_a_use_after_the_offer_counts() -> None:
    worth = Worth()
    worth.use("u", [1])
    worth.use("u", [2])
    offered(worth, 1, 2)
    worth.use("u", [1])
    assert least(worth) == 2


def test_offers_of_what_is_gone_are_forgotten() -> None:
    worth = offered(Worth(), 1, 1, 2, 3)
    worth.forget(lambda key: key[1] != 3)
    assert worth.offers == 2


@given(st.lists(st.sets(st.integers(0, 5)), max_size=40))
def test_the_logarithm_orders_as_the_sum_does(passes: list[set[int]]) -> None:
    worth = Worth()
    sums = dict.fromkeys(range(6), 0.0)
    for used in passes:
        worth.use("u", sorted(used))
        sums = {e: 0.95 * s + (e in used) for e, s in sums.items()}
    for a in sums:
        for b in sums:
            if sums[a] > sums[b] * 1.0001:
                assert worth.of(("u", a)) > worth.of(("u", b))
