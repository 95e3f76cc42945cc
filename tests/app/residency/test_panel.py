"""The memory panel: real plans of real checkpoints, budgets chosen, cells walked over, all of it named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

import engine
from app.residency.glance import Glance
from app.residency.panel import MemoryPanel
from app.residency.plan_words import beside, expected, spent
from app.residency.strip import unit_name
from app.style import Stylist
from app.theme import DARK, LIGHT
from tests.app.scripted import model_info

TINY = Path(__file__).parents[2] / "data" / "tiny-dense"
PATIENCE_MS = 20_000
UNITS = {"layers.0": "resident", "layers.1": "disk", "layers.2": "reading", "head.1": "ring"}


@pytest.fixture
def panel(qtbot: QtBot, stylist: Stylist) -> Iterator[MemoryPanel]:
    made = MemoryPanel(stylist.theme)
    qtbot.addWidget(made)
    made.resize(380, 900)
    made.show()
    yield made
    assert made.plans.close()


def planned(qtbot: QtBot, panel: MemoryPanel, glance: Glance | None = None) -> engine.BudgetRange:
    with qtbot.waitSignal(panel.plans.ready, timeout=PATIENCE_MS) as answer:
        if glance is not None:
            panel.show_glance(glance, 0.0)
            panel.show_model(model_info(TINY))
        else:
            panel.plan(TINY)
    plans: engine.BudgetRange = answer.args[0]
    return plans


def test_before_loading_the_button_loads_with_the_budget(qtbot: QtBot, panel: MemoryPanel) -> None:
    plans = planned(qtbot, panel)
    assert not panel.budget.plan.streams, "a small model fits as a whole"  # type: ignore[union-attr]
    panel.budget.slider.setValue(0)
    assert panel.budget.spent.text() == spent(plans.plans[0])
    assert panel.budget.expected.text() == expected(plans.plans[0])
    with qtbot.waitSignal(panel.load_requested, timeout=PATIENCE_MS) as asked:
        panel.budget.apply.click()
    assert asked.args == [TINY, None, plans.plans[0].minimum]


def test_a_plan_is_for_the_kv_cache_that_is_in_use_or_comes_next(qtbot: QtBot, panel: MemoryPanel) -> None:
    exact = planned(qtbot, panel).automatic
    panel.kv_for_next = lambda: "q8"
    small = planned(qtbot, panel).automatic
    assert small.session_bytes < exact.session_bytes
    assert panel.budget.beside.text() == beside(small)
    assert "keys and values stored as q8." in beside(small)
    with qtbot.waitSignal(panel.plans.ready, timeout=PATIENCE_MS) as answer:
        panel.show_model(model_info(TINY, kv_cache="bf16"))
    assert answer.args[0].automatic.kv_cache == "bf16"


def test_the_model_in_use_gets_its_budget_changed(qtbot: QtBot, panel: MemoryPanel) -> None:
    plans = planned(qtbot, panel, Glance(UNITS, memory_bytes=5_000_000))
    at = panel.budget.slider.value()
    assert plans.plans[at].total_bytes <= 5_000_000 < plans.plans[at + 1].total_bytes
    panel.budget.slider.setValue(panel.budget.slider.maximum())
    with qtbot.waitSignal(panel.budget_chosen, timeout=PATIENCE_MS) as asked:
        panel.budget.apply.click()
    assert asked.args == [None]
    with qtbot.waitSignal(panel.budget_chosen, timeout=PATIENCE_MS) as asked:
        panel.budget.automatic.click()
    assert asked.args == ["auto"]


def test_nothing_is_planned_while_nobody_looks(qtbot: QtBot, panel: MemoryPanel) -> None:
    panel.hide()
    panel.show_model(model_info(TINY))
    assert not panel.plans.busy
    with qtbot.waitSignal(panel.plans.ready, timeout=PATIENCE_MS):
        panel.show()


def test_a_checkpoint_that_cannot_be_planned_says_why(qtbot: QtBot, panel: MemoryPanel, tmp_path: Path) -> None:
    with qtbot.waitSignal(panel.plans.failed, timeout=PATIENCE_MS):
        panel.plan(tmp_path / "nothing")
    assert "nothing" in panel.budget.notice.text()


def test_the_strip_is_walked_with_arrow_keys(qtbot: QtBot, panel: MemoryPanel) -> None:
    panel.show_glance(Glance(UNITS, layer=2, layers=3), 0.0)
    assert "Layer 1: in memory" in panel.strip.accessibleDescription()
    qtbot.keyClick(panel.strip, Qt.Key.Key_End)
    assert "Head, piece 2: passing through" in panel.strip.accessibleDescription()
    qtbot.keyClick(panel.strip, Qt.Key.Key_Left)
    assert "Layer 3: being read, being computed" in panel.strip.accessibleDescription()


def test_every_state_looks_different_in_both_themes(panel: MemoryPanel) -> None:
    panel.show_glance(Glance(UNITS), 0.0)
    for theme in (LIGHT, DARK):
        panel.apply_theme(theme)
        picture = panel.strip.grab().toImage()
        ratio = picture.devicePixelRatio()
        looks = set()
        for index in range(len(UNITS)):
            cell = panel.strip.cell(index)
            points = [(x, y) for x in range(2, cell.width() - 2) for y in range(2, cell.height() - 2)]
            pixels = (picture.pixel(int((cell.x() + x) * ratio), int((cell.y() + y) * ratio)) for x, y in points)
            looks.add(tuple(pixels))
        assert len(looks) == len(UNITS)


def test_units_have_names_for_people() -> None:
    assert [unit_name(u) for u in ("layers.0", "head", "head.2", "mtp")] == [
        "Layer 1",
        "Head",
        "Head, piece 3",
        "MTP layer",
    ]
