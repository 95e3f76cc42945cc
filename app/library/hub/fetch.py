"""Fetches the files of an order: on from where they are, verified while they come, in place only when they are whole.

Knows neither widgets nor the network: the bytes come from a function. Runs in a thread of its own.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from app.language import tr
from app.library.hub import order as orders
from app.library.hub.client import HubError
from app.library.hub.files import HubFile
from app.library.hub.order import Order, OrderError

WINDOW = 4 << 30
"""Bytes asked for at a time: addresses that the hub hands out expire, and it serves at most 50 GB at once."""
CHUNK = 1 << 20
TRIES = 6
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0

Stream = Callable[[str, str, str, int, int], AbstractContextManager[Iterator[bytes]]]
"""repo, commit, path, first, last → the bytes first…last-1 in pieces."""


class Hash(Protocol):
    """What of `hashlib` is used here."""

    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


@dataclass(eq=False)
class Progress:
    """How far a download is: written by its thread, read by the window."""

    done: int = 0
    file: str = ""
    note: str = ""
    """What is going on besides fetching, as checking or waiting for the line."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set to make the thread end soon; what is there stays."""


class Stop(Exception):  # noqa: N818 - no error
    """Somebody asked for an end."""


def fetch(order: Order, stream: Stream, progress: Progress, pause_s: float = FIRST_PAUSE_S) -> None:
    """Bring every file of the order into its folder.

    Raises:
        Stop: `progress.stop` was set; what is there stays, and another call goes on from it.
        HubError: the hub or the line failed for good.
        OrderError: the folder or the disk failed.
    """
    try:
        orders.check_space(order)
        orders.save(order)
        whole = 0
        for file in order.files:
            progress.file = file.path
            _fetch_file(order, file, stream, progress, whole, pause_s)
            whole += file.size
            progress.done = whole
        orders.close(order)
    except OSError as error:
        raise OrderError(_disk_sentence(order, error)) from error


def _fetch_file(order: Order, file: HubFile, stream: Stream, progress: Progress, before: int, pause_s: float) -> None:
    target, part = order.path(file), order.part(file)
    if target.exists():
        _check_present(file, target, progress, before)
        return
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("ab") as out:
        if out.tell() > file.size:
            out.truncate(0)
        digest = _hash_of(file)
        _read_into(digest, part, out.tell(), progress, before)
        _append(order, file, stream, out.write, out.tell(), digest, progress, before, pause_s)
        out.flush()
        os.fsync(out.fileno())
    if problem := _mismatch(file, digest):
        part.unlink()
        raise HubError(tr("{problem} It was deleted; fetch it again.", problem=problem))
    part.replace(target)


def _append(
    order: Order,
    file: HubFile,
    stream: Stream,
    write: Callable[[bytes], object],
    at: int,
    digest: Hash,
    progress: Progress,
    before: int,
    pause_s: float,
) -> None:
    """Fetch what is missing; a line that fails is tried again after a while, less and less often."""
    tries, wait = 0, pause_s
    while at < file.size:
        try:
            with stream(order.repo, order.commit, file.path, at, min(file.size, at + WINDOW)) as pieces:
                progress.note = ""
                for piece in pieces:
                    _check(progress)
                    if at + len(piece) > file.size:
                        raise HubError(
                            tr("{file} is longer than the hub said; look the repository up again.", file=file.path)
                        )
                    write(piece)
                    digest.update(piece)
                    at += len(piece)
                    progress.done = before + at
                    tries, wait = 0, pause_s
            tries += 1  # a stream that ends early without an error
            problem = HubError(tr("{file} ended too early.", file=file.path), passing=True)
        except HubError as error:
            problem, tries = error, tries + 1
        if at < file.size:
            if not problem.passing or tries >= TRIES:
                raise problem
            progress.note = tr("Trying again: {problem}", problem=problem)
            if progress.stop.wait(wait):
                raise Stop
            wait = min(2 * wait, LONGEST_PAUSE_S)


def _check_present(file: HubFile, path: Path, progress: Progress, before: int) -> None:
    """A file of that name is there: it is what was ordered, or it is somebody's own and stays."""
    digest = _hash_of(file)
    if path.stat().st_size == file.size:
        _read_into(digest, path, file.size, progress, before)
    if path.stat().st_size != file.size or _mismatch(file, digest):
        raise OrderError(
            tr("{path} is another file than the hub's; move it away, or choose another folder.", path=path)
        )


def _read_into(digest: Hash, path: Path, size: int, progress: Progress, before: int) -> None:
    progress.note = (
        tr("Checking what is there of {name}", name=path.name.removesuffix(orders.PART_SUFFIX)) if size else ""
    )
    done = 0
    with path.open("rb") as file:
        while done < size and (piece := file.read(min(CHUNK, size - done))):
            _check(progress)
            digest.update(piece)
            done += len(piece)
            progress.done = before + done
    progress.note = ""


def _hash_of(file: HubFile) -> Hash:
    if file.git and not file.sha256:
        digest = hashlib.sha1(usedforsecurity=False)
        digest.update(b"blob %d\0" % file.size)
        return digest
    return hashlib.sha256()


def _mismatch(file: HubFile, digest: Hash) -> str:
    """A sentence if the bytes are not those that the hub announced."""
    wanted = file.sha256 or file.git
    if not wanted or digest.hexdigest() == wanted.lower():
        return ""
    return tr("{file} arrived damaged: its checksum is not the one that the hub gives.", file=file.path)


def _check(progress: Progress) -> None:
    if progress.stop.is_set():
        raise Stop


def _disk_sentence(order: Order, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return tr("The disk of {folder} is full; make room and resume: what is there is kept.", folder=order.folder)
    return tr(
        "{folder} cannot be written to ({why}); mend that and resume.", folder=order.folder, why=error.strerror or error
    )
