"""Downloads from the hub without widgets: what was looked up, what is being fetched, each in a thread of its own.

Nothing is asked of the network before `look` or `start` is called. One download runs at a time; others wait for it.
What is not whole when the program ends is offered again at its next start, and goes on only when told to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.courier import Courier
from app.language import mark, tr
from app.library.choice import size_text
from app.library.hub import client, order
from app.library.hub.client import HubError
from app.library.hub.fetch import Progress, Stop, fetch
from app.library.hub.files import Hit, HubFile, Listing, Part, named, parts, proposed
from app.library.hub.order import Order, OrderError
from app.library.hub.rate import Rate, duration_text
from app.memory import Memory

TICK_MS = 250
PATIENCE_S = 3.0
UNFORESEEN = mark("This failed unexpectedly; the log (Ctrl+Shift+G) tells more.")
State = Literal["waiting", "running", "pausing", "discarding", "paused", "failed", "done"]


@dataclass(eq=False)
class Transfer:
    """One order on its way."""

    order: Order
    state: State
    problem: str = ""
    progress: Progress = field(default_factory=Progress)
    rate: Rate = field(default_factory=Rate)
    thread: threading.Thread | None = None

    @property
    def done(self) -> int:
        return self.order.size if self.state == "done" else self.progress.done

    def words(self) -> str:
        """How it stands, in a line."""
        whole = size_text(self.order.size)
        if self.state == "done":
            return tr("{size}, every checksum right", size=whole)
        of = tr("{done} of {whole}", done=size_text(self.done), whole=whole)
        if self.state == "running":
            if self.progress.note:
                return f"{of} · {self.progress.note}"
            if self.rate.per_second == 0:
                return " · ".join((of, tr("nothing is coming")))
            speed, left = self.rate.per_second, self.rate.seconds_for(self.order.size - self.done)
            if speed is None or left is None:
                return of
            return " · ".join((of, _speed(speed), tr("{time} left", time=duration_text(left))))
        said = {
            "waiting": tr("Waits for the one before it"),
            "pausing": tr("Pausing…"),
            "discarding": tr("Discarding…"),
            "paused": tr("Paused at {share}", share=of),
        }
        return said.get(self.state, self.problem)


def _speed(speed: float) -> str:
    return f"{size_text(round(speed))}/s"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the hub said, or why it did not."""

    generation: int
    found: list[Hit] | Listing | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a download's thread ended."""

    transfer: Transfer
    state: State
    problem: str = ""


