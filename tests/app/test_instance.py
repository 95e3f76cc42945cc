"""A second start hands its files over; what a killed start left behind is replaced; nonsense is turned away."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.instance import Listener, socket_name
from tests.app.conftest import PATIENCE_MS

SECOND = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.instance import hand_over
app = QCoreApplication([])
sys.exit(0 if hand_over(sys.argv[1], [Path(p) for p in sys.argv[2:]]) else 3)
"""


def second(name: str, *paths: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SECOND, name, *paths])


def test_files_come_to_the_first_and_the_second_ends(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    name = socket_name(tmp_path)
    listener = Listener(name, qapp)
    with qtbot.waitSignal(listener.called, timeout=PATIENCE_MS) as called:
        start = second(name, "some/model.gguf", str(tmp_path))
    assert called.args == [[Path("some/model.gguf").absolute(), tmp_path]]
    assert start.wait(20) == 0
    listener.close()
    assert second(name).wait(20) == 3, "nobody listens any more"


def test_as_many_files_as_a_command_line_holds(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    name = socket_name(tmp_path)
    listener = Listener(name, qapp)
    odd = "\u00e9" * 60
    paths = [f"/pictures/{number:04}-{odd}.png" for number in range(1000)]
    with qtbot.waitSignal(listener.called, timeout=PATIENCE_MS) as called:
        start = second(name, *paths)
    assert called.args == [[Path(path) for path in paths]]
    assert start.wait(20) == 0
    listener.close()


def test_each_settings_folder_has_its_own_socket(tmp_path: Path) -> None:
    assert socket_name(tmp_path) == socket_name(tmp_path / "x" / "..")
    assert socket_name(tmp_path) != socket_name(tmp_path / "x")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes there do not outlive their process")
def test_the_socket_of_a_killed_start_is_replaced(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    name = socket_name(tmp_path)
    code = (
        "import os, sys; from PySide6.QtCore import QCoreApplication; from app.instance import Listener\n"
        "app = QCoreApplication([]); ok = Listener(sys.argv[1]).listening; os.kill(os.getpid(), 9 if ok else 15)"
    )
    assert subprocess.run([sys.executable, "-c", code, name], check=False).returncode == -9
    assert second(name).wait(20) == 3
    listener = Listener(name, qapp)
    assert listener.listening
    with qtbot.waitSignal(listener.called, timeout=PATIENCE_MS):
        assert second(name).poll() is None
    listener.close()


@pytest.mark.parametrize("line", [b"no json\n", b'{"a": 1}\n', b"[1]\n", json.dumps([""]).encode() + b"\n"])
def test_nonsense_is_turned_away(qtbot: QtBot, qapp: QApplication, tmp_path: Path, line: bytes) -> None:
    listener = Listener(socket_name(tmp_path), qapp)
    called: list[object] = []
    listener.called.connect(called.append)
    socket = QLocalSocket()
    socket.connectToServer(socket_name(tmp_path))
    assert socket.waitForConnected(5000)
    with qtbot.waitSignal(socket.disconnected, timeout=PATIENCE_MS):
        socket.write(line)
    assert called == []
    listener.close()
