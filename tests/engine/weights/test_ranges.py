"""Layouts: every byte that is asked for lies where the layout says, in whole blocks."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from engine.weights.ranges import BLOCK, ByteRange, lay_out, round_up

_FILES = (Path("a"), Path("b"))
_CONTENT = {file: random.Random(file.name).randbytes(260_000) for file in _FILES}
ranges = st.lists(
    st.builds(ByteRange, st.sampled_from(_FILES), st.integers(0, 200_000), st.integers(1, 50_000)),
    min_size=1,
    max_size=12,
)


@given(ranges)
def test_every_range_lies_in_the_buffer_at_its_place(wanted: list[ByteRange]) -> None:
    layout = lay_out(wanted)
    buffer = bytearray(layout.nbytes)
    for extent in layout.extents:
        there = _CONTENT[extent.file][extent.offset : extent.offset + extent.nbytes]
        buffer[extent.position : extent.position + len(there)] = there
    for piece, place in zip(wanted, layout.places, strict=True):
        assert buffer[place : place + piece.nbytes] == _CONTENT[piece.file][piece.offset : piece.end]


@given(ranges)
def test_reads_are_whole_blocks_that_do_not_overlap(wanted: list[ByteRange]) -> None:
    layout = lay_out(wanted)
    position = 0
    for extent in layout.extents:
        assert extent.position == position
        assert extent.offset % BLOCK == 0 == extent.nbytes % BLOCK
        assert 0 < extent.needed <= extent.nbytes < extent.needed + BLOCK
        position += extent.nbytes
    assert layout.nbytes == position


@given(ranges)
def test_a_tensor_sits_in_its_block_as_on_disk(wanted: list[ByteRange]) -> None:
    layout = lay_out(wanted)
    for piece, place in zip(wanted, layout.places, strict=True):
        assert place % BLOCK == piece.offset % BLOCK


def test_neighbours_are_read_in_one_go_and_distant_ranges_are_not() -> None:
    near = [ByteRange(_FILES[0], 100, 900), ByteRange(_FILES[0], 1100, 400)]
    assert len(lay_out(near).extents) == 1
    assert len(lay_out([*near, ByteRange(_FILES[0], 1_000_000, 1)]).extents) == 2
    assert len(lay_out([*near, ByteRange(_FILES[1], 100, 1)]).extents) == 2


def test_needed_ends_with_the_last_byte_that_is_wanted() -> None:
    (extent,) = lay_out([ByteRange(_FILES[0], BLOCK + 10, 100)]).extents
    assert (extent.offset, extent.needed, extent.nbytes) == (BLOCK, 110, BLOCK)


def test_round_up() -> None:
    assert [round_up(n) for n in (0, 1, BLOCK, BLOCK + 1)] == [0, BLOCK, BLOCK, 2 * BLOCK]
