"""The card that says everything about one token."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from app.chat.cells import Cell, CellKind
from app.chat.token_fonts import shown
from app.chat.token_style import WORDS
from app.language import mark, tr, trn
from app.theme import Theme
from engine import Alternative

_GAP = 8
_SOURCES = {"model": mark("model"), "mtp": mark("MTP layer"), "ngram": mark("n-gram (copied from earlier text)")}


def visible_text(text: str) -> str:
    """A token's text with white space made visible."""
    if not text:
        return tr("(part of a character)")
    signs = text.replace("\n", "↵").replace("\t", "⇥").replace(" ", "␣")
    return shown(signs)


def bytes_of(text: str) -> str:
    """The UTF-8 bytes of a text in hexadecimal, the first twelve."""
    data = text.encode("utf-8", "surrogatepass")
    return data[:12].hex(" ") + (" …" if len(data) > 12 else "") if data else "–"


def percent(probability: float | None) -> str:
    """A probability for the person; small ones keep two significant digits."""
    if probability is None:
        return "–"
    if 0 < probability < 0.001:
        return f"{probability:.1e}"
    return f"{100 * probability:.1f} %"


def facts_of(cell: Cell) -> list[tuple[str, str]]:
    """What is known of a token, as (label, value)."""
    first, *others = _spoken_facts(cell)
    return [first, (tr("Bytes"), bytes_of(cell.text)), *others]


def _spoken_facts(cell: Cell) -> list[tuple[str, str]]:
    """The same without the bytes, which say nothing to the ear."""
    record = cell.round
    stood = tr("{position} (would have stood here)", position=cell.position) if cell.kind.ghost else f"{cell.position}"
    facts = [
        (tr("Token"), f"{cell.token}"),
        (tr("Position"), stood),
        (tr("Round"), _place(cell)),
        (tr("Source"), tr(_SOURCES[_source(cell)])),
        (tr("Model"), percent(cell.model_probability)),
    ]
    if _is_draft(cell):
        facts.append((tr("Draft"), percent(cell.draft_probability)))
    if cell.draft is not None and cell.draft.uniform is not None and _is_draft(cell):
        facts.append((tr("Random draw"), f"{cell.draft.uniform:.4f}"))
    if cell.kind is CellKind.CORRECTION and cell.draft is not None:
        facts.append((tr("Instead of"), _quoted(cell.draft.token, cell.draft.text)))
    if cell.kind is CellKind.REFUSED and cell.draft is not None and cell.draft.replacement is not None:
        facts.append((tr("Model said"), _quoted(cell.draft.replacement, _replacement_text(cell))))
    if record.index > 0:
        milliseconds = 1000 * (record.draft_s + record.verify_s)
        took = trn("{ms:.1f} ms for {n} token", "{ms:.1f} ms for {n} tokens", len(record.committed), ms=milliseconds)
        facts.append((tr("Round took"), took))
    return facts


def describe(cell: Cell) -> str:
    """A token in one sentence, for screen readers."""
    parts = [f"“{visible_text(cell.text)}”", tr(WORDS[cell.kind])]
    parts += [f"{label.lower()} {value}" for label, value in _spoken_facts(cell) if value != "–"]
    return ", ".join(parts)


def _is_draft(cell: Cell) -> bool:
    return cell.kind in (CellKind.MTP, CellKind.NGRAM, CellKind.REFUSED, CellKind.UNUSED)


def _source(cell: Cell) -> str:
    if _is_draft(cell) and cell.draft is not None:
        return cell.draft.source
    return cell.committed.source if cell.committed is not None else "model"


def _place(cell: Cell) -> str:
    drafts = len(cell.round.drafts)
    if cell.round.index == 0:
        return tr("none: it came with the prompt")
    number, place = cell.round.index, cell.place
    if _is_draft(cell):
        return tr("{round}, draft {place} of {drafts}", round=number, place=place + 1, drafts=drafts)
    if not drafts:
        return tr("{round}, without drafts", round=number)
    return tr("{round}, after {place} of {drafts} drafts", round=number, place=place, drafts=drafts)


def _replacement_text(cell: Cell) -> str:
    texts = [c.text for c in cell.round.committed if c.origin == "correction"]
    return texts[0] if texts else ""


def _quoted(token: int, text: str) -> str:
    return f"“{visible_text(text)}” ({token})" if text else tr("token {number}", number=token)


