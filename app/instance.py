"""One window for each settings folder: a second start hands its files to the first and ends.

The first start listens on a local socket that only the same user can open. A socket that a killed program left behind
is noticed because nobody answers, and replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

ANSWER_MS = 3000
MOST_BYTES = 16 << 20
"""More than a command line can hold."""
TAKEN = b"taken\n"


def socket_name(settings: Path) -> str:
    """The same for every start with these settings, another for others."""
    return "draftscope-" + hashlib.sha256(str(settings.resolve()).encode()).hexdigest()[:16]


def hand_over(name: str, paths: Sequence[Path]) -> bool:
    """Give the files to the program that listens under `name`; false if there is none, or it does not answer."""
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(ANSWER_MS):
        return False
    socket.write(json.dumps([str(path.absolute()) for path in paths]).encode() + b"\n")
    while not socket.canReadLine():
        if not socket.waitForReadyRead(ANSWER_MS):
            return False
    return bytes(socket.readLine().data()) == TAKEN


class Listener(QObject):
    """The first start's side. `called` brings the files of a later start, perhaps none."""

    called = Signal(object)  # list[Path]

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        self.listening = self._server.listen(name)
        if not self.listening:
            QLocalServer.removeServer(name)  # nobody answered before: it was left behind
            self.listening = self._server.listen(name)

    def close(self) -> None:
        """Listen no more, and take the socket away."""
        self._server.close()

    @Slot()
    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.readyRead.connect(self._on_ready)
            socket.disconnected.connect(socket.deleteLater)

    @Slot()
    def _on_ready(self) -> None:
        socket = self.sender()
        if not isinstance(socket, QLocalSocket):
            return
        if not socket.canReadLine():
            if socket.bytesAvailable() > MOST_BYTES:
                socket.abort()
            return
        paths = _paths(bytes(socket.readLine(MOST_BYTES).data()))
        if paths is None:
            socket.abort()
            return
        socket.write(TAKEN)
        socket.flush()
        self.called.emit(paths)


def _paths(line: bytes) -> list[Path] | None:
    """What a start sent, or None if it is no list of paths."""
    try:
        sent = json.loads(line)
    except ValueError:
        return None
    if not isinstance(sent, list) or not all(isinstance(entry, str) and entry for entry in sent):
        return None
    return [Path(entry) for entry in sent]
