"""The weights of a model: resident as far as the budget allows, the rest streamed from disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.errors import ReadError
from engine.kernels.matrix import Matrix
from engine.weights.allocation import Allocation, allocate
from engine.weights.embedding import EmbeddingTable
from engine.weights.expert_cache import ExpertCache
from engine.weights.expert_view import ExpertView
from engine.weights.file_layer import DiskFiles, FileLayer
from engine.weights.order import ExecutionOrder
from engine.weights.precision import check_budget, tensor_bytes
from engine.weights.prefetch import ExpertPrefetcher
from engine.weights.ranges import ByteRange
from engine.weights.reader import Reader, Stall
from engine.weights.resident import Progress, Resident, load_resident
from engine.weights.ring import Ring
from engine.weights.sizes import Placement, place_for
from engine.weights.speed import measure_read_speed
from engine.weights.statistics import WeightStatistics
from engine.weights.units import EMBEDDING, MTP_EMBEDDING, USUAL_DRAFTS, Unit, drafting_step, group_of, only_drafting
from engine.weights.vectors import FloatArray, load_vectors
from engine.weights.views import matrices

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint
    from engine.files.sidecar import Sidecar

DEFAULT_DEPTH = 8
"""Least number of reads at once. An idle machine does with fewer; while all cores compute, threads that read wait for a
core now and then, and what is queued at the disk meanwhile keeps it busy."""
_WORTH_MEASURING = 256 * 1024 * 1024
"""Bytes in one file from which the measurement, some tenths of a second, is worth its time."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read."""

    files: FileLayer
    threads: int | None = None
    """Reads at once; None measures what the disk likes, if weights are streamed from a file that is worth it."""
    on_stall: Callable[[Stall], None] | None = None
    """Called by the waiting thread about once a second while the disk delivers nothing; must return at once."""


def open_weights(
    checkpoint: Checkpoint,
    sidecar: Sidecar | None = None,
    *,
    budget: int | None = None,
    draft_tokens: int = USUAL_DRAFTS,
    split_heads: bool = False,
    progress: Progress | None = None,
    cancel: CancelToken | None = None,
    reading: ReadOptions | None = None,
    precision: str | None = None,
) -> WeightStore:
    """Open the weights of a checkpoint (with the MTP layer of `sidecar`, if given) and read what stays in memory.

    `budget` is the most bytes that weights may occupy; None keeps everything. `draft_tokens` is how many drafts a round
    is expected to make, which decides what is worth keeping. `split_heads`: the caller acquires heads by `pieces`, so
    with a budget they need not be whole. `precision` (`q8`, `q4`) quantises float matrices as they are read; then
    everything must fit into the budget. `progress` gets (bytes read so far, bytes in all).

    Raises:
        OptionError: the budget is too small for this model.
        CheckpointError: a tensor is missing.
        ReadError: a file cannot be read.
        Cancelled.
    """
    placed = partial(place_for, checkpoint, sidecar, split_heads=split_heads)
    store = WeightStore(placed, draft_tokens, reading or ReadOptions(DiskFiles()), precision)
    store.set_budget(budget, progress, cancel)
    return store


