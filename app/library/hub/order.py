"""A download as it lies on disk: what was ordered, and how much is there. It outlives the program."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from app.language import tr
from app.library.choice import size_text
from app.library.hub.files import HubFile

ORDER_NAME = ".draftscope-download.json"
_OWN = ".draftscope-"
PART_SUFFIX = ".draftscope-part"
"""Not a browser's `.part`: what has this ending is this program's own, to go on with and to delete."""
SPARE_BYTES = 64 << 20
"""Left free on the disk, beside what is fetched."""
_FORBIDDEN = set('<>:"|?*\\\0')
_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{p}{n}" for p in ("com", "lpt") for n in "0123456789¹²³"
}
"""Windows opens a device by these names in any folder, and with any ending."""


class OrderError(Exception):
    """A download cannot be kept where it was to go; the sentence says why and what to do."""


@dataclass(frozen=True, slots=True)
class Order:
    """Files of one commit of a repository, to be fetched into a folder."""

    repo: str
    commit: str
    folder: Path
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def path(self, file: HubFile) -> Path:
        """Where a file goes."""
        return self.folder / file.path

    def part(self, file: HubFile) -> Path:
        """Where it grows until it is whole and verified."""
        return self.folder / f"{file.path}{PART_SUFFIX}"

    def present(self) -> int:
        """Bytes that are there already."""
        return sum(self._present(file) for file in self.files)

    def _present(self, file: HubFile) -> int:
        for path in (self.path(file), self.part(file)):
            with suppress(OSError):
                return min(file.size, path.stat().st_size)
        return 0


def home_of(place: Path, repo: str, windows: bool = os.name == "nt") -> Path:
    """The folder of a repository below the person's folder for downloads; OrderError if it would not be below it."""
    if not _harmless(repo):
        raise OrderError(tr("The repository's name {name} is no owner/name; look it up again.", name=_shown(repo)))
    if windows and _names_device(repo):
        raise OrderError(
            tr("Windows allows no folder of the name {name}; choose another repository.", name=_shown(repo))
        )
    return place.joinpath(*repo.split("/"))


def check_names(files: Iterable[HubFile]) -> None:
    """Refuse names that would leave the folder, that some system cannot write, or that are one file to some (which
    take no notice of case, or of how letters with marks are coded); the hub is trusted in nothing."""
    seen: dict[str, str] = {}
    for file in files:
        if not _harmless(file.path) or _names_device(file.path):
            raise OrderError(
                tr("The file name {name} cannot be kept on disk; choose other files.", name=_shown(file.path))
            )
        first = seen.setdefault(unicodedata.normalize("NFC", file.path).casefold(), file.path)
        if first is not file.path:
            raise OrderError(
                tr(
                    "{one} and {other} would be the same file on some disks; choose one of them.",
                    one=_shown(first),
                    other=_shown(file.path),
                )
            )


def _harmless(name: str) -> bool:
    """Whether a relative path is written as it reads, and is none of the names that are used here."""
    parts = PurePosixPath(name).parts
    return (
        len(parts) > 0
        and str(PurePosixPath(*parts)) == name
        and name.isprintable()
        and not any(part == ".." or part[-1] in "/. " or _FORBIDDEN & set(part) for part in parts)
        and not any(part.startswith(_OWN) or part.endswith(PART_SUFFIX) for part in parts)
    )


def _names_device(name: str) -> bool:
    """Whether a part of a relative path is a device where Windows reads it."""
    return any(part.partition(".")[0].rstrip(" ").lower() in _DEVICES for part in name.split("/"))


def _shown(name: str) -> str:
    """A name for people: quoted, escaped where it has to be, and not endless."""
    return f"“{name if name.isprintable() else ascii(name)[1:-1]:.100}”"


def free_bytes(folder: Path) -> int:
    """Free space where a folder is or will be."""
    for place in (folder, *folder.parents):
        with suppress(OSError):
            return shutil.disk_usage(place).free
    return 0


def check_space(order: Order) -> None:
    """Refuse to begin what cannot fit."""
    missing = order.size - order.present()
    free = free_bytes(order.folder)
    if missing + SPARE_BYTES > free:
        raise OrderError(
            tr(
                "{missing} do not fit into {folder}, where {free} are free; choose another folder or make room.",
                missing=size_text(missing),
                folder=order.folder,
                free=size_text(free),
            )
        )


def save(order: Order) -> None:
    """Write the order down, so that another start of the program can go on with it."""
    check_names(order.files)
    data = {"repo": order.repo, "commit": order.commit, "files": [asdict(file) for file in order.files]}
    target = order.folder / ORDER_NAME
    try:
        order.folder.mkdir(parents=True, exist_ok=True)
        new = target.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
    except OSError as error:
        raise OrderError(
            tr("{folder} cannot be written to ({why}); choose another folder.", folder=order.folder, why=error.strerror)
        ) from error


def load(folder: Path) -> Order | None:
    """The order that a folder waits for; None if there is none, or it makes no sense."""
    try:
        data = json.loads((folder / ORDER_NAME).read_text("utf-8"))
        files = tuple(HubFile(f["path"], int(f["size"]), f["sha256"], f["git"]) for f in data["files"])
        order = Order(str(data["repo"]), str(data["commit"]), folder, files)
        check_names(files)
    except (OSError, ArithmeticError, ValueError, KeyError, TypeError, RecursionError, OrderError):
        return None
    return order


def close(order: Order) -> None:
    """Everything is there: forget the order."""
    (order.folder / ORDER_NAME).unlink(missing_ok=True)


def discard(order: Order) -> None:
    """Delete what is not whole, and the order. Files that are whole and verified stay."""
    for file in order.files:
        order.part(file).unlink(missing_ok=True)
    close(order)
    with suppress(OSError):  # only folders that are empty now
        for folder in sorted({order.path(file).parent for file in order.files} | {order.folder}, reverse=True):
            folder.rmdir()
        order.folder.parent.rmdir()


def awaited(folder: Path) -> frozenset[Path]:
    """What an unfinished download will bring into this folder or below: it is not to be read before it is whole."""
    order = load(folder)
    return frozenset(order.path(file) for file in order.files) if order is not None else frozenset()
