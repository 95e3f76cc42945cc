"""Byte ranges of files, and how they are laid out in a buffer so that reads can bypass the page cache.

Unbuffered reads want the file offset, the length and the memory address as multiples of a disk block. So ranges that
lie close together become one *extent*, widened to whole blocks, and a buffer holds the extents one after the other: a
tensor then sits at the same place within a block in memory as on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BLOCK = 4096
"""Bytes; a multiple of the logical block of every disk in use."""
BRIDGED_GAP = 16 * 1024
"""Ranges of a unit this close are read in one go: skipping so few bytes costs more than reading them."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`nbytes` bytes of `file` from `offset` on."""

    file: Path
    offset: int
    nbytes: int

    @property
    def end(self) -> int:
        return self.offset + self.nbytes


@dataclass(frozen=True, slots=True)
class Extent:
    """One run of whole blocks to read: [offset, offset + nbytes) of `file` to `position` in the buffer."""

    file: Path
    offset: int
    nbytes: int
    needed: int
    """Bytes from `offset` on that must be there; the rest may lie beyond the end of the file."""
    position: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How some byte ranges come to lie in one buffer."""

    extents: tuple[Extent, ...]
    places: tuple[int, ...]
    """Where each range begins in the buffer, in the order in which they were given."""
    nbytes: int
    """Of the buffer: a multiple of BLOCK."""


def round_up(nbytes: int) -> int:
    """To whole blocks."""
    return -(-nbytes // BLOCK) * BLOCK


def lay_out(ranges: Sequence[ByteRange], gap: int = BRIDGED_GAP) -> Layout:
    """Extents that cover `ranges`, and the place of each range in the buffer that they fill.

    Ranges up to `gap` bytes apart share an extent; with 0, only those that share a block.
    """
    order = sorted(range(len(ranges)), key=lambda i: (str(ranges[i].file), ranges[i].offset))
    groups: list[list[int]] = []
    end = 0
    for i in order:
        current = ranges[i]
        near = current.offset <= end + gap or current.offset // BLOCK * BLOCK < round_up(end)
        if groups and near and ranges[groups[-1][0]].file == current.file:
            groups[-1].append(i)
            end = max(end, current.end)
        else:
            groups.append([i])
            end = current.end
    extents: list[Extent] = []
    places = [0] * len(ranges)
    position = 0
    for group in groups:
        first = ranges[group[0]]
        offset = first.offset // BLOCK * BLOCK
        last = max(ranges[i].end for i in group)
        extents.append(Extent(first.file, offset, round_up(last - offset), last - offset, position))
        for i in group:
            places[i] = position + ranges[i].offset - offset
        position += extents[-1].nbytes
    return Layout(tuple(extents), tuple(places), position)