class WeightStore:
    """Hands out weights by unit: `engine.weights.protocols.WeightSource`. Made by `open_weights`.

    One thread computes with it; others may look at `statistics` and `residency` at any time.
    """

    def __init__(
        self,
        placed: Callable[[int, int | None], Placement],
        draft_tokens: int,
        reading: ReadOptions,
        precision: str | None = None,
    ) -> None:
        """`placed` gives the placement for an expected number of drafts and a budget."""
        self._placed = placed
        self._draft_tokens = draft_tokens
        self._budget: int | None = None
        self._precision = precision
        self._placement = placed(draft_tokens, None)
        self._reading = reading
        self._vectors: dict[str, FloatArray] = {}
        self._resident = Resident()
        self._before = WeightStatistics()  # what readers that are closed have counted
        self._depth: int | None = None
        self._closed = True
        self._to_be_opened = False  # closed by a failure in between, and not by who owns it

    def set_budget(
        self, budget: int | None, progress: Progress | None = None, cancel: CancelToken | None = None
    ) -> None:
        """Share out another number of bytes; what stays resident is not read again. No unit may be in use.

        Raises:
            OptionError: the budget is too small; everything stays as it was.
            ReadError, Cancelled: the store is closed.
        """
        self._share_out(budget, self._draft_tokens, progress, cancel)

    def expect_drafts(self, draft_tokens: int, cancel: CancelToken | None = None) -> None:
        """Rounds will draft so many tokens with the MTP layer: share the budget out for that, if something is streamed.
        What drafting uses is worth keeping only while it drafts; without it, other units in memory leave the disk less
        idle. No unit may be in use.

        Raises:
            ReadError, Cancelled: nothing is in memory any more; the next call tries again.
        """
        if not self.would_move(draft_tokens):
            return
        try:
            self._share_out(self._budget, draft_tokens, None, cancel)
        except BaseException:
            self._to_be_opened = True
            raise

    def would_move(self, draft_tokens: int) -> bool:
        """Whether `expect_drafts` would have something to read."""
        if self._closed:
            return self._to_be_opened
        can_draft = any(only_drafting(unit.name) for unit in self.units)
        return can_draft and draft_tokens != self._draft_tokens and not self.allocation.complete

    def _share_out(
        self, budget: int | None, draft_tokens: int, progress: Progress | None, cancel: CancelToken | None
    ) -> None:
        if self._precision is None:
            placement = self._placed(draft_tokens, budget)
            allocation = allocate(placement.sizes, budget)
        else:
            placement = self._placed(draft_tokens, None)
            needed = check_budget(placement, self._precision, budget)
            allocation = replace(allocate(placement.sizes, None), resident_bytes=needed)
        resident = self._resident.part_for(placement, allocation)
        self.close()
        self._placement, self._budget, self._draft_tokens = placement, budget, draft_tokens
        try:
            self._open(allocation, resident)
            self._load(progress, cancel)
        except BaseException:
            self.close()
            raise

    def _open(self, allocation: Allocation, resident: Resident) -> None:
        """Start the I/O threads, with nothing to do yet."""
        last_layer = [unit.name for unit in self.units if unit.name.startswith("layers.")][-1]
        reading = self._reading
        self.allocation = allocation
        self._resident = resident
        self._order = ExecutionOrder(self._placement.order, last_layer)
        direct = not allocation.complete
        threads = reading.threads or (self._good_depth() if direct else DEFAULT_DEPTH)
        self._reader = Reader(reading.files, direct=direct, threads=threads, on_stall=reading.on_stall)
        self._tables: dict[str, EmbeddingTable] = {}
        self._views: dict[str, ExpertView] = {}
        self._ring: Ring | None = None
        self._experts: ExpertCache | None = None
        self._hits = 0
        self._closed = False

    def _good_depth(self) -> int:
        """How many reads at once the disk with the largest share of the weights likes; measured once."""
        if self._depth is None:
            sizes: dict[Path, int] = {}
            for spec in self._placement.specs.values():
                sizes[spec.file] = sizes.get(spec.file, 0) + spec.nbytes
            file = max(sizes, key=lambda path: sizes[path])
            worth_it = sizes[file] >= _WORTH_MEASURING
            measured = measure_read_speed(file, files=self._reading.files).depth if worth_it else 0
            self._depth = max(DEFAULT_DEPTH, measured)
        return self._depth

    def _load(self, progress: Progress | None, cancel: CancelToken | None) -> None:
        """Read what stays, and begin to run ahead."""
        p, allocation = self._placement, self.allocation
        if not self._vectors:
            self._vectors = load_vectors(p.specs, p.conventions, p.mtp_conventions, self._reading.files, cancel)
        load_resident(
            p,
            allocation,
            self._reader,
            self._vectors,
            self._resident,
            precision=self._precision,
            progress=progress,
            cancel=cancel,
        )
        for name in (EMBEDDING, MTP_EMBEDDING):
            if name in p.specs:
                shared = self._resident.units.get("head", {}).get("weight") if name == EMBEDDING and p.tied else None
                kept = shared or self._resident.tables.get(name)
                self._tables[name] = EmbeddingTable(p.specs[name], self._reader, kept)
        with self._reader.lock:
            if allocation.streamed:
                layouts = {name: p.layouts[name] for name in allocation.streamed}
                self._ring = Ring(self._reader, layouts, allocation.ring_bytes, self._order)
                self._ring.run_ahead()
            if allocation.cache_bytes:
                self._experts = ExpertCache(self._reader, p.parts, allocation.cache_bytes, self._vectors)
                self._reader.on_idle = ExpertPrefetcher(self._experts, self._order).disk_is_idle

    def close(self) -> None:
        """End the I/O threads and give the memory back, once no matrix of it is in use. May be called twice."""
        self._to_be_opened = False
        if self._closed:
            return
        with self._reader.lock:  # who looks meanwhile finds it open or closed, and nothing in between
            self._before = self.statistics()
            self._closed = True
            if self._ring is not None:
                self._ring.close()
            self._ring = self._experts = None
        self._reader.close()
        self._resident, self._tables, self._views = Resident(), {}, {}

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units in execution order."""
        return self._placement.units

    # -- what the model asks for --

    def pieces(self, unit: str) -> tuple[str, ...]:
        """See `WeightSource.pieces`."""
        return tuple(u.name for u in self.units if group_of(u.name) == unit)

    def acquire(self, unit: str, cancel: CancelToken | None = None) -> Mapping[str, Matrix]:
        """See `WeightSource.acquire`.

        Raises:
            ReadError: the disk failed; the next call tries again.
            Cancelled.
            KeyError: there is no such unit.
        """
        resident = self._resident.units.get(unit)
        if resident is not None and self.allocation.complete:
            self._hits += 1
            return resident
        with self._reader.lock:
            self._order.visit(unit)
            if resident is not None:
                self._hits += 1
                if self._ring is not None:
                    self._ring.run_ahead()
                return resident
            if self._closed:
                raise ReadError("The weights of this model are no longer open; load it again.")
            if self._ring is None:
                raise KeyError(f"There is no unit {unit}.")
            buffer = self._ring.acquire(unit, cancel)
        layout = self._placement.layouts[unit]
        return matrices(self._placement.unit(unit).tensors, layout.places, buffer, self._vectors)

    def release(self, unit: str) -> None:
        """See `WeightSource.release`."""
        if self.allocation.complete:
            return
        with self._reader.lock:
            view = self._views.pop(unit, None)
            if view is not None:
                view.close()
            if unit not in self._resident.units and self._ring is not None:
                self._ring.release(unit)

    def experts(
        self, unit: str, ids: Sequence[int], cancel: CancelToken | None = None
    ) -> Mapping[int, Mapping[str, Matrix]]:
        """See `WeightSource.experts`. Taking an expert may raise ReadError or Cancelled."""
        if self._experts is None:
            resident = self._resident.experts[unit]
            return {expert: resident[expert] for expert in ids}
        with self._reader.lock:
            if unit in self._views:
                self._views[unit].close()
            self._views[unit] = ExpertView(self._experts, self._reader, unit, ids, cancel)
            return self._views[unit]

    def vector(self, name: str) -> FloatArray:
        """See `WeightSource.vector`. Raises KeyError."""
        return self._vectors[name]

    def has(self, name: str) -> bool:
        """See `WeightSource.has`."""
        return name in self._placement.specs

    def embedding(
        self,
        ids: npt.NDArray[np.int64],
        out: FloatArray,
        *,
        table: str = EMBEDDING,
        cancel: CancelToken | None = None,
    ) -> None:
        """See `WeightSource.embedding`.

        Raises:
            ValueError: an id outside the table.
            ReadError, Cancelled.
        """
        if self._closed:
            raise ReadError("The weights of this model are no longer open; load it again.")
        self._tables[table].decode(ids, out, cancel)

    # -- what people and reports ask for --

    def embedding_ranges(self, ids: npt.NDArray[np.int64]) -> list[ByteRange]:
        """Where on disk the rows `ids` of the embedding table are."""
        return self._tables[EMBEDDING].ranges(ids)

    @property
    def draft_step_bytes(self) -> int:
        """Weight bytes that one draft step reads: the MTP layer and the head in use; 0 without an MTP layer."""
        step = drafting_step([unit.name for unit in self.units])
        units = [unit for unit in self.units if unit.name in step]
        routed = self._placement.experts_per_token
        used = [t for u in units for t in (*u.tensors, *(t for part in u.parts[:routed] for t in part.tensors))]
        return sum(tensor_bytes(tensor, self._precision) for tensor in used)

    def statistics(self) -> WeightStatistics:
        """A snapshot of the counters."""
        if self._is_closed():
            return self._last_account()
        with self._reader.lock:
            if self._is_closed():  # by now
                return self._last_account()
            ring, cache = self._ring, self._experts
            return self._before.plus(
                WeightStatistics(
                    bytes_read=self._reader.bytes_read,
                    wait_s=self._reader.wait_seconds,
                    read_s=self._reader.busy_seconds,
                    hits=self._hits + (ring.hits if ring else 0),
                    misses=ring.misses if ring else 0,
                    expert_hits=cache.hits if cache else 0,
                    expert_misses=cache.misses if cache else 0,
                    experts_prefetched=cache.guesses if cache else 0,
                    prefetch_hits=cache.good_guesses if cache else 0,
                    resident_bytes=self.allocation.resident_bytes,
                    ring_bytes=ring.nbytes if ring else 0,
                    cache_bytes=cache.nbytes if cache else 0,
                )
            )

    def residency(self) -> dict[str, str]:
        """Where each unit is now, in execution order: `resident`, `ring`, `reading` or `disk`."""
        if self._is_closed():
            return {unit.name: "disk" for unit in self.units}
        with self._reader.lock:
            return {unit.name: "disk" if self._is_closed() else self._state(unit.name) for unit in self.units}

    def _is_closed(self) -> bool:
        return self._closed

    def _last_account(self) -> WeightStatistics:
        """When it was closed: what was counted by then, and no memory."""
        return replace(self._before, resident_bytes=0, ring_bytes=0, cache_bytes=0)

    def _state(self, unit: str) -> str:
        if unit in self._resident.units:
            return "resident"
        if self._ring is not None:
            return self._ring.state(unit)
        return "reading" if unit in self.allocation.resident else "disk"
