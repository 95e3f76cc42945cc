"""A row that wraps: parts keep the widths they like, and come below each other only where they must."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.flow import FlowRow, Spread


class Box(QWidget):
    """A part of a known size."""

    def __init__(self, width: int, height: int = 20) -> None:
        super().__init__()
        self.wanted = QSize(width, height)

    def sizeHint(self) -> QSize:
        return self.wanted

    def minimumSizeHint(self) -> QSize:
        return QSize(10, 10)


def shown(qtbot: QtBot, widths: Sequence[int], width: int, spread: Spread = "start") -> tuple[FlowRow, list[Box]]:
    boxes = [Box(wide) for wide in widths]
    row = FlowRow(boxes, spread, gap=10)
    qtbot.addWidget(row)
    row.resize(width, row.heightForWidth(width))
    row.show()
    QApplication.processEvents()
    return row, boxes


def places(boxes: Sequence[QWidget]) -> list[tuple[int, int]]:
    return [(box.x(), box.y()) for box in boxes if not box.isHidden()]


def test_what_fits_stands_in_one_row(qtbot: QtBot) -> None:
    row, boxes = shown(qtbot, [50, 60, 70], 200)
    assert places(boxes) == [(0, 0), (60, 0), (130, 0)]
    assert row.sizeHint() == QSize(200, 20)
    assert row.heightForWidth(200) == 20


def test_what_does_not_fit_goes_below(qtbot: QtBot) -> None:
    row, boxes = shown(qtbot, [50, 60, 70], 199)
    assert places(boxes) == [(0, 0), (60, 0), (0, 30)]
    assert row.heightForWidth(199) == 50


def test_a_part_is_never_wider_than_the_row(qtbot: QtBot) -> None:
    _, boxes = shown(qtbot, [300, 20], 100)
    assert boxes[0].width() == 100
    assert places(boxes) == [(0, 0), (0, 30)]


@pytest.mark.parametrize(
    ("spread", "expected"),
    [
        ("start", [(0, 0), (60, 0)]),
        ("centre", [(45, 0), (105, 0)]),
        ("apart", [(0, 0), (150, 0)]),
        ("columns", [(0, 0), (105, 0)]),
    ],
)
def test_the_room_that_is_left_goes_where_it_should(
    qtbot: QtBot, spread: Spread, expected: list[tuple[int, int]]
) -> None:
    _, boxes = shown(qtbot, [50, 50], 200, spread)
    assert places(boxes) == expected


def test_columns_are_as_many_in_every_row(qtbot: QtBot) -> None:
    _, boxes = shown(qtbot, [40, 90, 50, 50], 210, "columns")
    assert [(x > 0, y) for x, y in places(boxes)] == [(False, 0), (True, 0), (False, 30), (True, 30)]
    assert boxes[1].x() == boxes[3].x()
    row, alone = shown(qtbot, [40, 90, 50, 50], 95, "columns")
    assert [x for x, _ in places(alone)] == [0, 0, 0, 0]
    assert row.heightForWidth(95) == 4 * 20 + 3 * 10


def test_it_makes_room_for_more_rows_and_follows_what_is_hidden(qtbot: QtBot) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    boxes = [Box(60), Box(60), Box(60)]
    row = FlowRow(boxes, gap=10)
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(row)
    column.addStretch(1)
    page.resize(140, 300)
    page.show()
    qtbot.waitUntil(lambda: row.height() == 50)
    boxes[0].hide()
    qtbot.waitUntil(lambda: row.height() == 20)
    assert places(boxes) == [(0, 0), (70, 0)]
    boxes[1].wanted = QSize(100, 40)
    boxes[1].updateGeometry()
    qtbot.waitUntil(lambda: row.height() == 70)
    assert page.minimumSizeHint().width() == 10
