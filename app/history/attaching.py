"""What goes with the message that is being written: files are read, judged, kept until it is sent. Knows no widget."""

from __future__ import annotations

import io
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.history.store import Attachment
from app.language import tr

if TYPE_CHECKING:
    from engine import PictureSize

PICTURE_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
MOST_TEXT = 4 << 20
MOST_PICTURE = 64 << 20
_MODEL_SUFFIXES = {".gguf", ".safetensors"}


class Attaching(QObject):
    """The files of the message that is being written."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._files: list[Attachment] = []
        self.tokens: dict[Attachment, int] = {}
        """How many tokens each text takes, as far as the model has told."""
        self.sizes: dict[bytes, tuple[PictureSize, ...]] = {}
        """At which sizes the model can read each picture, as far as it has told."""

    @property
    def files(self) -> tuple[Attachment, ...]:
        return tuple(self._files)

    @property
    def pictures(self) -> bool:
        """Whether there is a picture among them."""
        return any(file.kind == "picture" for file in self._files)

    def add_paths(self, paths: Sequence[Path]) -> str:
        """Attach files; returns why the first of those that could not be was not."""
        problem = ""
        for path in paths:
            read = read_attachment(path)
            if isinstance(read, str):
                problem = problem or read
            else:
                self._put(read)
        self.changed.emit()
        return problem

    def add_picture(self, data: bytes, name: str = "pasted.png") -> None:
        """Attach a picture that was pasted."""
        self._put(Attachment("picture", name, data))
        self.changed.emit()

    def remove(self, file: Attachment) -> None:
        self._files.remove(file)
        self.changed.emit()

    def set_files(self, files: Sequence[Attachment]) -> None:
        """Have these files and no others."""
        self._files = list(files)
        self.changed.emit()

    def take(self) -> tuple[Attachment, ...]:
        """Hand the files over to the message that is sent."""
        files = self.files
        self.set_files(())
        return files

    def forget_costs(self) -> None:
        """Another model counts in another way."""
        self.tokens.clear()
        self.sizes.clear()
        self.changed.emit()

    def set_sizes(self, picture: Attachment, sizes: Sequence[PictureSize]) -> None:
        """The model told at which sizes it can read a picture."""
        self.sizes[picture.data] = tuple(sizes)
        self.changed.emit()

    def size_of(self, picture: Attachment) -> PictureSize | None:
        """The size at which a picture goes with the message, if the model has told what that takes."""
        sizes = self.sizes.get(picture.data, ())
        return next((size for size in sizes if (size.longest or 0) == picture.longest), None)

    def choose_size(self, picture: Attachment, longest: int) -> None:
        """Send a picture with its longest side scaled down to so many pixels, or (0) as it is."""
        self._files = [replace(file, longest=longest) if file == picture else file for file in self._files]
        self.changed.emit()

    def set_tokens(self, file: Attachment, tokens: int) -> None:
        """The model told how many tokens a file takes."""
        self.tokens[file] = tokens
        self.changed.emit()

    def _put(self, file: Attachment) -> None:
        if all((file.name, file.data) != (other.name, other.data) for other in self._files):
            self._files.append(file)


def attachable(path: Path) -> bool:
    """Whether a file that is dropped on the window is meant to go with a message, as far as its name tells."""
    return path.is_file() and path.suffix.lower() not in _MODEL_SUFFIXES


def read_attachment(path: Path) -> Attachment | str:
    """A file as it goes with a message, or the sentence that says why it cannot."""
    picture = path.suffix.lower() in PICTURE_SUFFIXES
    try:
        if refusal := _refusal(path, MOST_PICTURE if picture else MOST_TEXT):
            return refusal
        data = path.read_bytes()
    except OSError as error:
        return tr("{path} cannot be read: {reason}.", path=path, reason=error.strerror or error)
    if picture:
        problem = picture_problem(data)
        if problem:
            return tr("{file} is no picture that can be read: {reason}.", file=path.name, reason=problem)
        return Attachment("picture", path.name, data)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return tr("{file} is neither a picture nor text in UTF-8; attach another file.", file=path.name)
    return Attachment("text", path.name, data)


def _refusal(path: Path, most: int) -> str:
    """Why a file is not even read; empty if it is."""
    state = path.stat()
    if not stat.S_ISREG(state.st_mode):  # a pipe would keep the window waiting, a device would never end
        return tr("{path} is no ordinary file; attach another one.", path=path)
    if state.st_size > most:
        return tr("{file} is too large to go with a message; attach a part of it.", file=path.name)
    return ""


def picture_problem(data: bytes) -> str:
    """Why a picture cannot be read; empty if it can. Only its header is looked at."""
    from PIL import Image  # when a picture is attached

    try:
        with Image.open(io.BytesIO(data)) as picture:
            picture.verify()
    except Exception as error:  # what a broken picture raises differs by format
        return str(error) or type(error).__name__
    return ""
