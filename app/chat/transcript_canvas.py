"""The canvas of the transcript: custom-painted, virtualised, repaints only what changed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from app.chat.blocks import Geometry, Moment, Place
from app.chat.cells import Reply
from app.chat.document import Document
from app.chat.selection import Selection
from app.chat.token_fonts import TokenFonts, column_width
from app.chat.transcript_model import TranscriptModel
from app.chat.transcript_painter import OVERHANG, TranscriptPainter
from app.theme import Theme, current_theme

SLICE_CELLS = 1500
"""Cells laid out per turn of the event loop while nobody waits for them."""
_MARGIN = 24
_FOOT = 24
_LINE = 1.5


class TranscriptCanvas(QAbstractScrollArea):
    """Shows a `TranscriptModel`: layout on demand, scrolling, painting.

    The view sticks to the end while text arrives, unless the person scrolled up. Whatever changes the layout (width,
    font, ghosts, estimates that become exact) keeps the top visible token where it is.
    """

    laid_out = Signal()
    """Every block has its final height."""
    caught_up = Signal()
    """What is new in the transcript is shown."""
    scrolled = Signal(int)
    """The text moved by so many pixels."""

    def __init__(self, model: TranscriptModel, theme: Theme | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = model
        self._theme = theme or current_theme()
        self._fonts = TokenFonts(self.font())
        self.document = Document(self._fonts.measure, self._geometry(), self._fonts.shape)
        self.painter = TranscriptPainter(self.document, self._fonts, self._theme)
        self.selection = Selection()
        self.cursor_cell: tuple[int, int] | None = None
        self._sticky = True
        self._still = False
        """While set, moving the scroll bar moves no pixels: the text stays where it is."""
        self._held: tuple[int, int, float] | None = None
        """The anchor of the last new layout, until somebody scrolls: there and back again ends where it began."""
        self._slices = QTimer(self, singleShot=True, interval=0)
        self._slices.timeout.connect(self._lay_out_slice)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        model.appended.connect(self._on_appended)
        model.reset.connect(self._on_reset)
        self._on_reset()

    # What it shows

    @property
    def show_refused(self) -> bool:
        """Whether refused and unused drafts are shown where they stood."""
        return self.document.show_refused

    @show_refused.setter
    def show_refused(self, on: bool) -> None:
        if on != self.document.show_refused:
            self.document.show_refused = on
            self._relayout()

    def set_show_refused(self, on: bool) -> None:
        """The same as the property, for signals."""
        self.show_refused = on

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self._theme = theme
        self.painter.set_theme(theme)
        self.viewport().update()

    def scroll_to_end(self) -> None:
        """Go to the newest text, and stay there."""
        self._sticky = True
        self._settle()

    def show_start(self) -> None:
        """Show the beginning, and stay there when the rest is laid out."""
        self.verticalScrollBar().setValue(0)
        self._sticky = False

    @property
    def at_end(self) -> bool:
        """Whether the view follows the newest text."""
        return self._sticky

    def reveal(self, entry: int, cell: int) -> None:
        """Scroll as little as needed to show a cell."""
        if self.document.hides(entry, cell):
            self.fold_thinking(entry, False)
        index = self.document.block_of(entry, cell)
        self._lay_out_keeping([index])
        for block, row, _ in self.document.pieces_of(entry, cell):
            top = self.document.row_top(block, row)
            bottom = top + self.document.line_height(self.document.blocks[block])
            bar, height = self.verticalScrollBar(), self.viewport().height()
            if top - OVERHANG < bar.value():
                bar.setValue(int(top) - OVERHANG)
            elif bottom + OVERHANG > bar.value() + height:
                bar.setValue(int(bottom) + OVERHANG - height)
            break
        self._settle()

    def show_round(self, entry: int, number: int, *, travel: bool) -> None:
        """Mark a round (its index among the reply's); with `travel`, show nothing that was said after it."""
        reply = self.document.entries[entry]
        assert isinstance(reply, Reply)
        first, end = (bisect(range(len(reply)), number, key=reply.round_of) for bisect in (bisect_left, bisect_right))
        self.painter.moment = Moment(entry, first, end, travel)
        if travel and first < end:
            self.reveal(entry, end - 1)
            self.reveal(entry, first)
        self.viewport().update()

    def leave_round(self) -> None:
        """Show everything again, and no round."""
        if self.painter.moment is not None:
            self.painter.moment = None
            self.viewport().update()

    def fold_thinking(self, entry: int, folded: bool) -> None:
        """Fold a reply's thinking away or show it again; what is in view below it stays where it is."""
        anchor, sticky = self._anchor(), self._sticky
        self.document.fold(entry, folded)
        self._update_range()
        if anchor is not None and not sticky and not self.document.hides(*anchor[:2]):
            self._restore(*anchor)
        self._sticky = sticky
        self._settle()
        self.viewport().update()

    def thinking_at(self, point: QPointF) -> int | None:
        """The entry whose thinking's label is under a point of the viewport."""
        y = point.y() + self.verticalScrollBar().value()
        index = self.document.block_at(y)
        if index < 0:
            return None
        block, top = self.document.blocks[index], self.document.text_top(index)
        left = self.document.geometry.left
        inside = (
            top - self.document.geometry.label <= y < top and left <= point.x() < left + self.document.geometry.column
        )
        return block.entry if block.label and inside else None

    def thinking_row(self) -> QRect | None:
        """See `answer_now.ThinkingView`."""
        entries, reply = self.document.entries, self.model.active_reply
        entry = next((i for i in reversed(range(len(entries))) if entries[i] is reply), -1)
        if entry < 0 or not len(entries[entry]):
            return None
        index = self.document.block_of(entry, 0)
        block, geometry = self.document.blocks[index], self.document.geometry
        if block.entry != entry or not block.label:
            return None
        top = self.document.text_top(index) - geometry.label - self.verticalScrollBar().value()
        return QRectF(geometry.left, top, geometry.column, geometry.label).toAlignedRect()

    # The model's news

    def _on_appended(self, first: int) -> None:
        dirty = self.document.sync(self.model.entries, first)
        self._settle()
        top = int(dirty) - self.verticalScrollBar().value() - OVERHANG
        height = self.viewport().height()
        if top < height:
            top = max(0, top)
            self.viewport().update(QRect(0, top, self.viewport().width(), height - top))
        self.caught_up.emit()

    def _on_reset(self) -> None:
        self.document.clear()
        self.selection = Selection()
        self.cursor_cell = None
        self.painter.moment = None
        self._sticky, self._held = True, None
        self.document.sync(self.model.entries, 0)
        self._settle()
        self.viewport().update()

    # Layout

    def _geometry(self) -> Geometry:
        metrics, small = self._fonts.metrics, self._fonts.small_metrics
        room = max(80, self.viewport().width() - 2 * _MARGIN)
        column = min(room, column_width(self._fonts.body))
        return Geometry(
            left=_MARGIN + (room - column) // 2,
            column=column,
            line=round(metrics.height() * _LINE),
            small_line=round(small.height() * 1.35),
            label=round(small.height() * 1.5),
            average=metrics.averageCharWidth(),
            gap=round(metrics.height() * 1.25),
            pad=12,
        )

    def _window(self) -> Iterator[int]:
        """Blocks that reach into the viewport."""
        document, top = self.document, self.verticalScrollBar().value()
        bottom = top + self.viewport().height()
        index = document.block_at(top)
        while 0 <= index < len(document.blocks) and document.tops[index] <= bottom:
            yield index
            index += 1

    def _settle(self) -> None:
        """Lay out what is visible, and bring the scroll bar up to date."""
        self._update_range()
        for _ in range(16):
            if not self.document.lay_out(list(self._window())):
                break
            self._update_range()
            self.viewport().update()
        if self.document.waiting:
            self._slices.start()

    def _update_range(self) -> None:
        bar, height = self.verticalScrollBar(), self.viewport().height()
        sticky = self._sticky
        bar.setPageStep(height)
        bar.setSingleStep(int(self.document.geometry.line))
        bar.setRange(0, max(0, int(self.document.height) + _FOOT - height))
        if sticky:
            bar.setValue(bar.maximum())
        self._sticky = sticky

    def _lay_out_slice(self) -> None:
        """Lay out some of the blocks that nobody looks at, the nearest first."""
        near = self.document.block_at(self.verticalScrollBar().value())
        self._lay_out_keeping(self.document.unlaid(near, SLICE_CELLS))
        if self.document.waiting:
            self._slices.start()
        else:
            self.laid_out.emit()

    def _lay_out_keeping(self, indices: list[int]) -> None:
        """Lay blocks out without moving what is visible."""
        document, bar = self.document, self.verticalScrollBar()
        anchor = document.block_at(bar.value())
        if anchor < 0:
            return
        before = document.text_top(anchor)
        document.lay_out(indices)
        shift = document.text_top(anchor) - before
        self._still, sticky = True, self._sticky
        self._update_range()
        if not sticky:
            bar.setValue(bar.value() + round(shift))
        self._still, self._sticky = False, sticky

    def _relayout(self) -> None:
        """Everything is laid out anew; the top visible token stays where it is."""
        anchor, sticky = self._anchor(), self._sticky
        self.document.relayout(self._geometry(), self._fonts.measure)
        self._update_range()
        self._sticky = sticky
        if anchor is not None and not sticky:
            self._restore(*anchor)
            self._sticky = False
        self._settle()
        self.viewport().update()

    def _anchor(self) -> tuple[int, int, float] | None:
        """(entry, cell, y on screen) of the first cell in view that every layout has."""
        if self._held is not None and not self.document.hides(*self._held[:2]):
            return self._held
        top = self.verticalScrollBar().value()
        for index in self._window():
            block = self.document.blocks[index]
            if block.layout is None or not block.layout.pieces:
                continue
            entry = self.document.entries[block.entry]
            for row in range(self.document.row_at(index, top), block.layout.rows):
                y = self.document.row_top(index, row) - top
                cell = next((c for c in block.layout.tokens_from(row) if not entry.kind(c).ghost), None)
                if cell is not None and y >= 0:
                    return block.entry, cell, y
        return None

    def _restore(self, entry: int, cell: int, y: float) -> None:
        """Scroll so that a cell's row is at height `y` of the viewport, with all that is in view laid out."""
        self.document.lay_out([self.document.block_of(entry, cell)])
        before = None
        for _ in range(16):  # what comes into view above the cell and is laid out there moves the cell
            self._update_range()
            piece = next(iter(self.document.pieces_of(entry, cell)), None)
            wanted = before if piece is None else round(self.document.row_top(piece[0], piece[1]) - y)
            if wanted is None or wanted == before:
                break
            before = wanted
            self.verticalScrollBar().setValue(wanted)
            self.document.lay_out(list(self._window()))
        self._held = (entry, cell, y)

    # Qt's calls

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the exposed part."""
        scroll = self.verticalScrollBar().value()
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), QColor(self._theme.surface))
        painter.translate(0, -scroll)
        clip = QRectF(event.rect()).translated(0, scroll)
        for index in self._window():
            if self.document.tops[index] - OVERHANG <= clip.bottom():
                self.painter.paint_block(painter, index, clip, self.selection, self.cursor_cell)
        painter.end()

    def scrollContentsBy(self, _dx: int, dy: int) -> None:
        """Move the pixels that stay visible; Qt asks for the rest."""
        if not self._still:
            self.viewport().scroll(0, dy)
            self.scrolled.emit(dy)

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Another width needs other rows; another height only another window."""
        if self._geometry() != self.document.geometry:
            self._relayout()
        else:
            self._settle()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the font."""
        if event.type() == QEvent.Type.FontChange:
            self._fonts = TokenFonts(self.font())
            self.document.set_shaper(self._fonts.shape)
            self.painter.fonts = self._fonts
            self._relayout()
        super().changeEvent(event)

    def _on_scrolled(self, value: int) -> None:
        if not self._still:
            self._held = None
            self._sticky = value >= self.verticalScrollBar().maximum() - int(self.document.geometry.line) // 2
            if self.document.lay_out_needed(self._window()):
                self._settle()

    # Places and points

    def place_at(self, point: QPointF) -> Place:
        """The place between two characters that is nearest to a point of the viewport."""
        document, y = self.document, point.y() + self.verticalScrollBar().value()
        index = document.block_at(y)
        if index < 0:
            return Place(0, 0, 0)
        document.lay_out([index])
        block = document.blocks[index]
        layout = block.layout
        if layout is None:
            return Place(block.entry, block.first, 0)
        x = point.x() - document.text_left(block)
        row = document.row_at(index, y)
        if y >= document.text_bottom(index) + document.geometry.pad:
            return Place(block.entry, block.last, 0)
        best = Place(block.entry, block.first, 0)
        for piece, (left, right) in zip(layout.row(row), document.spans(index, row), strict=True):
            if x < left and piece != layout.row(row)[0]:
                break
            offset = self._offset_in(layout.text[piece], block.small, (x - left) / max(1e-6, right - left))
            best = Place(block.entry, layout.token[piece], layout.start(piece) + offset)
        return best

    def _offset_in(self, text: str, small: bool, share: float) -> int:
        """How many characters lie left of a point at `share` of a piece's width."""
        if share <= 0 or text == "\n":
            return 0
        width = self._fonts.width(text, small)
        low, high = 0, len(text)
        while low < high:
            middle = (low + high) // 2
            edge = (self._fonts.width(text[:middle], small) + self._fonts.width(text[: middle + 1], small)) / 2
            if edge <= share * width:
                low = middle + 1
            else:
                high = middle
        return low

    def rect_of(self, entry: int, cell: int) -> QRect:
        """Where a cell is in the viewport; empty if it is not laid out."""
        whole = QRectF()
        for block, row, piece in self.document.pieces_of(entry, cell):
            whole = whole.united(self.painter.token_rect(block, row, piece))
        return whole.translated(0, -self.verticalScrollBar().value()).toAlignedRect()

    def cell_at(self, point: QPointF) -> tuple[int, int] | None:
        """(entry, cell) under a point of the viewport."""
        hit = self.document.hit(point.x(), point.y() + self.verticalScrollBar().value())
        if hit is None:
            return None
        block = self.document.blocks[hit.block]
        assert block.layout is not None
        return block.entry, block.layout.token[hit.piece]
