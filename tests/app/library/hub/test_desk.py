"""Looking up, fetching, pausing, ending the program and going on: the view model against a hub on this computer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QMainWindow
from pytestqt.qtbot import QtBot

from app.library.hub.desk import HubDesk, Transfer
from app.library.hub.rate import Rate, duration_text
from app.memory import Memory
from app.settings import SettingsFile
from tests.app.conftest import PATIENCE_MS
from tests.app.library.hub.conftest import WEIGHTS
from tests.app.library.hub.server import Hub


class MakeDesk:
    """Makes desks that share settings and downloads, as one start of the program after another does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.made: list[HubDesk] = []
        self.windows: list[QMainWindow] = []

    def __call__(self) -> HubDesk:
        window = QMainWindow()
        desk = HubDesk(Memory(window, SettingsFile(self._folder)), self._folder / "models", window)
        self.made.append(desk)
        self.windows.append(window)
        return desk


@pytest.fixture
def make_desk(qapp: QApplication, tmp_path: Path) -> Iterator[MakeDesk]:
    make = MakeDesk(tmp_path)
    yield make
    for desk, window in zip(make.made, make.windows, strict=True):
        desk.close()
        window.deleteLater()  # here and now: not by whichever thread collects garbage
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def look(qtbot: QtBot, desk: HubDesk, text: str) -> None:
    desk.look(text)
    qtbot.waitUntil(lambda: not desk.asking, timeout=PATIENCE_MS)


def start(qtbot: QtBot, desk: HubDesk, repo: str = "someone/tiny-GGUF") -> Transfer:
    look(qtbot, desk, repo)
    chosen = desk.proposed
    assert chosen is not None
    assert desk.start([chosen]) == ""
    return desk.transfers[-1]


def reach(qtbot: QtBot, transfer: Transfer, state: str) -> None:
    qtbot.waitUntil(lambda: transfer.state == state, timeout=PATIENCE_MS)


def test_nothing_is_asked_unasked(qtbot: QtBot, hub: Hub, make_desk: MakeDesk) -> None:
    desk = make_desk()
    qtbot.wait(50)
    desk.look("   ")
    assert hub.requests == []


def test_words_search_and_names_list(qtbot: QtBot, hub: Hub, make_desk: MakeDesk) -> None:
    desk = make_desk()
    look(qtbot, desk, "tiny")
    assert [hit.repo for hit in desk.hits] == ["someone/tiny-GGUF", "someone/tiny"]
    look(qtbot, desk, f"{hub.endpoint}/someone/tiny-GGUF/blob/main/tiny-Q8_0.gguf")
    assert desk.hits == []
    assert (desk.parts[0].format, desk.parts[0].size) == ("Q4_K_M", len(WEIGHTS))
    assert desk.proposed is not None
    assert desk.proposed.format == "Q8_0", "the file that the address names"
    look(qtbot, desk, "someone/nothing")
    assert "was not found" in desk.problem
    look(qtbot, desk, "no such words")
    assert "finds nothing" in desk.problem


def test_a_download_arrives_and_is_told(qtbot: QtBot, hub: Hub, make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk()
    with qtbot.waitSignal(desk.fetched, timeout=PATIENCE_MS):
        transfer = start(qtbot, desk)
    assert transfer.state == "done"
    assert (tmp_path / "models/someone/tiny-GGUF/tiny-Q4_K_M.gguf").read_bytes() == WEIGHTS
    assert SettingsFile(tmp_path).load().downloads == ()
    desk.dismiss(transfer)
    assert desk.transfers == []


def test_a_paused_download_outlives_the_program_and_goes_on(
    qtbot: QtBot, hub: Hub, make_desk: MakeDesk, tmp_path: Path
) -> None:
    hub.hold_at = 100_000
    first = make_desk()
    transfer = start(qtbot, first)
    qtbot.waitUntil(hub.held.is_set, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: transfer.done >= 98_304, timeout=PATIENCE_MS)
    first.pause(transfer)
    assert transfer.state == "pausing"
    hub.go.set()
    reach(qtbot, transfer, "paused")
    assert transfer.words().startswith("Paused at ")
    first.close()
    second = make_desk()
    (left,) = second.transfers
    assert (left.state, left.order) == ("paused", transfer.order)
    assert left.done >= 98_304
    before = len(hub.fetched("tiny-Q4_K_M.gguf"))
    qtbot.wait(50)
    assert len(hub.fetched("tiny-Q4_K_M.gguf")) == before, "it goes on only when told to"
    second.resume(left)
    reach(qtbot, left, "done")
    assert (tmp_path / "models/someone/tiny-GGUF/tiny-Q4_K_M.gguf").read_bytes() == WEIGHTS
    assert int(hub.fetched("tiny-Q4_K_M.gguf")[-1].removeprefix("bytes=").split("-")[0]) >= 98_304


def test_one_runs_and_the_next_waits_for_it(qtbot: QtBot, hub: Hub, make_desk: MakeDesk) -> None:
    hub.hold_at = 0
    desk = make_desk()
    first = start(qtbot, desk)
    second = start(qtbot, desk, "someone/tiny")
    assert (first.state, second.state) == ("running", "waiting")
    assert desk.proposed is not None
    assert "is being fetched already" in desk.start([desk.proposed])
    hub.go.set()
    reach(qtbot, second, "done")
    assert first.state == "done"


def test_discarding_one_that_runs_deletes_it(qtbot: QtBot, hub: Hub, make_desk: MakeDesk, tmp_path: Path) -> None:
    hub.hold_at = 50_000
    desk = make_desk()
    transfer = start(qtbot, desk)
    qtbot.waitUntil(hub.held.is_set, timeout=PATIENCE_MS)
    desk.discard(transfer)
    hub.go.set()
    qtbot.waitUntil(lambda: desk.transfers == [], timeout=PATIENCE_MS)
    assert not (tmp_path / "models" / "someone").exists()
    assert SettingsFile(tmp_path).load().downloads == ()


def test_a_failure_is_a_sentence_and_resume_tries_again(qtbot: QtBot, hub: Hub, make_desk: MakeDesk) -> None:
    desk = make_desk()
    transfer = start(qtbot, desk, "someone/secret")
    reach(qtbot, transfer, "failed")
    assert "is gated" in transfer.words()
    hub.repos["someone/secret"].gated = False
    desk.resume(transfer)
    reach(qtbot, transfer, "done")


def test_a_place_that_cannot_be_written_to_is_said(qtbot: QtBot, hub: Hub, make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    desk = make_desk()
    look(qtbot, desk, "someone/tiny-GGUF")
    assert desk.proposed is not None
    assert "cannot be written to" in desk.start([desk.proposed])
    assert desk.transfers == []


def test_a_hub_that_gives_a_repository_another_name_cannot_choose_the_folder(
    qtbot: QtBot, hub: Hub, make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    look(qtbot, desk, "someone/tiny-GGUF")
    listing = desk.listing
    assert listing is not None
    desk.listing = replace(listing, repo="../../elsewhere")
    assert "is no owner/name" in desk.start(desk.parts)
    assert desk.transfers == []


def test_rates_forget_what_is_long_past() -> None:
    rate = Rate()
    assert rate.per_second is None
    for second in range(20):
        rate.add(second, 100 * second)
    assert rate.per_second == 100
    assert rate.seconds_for(1000) == 10
    for second in range(20, 40):
        rate.add(second, 1900)
    assert rate.per_second == 0
    assert rate.seconds_for(1) is None
    assert [duration_text(s) for s in (0.2, 59, 90, 3725)] == ["1 s", "59 s", "2 min", "1 h 02 min"]
