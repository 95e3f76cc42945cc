"""Draws blocks of a transcript: cards, then each row's grounds, cues, selection and text."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from app.chat.cells import CellKind, Entry, Reply
from app.chat.document import Block, Document, Place, Span, Style
from app.chat.selection import Selection
from app.chat.token_fonts import TokenFonts, shown
from app.chat.token_layout import NEWLINE, TokenLayout
from app.chat.token_marks import paint_cue, paint_strike
from app.chat.token_style import token_styles
from app.theme import Theme

OVERHANG = 6
"""Pixels by which cues may reach over the row above or below."""
_RADIUS = 10.0


@dataclass(frozen=True, slots=True)
class _Row:
    """One row that is being painted."""

    block: Block
    entry: Entry
    layout: TokenLayout
    pieces: range
    spans: list[Span]
    rects: list[QRectF]
    left: float
    baseline: float


class TranscriptPainter:
    """Paints blocks of a document in one theme. Coordinates are the document's."""

    def __init__(self, document: Document, fonts: TokenFonts, theme: Theme) -> None:
        self.document = document
        self.fonts = fonts
        self.set_theme(theme)
        self.pieces_painted = 0
        """Since the beginning; tests bound the work with it."""

    def set_theme(self, theme: Theme) -> None:
        """Use another palette from now on."""
        self.theme = theme
        self.styles = token_styles(theme)
        self._selected = QColor(theme.accent)
        self._selected.setAlpha(70)

    def paint_block(
        self, painter: QPainter, index: int, clip: QRectF, selection: Selection, cursor: tuple[int, int] | None
    ) -> None:
        """Paint what lies in `clip` of one laid-out block; `cursor` is (entry, cell) of an outlined token."""
        block = self.document.blocks[index]
        if block.layout is None:
            return
        self._paint_card(painter, index, block)
        first = self.document.row_at(index, clip.top() - OVERHANG)
        last = self.document.row_at(index, clip.bottom() + OVERHANG)
        for number in range(first, last + 1):
            row = self._row(index, block, block.layout, number)
            self.pieces_painted += len(row.pieces)
            self._paint_grounds(painter, row)
            if not selection.empty:
                self._paint_selection(painter, row, selection)
            self._paint_texts(painter, row)
            if cursor is not None and cursor[0] == block.entry:
                self._paint_cursor(painter, row, cursor[1])

    def token_rect(self, index: int, row: int, span: Span) -> QRectF:
        """The ground of one piece."""
        block = self.document.blocks[index]
        metrics = self.fonts.small_metrics if block.small else self.fonts.metrics
        left, right = max(0.0, span[0]), max(0.0, span[1])
        top = self.document.row_top(index, row) + (self.document.line_height(block) - metrics.height()) / 2 - 1
        return QRectF(self.document.text_left(block) + left, top, right - left, metrics.height() + 2)

    def _row(self, index: int, block: Block, layout: TokenLayout, number: int) -> _Row:
        metrics = self.fonts.small_metrics if block.small else self.fonts.metrics
        above = (self.document.line_height(block) - metrics.height()) / 2
        spans = self.document.spans(index, number)
        return _Row(
            block=block,
            entry=self.document.entries[block.entry],
            layout=layout,
            pieces=layout.row(number),
            spans=spans,
            rects=[self.token_rect(index, number, span) for span in spans],
            left=self.document.text_left(block),
            baseline=self.document.row_top(index, number) + above + metrics.ascent(),
        )

    # Cards and labels

    def _paint_card(self, painter: QPainter, index: int, block: Block) -> None:
        document, geometry = self.document, self.document.geometry
        top, bottom = document.text_top(index), document.text_bottom(index)
        if block.style in (Style.USER, Style.ERROR):
            left = document.text_left(block) - geometry.pad
            width = (block.content if block.style is Style.USER else document.text_width(block)) + 2 * geometry.pad
            # Where the card goes on in another block, its rounded end lies outside of what is painted.
            above = geometry.pad if block.opens else 2 * _RADIUS
            below = geometry.pad if block.closes else 2 * _RADIUS
            card = QRectF(left, top - above, width, bottom - top + above + below)
            ground = self.theme.sunken if block.style is Style.USER else self.theme.error_soft
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
            painter.drawText(QPointF(geometry.left, baseline), block.label)

    # Rows

    def _paint_grounds(self, painter: QPainter, row: _Row) -> None:
        if not isinstance(row.entry, Reply):
            return
        layout = row.layout
        for piece, rect in zip(row.pieces, row.rects, strict=True):
            cell = layout.token[piece]
            ends = piece + 1 == layout.pieces or layout.token[piece + 1] != cell
            paint_cue(painter, self.styles[row.entry.kind(cell)], rect, last=ends)
            if layout.start[piece] == 0 and cell and row.entry.starts_round(cell):
                painter.setPen(QPen(QColor(self.theme.border_strong), 1))
                painter.drawLine(QLineF(rect.left(), rect.bottom() + 1, rect.left(), rect.bottom() + 5))

    def _paint_texts(self, painter: QPainter, row: _Row) -> None:
        smalls = self.document.smalls(row.block, row.pieces)
        texts = [row.layout.text[piece] for piece in row.pieces]
        shaped = self.fonts.shape(texts, smalls) is not None
        if shaped:
            painter.setPen(self._ink(row.block, CellKind.PLAIN))
            whole = self.fonts.shaped_row(texts, smalls)
            whole.draw(painter, QPointF(row.left, row.baseline - whole.lineAt(0).ascent()))
        for piece, span, small, text in zip(row.pieces, row.spans, smalls, texts, strict=True):
            kind = row.entry.kind(row.layout.token[piece])
            at = QPointF(row.left + span[0], row.baseline)
            if text == NEWLINE:
                self._paint_newline(painter, row.entry, at)
            elif not shaped and not text.isspace():
                painter.setFont(self.fonts.small if small else self.fonts.body)
                painter.setPen(self._ink(row.block, kind))
                painter.drawText(at, shown(text))
            if kind.ghost:
                y = row.baseline - self.fonts.small_metrics.xHeight() / 2
                paint_strike(painter, self.styles[kind], row.left + max(0.0, span[0]), row.left + span[1], y)

    def _ink(self, block: Block, kind: CellKind) -> QColor:
        if block.style is Style.ERROR:
            return QColor(self.theme.error)
        if block.style in (Style.NOTE, Style.THINKING):
            return QColor(self.theme.muted)
        return self.styles[kind].text

    def _paint_newline(self, painter: QPainter, entry: Entry, at: QPointF) -> None:
        if isinstance(entry, Reply):
            painter.setFont(self.fonts.small)
            painter.setPen(QColor(self.theme.muted))
            painter.drawText(at, shown(NEWLINE))

    # Selection and cursor

    def _paint_selection(self, painter: QPainter, row: _Row, selection: Selection) -> None:
        for piece, span, rect in zip(row.pieces, row.spans, row.rects, strict=True):
            text, cell = row.layout.text[piece], row.layout.token[piece]
            low, high = selection.inside(Place(row.block.entry, cell, row.layout.start[piece]), len(text))
            if low >= high or row.entry.kind(cell).ghost:
                continue
            if low == 0 and high == len(text):
                painter.fillRect(rect, self._selected)
                continue
            small = row.block.small
            scale = (span[1] - span[0]) / (self.fonts.width(text, small) or 1.0)
            x0 = row.left + span[0] + self.fonts.width(text[:low], small) * scale
            x1 = row.left + span[0] + self.fonts.width(text[:high], small) * scale
            painter.fillRect(QRectF(x0, rect.top(), x1 - x0, rect.height()), self._selected)

    def _paint_cursor(self, painter: QPainter, row: _Row, cell: int) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self.theme.accent), 1.6))
        for piece, rect in zip(row.pieces, row.rects, strict=True):
            if row.layout.token[piece] == cell:
                painter.drawRoundedRect(rect.adjusted(-0.5, -1, 0.5, 1), 3, 3)
        painter.restore()