class TokenCard(QFrame):
    """A small card beside a token. It never takes the focus; whoever shows it says where."""

    def __init__(self, parent: QWidget, theme: Theme) -> None:
        super().__init__(parent)
        self.setObjectName("TokenCard")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName(tr("About this token"))
        self.cell: Cell | None = None
        self.pinned = False
        self._theme = theme
        self._text = QLabel()
        self._text.setProperty("type", "title")
        self._verdict = QLabel()
        self._verdict.setProperty("type", "caption")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(3)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 12, 16, 12)
        column.setSpacing(4)
        column.addWidget(self._text)
        column.addWidget(self._verdict)
        column.addSpacing(4)
        column.addLayout(self._grid)
        for label in (self._text, self._verdict):
            label.setTextFormat(Qt.TextFormat.PlainText)
        self.apply_theme(theme)
        self.hide()

    def apply_theme(self, theme: Theme) -> None:
        """Use another palette."""
        self._theme = theme
        self.setStyleSheet(
            f"QLabel {{ color: {theme.text}; background: transparent; }}"  # not translated: style sheet
            f' QLabel[type="caption"] {{ color: {theme.muted}; }}'
        )
        if self.cell is not None:
            self.show_cell(self.cell)

    def show_cell(self, cell: Cell) -> None:
        """Fill the card; it keeps its place."""
        self.cell = cell
        self._text.setText(visible_text(cell.text))
        words = tr(WORDS[cell.kind])
        verdict = words[:1].upper() + words[1:]
        self._verdict.setText(verdict + " · " + tr("pinned") if self.pinned else verdict)
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.setParent(None)
                widget.deleteLater()
        row = 0
        for label, value in facts_of(cell):
            self._add(row, 0, label, caption=True)
            self._add(row, 1, value, span=3)
            row += 1
        self._add_alternatives(row, cell)
        self.setAccessibleDescription(describe(cell))
        self.adjustSize()

    def place_beside(self, anchor: QRect, area: QRect) -> None:
        """Move below the token, or above it where there is no room; always inside `area`."""
        x = min(max(area.left() + _GAP, anchor.left() - _GAP), area.right() - self.width() - _GAP)
        y = anchor.bottom() + _GAP
        if y + self.height() > area.bottom() - _GAP:
            y = max(area.top() + _GAP, anchor.top() - _GAP - self.height())
        self.move(QPoint(max(area.left(), x), y))

    def _add_alternatives(self, row: int, cell: Cell) -> None:
        lists = [(tr("Model's choices"), cell.model_alternatives), (tr("Draft's choices"), cell.draft_alternatives)]
        lists = [(title, choices) for title, choices in lists if choices]
        if lists:
            self._grid.setRowMinimumHeight(row, 8)
        for column, (title, choices) in enumerate(lists):
            self._add(row + 1, 2 * column, title, caption=True, span=2)
            for line, choice in enumerate(choices[:5]):
                self._add_choice(row + 2 + line, 2 * column, choice, bold=choice.token == cell.token)

    def _add_choice(self, row: int, column: int, choice: Alternative, *, bold: bool) -> None:
        for offset, text in enumerate((percent(choice.probability), visible_text(choice.text))):
            label = self._add(row, column + offset, text)
            font = label.font()
            font.setBold(bold)
            label.setFont(font)

    def _add(self, row: int, column: int, text: str, *, caption: bool = False, span: int = 1) -> QLabel:
        label = QLabel(text)
        label.setTextFormat(Qt.TextFormat.PlainText)
        if caption:
            label.setProperty("type", "caption")
        self._grid.addWidget(label, row, column, 1, span)
        return label

    def paintEvent(self, _event: QPaintEvent) -> None:
        """A card with a hairline, and the state's colour at its left edge."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(self._theme.border_strong))
        painter.setBrush(QColor(self._theme.surface))
        painter.drawRoundedRect(self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        if self.cell is not None and (colour := _state_colour(self.cell.kind, self._theme)):
            painter.fillRect(QRect(6, 12, 4, self.height() - 24), QColor(colour))
        painter.end()


def _state_colour(kind: CellKind, theme: Theme) -> str | None:
    return {
        CellKind.MTP: theme.accepted_mtp,
        CellKind.NGRAM: theme.accepted_ngram,
        CellKind.CORRECTION: theme.correction,
        CellKind.REFUSED: theme.refused,
        CellKind.UNUSED: theme.border_strong,
    }.get(kind, theme.border_strong)
