"""Draws blocks of a transcript: cards, then each row's grounds, cues, selection and text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from app.chat.blocks import Block, Moment, Place, Style
from app.chat.cells import CellKind, Entry, Reply
from app.chat.document import Document, Span
from app.chat.selection import Selection
from app.chat.thinking_label import thinking_label
from app.chat.token_fonts import TokenFonts
from app.chat.token_layout import NEWLINE, TokenLayout
from app.chat.token_marks import MarkBatch
from app.chat.token_style import token_styles
from app.theme import Theme

OVERHANG = 6
"""Pixels by which cues may reach over the row above or below."""
_RADIUS = 10.0


@dataclass(frozen=True, slots=True)
class _Row:
    """One row that is being painted. `top` and `bottom` are those of the tokens' grounds."""

    block: Block
    entry: Entry
    layout: TokenLayout
    pieces: range
    spans: list[Span]
    left: float
    top: float
    bottom: float
    baseline: float

    def rects(self) -> Iterator[tuple[int, float, float]]:
        """Each piece with its left and right edge; white space that hangs before the row is cut off."""
        left = self.left
        for piece, (x0, x1) in zip(self.pieces, self.spans, strict=True):
            yield piece, left + max(0.0, x0), left + max(0.0, x1)


class TranscriptPainter:
    """Paints blocks of a document in one theme. Coordinates are the document's."""

    def __init__(self, document: Document, fonts: TokenFonts, theme: Theme) -> None:
        self.document = document
        self.fonts = fonts
        self.set_theme(theme)
        self.moment: Moment | None = None
        """The round that is looked at."""
        self.pieces_painted = 0
        """Since the beginning; tests bound the work with it."""

    def set_theme(self, theme: Theme) -> None:
        """Use another palette from now on."""
        self.theme = theme
        self.styles = token_styles(theme)
        self.dimmed = token_styles(theme, dimmed=True)
        self._error, self._muted = QColor(theme.error), QColor(theme.muted)
        self._selected = QColor(theme.accent)
        self._selected.setAlpha(70)

    def paint_block(
        self, painter: QPainter, index: int, clip: QRectF, selection: Selection, cursor: tuple[int, int] | None
    ) -> None:
        """Paint what lies in `clip` of one laid-out block; `cursor` is (entry, cell) of an outlined token."""
        block = self.document.blocks[index]
        if self.moment is not None and self.moment.travel and block.entry > self.moment.entry:
            return
        self._paint_card(painter, index, block)
        if block.layout is None:
            return
        first = self.document.row_at(index, clip.top() - OVERHANG)
        last = self.document.row_at(index, clip.bottom() + OVERHANG)
        rows = [self._row(index, block, block.layout, number) for number in range(first, last + 1)]
        self.pieces_painted += sum(len(row.pieces) for row in rows)
        styles = self.dimmed if block.style is Style.THINKING else self.styles
        batch = MarkBatch(styles)
        entry = self.document.entries[block.entry]
        if isinstance(entry, Reply):
            self._paint_grounds(painter, rows, entry, batch)
        for row in rows:
            if not selection.empty:
                self._paint_selection(painter, row, selection)
            self._paint_texts(painter, row, batch)
            if cursor is not None and cursor[0] == block.entry:
                self._paint_cursor(painter, row, cursor[1])
        batch.draw_strikes(painter)

    def token_rect(self, index: int, number: int, piece: int) -> QRectF:
        """The ground of one piece."""
        block = self.document.blocks[index]
        assert block.layout is not None
        row = self._row(index, block, block.layout, number)
        left, right = next(((x0, x1) for p, x0, x1 in row.rects() if p == piece), (0.0, 0.0))
        return QRectF(left, row.top, right - left, row.bottom - row.top)

    def _row(self, index: int, block: Block, layout: TokenLayout, number: int) -> _Row:
        metrics = self.fonts.small_metrics if block.small else self.fonts.metrics
        top = self.document.row_top(index, number) + (self.document.line_height(block) - metrics.height()) / 2
        pieces, spans = layout.row(number), self.document.spans(index, number)
        moment = self.moment
        if moment is not None and moment.travel and moment.entry == block.entry:
            said = bisect_left(pieces, moment.end, key=layout.token.__getitem__)  # what came later is not shown
            pieces, spans = pieces[:said], spans[:said]
        return _Row(
            block=block,
            entry=self.document.entries[block.entry],
            layout=layout,
            pieces=pieces,
            spans=spans,
            left=self.document.text_left(block),
            top=top - 1,
            bottom=top + metrics.height() + 1,
            baseline=top + metrics.ascent(),
        )

    # Cards and labels

    def _paint_card(self, painter: QPainter, index: int, block: Block) -> None:
        document, geometry = self.document, self.document.geometry
        top, bottom = document.text_top(index), document.text_bottom(index)
        if block.card:
            left = document.text_left(block) - geometry.pad
            width = (block.content if block.style is Style.USER else document.text_width(block)) + 2 * geometry.pad
            # Where the card goes on in another block, its rounded end lies outside of what is painted.
            above = geometry.pad if block.opens else 2 * _RADIUS
            below = geometry.pad if block.closes else 2 * _RADIUS
            card = QRectF(left, top - above, width, bottom - top + above + below)
            ground = self.theme.error_soft if block.style is Style.ERROR else self.theme.sunken
            painter.save()
            whole = QRectF(left, document.tops[index], width, block.height)
            painter.setClipRect(whole, Qt.ClipOperation.IntersectClip)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            path = QPainterPath()
            path.addRoundedRect(card, _RADIUS, _RADIUS)
            painter.fillPath(path, QColor(ground))
            painter.restore()
        elif block.style is Style.THINKING:
            painter.fillRect(QRectF(geometry.left, top, 2.0, bottom - top), QColor(self.theme.border_strong))
        if block.label:
            painter.setFont(self.fonts.label)
            painter.setPen(QColor(self.theme.muted))
            baseline = top - geometry.label + self.fonts.small_metrics.ascent()
            painter.drawText(QPointF(geometry.left, baseline), self._label(block))

    def _label(self, block: Block) -> str:
        entry = self.document.entries[block.entry]
        return thinking_label(entry, entry in self.document.folded) if isinstance(entry, Reply) else block.label

    # Rows

    def _paint_grounds(self, painter: QPainter, rows: list[_Row], reply: Reply, batch: MarkBatch) -> None:
        ticks = []
        for row in rows:
            layout, token = row.layout, row.layout.token
            for piece, left, right in row.rects():
                cell = token[piece]
                ends = piece + 1 == len(token) or token[piece + 1] != cell
                batch.add(reply.kind(cell), left, row.top, right, row.bottom, last=ends)
                if cell and reply.starts_round(cell) and layout.start(piece) == 0:
                    ticks.append(QLineF(left, row.bottom + 1, left, row.bottom + 5))
        self._paint_round(painter, rows)
        batch.draw_grounds(painter)
        painter.setPen(QPen(QColor(self.theme.border_strong), 1))
        painter.drawLines(ticks)

    def _paint_round(self, painter: QPainter, rows: list[_Row]) -> None:
        """A band behind the tokens of the round that is looked at."""
        moment = self.moment
        if moment is None:
            return
        for row in rows:
            inside = [(x0, x1) for p, x0, x1 in row.rects() if moment.first <= row.layout.token[p] < moment.end]
            if inside and row.block.entry == moment.entry:
                left, right = min(x0 for x0, _ in inside), max(x1 for _, x1 in inside)
                band = QRectF(left - 1, row.top - 3, right - left + 2, row.bottom - row.top + 6)
                painter.fillRect(band, QColor(self.theme.border_strong))
                painter.fillRect(band.adjusted(1, 1, -1, -1), QColor(self.theme.accent_soft))

    def _paint_texts(self, painter: QPainter, row: _Row, batch: MarkBatch) -> None:
        smalls = self.document.smalls(row.block, row.pieces)
        texts = [row.layout.text[piece] for piece in row.pieces]
        shaped = self.fonts.shape(texts, smalls) is not None
        if shaped:
            painter.setPen(self._ink(row.block, CellKind.PLAIN))
            whole = self.fonts.shaped_row(texts, smalls)
            whole.draw(painter, QPointF(row.left, row.baseline - whole.lineAt(0).ascent()))
        ink = None
        for piece, (left, right), small, text in zip(row.pieces, row.spans, smalls, texts, strict=True):
            kind = row.entry.kind(row.layout.token[piece])
            if text == NEWLINE:
                self._paint_newline(painter, row.entry, QPointF(row.left + left, row.baseline))
                ink = None
            elif not shaped and not text.isspace():
                if ink is not (ink := self._ink(row.block, kind)):
                    painter.setPen(ink)
                self.fonts.draw(painter, row.left + left, row.baseline, text, small)
            if kind.ghost:
                y = row.baseline - self.fonts.small_metrics.xHeight() / 2
                batch.strike(kind, row.left + max(0.0, left), row.left + right, y)

    def _ink(self, block: Block, kind: CellKind) -> QColor:
        if block.style is Style.ERROR:
            return self._error
        if block.style is Style.NOTE:
            return self._muted
        return (self.dimmed if block.style is Style.THINKING else self.styles)[kind].text

    def _paint_newline(self, painter: QPainter, entry: Entry, at: QPointF) -> None:
        if isinstance(entry, Reply):
            painter.setPen(self._muted)
            self.fonts.draw(painter, at.x(), at.y(), NEWLINE, True)

    # Selection and cursor

    def _paint_selection(self, painter: QPainter, row: _Row, selection: Selection) -> None:
        small = row.block.small
        for (piece, left, right), span in zip(row.rects(), row.spans, strict=True):
            x0, x1 = left, right
            text, cell = row.layout.text[piece], row.layout.token[piece]
            low, high = selection.inside(Place(row.block.entry, cell, row.layout.start(piece)), len(text))
            if low >= high or row.entry.kind(cell).ghost:
                continue
            if low > 0 or high < len(text):
                scale = (span[1] - span[0]) / (self.fonts.width(text, small) or 1.0)
                start = row.left + span[0]
                x0, x1 = (start + self.fonts.width(text[:count], small) * scale for count in (low, high))
            painter.fillRect(QRectF(x0, row.top, x1 - x0, row.bottom - row.top), self._selected)

    def _paint_cursor(self, painter: QPainter, row: _Row, cell: int) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self.theme.accent), 1.6))
        for piece, left, right in row.rects():
            if row.layout.token[piece] == cell:
                rect = QRectF(left - 0.5, row.top - 1, right - left + 1, row.bottom - row.top + 2)
                painter.drawRoundedRect(rect, 3, 3)
        painter.restore()
