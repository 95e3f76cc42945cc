"""Copies of a sound checkpoint with one fault each."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

Header = dict[str, Any]


def copy_checkpoint(source: Path, target: Path) -> Path:
    """A copy whose large files are hard links: replace a file, never write into it."""
    target.mkdir()
    for path in source.iterdir():
        if path.suffix == ".safetensors":
            os.link(path, target / path.name)
        elif path.is_file():
            shutil.copy(path, target / path.name)
    return target


def edit_json(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def read_safetensors(path: Path) -> tuple[Header, bytes]:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def write_safetensors(path: Path, header: Header, data: bytes) -> None:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.unlink(missing_ok=True)  # it may be a link to the sound file
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def shard_with(folder: Path, tensor: str) -> Path:
    """The file of a checkpoint folder that holds a tensor whose name ends so."""
    for path in sorted(folder.glob("*.safetensors")):
        if any(name.endswith(tensor) for name in read_safetensors(path)[0]):
            return path
    raise AssertionError(f"no shard has {tensor}")


def edit_tensor(path: Path, ending: str, edit: Callable[[Header, bytes], bytes]) -> str:
    """Change a tensor's header entry or bytes (of the same number); returns its name."""
    header, data = read_safetensors(path)
    name = next(name for name in header if name.endswith(ending))
    start, end = header[name]["data_offsets"]
    changed = edit(header[name], data[start:end])
    write_safetensors(path, header, data[:start] + changed + data[end:])
    return name
