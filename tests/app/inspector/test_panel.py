"""The panel: draws only when seen and changed, says what it shows, exports it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QImage, QPainter, QWheelEvent
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QScrollArea
from pytestqt.qtbot import QtBot

from app.inspector.panel import InspectorPanel
from app.inspector.plot_card import PlotCard
from app.inspector.plot_stack import KINDS
from app.theme import DARK, LIGHT, Theme
from tests.app.chat import scripted_records as script

PATIENCE_MS = 30_000
"""Making the first plot imports a large package."""


@pytest.fixture
def panel(qtbot: QtBot) -> InspectorPanel:
    panel = InspectorPanel(LIGHT)
    qtbot.addWidget(panel)
    panel.resize(420, 760)
    assert panel.plots.whole
    return panel


@pytest.fixture
def fresh(qtbot: QtBot) -> InspectorPanel:
    """A panel whose plots are not made yet, as in a window that has just been shown."""
    panel = InspectorPanel(LIGHT)
    qtbot.addWidget(panel)
    panel.resize(420, 760)
    panel.show()
    qtbot.waitExposed(panel)
    return panel


def cards(panel: InspectorPanel) -> list[PlotCard]:
    return panel.plots.cards


def test_nothing_is_drawn_while_hidden_and_all_of_it_when_shown(panel: InspectorPanel, qtbot: QtBot) -> None:
    panel.add_records(script.reply())
    panel.refresh()
    assert panel.redraws == 0
    panel.show()
    qtbot.waitExposed(panel)
    assert panel.redraws == 1
    panel.hide()
    panel.add_records(script.reply())
    panel.refresh()
    assert panel.redraws == 1


def test_nothing_is_drawn_without_news(panel: InspectorPanel, qtbot: QtBot) -> None:
    panel.show()
    panel.add_records(script.reply())
    panel.refresh()
    drawn = panel.redraws
    panel.refresh()
    assert panel.redraws == drawn
    panel.add_records(script.reply())
    assert panel.redraws == drawn, "records alone draw nothing"
    panel.refresh()
    assert panel.redraws == drawn + 1


def test_figures_follow_the_records(panel: InspectorPanel) -> None:
    panel.show()
    assert panel.rounds.value.text() == "–"
    records = script.reply()
    panel.add_records(records)
    panel.refresh()
    stats = records[-1].stats  # type: ignore[union-attr]
    assert panel.rounds.value.text() == str(stats.rounds)
    assert panel.per_round.value.text() == f"{stats.tokens_per_round:.2f}"
    assert panel.acceptance.value.text() == f"{100 * stats.acceptance:.0f} %"
    panel.clear()
    assert panel.rounds.value.text() == "–"


def test_the_empty_state_gives_way_to_the_plot_and_comes_back(panel: InspectorPanel) -> None:
    panel.show()
    assert all(card._empty.isVisible() for card in cards(panel))
    panel.add_records(script.reply())
    panel.refresh()
    assert not any(card._empty.isVisible() for card in cards(panel))
    panel.clear()
    assert all(card._empty.isVisible() for card in cards(panel))


def test_choices_change_the_acceptance_plot_at_once(panel: InspectorPanel) -> None:
    panel.show()
    panel.add_records(script.long_reply(600))
    panel.refresh()
    conditional = panel.plots.positions.table()[1]
    panel.plots.positions.rate.setCurrentIndex(1)
    survival = panel.plots.positions.table()[1]
    assert conditional != survival
    assert [row[2] for row in conditional] == [row[2] for row in survival], "accepted is the same count"
    panel.plots.positions.split.setCurrentIndex(2)
    assert {row[0] for row in panel.plots.positions.table()[1]} == {"MTP"}, "no n-gram drafts in this reply"
    panel.plots.positions.split.setCurrentIndex(1)
    assert {row[0] for row in panel.plots.positions.table()[1]} == {"answer"}, "no thinking in this reply"


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_a_theme_switch_reaches_the_plots(panel: InspectorPanel, qtbot: QtBot, theme: Theme) -> None:
    panel.show()
    qtbot.waitExposed(panel)
    panel.add_records(script.reply())
    panel.refresh()
    panel.apply_theme(theme)
    image = panel.plots.positions.widget.grab().toImage()
    seen = {image.pixelColor(x, y).name() for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)}
    assert {theme.surface, theme.accepted_mtp, theme.plain} <= seen


def test_every_plot_has_title_axes_with_units_reading_and_name(panel: InspectorPanel) -> None:
    for card in cards(panel):
        assert card.title
        assert card.reading
        assert card.toolTip() == card.reading.format(**card.reading_values)
        assert card.widget.accessibleName() == card.title
        assert card.plot.getAxis("bottom").labelText
        assert card is panel.plots.cost or card.plot.getAxis("left").labelText
    assert "ms" in panel.plots.time.plot.getAxis("left").labelText
    assert "%" in panel.plots.positions.plot.getAxis("left").labelText


def test_a_summary_in_words_for_screen_readers(panel: InspectorPanel) -> None:
    panel.show()
    panel.add_records(script.reply())
    panel.refresh()
    assert panel.plots.positions.accessibleDescription().startswith("position 1: ")
    assert "n=" in panel.plots.positions.accessibleDescription()
    assert "verify" in panel.plots.time.accessibleDescription()
    assert "drafts" in panel.plots.lengths.accessibleDescription()


def test_numbers_pictures_and_drawings_can_be_saved(panel: InspectorPanel, qtbot: QtBot, tmp_path: Path) -> None:
    panel.show()
    qtbot.waitExposed(panel)
    records = script.reply()
    panel.add_records(records)
    panel.refresh()
    for number, card in enumerate(cards(panel)):
        for suffix in ("csv", "png", "svg"):
            card.save(tmp_path / f"{number}.{suffix}")
        lines = (tmp_path / f"{number}.csv").read_text().splitlines()
        assert len(lines) == 1 + len(card.table()[1])
        assert len(lines) > 2
        picture = QImage(str(tmp_path / f"{number}.png"))
        assert picture.width() == 2 * card.width()
        drawing = (tmp_path / f"{number}.svg").read_text()
        assert "<svg" in drawing
        assert card.title in drawing
        assert "<image" not in drawing, "shapes, not pixels"
    with pytest.raises(OSError, match="could not be written"):
        panel.plots.time.save(tmp_path / "missing" / "x.png")


def test_a_drawing_has_the_same_shapes_in_the_same_places_as_the_screen(panel: InspectorPanel, qtbot: QtBot) -> None:
    panel.show()
    qtbot.waitExposed(panel)
    panel.add_records(script.long_reply(600))
    panel.refresh()
    card = panel.plots.positions
    drawn = QImage(card.size(), QImage.Format.Format_RGB32)
    painter = QPainter(drawn)
    QSvgRenderer(QByteArray(card.drawing())).render(painter)
    painter.end()
    shown = card.grab().toImage()

    def bars(image: QImage) -> tuple[int, int]:
        """First and last row of the picture where the bars' colour is."""
        ink = QColor(LIGHT.accepted_mtp)
        rows = [
            y for y in range(image.height()) if any(image.pixelColor(x, y) == ink for x in range(0, image.width(), 2))
        ]
        return rows[0], rows[-1]

    assert bars(drawn) == pytest.approx(bars(shown), abs=2)


