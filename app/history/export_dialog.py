"""Where to write a conversation, and as what."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from app.history.chats import Chats
from app.history.export import as_html, as_json, as_markdown

FORMATS = {
    "Markdown (*.md)": (".md", as_markdown),
    "Web page with colours (*.html)": (".html", as_html),
    "Every token as JSON (*.json)": (".json", as_json),
}


def ask_and_export(parent: QWidget, chats: Chats) -> str:
    """Ask for a file and write the open conversation; returns what went wrong, if anything."""
    name = re.sub(r"[^\w .-]+", "", chats.title).strip(" .") or "conversation"
    chosen, kind = QFileDialog.getSaveFileName(parent, "Export the conversation", f"{name}.md", ";;".join(FORMATS))
    return write_export(Path(chosen), chats, kind) if chosen else ""


def write_export(path: Path, chats: Chats, kind: str = "") -> str:
    """Write the open conversation as the file's ending says, else as `kind`; returns what went wrong, if anything."""
    suffixes = dict(FORMATS.values())
    if path.suffix.lower() not in suffixes:
        path = path.with_name(path.name + FORMATS.get(kind, (".md", as_markdown))[0])
    try:
        path.write_text(suffixes[path.suffix.lower()](chats.title, chats.entries()), "utf-8")
    except OSError as error:
        return f"{path} could not be written: {error.strerror or error}; choose another place."
    return ""
