"""The reading view: lays out only what is looked at, follows the end, copies, folds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QFocusEvent, QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.transcript_model import TranscriptModel
from app.history.store import Attachment
from app.reading.link_focus import area_of, in_sight
from app.reading.view import ReadingView
from app.theme import LIGHT
from engine import CommittedToken, Round


def said(text: str, phase: str = "answer") -> Round:
    return Round(0, 0, phase, (), (CommittedToken(1, text, "model", "model", phase=phase),), 0.0, 0.5)  # type: ignore[arg-type]


@pytest.fixture
def model(qapp: QApplication) -> TranscriptModel:
    return TranscriptModel()


@pytest.fixture
def view(qtbot: QtBot, model: TranscriptModel) -> Iterator[ReadingView]:
    view = ReadingView(model, LIGHT)
    view.resize(700, 500)
    view.show()
    qtbot.waitExposed(view)
    yield view
    view.close()
    view.deleteLater()


def reply(model: TranscriptModel, text: str, user: str = "hello") -> None:
    model.add_user(user)
    model.begin_reply()
    model.add_records([said(text)])
    model.end_reply()


def find_link(view: ReadingView, target: str) -> QPointF:
    width, height = view.viewport().width(), view.viewport().height()
    points = (QPointF(x, y) for y in range(0, height, 4) for x in range(0, width, 8))
    return next(point for point in points if view.link_at(point)[1] == target)


def test_only_what_is_in_sight_is_laid_out(view: ReadingView, model: TranscriptModel) -> None:
    for number in range(300):
        reply(model, f"Answer {number}\n\n" + "words " * 200)
    view.catch_up()
    view.grab()
    assert len(view.pieces) == 600
    assert sum(view._exact) < 20
    assert view.at_end


def test_a_growing_reply_is_followed_to_its_end_unless_one_reads_above(
    view: ReadingView, model: TranscriptModel
) -> None:
    reply(model, "first\n\n" + "words\n\n" * 100)
    model.begin_reply()
    for number in range(5):
        model.add_records([said(f"more {number}\n\n" * 20)])
        view.catch_up()
        view.grab()
        assert view.at_end
    view.verticalScrollBar().setValue(10)
    model.add_records([said("and more\n\n" * 20)])
    view.catch_up()
    view.grab()
    assert view.verticalScrollBar().value() == 10


def test_code_is_copied_by_its_link(view: ReadingView, model: TranscriptModel) -> None:
    reply(model, "Look:\n\n```python\nprint(1)\n```\n")
    view.catch_up()
    view.grab()
    view.follow(*view.link_at(find_link(view, "copy:0")))
    assert QApplication.clipboard().text() == "print(1)\n"


def test_thinking_unfolds(view: ReadingView, model: TranscriptModel) -> None:
    model.begin_reply()
    model.add_records([said("<think>hm</think>", "think"), said("Yes.")])
    model.end_reply()
    view.catch_up()
    assert [piece.kind for piece in view.pieces] == ["fold", "answer"]
    view.follow(*view.link_at(find_link(view, "fold:")))
    assert [piece.kind for piece in view.pieces] == ["fold", "thinking", "answer"]


def test_everything_can_be_selected_and_copied(qtbot: QtBot, view: ReadingView, model: TranscriptModel) -> None:
    reply(model, "**bold** words", "a question")
    view.catch_up()
    view._anchor, view._head = (0, 0), (len(view.pieces) - 1, 1 << 30)
    view.copy()
    assert QApplication.clipboard().text() == "a question\nbold words"


def test_a_picture_is_a_thumbnail_that_asks_to_be_enlarged(
    qtbot: QtBot, view: ReadingView, model: TranscriptModel
) -> None:
    from PySide6.QtCore import QBuffer, QByteArray
    from PySide6.QtGui import QImage

    data = QByteArray()
    image = QImage(400, 300, QImage.Format.Format_RGB32)
    image.fill(0x336699)
    assert image.save(QBuffer(data), "PNG")
    cat = Attachment("picture", "cat.png", bytes(data.data()))
    model.add_user("what is this?", 1, (cat, Attachment("picture", "broken.png", b"no")))
    view.catch_up()
    view.grab()
    with qtbot.waitSignal(view.picture_wanted) as blocker:
        view.follow(*view.link_at(find_link(view, "picture:0")))
    assert blocker.args == [cat]


def test_tab_goes_through_the_links_in_sight_and_enter_follows(
    qtbot: QtBot, view: ReadingView, model: TranscriptModel
) -> None:
    reply(model, "See [a page](https://example.org).\n\n```python\nprint(1)\n```\n\nand\n\n```\nsecond\n```\n")
    view.catch_up()
    view.grab()
    view.setFocus()
    told = []
    for _ in range(3):
        assert view.focusNextPrevChild(True)
        told.append(view.accessibleDescription())
        ring = view.links.link
        assert ring is not None
        area = area_of(view.document(ring.piece), ring).translated(view.origin(ring.piece))
        assert view.link_at(area.center())[1] == ring.target, "the ring is drawn where the link is"
    assert told == ["Link: https://example.org", "Link: copy the code", "Link: copy the code"]
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert QGuiApplication.clipboard().text() == "second\n"
    assert view.focusNextPrevChild(False)
    qtbot.keyClick(view, Qt.Key.Key_Space)
    assert QGuiApplication.clipboard().text() == "print(1)\n"
    view.focusNextPrevChild(True)
    view.focusNextPrevChild(True)
    assert view.links.link is None, "Tab leaves after the last link"
    view.focusNextPrevChild(True)
    for reason, kept in ((Qt.FocusReason.ActiveWindowFocusReason, True), (Qt.FocusReason.MouseFocusReason, False)):
        QApplication.sendEvent(view, QFocusEvent(QEvent.Type.FocusOut, reason))
        assert (view.links.link is not None) is kept


def test_links_that_were_scrolled_away_are_not_in_the_way(view: ReadingView, model: TranscriptModel) -> None:
    reply(model, "```\nfirst\n```\n\n" + "words " * 3000 + "\n\n```\nlast\n```\n")
    view.catch_up()
    view.grab()
    (link,) = in_sight(view)
    assert view.document(link.piece).codes == ["last\n"]
