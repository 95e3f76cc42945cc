"""Draws rows of tokens: grounds first, then cues, then text, then selection and cursor."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from app.chat.cells import CellKind, Reply
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


class TranscriptPainter:
    """Paints blocks of a document in one theme. Coordinates are the document's."""

    def __init__(self, document: Document, fonts: TokenFonts, theme: Theme) -> None:
        self.document = document
        self.fonts = fonts
        self.set_theme(theme)
        self.cells_painted = 0
        """Pieces painted since the beginning; tests bound the work with it."""

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
        line = self.document.line_height(block)
        first = self.document.row_at(index, clip.top() - OVERHANG)
        last = self.document.row_at(index, clip.bottom() + OVERHANG)
        for row in range(first, last + 1):
            self._paint_row(painter, index, block, row, line, selection, cursor)

    def token_rect(self, index: int, row: int, span: Span) -> QRectF:
        """The ground of one piece."""
        block = self.document.blocks[index]
        metrics = self.fonts.small_metrics if block.small else self.fonts.metrics
        line = self.document.line_height(block)
        left, right = max(0.0, span[0]), max(0.0, span[1])
        top = self.document.row_top(index, row) + (line - metrics.height()) / 2 - 1
        return QRectF(self.document.text_left(block) + left, top, right - left, metrics.height() + 2)

    # Cards and labels

    def _paint_card(self, painter: QPainter, index: int, block: Block) -> None:
        document, geometry = self.document, self.document.geometry
        top, bottom = document.text_top(index), document.text_bottom(index)
        if block.style in (Style.USER, Style.ERROR):
            left = document.text_left(block) - geometry.pad
            width = (block.content if block.style is Style.USER else document.text_width(block)) + 2 * geometry.pad
            above = geometry.pad if block.opens else _RADIUS
            below = geometry.pad if block.closes else _RADIUS
            card = QRectF(left, top - above, width, bottom - top + above + below)
            ground = self.theme.sunken if block.style is Style.USER else self.theme.error_soft
            painter.save()
            painter.setClipRect(QRectF(left, document.tops[index], width, block.height), Qt.ClipOperation.IntersectClip)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            path = QPainterPath()
            path.addRoundedRect(card, _RADIUS, _RADIUS)
            painter.fillPath(path, QColor(ground))
            painter.restore()
        elif block.style is Style.THINKING:
            painter.fillRect(QRectF(geometry.left, top, 2.0, bottom - top), QColor(self.theme.border))
        if block.label:
            painter.setFont(self.fonts.label)
            painter.setPen(QColor(self.theme.muted))
            baseline = top - geometry.label + self.fonts.small_metrics.ascent()
            painter.drawText(QPointF(geometry.left, baseline), block.label)

    # Rows

    def _paint_row(
        self,
        painter: QPainter,
        index: int,
        block: Block,
        row: int,
        line: float,
        selection: Selection,
        cursor: tuple[int, int] | None,
    ) -> None:
        layout = block.layout
        assert layout is not None
        pieces, spans = layout.row(row), self.document.spans(index, row)
        rects = [self.token_rect(index, row, span) for span in spans]
        self.cells_painted += len(pieces)
        entry = self.document.entries[block.entry]
        if isinstance(entry, Reply):
            for piece, rect in zip(pieces, rects, strict=True):
                self._paint_ground(painter, entry, layout, piece, rect)
        if not selection.empty:
            self._paint_selection(painter, block, pieces, spans, rects, selection)
        self._paint_texts(painter, index, block, row, pieces, spans)
        if cursor is not None and cursor[0] == block.entry:
            for piece, rect in zip(pieces, rects, strict=True):
                if layout.token[piece] == cursor[1]:
                    self._paint_cursor(painter, rect)

    def _paint_ground(self, painter: QPainter, reply: Reply, layout: TokenLayout, piece: int, rect: QRectF) -> None:
        cell = layout.token[piece]
        style = self.styles[reply.kind(cell)]
        paint_cue(painter, style, rect, last=self._ends_cell(layout, piece))
        if layout.start[piece] == 0 and cell and reply.starts_round(cell):
            painter.setPen(QPen(QColor(self.theme.border_strong), 1))
            painter.drawLine(QLineF(rect.left(), rect.bottom() - 1, rect.left(), rect.bottom() + 4))

    @staticmethod
    def _ends_cell(layout: TokenLayout, piece: int) -> bool:
        return piece + 1 == layout.pieces or layout.token[piece + 1] != layout.token[piece]

    def _paint_texts(
        self, painter: QPainter, index: int, block: Block, row: int, pieces: range, spans: list[Span]
    ) -> None:
        layout, document = block.layout, self.document
        assert layout is not None
        metrics = self.fonts.small_metrics if block.small else self.fonts.metrics
        baseline = document.row_top(index, row) + (document.line_height(block) - metrics.height()) / 2 + metrics.ascent()
        left = document.text_left(block)
        smalls = document.smalls(block, pieces)
        entry = document.entries[block.entry]
        texts = [layout.text[p] for p in pieces]
        shaped = self.fonts.shape(texts, smalls) is not None
        if shaped:
            painter.setPen(self._ink(block, CellKind.PLAIN))
            line_layout = self.fonts.shaped_row(texts, smalls)
            line_layout.draw(painter, QPointF(left, baseline - line_layout.lineAt(0).ascent()))
        for piece, span, small, text in zip(pieces, spans, smalls, texts, strict=True):
            kind = entry.kind(layout.token[piece])
            if not shaped and not text.isspace():
                painter.setFont(self.fonts.small if small else self.fonts.body)
                painter.setPen(self._ink(block, kind))
                painter.drawText(QPointF(left + span[0], baseline), shown(text))
            elif text == NEWLINE and isinstance(entry, Reply):
                self._paint_newline(painter, left + span[0], baseline, kind)
            if kind.ghost:
                y = baseline - self.fonts.small_metrics.xHeight() / 2
                paint_strike(painter, self.styles[kind], left + max(0.0, span[0]), left + span[1], y)

    def _ink(self, block: Block, kind: CellKind) -> QColor:
        if block.style is Style.ERROR:
            return QColor(self.theme.error)
        if block.style in (Style.NOTE, Style.THINKING):
            return QColor(self.theme.muted)
        return self.styles[kind].text

    def _paint_newline(self, painter: QPainter, x: float, baseline: float, kind: CellKind) -> None:
        painter.setFont(self.fonts.small)
        painter.setPen(QColor(self.theme.faint))
        if kind is not CellKind.PLAIN:
            painter.setPen(QColor(self.theme.muted))
        painter.drawText(QPointF(x, baseline), shown(NEWLINE))

    # Selection and cursor

    def _paint_selection(
        self,
        painter: QPainter,
        block: Block,
        pieces: range,
        spans: list[Span],
        rects: list[QRectF],
        selection: Selection,
    ) -> None:
        layout = block.layout
        assert layout is not None
        for piece, span, rect in zip(pieces, spans, rects, strict=True):
            text, start = layout.text[piece], layout.start[piece]
            at = Place(block.entry, layout.token[piece], start)
            low, high = selection.inside(at, len(text))
            if low >= high or self.document.entries[block.entry].kind(at.cell).ghost:
                continue
            if low == 0 and high == len(text):
                painter.fillRect(rect, self._selected)
                continue
            scale = (span[1] - span[0]) / (self.fonts.width(text, block.small) or 1.0)
            left = rect.left() - max(0.0, span[0]) + span[0]
            x0 = left + self.fonts.width(text[:low], block.small) * scale
            x1 = left + self.fonts.width(text[:high], block.small) * scale
            painter.fillRect(QRectF(x0, rect.top(), x1 - x0, rect.height()), self._selected)

    def _paint_cursor(self, painter: QPainter, rect: QRectF) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self.theme.accent), 1.5))
        painter.drawRoundedRect(rect.adjusted(-0.5, -1, 0.5, 1), 3, 3)
        painter.restore()
