"""Where to write a conversation, and as what."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from app.history.chats import Chats
from app.history.export import as_html, as_json, as_markdown
from app.history.export_pictures import PictureFolder
from app.language import mark, tr
from app.saving import place_of

FORMATS = {
    ".md": mark("Markdown"),
    ".html": mark("Web page with colours"),
    ".json": mark("Every token as JSON"),
}
"""Endings of files, and what they are; marked for translation."""


def ask_and_export(parent: QWidget, chats: Chats, tell: Callable[[str], object]) -> str:
    """Ask for a file and write the open conversation; returns what went wrong, if anything. `tell` gets a sentence
    about what else was written."""
    name = re.sub(r"[^\w .-]+", "", chats.title).strip(" .") or "conversation"
    kinds = {f"{tr(what)} (*{suffix})": suffix for suffix, what in FORMATS.items()}
    title, place = tr("Export the conversation"), f"{name}.md"
    chosen, kind = QFileDialog.getSaveFileName(parent, title, place, ";;".join(kinds))
    path = place_of(parent, chosen, FORMATS, kinds.get(kind, ".md")) if chosen else None
    return write_export(path, chats, tell=tell) if path is not None else ""


def write_export(
    path: Path, chats: Chats, suffix: str = ".md", tell: Callable[[str], object] = lambda _sentence: None
) -> str:
    """Write the open conversation as the file's ending says, else as `suffix`; returns what went wrong, if anything.

    Pictures stand inside a web page; beside Markdown and JSON they stand in a folder with the file's name and `_files`.
    """
    if path.suffix.lower() not in FORMATS:
        path = path.with_name(path.name + suffix)
    title, entries, folder = chats.title, chats.entries(), PictureFolder(f"{path.name}_files")
    try:
        if path.suffix.lower() == ".html":
            text = as_html(title, entries)
        else:
            text = (as_json if path.suffix.lower() == ".json" else as_markdown)(title, entries, folder)
        folder.write(path.parent)
        path.write_text(text, "utf-8")
    except OSError as error:
        reason = error.strerror or error
        return tr("{path} could not be written: {reason}; choose another place.", path=path, reason=reason)
    if folder.files:
        tell(
            tr(
                "{file} is written; its pictures are in the folder {folder} beside it, which goes with it.",
                file=path.name,
                folder=folder.name,
            )
        )
    return ""
