"""Documents of pieces: lines of text have some air between them, pictures have none."""

from __future__ import annotations

from PySide6.QtCore import QBuffer, QByteArray
from PySide6.QtGui import QFont, QFontMetricsF, QImage
from pytestqt.qtbot import QtBot

from app.chat.cells import UserMessage
from app.history.store import Attachment
from app.reading.documents import LEADING, THUMBNAIL, PieceDocument
from app.reading.pieces import Piece
from app.theme import LIGHT


def picture(side: int) -> Attachment:
    data = QByteArray()
    image = QImage(side, side, QImage.Format.Format_RGB32)
    image.fill(0x336699)
    image.save(QBuffer(data), "PNG")
    return Attachment("picture", "a.png", bytes(data.data()))


def test_lines_stand_apart_and_pictures_do_not(qtbot: QtBot) -> None:
    font = QFont()
    line = QFontMetricsF(font).height()
    message = UserMessage("one\ntwo\nthree", files=(picture(2 * THUMBNAIL),))
    plain = PieceDocument(Piece("user", message.said, 0), UserMessage(message.said), font, LIGHT)
    shown = PieceDocument(Piece("user", message.said, 0), message, font, LIGHT)
    for document in (plain, shown):
        document.setTextWidth(400)
    assert abs(plain.size().height() - 3 * line * LEADING / 100) <= 4
    assert shown.size().height() - plain.size().height() < THUMBNAIL + 2.5 * line
