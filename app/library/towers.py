"""Vision towers in files of their own: found beside a checkpoint, remembered for it, let go of again."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Slot

from app.chat.controller import ChatController
from app.jobs import LoadJob, LoadOutcome
from app.library.choice import is_tower
from app.memory import Memory


class Towers(QObject):
    """Loads every checkpoint with the tower that it was last loaded with."""

    def __init__(self, chat: ChatController, memory: Memory, parent: QObject) -> None:
        super().__init__(parent)
        self._chat = chat
        self._memory = memory
        chat.engine.tower_for = self.tower_for
        chat.engine.load_ended.connect(self._on_load_ended)

    def tower_for(self, path: Path) -> Path | None:
        """The tower that is remembered for a checkpoint, if it is still there."""
        tower = self._memory.settings.towers.get(str(path), "")
        return Path(tower) if tower and Path(tower).is_file() else None

    @Slot()
    def leave_out(self) -> None:
        """Load the model in use again without its tower."""
        if (model := self._chat.model) is not None:
            self._forget(Path(model.path))
            self._chat.load(Path(model.path), Path(model.sidecar) if model.sidecar else None)

    def _forget(self, path: Path) -> None:
        self._keep({key: tower for key, tower in self._memory.settings.towers.items() if key != str(path)})

    def _keep(self, towers: dict[str, str]) -> None:
        if towers != self._memory.settings.towers:
            self._memory.change(towers=towers)

    @Slot(object, object)
    def _on_load_ended(self, job: LoadJob, outcome: LoadOutcome) -> None:
        """Remember a tower that fits; one that does not must not keep its checkpoint from being loaded."""
        if outcome.info is not None and outcome.info.mmproj:
            self._keep({**self._memory.settings.towers, outcome.info.path: outcome.info.mmproj})
        elif outcome.problem and job.mmproj is not None and job.mmproj == self.tower_for(job.path):
            self._forget(job.path)


def towers_beside(path: Path) -> list[Path]:
    """The files in a checkpoint's folder that are named like vision towers."""
    folder = path if path.is_dir() else path.parent
    try:
        return sorted(file for file in folder.iterdir() if is_tower(file) and file.is_file())
    except OSError:
        return []