def test_the_menu_offers_all_formats(panel: InspectorPanel) -> None:
    words = [action.text() for action in panel.plots.time.export_menu().actions()]
    assert len(words) == 4
    for kind in ("PNG", "SVG", "CSV", "Copy"):
        assert any(kind in word for word in words)


def test_the_wheel_over_a_plot_is_left_to_the_panel(panel: InspectorPanel, qtbot: QtBot) -> None:
    panel.resize(420, 400)
    panel.show()
    qtbot.waitExposed(panel)
    port = panel.plots.time.widget.viewport()
    at = QPointF(60, 60)
    none = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(at, port.mapToGlobal(at), QPoint(0, -120), QPoint(0, -120), *none, False)
    QApplication.sendEvent(port, event)
    assert not event.isAccepted()


def test_a_right_click_on_a_plot_opens_its_menu(
    panel: InspectorPanel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel.show()
    opened: list[str] = []
    monkeypatch.setattr(PlotCard, "contextMenuEvent", lambda card, _event: opened.append(card.title))
    port = panel.plots.lengths.widget.viewport()
    at = QPoint(60, 60)
    QApplication.sendEvent(port, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, port.mapToGlobal(at)))
    assert opened == [panel.plots.lengths.title]


def test_the_axis_moves_in_steps(panel: InspectorPanel) -> None:
    """An axis drawn anew costs more than all bars, so it stays while a few rounds come in."""
    panel.show()
    ranges = set()
    for record in script.long_reply(150)[:60]:
        panel.add_records([record])
        panel.refresh()
        ranges.add(tuple(panel.plots.time.plot.viewRange()[0]))
    assert len(ranges) <= 60 // 10


