"""Pictures of a conversation that leaves the program: files beside a text, or inside a page."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from app.chat.cells import AttachedFile

INLINE_BYTES = 2 << 20
INLINE_SIDE = 1600
"""A page holds larger pictures scaled down to this side: it is read in a browser and sent by mail."""
MOST_NAME_BYTES = 100
DIGITS = 12
"""Of a picture's hash, in its name: two of one name are never the same."""
WEB_FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
"""What every browser shows, of what can be attached."""


@dataclass
class PictureFolder:
    """The files that stand in a folder beside an exported text; the same picture is there once.

    Its bytes are part of a file's name, so that what an earlier export left in the folder keeps its own.
    """

    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    _places: dict[bytes, str] = field(default_factory=dict)

    def place(self, picture: AttachedFile) -> str:
        """Where a picture is, relative to the text."""
        if picture.data not in self._places:
            given = PurePath(_writable(picture.name))
            digest = hashlib.sha256(picture.data).hexdigest()[:DIGITS]
            name = f"{given.stem}-{digest}{given.suffix}"
            self.files[name] = picture.data
            self._places[picture.data] = f"{self.name}/{name}"
        return self._places[picture.data]

    def write(self, parent: Path) -> None:
        """Write the folder into `parent`, if there are pictures at all; OSError if that cannot be done."""
        if self.files:
            (parent / self.name).mkdir(exist_ok=True)
        for name, data in self.files.items():
            (parent / self.name / name).write_bytes(data)


def _writable(name: str) -> str:
    """A file's name that every system and every link can hold; of a long one, the end with the ending."""
    safe = re.sub(r"[^\w.-]+", "-", name).encode("utf-8", "ignore")[-MOST_NAME_BYTES:].decode("utf-8", "ignore")
    return safe.strip("-.") or "picture"


def reference(file: AttachedFile, folder: PictureFolder) -> dict[str, Any]:
    """A file of a message for JSON: what it is, and for a picture where its bytes are."""
    about: dict[str, Any] = {"kind": file.kind, "name": file.name}
    if file.kind == "picture":
        about |= {"file": folder.place(file), "sha256": hashlib.sha256(file.data).hexdigest()}
    return about


@dataclass(frozen=True, slots=True)
class Inline:
    """A picture that stands inside a page."""

    uri: str
    width: int
    height: int


def inline(data: bytes) -> Inline | None:
    """A picture for a page; scaled down and written anew if it is large or of a kind that browsers do not show. None
    if it cannot be read."""
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data)) as opened:
            kind, picture = opened.format or "", ImageOps.exif_transpose(opened)
            if kind not in WEB_FORMATS or len(data) > INLINE_BYTES or max(picture.size) > INLINE_SIDE:
                picture.thumbnail((INLINE_SIDE, INLINE_SIDE))
                kind, data = _written(picture)
            size = picture.size
    except Exception:  # what a broken picture raises differs by format
        return None
    return Inline(f"data:{WEB_FORMATS[kind]};base64,{base64.b64encode(data).decode()}", *size)


def _written(picture: Any) -> tuple[str, bytes]:
    """The picture as a file: JPEG, or PNG if one can see through it."""
    clear = picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info
    stream = io.BytesIO()
    if clear:
        picture.convert("RGBA").save(stream, "PNG", optimize=True)
    else:
        picture.convert("RGB").save(stream, "JPEG", quality=85)
    return ("PNG" if clear else "JPEG"), stream.getvalue()
