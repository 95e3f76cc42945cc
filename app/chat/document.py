"""Where everything of a transcript stands: blocks from top to bottom, laid out only when somebody looks. No widgets.

A block is at most a couple of thousand cells of one entry, of one style. Blocks that were never looked at have an
estimated height, so opening a conversation costs the same whatever its length; whoever shows it keeps the scroll
position by an anchor while estimates become exact.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from weakref import WeakSet

from app.chat.blocks import Block, Geometry, Hit, Style, end_of, is_full, style_of
from app.chat.cells import CellKind, Entry, Reply
from app.chat.token_layout import Measure, TokenLayout
from app.language import tr

Span = tuple[float, float]
Shaper = Callable[[Sequence[str], Sequence[bool]], "list[Span] | None"]
"""Left and right edge of each piece of a row of text that is not simply set from left to right, else None."""


_MOST_AT_ONCE = 100


class Document:
    """All blocks of a transcript, their tops and their layouts."""

    def __init__(
        self, measure: Callable[[str, bool], Measure], geometry: Geometry, shape: Shaper | None = None
    ) -> None:
        self._measure = measure
        self._shape = shape
        self.geometry = geometry
        self.show_refused = True
        self.blocks: list[Block] = []
        self.tops: list[float] = []
        self.height = 0.0
        self.entries: Sequence[Entry] = ()
        self._shown: list[Entry] = []
        self._lengths: list[int] = []
        self._dirty = 0.0
        self.folded: WeakSet[Entry] = WeakSet()
        """Replies whose thinking is folded away."""
        self._waiting: set[int] = set()
        """Blocks that are not laid out, but will be."""
        self.rows_laid = 0
        """Rows laid out since the beginning; tests bound the work with it."""

    # Growing

    def sync(self, entries: Sequence[Entry], first: int) -> float:
        """Take over entries from index `first` on. Returns the height from which on anything looks different."""
        self.entries = entries
        self._dirty = self.height
        keep = first = min(first, len(self._shown))
        while keep < min(len(self._shown), len(entries)) and entries[keep] is self._shown[keep]:
            keep += 1
        # What is gone goes first: an entry grows only at the end of the document.
        changed = self._drop_from(keep) if keep < len(self._shown) else len(self.blocks)
        for index in range(first, len(entries)):
            if index >= keep:
                self._shown.append(entries[index])
                self._lengths.append(0)
            changed = min(changed, self._grow(index))
        self._retop(changed)
        return self._dirty

    def clear(self) -> None:
        """Forget everything."""
        self.blocks, self.tops, self._shown, self._lengths = [], [], [], []
        self.height = 0.0
        self._waiting.clear()

    def relayout(self, geometry: Geometry | None = None, measure: Callable[[str, bool], Measure] | None = None) -> None:
        """Forget all layouts (the width, the font or the ghosts changed); heights become estimates."""
        self.geometry = geometry or self.geometry
        self._measure = measure or self._measure
        for block in self.blocks:
            block.layout = None
            self._estimate(block)
        self._waiting = {index for index, block in enumerate(self.blocks) if not self.is_folded(block)}
        self._retop(0)

    def lay_out(self, indices: Iterable[int]) -> bool:
        """Lay out those of the blocks that are not. Returns whether there were any."""
        fresh = sorted(index for index in indices if self._lacks_layout(index))
        for index in fresh:
            block = self.blocks[index]
            block.layout = TokenLayout(self.text_width(block), self._measure)
            block.laid = block.first
            self._fill(block)
        self._waiting.difference_update(fresh)
        if fresh:
            self._retop(fresh[0])
        return bool(fresh)

    def lay_out_needed(self, indices: Iterable[int]) -> bool:
        """Whether any of the blocks is not laid out."""
        return any(self._lacks_layout(index) for index in indices)

    def is_folded(self, block: Block) -> bool:
        """Whether nothing of a block is shown but its label."""
        return block.style is Style.THINKING and self._shown[block.entry] in self.folded

    def hides(self, entry: int, cell: int) -> bool:
        """Whether a cell of a reply is not shown: a ghost while those are off, or folded thinking."""
        content = self.entries[entry]
        if not isinstance(content, Reply):
            return False
        return (content.ghost(cell) and not self.show_refused) or (content in self.folded and content.thinking(cell))

    def fold(self, entry: int, folded: bool) -> None:
        """Fold a reply's thinking away, or show it again."""
        content = self._shown[entry]
        (self.folded.add if folded else self.folded.discard)(content)
        first = last = self.block_of(entry, 0)
        while last < len(self.blocks) and self.blocks[last].entry == entry:
            block = self.blocks[last]
            if block.style is Style.THINKING:
                block.layout = None
                self._estimate(block)
                (self._waiting.discard if folded else self._waiting.add)(last)
            last += 1
        self._retop(first)

    def set_shaper(self, shape: Shaper | None) -> None:
        """Use another font's shaping from now on; `relayout` follows."""
        self._shape = shape

    @property
    def waiting(self) -> int:
        """How many blocks are not laid out."""
        return len(self._waiting)

    def unlaid(self, near: int, cells: int) -> list[int]:
        """The blocks closest to block `near` that are not laid out yet: one, or several of at most `cells` cells."""
        found: list[int] = []
        for index in heapq.nsmallest(_MOST_AT_ONCE, self._waiting, key=lambda index: abs(index - near)):
            cells -= self.blocks[index].last - self.blocks[index].first
            if found and cells < 0:
                break
            found.append(index)
        return found

    # Asking

    def block_at(self, y: float) -> int:
        """The block at height `y`, the nearest one outside; -1 if there are none."""
        return min(len(self.blocks) - 1, max(0, bisect_right(self.tops, y) - 1))

    def block_of(self, entry: int, cell: int) -> int:
        """The block that holds a cell; the closest one if the cell is beyond the end."""
        low, high = 0, len(self.blocks) - 1
        while low < high:
            middle = (low + high + 1) // 2
            block = self.blocks[middle]
            if (block.entry, block.first) <= (entry, cell):
                low = middle
            else:
                high = middle - 1
        return low

    def line_height(self, block: Block) -> float:
        """Height of one row of a block."""
        return self.geometry.small_line if block.small else self.geometry.line

    def text_width(self, block: Block) -> float:
        """Width that a block's rows may have."""
        column, pad = self.geometry.column, self.geometry.pad
        if block.style is Style.USER:
            return column * 0.85 - 2 * pad
        return column - 2 * pad if block.style is Style.THINKING or block.card else column

    def text_left(self, block: Block) -> float:
        """Where a block's rows begin."""
        geometry = self.geometry
        if block.style is Style.USER:
            return geometry.left + geometry.column - geometry.pad - block.content
        return geometry.left + (geometry.pad if block.style is Style.THINKING or block.card else 0.0)

    def text_top(self, index: int) -> float:
        """Where a block's first row begins."""
        block = self.blocks[index]
        return self.tops[index] + self._above(block)

    def row_at(self, index: int, y: float) -> int:
        """The row of a laid-out block at height `y`, the nearest one outside."""
        block = self.blocks[index]
        rows = block.layout.rows if block.layout else 1
        return min(rows - 1, max(0, int((y - self.text_top(index)) // self.line_height(block))))

    def hit(self, x: float, y: float) -> Hit | None:
        """The piece under a point, in blocks that are laid out."""
        if not self.blocks or not 0 <= y < self.height:
            return None
        index = self.block_at(y)
        block = self.blocks[index]
        if block.layout is None or not self.text_top(index) <= y < self.text_bottom(index):
            return None
        row = self.row_at(index, y)
        inside = x - self.text_left(block)
        for piece, (left, right) in zip(block.layout.row(row), self.spans(index, row), strict=True):
            if left <= inside < right:
                return Hit(index, row, piece)
        return None

    def spans(self, index: int, row: int) -> list[Span]:
        """Left and right edge of each piece of a row, from the block's left edge."""
        block = self.blocks[index]
        layout = block.layout
        assert layout is not None
        pieces = layout.row(row)
        shaped = self._shape([layout.text[p] for p in pieces], self.smalls(block, pieces)) if self._shape else None
        return shaped or layout.spans(row)

    def smalls(self, block: Block, pieces: range) -> list[bool]:
        """Which of the pieces are set in the small font."""
        entry, layout = self._shown[block.entry], block.layout
        assert layout is not None
        if isinstance(entry, Reply):
            return [entry.ghost(layout.token[p]) for p in pieces]
        return [block.small] * len(pieces)

    def text_bottom(self, index: int) -> float:
        """Where a block's last row ends."""
        block = self.blocks[index]
        return self.tops[index] + block.height - self._below(block)

    def pieces_of(self, entry: int, cell: int) -> Iterator[tuple[int, int, int]]:
        """(block, row, piece) of each piece of a cell, in a laid-out block."""
        if not self.blocks:
            return
        index = self.block_of(entry, cell)
        layout = self.blocks[index].layout
        if layout is None or self.blocks[index].entry != entry:
            return
        piece = layout.first_piece_of(cell)
        while piece < layout.pieces and layout.token[piece] == cell:
            yield index, layout.row_of_piece(piece), piece
            piece += 1

    def row_top(self, index: int, row: int) -> float:
        """Where a row begins."""
        return self.text_top(index) + row * self.line_height(self.blocks[index])

    # Inside

    def _grow(self, index: int) -> int:
        """Give an entry's new cells to blocks. Returns the first block that changed."""
        entry, start = self._shown[index], self._lengths[index]
        changed = len(self.blocks)
        if start == len(entry):
            return changed
        self._lengths[index] = len(entry)
        last = self.blocks[-1] if self.blocks and self.blocks[-1].entry == index else None
        if last is not None:
            changed = len(self.blocks) - 1
        touched = [last] if last is not None else []
        cell = start
        while cell < len(entry):
            style = style_of(entry, cell)
            if last is None or last.style is not style or is_full(last, entry):
                thought = style is Style.THINKING and (last is None or last.style is not style)
                label = tr("Thinking") if thought else ""
                last = Block(index, style, cell, cell, opens=last is None, label=label)
                self.blocks.append(last)
                self.tops.append(0.0)
                if not self.is_folded(last):
                    self._waiting.add(len(self.blocks) - 1)
                touched.append(last)
            last.last = end_of(last, entry)
            text = "".join(entry.texts[cell : last.last])
            last.characters += len(text)
            last.newlines += text.count("\n")
            cell = last.last
        for block in touched:
            block.closes = block is last
            if block.layout is None:
                self._estimate(block)
            else:
                at = self.blocks.index(block, changed)
                row = self._fill(block)
                self._dirty = min(self._dirty, self.row_top(at, row))
        return changed

    def _lacks_layout(self, index: int) -> bool:
        return self.blocks[index].layout is None and not self.is_folded(self.blocks[index])

    def _drop_from(self, entry: int) -> int:
        """Remove the blocks of entries from `entry` on."""
        count = len(self.blocks)
        while count and self.blocks[count - 1].entry >= entry:
            count -= 1
        if count < len(self.blocks):
            self._dirty = min(self._dirty, self.tops[count])
            self._waiting.difference_update(range(count, len(self.blocks)))
        del self.blocks[count:], self.tops[count:], self._shown[entry:], self._lengths[entry:]
        return count

    def _fill(self, block: Block) -> int:
        """Append to a block's layout the cells that it lacks. Returns the first row that changed."""
        layout = block.layout
        assert layout is not None
        first = layout.append(self._cells(block))
        block.laid = block.last
        self.rows_laid += layout.rows - first
        widest = max(layout.row_end(row) for row in range(first, layout.rows))
        spans = block.style is Style.USER and not (block.opens and block.closes)
        block.content = self.text_width(block) if spans else max(widest, block.content if first else 0.0)
        block.height = self._above(block) + layout.rows * self.line_height(block) + self._below(block)
        return first

    def _cells(self, block: Block) -> Iterator[tuple[int, str, bool]]:
        entry, first = self._shown[block.entry], block.laid
        texts = entry.texts
        if not isinstance(entry, Reply):
            return ((cell, texts[cell], block.small) for cell in range(first, block.last))
        kinds = enumerate(entry.kinds(first, block.last), first)
        ghost = int(CellKind.REFUSED)
        if self.show_refused:
            return ((cell, texts[cell], kind >= ghost) for cell, kind in kinds)
        return ((cell, texts[cell], False) for cell, kind in kinds if kind < ghost)

    def _estimate(self, block: Block) -> None:
        width = self.text_width(block)
        rows = block.newlines + max(1, math.ceil(block.characters * self.geometry.average / width))
        block.content = width
        if self.is_folded(block):
            block.height = self._above(block) if block.label else 0.0
            return
        block.height = self._above(block) + rows * self.line_height(block) + self._below(block)

    def _above(self, block: Block) -> float:
        geometry = self.geometry
        above = (geometry.gap if block.style is not Style.NOTE else geometry.gap / 3) if block.opens else 0.0
        if block.label:
            above += geometry.label + (0.0 if block.opens else geometry.gap / 2)
        elif block.style is Style.ANSWER and not block.opens and block.first:
            previous = self._shown[block.entry]
            above += geometry.gap / 2 if style_of(previous, block.first - 1) is Style.THINKING else 0.0
        return above + (geometry.pad if block.card and block.opens else 0.0)

    def _below(self, block: Block) -> float:
        return self.geometry.pad if block.card and block.closes else 0.0

    def _retop(self, first: int) -> None:
        """Recompute tops from block `first` on."""
        y = self.tops[first - 1] + self.blocks[first - 1].height if first > 0 else 0.0
        for index in range(first, len(self.blocks)):
            self.tops[index] = y
            y += self.blocks[index].height
        self.height = y
