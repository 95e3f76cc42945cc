"""The keyboard's way to links in the reading view: Tab goes through those in sight, Enter follows, Tab goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QAccessible, QAccessibleEvent, QColor, QPainter, QPen, QTextDocument
from PySide6.QtWidgets import QWidget

from app.language import tr
from app.reading.documents import FOLD, PICTURE
from app.reading.markdown import COPY
from app.theme import Theme


@dataclass(frozen=True, slots=True)
class Link:
    """A link of one piece, by where it stands in its document."""

    piece: int
    start: int
    length: int
    target: str


class LinkedView(Protocol):
    """What of the reading view is needed to find its links."""

    def visible_pieces(self) -> range: ...
    def document(self, at: int) -> QTextDocument: ...
    def origin(self, at: int) -> QPointF: ...
    def viewport(self) -> QWidget: ...


class LinkFocus:
    """Which link has the focus, if any. It is drawn with a ring, and told to screen readers."""

    def __init__(self, view: QWidget) -> None:
        self._view = view
        self.link: Link | None = None

    def step(self, shown: LinkedView, forward: bool) -> bool:
        """Go to the next link in sight, or the one before; false if there is none, and the focus goes elsewhere."""
        links = in_sight(shown)
        before = self.link
        ends = -1 if forward else len(links)
        at = (links.index(before) if before in links else ends) + (1 if forward else -1)
        self.put(links[at] if 0 <= at < len(links) else None)
        return self.link is not None

    def put(self, link: Link | None) -> None:
        """Give the focus to a link, or take it away."""
        if link != self.link:
            self.link = link
            self._view.setAccessibleDescription(said(link) if link else "")
            QAccessible.updateAccessibility(QAccessibleEvent(self._view, QAccessible.Event.DescriptionChanged))

    def paint(self, painter: QPainter, shown: LinkedView, at: int, theme: Theme) -> None:
        """Draw the ring, if the link stands in this piece."""
        if self.link is not None and self.link.piece == at:
            painter.setBrush(QColor(0, 0, 0, 0))
            painter.setPen(QPen(QColor(theme.accent), 2))
            area = area_of(shown.document(at), self.link).translated(shown.origin(at))
            painter.drawRoundedRect(area.adjusted(-3, -1, 3, 1), 4, 4)


def in_sight(shown: LinkedView) -> list[Link]:
    """The links that can be seen, from top to bottom."""
    found = (link for at in shown.visible_pieces() for link in links_of(shown.document(at), at))
    screen = QRectF(shown.viewport().rect())
    return [
        link
        for link in found
        if screen.intersects(area_of(shown.document(link.piece), link).translated(shown.origin(link.piece)))
    ]


def links_of(document: QTextDocument, piece: int) -> list[Link]:
    """Every link of a document; neighbours with the same target are one."""
    links: list[Link] = []
    block = document.firstBlock()
    while block.isValid():
        for run in block.textFormats():
            target, start = run.format.anchorHref(), block.position() + run.start
            if target and links and links[-1].target == target and links[-1].start + links[-1].length == start:
                links[-1] = Link(piece, links[-1].start, links[-1].length + run.length, target)
            elif target:
                links.append(Link(piece, start, run.length, target))
        block = block.next()
    return links


def area_of(document: QTextDocument, link: Link) -> QRectF:
    """Where the first line of a link stands in its document."""
    block = document.findBlock(link.start)
    start = link.start - block.position()
    line = block.layout().lineForTextPosition(start)
    place = document.documentLayout().blockBoundingRect(block).topLeft()
    if not line.isValid():
        return QRectF(place.x(), place.y(), 1, 1)
    last = min(start + link.length, line.textStart() + line.textLength())
    left, right = (_x(line.cursorToX(position)) for position in (start, last))
    return QRectF(place.x() + left, place.y() + line.y(), right - left, line.height())


def _x(found: object) -> float:
    """Qt's bindings return the position beside the place."""
    return float(found[0] if isinstance(found, tuple) else found)  # type: ignore[arg-type]


def said(link: Link) -> str:
    """What a screen reader says of a link."""
    if link.target.startswith(COPY):
        return tr("Link: copy the code")
    if link.target.startswith(PICTURE):
        return tr("Link: show the picture larger")
    if link.target == FOLD:
        return tr("Link: fold or unfold the thinking")
    return tr("Link: {address}", address=link.target)
