"""The reading view: replies rendered, thinking folded, pictures small; only what is in sight is ever laid out."""

from __future__ import annotations

from bisect import bisect_right

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QAction,
    QColor,
    QDesktopServices,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QShowEvent,
    QTextCursor,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from app.chat.cells import Reply
from app.chat.token_fonts import column_width
from app.chat.transcript_model import TranscriptModel
from app.language import tr
from app.reading.documents import FOLD, PICTURE, Documents, PieceDocument
from app.reading.link_focus import LinkFocus
from app.reading.markdown import COPY
from app.reading.pieces import Piece, ReplyPieces, pieces_of
from app.theme import GRID, Theme

REFRESH_MS = 125
_PAD = 12
"""Between the text of a bubble and its sides."""
Place = tuple[int, int]
"""Piece and position in its document."""


class ReadingView(QAbstractScrollArea):
    """Shows the entries of a transcript as rendered text."""

    picture_wanted = Signal(object)  # AttachedFile
    caught_up = Signal()
    """What is new in the transcript is shown."""

    def __init__(self, model: TranscriptModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("readingView")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName(tr("Conversation"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.model = model
        self._theme = theme
        self._documents = Documents()
        self.pieces: list[Piece] = []
        self._tops: list[int] = [0]
        self._heights: list[int] = []
        self._exact: list[bool] = []
        self._cuts: dict[int, ReplyPieces] = {}
        self._unfolded: set[int] = set()
        self._first_dirty = 0
        self._anchor: Place | None = None
        self._head: Place | None = None
        self.links = LinkFocus(self)
        self._refresh = QTimer(self, singleShot=True, interval=REFRESH_MS)
        self._refresh.timeout.connect(self.catch_up)
        model.appended.connect(self._on_appended)
        model.reset.connect(self._on_reset)
        copy = QAction(tr("Copy"), self)
        copy.setShortcut(QKeySequence(QKeySequence.StandardKey.Copy))
        copy.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        copy.triggered.connect(self.copy)
        self.addAction(copy)
        self._on_reset()

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._documents.clear()
        self.viewport().update()

    # Following the transcript

    def _on_appended(self, first: int) -> None:
        self._first_dirty = min(self._first_dirty, first)
        if self.isVisible() and not self._refresh.isActive():
            self._refresh.start()

    def _on_reset(self) -> None:
        self._cuts.clear()
        self._documents.clear()
        self._first_dirty = 0
        self._anchor = self._head = None
        self.links.put(None)
        if self.isVisible():
            self.catch_up()
            self.scroll_to_end()

    def showEvent(self, _event: QShowEvent) -> None:
        self.catch_up()
        self.scroll_to_end()

    def catch_up(self) -> None:
        """Take over what is new in the transcript."""
        entries, at_end = self.model.entries, self.at_end
        first = min(self._first_dirty, len(entries))
        self._first_dirty = len(entries)
        if self.model.active_reply is not None:
            self._first_dirty = max(0, len(entries) - 2)
        keep = bisect_right([piece.entry for piece in self.pieces], first - 1)
        fresh = [piece for at in range(first, len(entries)) for piece in self._pieces_of(at)]
        while fresh and keep < len(self.pieces) and self.pieces[keep] == fresh[0]:
            fresh.pop(0)
            keep += 1
        del self.pieces[keep:], self._heights[keep:], self._exact[keep:]
        self.pieces += fresh
        self._heights += [self._estimate(piece) for piece in fresh]
        self._exact += [False] * len(fresh)
        self._retop(keep)
        if at_end:
            self.scroll_to_end()
        self.viewport().update()
        self.caught_up.emit()

    def _pieces_of(self, at: int) -> list[Piece]:
        entry = self.model.entries[at]
        cut = None
        if isinstance(entry, Reply):
            cut = self._cuts.setdefault(id(entry), ReplyPieces(entry))
        return pieces_of(entry, at, cut, id(entry) in self._unfolded)

    # Heights

    @property
    def column(self) -> int:
        """Width of the text."""
        return max(120, min(column_width(self.font()), self.viewport().width() - 6 * GRID))

    @property
    def left(self) -> int:
        return (self.viewport().width() - self.column) // 2

    def _width(self, piece: Piece) -> int:
        return round(self.column * 0.85) - 4 * GRID if piece.kind == "user" else self.column

    def _above(self, piece: Piece) -> int:
        return 3 * GRID if piece.opens else GRID

    def _below(self, piece: Piece) -> int:
        return GRID if piece.kind == "user" else 0

    def _estimate(self, piece: Piece) -> int:
        metrics = self.fontMetrics()
        rows = piece.text.count("\n") + 1 + len(piece.text) * metrics.averageCharWidth() // max(1, self._width(piece))
        return self._above(piece) + self._below(piece) + rows * metrics.lineSpacing()

    def _retop(self, first: int) -> None:
        del self._tops[first + 1 :]
        y = self._tops[first]
        for height in self._heights[first:]:
            y += height
            self._tops.append(y)
        self.verticalScrollBar().setPageStep(self.viewport().height())
        self.verticalScrollBar().setSingleStep(3 * GRID)
        self.verticalScrollBar().setRange(0, max(0, y + 2 * GRID - self.viewport().height()))

    def document(self, at: int) -> PieceDocument:
        """The laid-out document of a piece."""
        piece = self.pieces[at]
        return self._documents.get(piece, self.model.entries[piece.entry], self._width(piece), self.font(), self._theme)

    def _lay_out_visible(self) -> None:
        """Lay out what is in sight; what is above keeps its place on the screen."""
        bar = self.verticalScrollBar()
        for _ in range(20):
            top, changed = bar.value(), False
            stick = self.at_end
            at = self._piece_at(top)
            while at < len(self.pieces) and self._tops[at] < top + self.viewport().height():
                if not self._exact[at]:
                    document, piece = self.document(at), self.pieces[at]
                    height = self._above(piece) + self._below(piece) + round(document.size().height())
                    self._exact[at], changed = True, changed or height != self._heights[at]
                    self._heights[at] = height
                at += 1
            if not changed:
                return
            self._retop(self._piece_at(top))
            if stick:
                self.scroll_to_end()

    def _piece_at(self, y: int) -> int:
        return max(0, min(len(self.pieces) - 1, bisect_right(self._tops, y) - 1))

    @property
    def at_end(self) -> bool:
        bar = self.verticalScrollBar()
        return bar.value() >= bar.maximum() - 2 * GRID

    def scroll_to_end(self) -> None:
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def resizeEvent(self, _event: QResizeEvent) -> None:
        at_end = self.at_end
        self._heights = [self._estimate(piece) for piece in self.pieces]
        self._exact = [False] * len(self.pieces)
        self._retop(0)
        if at_end:
            self.scroll_to_end()

    # Painting

    def origin(self, at: int) -> QPointF:
        """Where the document of a piece stands in the viewport."""
        piece = self.pieces[at]
        y = self._tops[at] + self._above(piece) - self.verticalScrollBar().value()
        x = self.left
        if piece.kind == "user":
            x += round(self.column - min(self._width(piece), self.document(at).idealWidth()) - _PAD)
        return QPointF(x, y)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.fillRect(self.viewport().rect(), QColor(self._theme.surface))
        if not self.pieces:
            return
        self._lay_out_visible()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for at in self.visible_pieces():
            self._paint_piece(painter, at)
            self.links.paint(painter, self, at, self._theme)

    def visible_pieces(self) -> range:
        """The pieces of which something is in sight."""
        top = self.verticalScrollBar().value()
        first = at = self._piece_at(top)
        while at < len(self.pieces) and self._tops[at] - top < self.viewport().height():
            at += 1
        return range(first, at) if self.pieces else range(0)

    def _paint_piece(self, painter: QPainter, at: int) -> None:
        piece, document, origin = self.pieces[at], self.document(at), self.origin(at)
        if piece.kind == "user":
            width = min(self._width(piece), document.idealWidth())
            area = QRectF(origin.x(), origin.y(), width, document.size().height())
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self._theme.sunken))
            painter.drawRoundedRect(area.adjusted(-_PAD, -GRID, _PAD, GRID), 12, 12)
        context = QAbstractTextDocumentLayout.PaintContext()
        ink = self._theme.muted if piece.kind in ("note", "thinking") else self._theme.text
        context.palette.setColor(QPalette.ColorRole.Text, QColor(ink))
        if (cursor := self._selected_in(at, document)) is not None:
            selection = QAbstractTextDocumentLayout.Selection()
            selection.cursor = cursor
            selection.format.setBackground(QColor(self._theme.accent))
            selection.format.setForeground(QColor(self._theme.on_accent))
            context.selections = [selection]
        painter.save()
        painter.translate(origin)
        document.documentLayout().draw(painter, context)
        painter.restore()

    def thinking_row(self) -> QRect | None:
        """See `answer_now.ThinkingView`."""
        reply = self.model.active_reply
        for at in reversed(range(len(self.pieces))):
            piece = self.pieces[at]
            if piece.kind == "fold" and self.model.entries[piece.entry] is reply:
                top = self._tops[at] + self._above(piece) - self.verticalScrollBar().value()
                return QRect(self.left, top, self.column, self.fontMetrics().lineSpacing())
            if piece.opens:
                return None
        return None

    # Selecting and clicking

    def place_at(self, point: QPointF) -> Place | None:
        """The place in the text that is nearest to a point."""
        if not self.pieces:
            return None
        at = self._piece_at(round(point.y()) + self.verticalScrollBar().value())
        hit = self.document(at).documentLayout().hitTest(point - self.origin(at), Qt.HitTestAccuracy.FuzzyHit)
        return at, max(0, hit)

    def link_at(self, point: QPointF) -> tuple[int, str]:
        """Piece and target of the link at a point; the target is empty if there is none."""
        if not self.pieces:
            return 0, ""
        at = self._piece_at(round(point.y()) + self.verticalScrollBar().value())
        return at, self.document(at).documentLayout().anchorAt(point - self.origin(at))

    def _selected_in(self, at: int, document: PieceDocument) -> QTextCursor | None:
        if self._anchor is None or self._head is None or self._anchor == self._head:
            return None
        first, last = sorted((self._anchor, self._head))
        if not first[0] <= at <= last[0]:
            return None
        end = document.characterCount() - 1
        cursor = QTextCursor(document)
        cursor.setPosition(min(first[1], end) if at == first[0] else 0)
        cursor.setPosition(min(last[1], end) if at == last[0] else end, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def selected_text(self) -> str:
        """What is selected, as plain text."""
        if self._anchor is None or self._head is None:
            return ""
        first, last = sorted((self._anchor[0], self._head[0]))
        cursors = (self._selected_in(at, self.document(at)) for at in range(first, last + 1))
        return "\n".join(cursor.selection().toPlainText() for cursor in cursors if cursor is not None)

    def copy(self) -> None:
        if text := self.selected_text():
            QGuiApplication.clipboard().setText(text)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._anchor = self._head = self.place_at(event.position())
            self.viewport().update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._head = self.place_at(event.position())
            self.viewport().update()
            return
        linked = bool(self.link_at(event.position())[1])
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if linked else Qt.CursorShape.IBeamCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._anchor == self._head:
            self.follow(*self.link_at(event.position()))

    def follow(self, at: int, target: str) -> None:
        """Do what a link promises: copy code, fold, enlarge a picture, or open an address in the browser."""
        if target.startswith(COPY):
            QGuiApplication.clipboard().setText(self.document(at).codes[int(target.removeprefix(COPY))])
        elif target == FOLD:
            self.toggle_thinking(self.pieces[at].entry)
        elif target.startswith(PICTURE):
            self.picture_wanted.emit(self.document(at).pictures[int(target.removeprefix(PICTURE))])
        elif QUrl(target).scheme() in ("http", "https"):
            QDesktopServices.openUrl(QUrl(target))

    def toggle_thinking(self, entry: int) -> None:
        """Fold the thinking of a reply, or show it."""
        self._unfolded ^= {id(self.model.entries[entry])}
        self._first_dirty = min(self._first_dirty, entry)
        top = self.verticalScrollBar().value()
        self.catch_up()
        self.verticalScrollBar().setValue(top)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        if event.matches(QKeySequence.StandardKey.SelectAll) and self.pieces:
            self._anchor, self._head = (0, 0), (len(self.pieces) - 1, 1 << 30)
            self.viewport().update()
        elif event.key() == Qt.Key.Key_Home:
            bar.setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.scroll_to_end()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.links.link is not None:
            self.follow(self.links.link.piece, self.links.link.target)
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab goes through the links in sight, and then on to the next part of the window."""
        within = self.links.step(self, forward)
        self.viewport().update()
        return within or super().focusNextPrevChild(forward)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """No link keeps its ring when the focus goes to another part of the window."""
        super().focusOutEvent(event)
        if event.reason() is not Qt.FocusReason.ActiveWindowFocusReason:
            self.links.put(None)
            self.viewport().update()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._documents.clear()