def test_a_refresh_while_streaming_draws_one_part_a_turn_and_leaves_out_what_is_out_of_sight(
    panel: InspectorPanel, qtbot: QtBot
) -> None:
    panel.resize(420, 500)
    panel.show()
    qtbot.waitExposed(panel)
    panel.add_records(script.long_reply(300))
    panel.refresh_soon()
    assert not panel.plots.time.table()[1], "nothing is drawn at once"
    qtbot.waitUntil(lambda: not panel._apart.isActive(), timeout=PATIENCE_MS)
    assert panel.plots.time.table()[1]
    assert panel.rounds.value.text() == str(panel.model.rounds)
    assert not panel.plots.calibration.table()[1], "it is far below"
    scroll = panel.tabs.widget(0)
    assert isinstance(scroll, QScrollArea)
    scroll.verticalScrollBar().setValue(scroll.verticalScrollBar().maximum())
    qtbot.waitUntil(lambda: bool(panel.plots.calibration.table()[1]), timeout=PATIENCE_MS)


def test_plots_are_made_card_by_card_when_the_window_has_time(fresh: InspectorPanel, qtbot: QtBot) -> None:
    fresh.refresh_soon()  # as a load that makes progress asks for
    qtbot.waitUntil(lambda: not fresh._apart.isActive(), timeout=PATIENCE_MS)
    assert fresh._stack is None, "neither the first paint nor a load waits for plots"
    fresh.prepare()
    assert fresh._stack is None, "nothing at once"
    qtbot.waitUntil(lambda: fresh._stack is not None and 0 < len(fresh._stack.cards) < len(KINDS), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: fresh._whole is not None, timeout=PATIENCE_MS)
    assert not fresh.plots.time.table()[1]


def test_rounds_that_come_first_have_the_plots_made_and_drawn(fresh: InspectorPanel, qtbot: QtBot) -> None:
    fresh.add_records(script.reply())
    fresh.refresh_soon()
    qtbot.waitUntil(lambda: fresh._whole is not None and bool(fresh.plots.time.table()[1]), timeout=PATIENCE_MS)
    assert fresh.rounds.value.text() == str(fresh.model.rounds)


def test_what_was_said_before_the_plots_were_made_is_not_lost(fresh: InspectorPanel) -> None:
    fresh.add_records(script.reply())
    fresh.show_plain(12.5)
    fresh.show_button(True)
    fresh.apply_theme(DARK)
    fresh.scrubber.go(3)
    plots = fresh.plots
    assert plots.cost.plain == 12.5
    assert plots.cost.button.isEnabled()
    assert plots.time._theme is DARK
    assert plots.time._mark.value() == 3
    assert plots.time._mark.isVisible()


def test_a_panel_that_is_hidden_makes_its_plots_once_it_is_shown(qtbot: QtBot) -> None:
    panel = InspectorPanel(LIGHT)
    qtbot.addWidget(panel)
    panel.prepare()
    assert not panel._apart.isActive()
    panel.show()
    qtbot.waitUntil(lambda: panel._whole is not None, timeout=PATIENCE_MS)


def test_acceptance_comes_first_and_plain_decoding_is_in_the_key_once_measured(panel: InspectorPanel) -> None:
    assert panel.plots.cards[0] is panel.plots.positions
    assert [words for _, words in panel.plots.speeds.key()] == ["with drafts"]
    panel.show_plain(20.0)
    assert [words for _, words in panel.plots.speeds.key()] == ["with drafts", "plain"]


def test_no_plot_is_cut_off_in_a_low_window(panel: InspectorPanel, qtbot: QtBot) -> None:
    panel.resize(360, 600)
    panel.show()
    qtbot.waitExposed(panel)
    panel.add_records(script.reply())
    panel.refresh()
    for card in cards(panel):
        assert card.widget.geometry().bottom() < card.height(), card.title


def test_the_last_rounds_are_drawn_also_when_it_is_too_soon(panel: InspectorPanel, qtbot: QtBot) -> None:
    panel.show()
    qtbot.waitExposed(panel)
    panel.add_records(script.reply())
    panel.refresh_soon()
    qtbot.waitUntil(lambda: not panel._apart.isActive(), timeout=PATIENCE_MS)
    drawn = panel.redraws
    panel.add_records(script.reply())
    for _ in range(5):
        panel.refresh_soon()
    assert panel.redraws == drawn, "five wishes at once are put off"
    qtbot.waitUntil(lambda: panel.rounds.value.text() == str(panel.model.rounds), timeout=PATIENCE_MS)
    assert panel.redraws == drawn + 1, "and drawn once"


def test_rounds_that_come_while_plots_are_drawn_are_drawn_too(panel: InspectorPanel, qtbot: QtBot) -> None:
    panel.show()
    qtbot.waitExposed(panel)
    records = script.long_reply(300)
    panel.add_records(records[:50])
    panel.refresh_soon()
    panel.add_records(records[50:])
    panel.catch_up()  # the reply ends in the middle of a drawing
    end = panel.model.rounds
    qtbot.waitUntil(lambda: panel.plots.time.table()[1][-1:] != [] and panel.plots.time.table()[1][-1][0] == end)
    assert panel.rounds.value.text() == str(end)
