"""The check for a newer version: what a server answers becomes a sentence, and nobody is asked unasked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton
from pytestqt.qtbot import QtBot

from app.help import about_dialog
from app.help.about_dialog import AboutDialog, LicencesDialog
from app.help.update_check import Answer, check, order
from app.main_window import MainWindow
from tests.app.conftest import PATIENCE_MS


@contextmanager
def server(status: int, body: bytes) -> Iterator[str]:
    """The address of a web server that always answers the same."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=web.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{web.server_port}/json"
    web.shutdown()
    thread.join()
    web.server_close()


def published(version: str) -> bytes:
    return json.dumps({"info": {"name": "draftscope", "version": version}}).encode()


def test_a_newer_version_is_told() -> None:
    with server(200, published("0.10.0")) as address:
        assert check(address, "0.9.1") == Answer("Version 0.10.0 is published; this is version 0.9.1.", "0.10.0")


@pytest.mark.parametrize("version", ["0.9.1", "0.9", "0.9.1rc1"])
def test_an_older_or_the_same_version_is_none(version: str) -> None:
    with server(200, published(version)) as address:
        assert check(address, "0.9.1") == Answer("This is version 0.9.1; no newer one is published.")


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, b"", "knows no published version"),
        (500, b"", "gave no answer that says a version (status 500)"),
        (200, b"<html>sign in to this network</html>", "gave no answer"),
        (200, b"[]", "gave no answer"),
        (200, b'{"info": {"version": 3}}', "gave no answer"),
        (200, b'{"info": {"version": "soon"}}', "gave no answer"),
        (200, published("9" * 5000), "gave no answer"),
        (200, published("9.0 <img src=x>"), "gave no answer"),
        (200, b"[" * 100_000, "gave no answer"),
    ],
)
def test_what_is_no_answer_is_said(status: int, body: bytes, said: str) -> None:
    with server(status, body) as address:
        answer = check(address, "1.0")
    assert not answer.newer
    assert said in answer.sentence


def test_without_a_network_the_reason_is_said() -> None:
    with server(200, b"") as address:
        pass  # nobody listens there any more
    answer = check(address, "1.0")
    assert answer.sentence.startswith("127.0.0.1:")
    assert "could not be asked (" in answer.sentence
    assert "are you online?" in answer.sentence


def test_versions_are_ordered_by_number() -> None:
    ordered = ["0.9", "0.9.1", "0.10rc1", "0.10.0", "1.0", "1.0.1"]
    assert all(order(before) < order(after) for before, after in pairwise(ordered))
    assert order("1.0") == order("1.0.0")


def test_only_a_click_asks(qtbot: QtBot) -> None:
    asked: list[threading.Thread] = []

    def answer() -> Answer:
        asked.append(threading.current_thread())
        return Answer("Version 9 <is> published.", "9")

    dialog = AboutDialog(check_now=answer)
    qtbot.addWidget(dialog)
    dialog.show()
    assert asked == []
    dialog.button.click()
    qtbot.waitUntil(lambda: "Version 9 &lt;is> published." in dialog.answer.text(), timeout=PATIENCE_MS)
    assert 'href="https://pypi.org/project/draftscope/"' in dialog.answer.text()
    assert dialog.button.isEnabled()
    assert asked
    assert asked[0] is not threading.main_thread()


def test_the_menu_asks_and_shows_the_answer(qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(about_dialog.AboutDialog.__init__, "__defaults__", (None, answering(asked)))
    window.actions_by_name["about"].trigger()
    dialog = window.rooms.about
    assert dialog is not None
    assert dialog.isVisible()
    assert asked == []
    window.actions_by_name["updates"].trigger()
    qtbot.waitUntil(lambda: dialog.answer.text() == "This is the newest.", timeout=PATIENCE_MS)
    assert asked == [1]


def answering(asked: list[int]) -> Callable[[], Answer]:
    def answer() -> Answer:
        asked.append(1)
        return Answer("This is the newest.")

    return answer


def test_what_comes_along_is_told_with_its_licences(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(about_dialog, "notices", lambda: "Qt is under the LGPL.")
    dialog = AboutDialog()
    qtbot.addWidget(dialog)
    buttons = dialog.findChildren(QPushButton)
    next(button for button in buttons if button.text() == "Licences of others").click()
    shown = dialog.findChild(LicencesDialog)
    assert shown is not None
    assert shown.findChild(QPlainTextEdit).toPlainText() == "Qt is under the LGPL."


def test_a_frozen_program_has_its_notices_among_its_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert about_dialog.notices() == ""
    (tmp_path / about_dialog.NOTICES).write_text("Qt is under the LGPL.", encoding="utf-8")
    monkeypatch.setattr(about_dialog, "files", lambda package: tmp_path)
    assert about_dialog.notices() == "Qt is under the LGPL."
