"""Makes the text documents of pieces: only of those that are looked at, and keeps a bounded number of them."""

from __future__ import annotations

import html
from collections import OrderedDict
from itertools import repeat

from PySide6.QtCore import QByteArray, Qt, QUrl
from PySide6.QtGui import QFont, QImage, QTextDocument

from app.chat.cells import AttachedFile, Entry, UserMessage
from app.chat.tool_calls import NOT_DONE, arguments
from app.language import tr
from app.reading.markdown import call_card, link, render
from app.reading.pieces import Piece
from app.theme import Theme
from engine import ToolCall, find_tool_calls

KEPT = 200
THUMBNAIL = 160
LEADING = 130
"""Height of a line of text, in percent of the font's own."""
FOLD, PICTURE = "fold:", "picture:"


class PieceDocument(QTextDocument):
    """A piece, laid out for one width."""

    def __init__(self, piece: Piece, entry: Entry, font: QFont, theme: Theme) -> None:
        super().__init__()
        self.setUndoRedoEnabled(False)
        self.setDocumentMargin(0)
        self.setDefaultFont(font)
        self.codes: list[str] = []
        self.pictures: tuple[AttachedFile, ...] = ()
        ink = {"note": theme.muted, "error": theme.error, "thinking": theme.muted}.get(piece.kind, theme.text)
        look = (
            f"body, td, th, li {{ color: {ink}; }} a {{ color: {theme.accent}; }}"  # not translated: style sheet
            f" p, li, div {{ line-height: {LEADING}%; }}"
        )
        self.setDefaultStyleSheet(look)
        self.setHtml(f"<body>{self._html(piece, entry, theme)}</body>")

    def _html(self, piece: Piece, entry: Entry, theme: Theme) -> str:
        if piece.kind == "fold":
            return link(FOLD, piece.text, theme.muted)
        if piece.kind in ("answer", "thinking"):
            rendered = render(piece.text, theme)
            self.codes = rendered.codes
            return rendered.html
        if piece.kind == "call":
            return "".join(map(self._call, find_tool_calls(piece.text), repeat(theme)))
        text = f'<div style="white-space:pre-wrap">{html.escape(piece.text)}</div>'  # not translated: markup
        if not isinstance(entry, UserMessage):
            return f"<small>{text}</small>"
        self.pictures = tuple(file for file in entry.files if file.kind == "picture")
        names = "".join(
            f'<div style="color:{theme.muted}"><small>{html.escape(f.name)}</small></div>'  # not translated: markup
            for f in entry.files
            if f.kind == "text"
        )
        return f"{self._thumbnails()}{names}{text if piece.text else ''}"

    def _call(self, call: ToolCall, theme: Theme) -> str:
        self.codes.append(arguments(call))
        return call_card(call.name, tr(NOT_DONE), arguments(call), len(self.codes) - 1, theme)

    def _thumbnails(self) -> str:
        parts = []
        for number, file in enumerate(self.pictures):
            image = QImage.fromData(QByteArray(file.data))
            if image.isNull():
                parts.append(f"[{html.escape(file.name)}] ")
                continue
            small = image.scaled(
                THUMBNAIL * 2,
                THUMBNAIL * 2,
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
            url = f"thumbnail:{number}"
            self.addResource(QTextDocument.ResourceType.ImageResource.value, QUrl(url), small)
            width = min(THUMBNAIL, image.width(), round(THUMBNAIL * image.width() / max(1, image.height())))
            wide, title = max(24, width), html.escape(file.name)
            thumbnail = f'<img src="{url}" width="{wide}" alt="{title}">'  # not translated: markup
            parts.append(f'<a href="{PICTURE}{number}">{thumbnail}</a> ')
        return f'<p style="line-height:100%">{"".join(parts)}</p>' if parts else ""  # not translated: markup


class Documents:
    """The documents of the pieces that were looked at last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Piece, int], PieceDocument] = OrderedDict()

    def get(self, piece: Piece, entry: Entry, width: int, font: QFont, theme: Theme) -> PieceDocument:
        """The document of a piece at this width."""
        key = (piece, id(entry))
        document = self._kept.get(key)
        if document is None:
            document = self._kept[key] = PieceDocument(piece, entry, font, theme)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        if document.textWidth() != width:
            document.setTextWidth(width)
        return document

    def clear(self) -> None:
        self._kept.clear()
