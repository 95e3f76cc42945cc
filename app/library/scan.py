"""Which files below a folder may be checkpoints, sidecars or vision towers: by name and kind; nothing is opened."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.language import tr
from app.library.choice import is_companion, is_sidecar, is_weights
from app.library.hub.order import ORDER_NAME, awaited

DEEPEST = 6
MOST = 2000
"""Candidates of one folder; a folder with more is no model folder."""
Stamp = tuple[float, int, int]
"""Latest change, bytes, how many files."""
_LATER_PART = re.compile(r"-(?!0*1-of-)\d+-of-\d+$")


@dataclass(frozen=True, slots=True)
class Offer:
    """A folder where other programs keep models."""

    name: str
    path: Path


def usual_folders(environment: Mapping[str, str], home: Path) -> tuple[Offer, ...]:
    """Folders of other programs that exist here. They are offered, and never read unasked."""
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    hub = environment.get("HF_HUB_CACHE")
    hugging_face = Path(hub) if hub else Path(environment.get("HF_HOME") or cache / "huggingface") / "hub"
    offers = [
        Offer(tr("the Hugging Face cache"), hugging_face),
        Offer(tr("LM Studio's models"), home / ".lmstudio" / "models"),
        Offer(tr("LM Studio's older models"), cache / "lm-studio" / "models"),
    ]
    if sys.platform == "darwin":
        cache = home / "Library" / "Caches"  # not translated: a path
    offers.append(Offer(tr("llama.cpp's cache"), cache / "llama.cpp"))
    return tuple(offer for offer in offers if offer.path.is_dir())


def candidates(folder: Path, cancelled: Callable[[], bool] = lambda: False) -> list[Path]:
    """Checkpoint folders, single files, and the first file of split ones, sorted; a missing folder has none."""
    found: list[Path] = []
    for here, folders, files in os.walk(folder):
        if cancelled() or len(found) >= MOST:
            break
        path = Path(here)
        deep = len(path.relative_to(folder).parts) >= DEEPEST
        folders[:] = [] if deep else sorted(name for name in folders if not name.startswith("."))
        found += _of_folder(path, sorted(files))
    return found[:MOST]


def around(path: Path) -> list[Path]:
    """A single checkpoint with the sidecars and vision towers in its folder."""
    home = path if path.is_dir() else path.parent
    try:
        names = sorted(entry.name for entry in home.iterdir() if entry.is_file())
    except OSError:
        return [path]
    return [path, *(home / name for name in names if home / name != path and is_companion(home / name))]


def _of_folder(folder: Path, names: list[str]) -> Iterator[Path]:
    coming = awaited(folder) if ORDER_NAME in names else frozenset()
    weights = [folder / name for name in names if is_weights(folder / name) and not _LATER_PART.search(Path(name).stem)]
    weights = [path for path in weights if path not in coming]
    whole = "config.json" in names and any(path.suffix == ".safetensors" for path in weights)
    if whole:
        yield folder
    for path in weights:
        if not whole or path.suffix != ".safetensors" or is_sidecar(path):
            yield path


def stamp(path: Path) -> Stamp:
    """What changes when the files of a candidate change."""
    try:
        files = [entry for entry in path.iterdir() if entry.is_file()] if path.is_dir() else [path]
        states = [file.stat() for file in files]
    except OSError:
        return 0.0, 0, 0
    return max((s.st_mtime for s in states), default=0.0), sum(s.st_size for s in states), len(states)
