"""The arena: blocks never overlap, and what was given back can be taken again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import OptionError
from engine.weights import buffers
from engine.weights.buffers import Arena, aligned_buffer
from engine.weights.ranges import BLOCK


def test_buffers_begin_at_a_page() -> None:
    buffer = aligned_buffer(3 * BLOCK + 5)
    assert buffer.ctypes.data % BLOCK == 0
    assert len(buffer) == 3 * BLOCK + 5
    assert len(aligned_buffer(0)) == 0


def test_no_memory_left_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(nbytes: int) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(buffers, "_anonymous", refuse)
    with pytest.raises(OptionError, match="no 5,000 MB of memory"):
        aligned_buffer(5_000_000_000)


@given(st.lists(st.integers(1, 60), max_size=60), st.randoms(use_true_random=False))
def test_blocks_never_overlap_and_nothing_is_lost(sizes: list[int], random) -> None:  # type: ignore[no-untyped-def]
    arena = Arena(100)
    held: list[tuple[int, int]] = []
    for size in sizes:
        could = arena.fits(size)
        position = arena.take(size)
        assert could == (position is not None)
        if position is not None:
            assert 0 <= position <= position + size <= 100
            assert all(position + size <= p or p + s <= position for p, s in held)
            held.append((position, size))
        while held and random.random() < 0.5:
            arena.give_back(*held.pop(random.randrange(len(held))))
    for block in held:
        arena.give_back(*block)
    assert arena.take(100) == 0


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_half_the_arena_is_always_enough_beside_one_other_block(first: int, second: int, third: int) -> None:
    arena = Arena(100)
    a, b = arena.take(first), arena.take(second)
    assert a is not None
    assert b is not None
    arena.give_back(a, first)
    assert arena.take(third) is not None


def test_fits_looks_ahead_without_giving_back() -> None:
    arena = Arena(30)
    first = arena.take(10)
    second = arena.take(10)
    assert first is not None
    assert second is not None
    assert not arena.fits(20)
    assert arena.fits(20, [(first, 10)]) or arena.fits(20, [(second, 10)])
    assert arena.fits(30, [(first, 10), (second, 10)])
    assert not arena.fits(20)
