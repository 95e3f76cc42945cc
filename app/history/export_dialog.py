"""Where to write a conversation, and as what."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from app.history.chats import Chats
from app.history.export import as_html, as_json, as_markdown
from app.history.export_pictures import PictureFolder

FORMATS = {
    "Markdown (*.md)": ".md",
    "Web page with colours (*.html)": ".html",
    "Every token as JSON (*.json)": ".json",
}


def ask_and_export(parent: QWidget, chats: Chats, tell: Callable[[str], object]) -> str:
    """Ask for a file and write the open conversation; returns what went wrong, if anything. `tell` gets a sentence
    about what else was written."""
    name = re.sub(r"[^\w .-]+", "", chats.title).strip(" .") or "conversation"
    chosen, kind = QFileDialog.getSaveFileName(parent, "Export the conversation", f"{name}.md", ";;".join(FORMATS))
    return write_export(Path(chosen), chats, kind, tell) if chosen else ""


def write_export(
    path: Path, chats: Chats, kind: str = "", tell: Callable[[str], object] = lambda _sentence: None
) -> str:
    """Write the open conversation as the file's ending says, else as `kind`; returns what went wrong, if anything.

    Pictures stand inside a web page; beside Markdown and JSON they stand in a folder with the file's name and `_files`.
    """
    if path.suffix.lower() not in FORMATS.values():
        path = path.with_name(path.name + FORMATS.get(kind, ".md"))
    title, entries, folder = chats.title, chats.entries(), PictureFolder(f"{path.stem}_files")
    try:
        if path.suffix.lower() == ".html":
            text = as_html(title, entries)
        else:
            text = (as_json if path.suffix.lower() == ".json" else as_markdown)(title, entries, folder)
        folder.write(path.parent)
        path.write_text(text, "utf-8")
    except OSError as error:
        return f"{path} could not be written: {error.strerror or error}; choose another place."
    if folder.files:
        tell(f"{path.name} is written; its pictures are in the folder {folder.name} beside it, which goes with it.")
    return ""