class HubDesk(QObject):
    """What the download dialog shows and asks for."""

    looked = Signal()
    """A search or a listing began or ended."""
    transfers_changed = Signal()
    """A download is there, gone, or in another state."""
    progressed = Signal()
    fetched = Signal(object)  # Order: it is whole
    broke = Signal(object)  # Transfer: it failed, and waits to be resumed

    def __init__(self, memory: Memory, place: Path, parent: QObject | None = None) -> None:
        """`place`: where downloads go unless the person chose another folder."""
        super().__init__(parent)
        self._memory = memory
        self._usual_place = place
        self.asking = False
        self.problem = ""
        self.hits: list[Hit] = []
        self.listing: Listing | None = None
        self.parts: list[Part] = []
        self.proposed: Part | None = None
        self.transfers: list[Transfer] = []
        self._generation = 0
        self._path = ""
        self._asker: threading.Thread | None = None
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self._tick)
        self._courier = Courier(self)
        self._courier.brought.connect(self._on_brought)
        self._take_up()

    # Looking

    def look(self, text: str) -> None:
        """List the files of a repository that is named, or else search for one."""
        if not text.strip():
            return
        wanted = named(text)
        self._generation += 1
        self.asking, self.problem, self.hits, self.listing, self.parts = True, "", [], None, []
        self._path = wanted.path if wanted else ""

        generation, box = self._generation, self._courier.box

        def ask() -> None:
            try:
                found = client.list_files(wanted.repo, wanted.revision) if wanted else client.search(text.strip())
                box.put(Answer(generation, found))
            except HubError as error:
                box.put(Answer(generation, problem=str(error)))
            except BaseException:
                box.put(Answer(generation, problem=tr(UNFORESEEN)))
                raise

        self._asker = threading.Thread(target=ask, name="hub", daemon=True)
        self._asker.start()
        self._courier.expect()
        self.looked.emit()

    @Slot(object)
    def _on_brought(self, thing: Answer | Ending) -> None:
        if isinstance(thing, Ending):
            self._on_ended(thing)
        elif thing.generation == self._generation:
            self._on_answer(thing)
        if not self.asking and not any(transfer.thread is not None for transfer in self.transfers):
            self._courier.rest()

    def _on_answer(self, answer: Answer) -> None:
        self.asking, self.problem, found = False, answer.problem, answer.found
        if isinstance(found, Listing):
            self.listing, self.parts = found, parts(found)
            self.proposed = proposed(self.parts, self._path)
            if not self.parts:
                self.problem = tr(
                    "{repo} has no file that can be opened here: GGUF or safetensors with a config.", repo=found.repo
                )
        elif found is not None:
            self.hits = found
            if not found:
                self.problem = tr("{host} finds nothing with these words in its name.", host=client.host())
        self.looked.emit()

    def share(self) -> float | None:
        """How much of what is being fetched is there; None while nothing is."""
        going = [t.order.size and t.done / t.order.size for t in self.transfers if t.thread is not None]
        return going[0] if going else None

    # Where to

    @property
    def place(self) -> Path:
        """The folder below which downloads are kept, each as owner/name."""
        chosen = self._memory.settings.download_folder
        return Path(chosen) if chosen else self._usual_place

    def put_into(self, folder: Path) -> None:
        """Keep downloads here from now on."""
        self._memory.change(download_folder="" if folder == self._usual_place else str(folder))
        self.looked.emit()

    # Fetching

    def start(self, chosen: Sequence[Part]) -> str:
        """Fetch these parts of the listed repository; returns a sentence if that cannot be."""
        if self.listing is None or not chosen:
            return tr("Choose at least one file.")
        files: dict[str, HubFile] = {file.path: file for part in chosen for file in part.files}
        try:
            folder = order.home_of(self.place, self.listing.repo)
        except OrderError as error:
            return str(error)
        running = next((t for t in self.transfers if t.order.folder == folder and t.state != "done"), None)
        if running is not None:
            return tr("{repo} is being fetched already; wait for it, or discard it first.", repo=self.listing.repo)
        ordered = Order(self.listing.repo, self.listing.commit, folder, tuple(files.values()))
        try:
            order.check_names(ordered.files)
            order.check_space(ordered)
            order.save(ordered)
        except OrderError as error:
            return str(error)
        self.transfers = [t for t in self.transfers if t.order.folder != folder]
        self.transfers.append(Transfer(ordered, "waiting"))
        self._next()
        return ""

    def pause(self, transfer: Transfer) -> None:
        """Stop fetching; what is there stays."""
        if transfer.state == "running":
            transfer.state = "pausing"
            transfer.progress.stop.set()
        elif transfer.state == "waiting":
            transfer.state = "paused"
        self._told()

    def resume(self, transfer: Transfer) -> None:
        """Go on where it was."""
        if transfer.state in ("paused", "failed"):
            transfer.state, transfer.problem = "waiting", ""
            self._next()

    def discard(self, transfer: Transfer) -> None:
        """Give it up and delete what is not whole; files that are whole stay."""
        transfer.progress.stop.set()
        if transfer.thread is not None:
            transfer.state = "discarding"  # until its thread has ended
            self._told()
        else:
            self._throw_away(transfer)

    def dismiss(self, transfer: Transfer) -> None:
        """Take one that is whole off the list."""
        if transfer.state == "done":
            self._forget(transfer)

    def close(self) -> None:
        """Stop everything; it goes on at another start."""
        self._generation += 1
        self._timer.stop()
        self._courier.rest()
        for transfer in self.transfers:
            transfer.progress.stop.set()
        deadline = time.monotonic() + PATIENCE_S
        for thread in (self._asker, *(transfer.thread for transfer in self.transfers)):
            if thread is not None:
                thread.join(max(0.0, deadline - time.monotonic()))

    # Inside

    def _take_up(self) -> None:
        """Offer what another start of the program left unfinished."""
        for folder in self._memory.settings.downloads:
            left = order.load(Path(folder))
            if left is not None:
                self.transfers.append(Transfer(left, "paused", progress=Progress(done=left.present())))

    def _next(self) -> None:
        """Begin with the first that waits, if none runs."""
        if not any(transfer.thread is not None for transfer in self.transfers):
            transfer = next((t for t in self.transfers if t.state == "waiting"), None)
            if transfer is not None:
                transfer.state = "running"
                transfer.progress = Progress(done=transfer.order.present())
                transfer.rate = Rate()
                work = transfer, self._courier.box
                transfer.thread = threading.Thread(target=_run, args=work, name="download", daemon=True)
                transfer.thread.start()
                self._timer.start()
                self._courier.expect()
        self._told()

    def _on_ended(self, ending: Ending) -> None:
        transfer = ending.transfer
        discarding, transfer.thread = transfer.state == "discarding", None
        transfer.state, transfer.problem = ending.state, ending.problem
        if discarding:
            self._throw_away(transfer)
            return
        if transfer.state == "done":
            self.fetched.emit(transfer.order)
        elif transfer.state == "failed":
            self.broke.emit(transfer)
        self._next()

    @Slot()
    def _tick(self) -> None:
        running = [transfer for transfer in self.transfers if transfer.thread is not None]
        for transfer in running:
            if not transfer.progress.note:
                transfer.rate.add(time.monotonic(), transfer.done)
        if not running:
            self._timer.stop()
        self.progressed.emit()

    def _forget(self, transfer: Transfer) -> None:
        self.transfers.remove(transfer)
        self._next()

    def _throw_away(self, transfer: Transfer) -> None:
        try:
            order.discard(transfer.order)
            self._forget(transfer)
        except OSError as error:
            transfer.state = "failed"
            transfer.problem = tr(
                "{folder} cannot be tidied up ({why}); delete it yourself.",
                folder=transfer.order.folder,
                why=error.strerror,
            )
            self._told()

    def _told(self) -> None:
        """Remember what is unfinished, and tell that something changed."""
        unfinished = tuple(str(t.order.folder) for t in self.transfers if t.state != "done")
        if unfinished != self._memory.settings.downloads:
            self._memory.change(downloads=unfinished)
            self._memory.save()  # at once: a killed program must find it again
        self.transfers_changed.emit()


def _run(transfer: Transfer, box: SimpleQueue[Answer | Ending]) -> None:
    """Fetch one order. Runs in a thread of its own."""
    ending = Ending(transfer, "failed", tr(UNFORESEEN))
    try:
        fetch(transfer.order, client.stream, transfer.progress)
        ending = Ending(transfer, "done")
    except Stop:
        ending = Ending(transfer, "paused")
    except (HubError, OrderError) as error:
        ending = Ending(transfer, "failed", str(error))
    finally:
        box.put(ending)
