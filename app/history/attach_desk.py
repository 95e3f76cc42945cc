"""Files for the message that is being written: dropped, pasted or chosen; counted by the model, or refused by it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QFileDialog, QWidget

from app.chat.composer import Composer
from app.chat.controller import ChatController
from app.history.attaching import PICTURE_SUFFIXES
from app.history.attachment_bar import AttachmentBar
from app.history.chats import user_message
from app.history.store import Attachment
from app.jobs import CountJob, TaskJob
from app.language import tr
from app.library.towers import towers_beside
from app.message_bar import MessageBar
from app.theme import Theme

if TYPE_CHECKING:
    from engine import Message


class AttachmentDesk(QObject):
    """Connects the files of the message with the composer, the model and the message area."""

    def __init__(
        self, window: QWidget, cards: AttachmentBar, composer: Composer, chat: ChatController, bar: MessageBar
    ) -> None:
        super().__init__(window)
        self._window = window
        self._cards = cards
        self.attaching = attaching = cards.attaching
        self._composer = composer
        self._chat = chat
        self._bar = bar
        self._counting: dict[CountJob, Attachment] = {}
        self._measuring: dict[TaskJob, Attachment] = {}
        attaching.changed.connect(self._on_changed)
        composer.attach_requested.connect(self.choose)
        composer.edit.files_pasted.connect(self.add)
        composer.edit.picture_pasted.connect(self._add_pasted)
        chat.engine.counted.connect(self._on_counted)
        chat.engine.task_ended.connect(self._on_measured)
        chat.prompt_returned.connect(self._give_back)
        chat.loaded.connect(self._on_loaded)

    def apply_theme(self, theme: Theme) -> None:
        self._cards.apply_theme(theme)

    @Slot(str)
    def send(self, text: str) -> None:
        """Say something to the model, or give it back to the composer with the reason why that cannot be done now."""
        if not self.check_sight():
            self._composer.give_back(text)
            return
        files = self.attaching.take()
        if not self._chat.send(text, files):
            self._give_back(text, files)
            self._bar.show_message(self._chat.why_not_send() or tr("The message is empty."), "info")

    @Slot(str, object)
    def _give_back(self, text: str, files: tuple[Attachment, ...]) -> None:
        self.attaching.set_files((*files, *self.attaching.files))
        self._composer.give_back(text)

    @Slot()
    def choose(self) -> None:
        """Ask for files."""
        pictures = " ".join(f"*{suffix}" for suffix in sorted(PICTURE_SUFFIXES))
        kinds = f"{tr('Pictures and text')} (*);;{tr('Pictures')} ({pictures})"
        chosen, _ = QFileDialog.getOpenFileNames(self._window, tr("Attach files"), "", kinds)
        if chosen:
            self.add([Path(path) for path in chosen])

    @Slot(object)
    def add(self, paths: list[Path]) -> None:
        """Attach these files, and say which cannot be."""
        problem = self.attaching.add_paths(paths)
        if problem:
            self._bar.show_message(problem, "warning")
        else:
            self.check_sight()

    @Slot(bytes)
    def _add_pasted(self, data: bytes) -> None:
        self.attaching.add_picture(data)
        self.check_sight()

    def check_sight(self) -> bool:
        """Whether the model can see the pictures, if there are any; else say so and offer a remedy."""
        model = self._chat.model
        if not self.attaching.pictures or model is None or model.vision:
            return True
        why = model.vision_note.rstrip(".")
        if why:
            sentence = tr("{model} cannot see pictures: {why}.", model=model.name, why=why)
        else:
            sentence = tr("{model} cannot see pictures.", model=model.name)
        found = towers_beside(Path(model.path))
        if len(found) == 1:
            name = found[0].name
            hint = tr("{tower} lies beside it: load it too, or remove the pictures.", tower=name)
            remedy = (tr("Load {tower}", tower=name), lambda: self.load_tower(found[0]))
        else:
            hint = tr("Choose its vision tower, or remove the pictures.")
            remedy = (tr("Choose its mmproj file…"), self.choose_tower)
        self._bar.show_message(f"{sentence} {hint}", "warning", remedy)
        return False

    @Slot()
    def choose_tower(self) -> None:
        """Ask for a vision tower, and load the model again with it."""
        model = self._chat.model
        if model is None:
            return
        folder = str(Path(model.path).parent)
        title, kinds = tr("Choose the vision tower (mmproj)"), f"{tr('GGUF files')} (*.gguf)"
        chosen, _ = QFileDialog.getOpenFileName(self._window, title, folder, kinds)
        if chosen:
            self.load_tower(Path(chosen))

    def load_tower(self, tower: Path) -> None:
        """Load the model again with a vision tower."""
        if (model := self._chat.model) is not None:
            self._chat.load(Path(model.path), Path(model.sidecar) if model.sidecar else None, tower)

    @Slot()
    def _on_changed(self) -> None:
        self._composer.show_files(len(self.attaching.files))
        model = self._chat.model
        if model is None:
            return
        asked = {*self.attaching.tokens, *self._counting.values()}
        for file in self.attaching.files:
            if file.kind == "text" and file not in asked:
                bare: Message = user_message(".", ())
                job = self._chat.engine.count((user_message(".", (file,)),), (bare,))
                self._counting[job] = file
            elif file.kind == "picture" and model.vision:
                self._measure(file)

    def _measure(self, picture: Attachment) -> None:
        """Ask the model what a picture takes, and what smaller ones would."""
        waiting = (other.data for other in self._measuring.values())
        if picture.data not in self.attaching.sizes and picture.data not in waiting:
            (image,) = user_message("", (picture,)).images
            task = self._chat.engine.task(lambda model, _session, _job: model.picture_sizes(image))
            self._measuring[task] = picture

    @Slot(object)
    def _on_measured(self, task: TaskJob) -> None:
        picture = self._measuring.pop(task, None)
        if picture is not None and isinstance(task.result, tuple):
            self.attaching.set_sizes(picture, task.result)
        elif picture is not None and task.problem:
            self._bar.show_message(task.problem, "warning")

    @Slot(object, int)
    def _on_counted(self, job: CountJob, tokens: int) -> None:
        file = self._counting.pop(job, None)
        if file is not None and tokens >= 0:
            self.attaching.set_tokens(file, tokens)

    @Slot(object)
    def _on_loaded(self, _info: object) -> None:
        self.attaching.forget_costs()
        self.check_sight()
