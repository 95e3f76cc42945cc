"""The weights of a model: resident as far as the budget allows, the rest streamed from disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.kernels.matrix import Matrix
from engine.weights.buffers import aligned_buffer
from engine.weights.embedding import EmbeddingTable
from engine.weights.expert_cache import ExpertCache
from engine.weights.expert_view import ExpertView
from engine.weights.file_layer import DiskFiles, FileLayer
from engine.weights.order import ExecutionOrder
from engine.weights.ranges import ByteRange
from engine.weights.reader import Priority, Reader, Stall
from engine.weights.residency import Residency, choose_residency
from engine.weights.ring import Ring
from engine.weights.sizes import Placement, place
from engine.weights.statistics import WeightStatistics
from engine.weights.units import EMBEDDING, MTP_EMBEDDING, Unit
from engine.weights.vectors import load_vectors
from engine.weights.views import matrices

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint
    from engine.files.sidecar import Sidecar

FloatArray = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with (bytes read so far, bytes in all)."""


def open_weights(
    checkpoint: Checkpoint,
    sidecar: Sidecar | None = None,
    *,
    budget: int | None = None,
    draft_tokens: int = 3,
    progress: Progress | None = None,
    cancel: CancelToken | None = None,
    files: FileLayer | None = None,
    io_threads: int = 4,
    on_stall: Callable[[Stall], None] | None = None,
) -> WeightStore:
    """Open the weights of a checkpoint (with the MTP layer of `sidecar`, if given) and read what stays in memory.

    `budget` is the most bytes that weights may occupy; None keeps everything. `draft_tokens` is how many drafts a round
    is expected to make, which decides what is worth keeping. `on_stall` is called by the computing thread, about once a
    second, while a disk delivers nothing.

    Raises:
        OptionError: the budget is too small for this model.
        CheckpointError: a tensor is missing.
        ReadError: a file cannot be read.
        Cancelled.
    """
    placement = place(checkpoint, sidecar, draft_tokens)
    residency = choose_residency(placement.sizes, budget)
    store = WeightStore(placement, residency, files or DiskFiles(), io_threads=io_threads, on_stall=on_stall)
    try:
        store.load(progress, cancel)
    except BaseException:
        store.close()
        raise
    return store


class WeightStore:
    """Hands out weights by unit: `engine.weights.protocols.WeightSource`. Made by `open_weights`."""

    def __init__(
        self,
        placement: Placement,
        residency: Residency,
        files: FileLayer,
        *,
        io_threads: int,
        on_stall: Callable[[Stall], None] | None,
    ) -> None:
        self.units: tuple[Unit, ...] = placement.units
        self.residency = residency
        self._placement = placement
        self._files = files
        self._reader = Reader(files, direct=not residency.complete, threads=io_threads, on_stall=on_stall)
        self._vectors: dict[str, FloatArray] = {}
        self._resident: dict[str, dict[str, Matrix]] = {}
        self._resident_experts: dict[str, dict[int, dict[str, Matrix]]] = {}
        self._tables: dict[str, EmbeddingTable] = {}
        self._views: dict[str, ExpertView] = {}
        self._ring: Ring | None = None
        self._experts: ExpertCache | None = None
        names = [unit.name for unit in self.units]
        last_layer = [name for name in names if name.startswith("layers.")][-1]
        self._order = ExecutionOrder(names, last_layer)
        self._hits = 0

    def load(self, progress: Progress | None, cancel: CancelToken | None) -> None:
        """Read small tensors and resident units, then start to run ahead."""
        p = self._placement
        self._vectors = load_vectors(p.specs, p.conventions, p.mtp_conventions, self._files, cancel)
        self._load_resident(progress, cancel)
        self._open_tables()
        with self._reader.lock:
            if self.residency.streamed:
                layouts = {name: p.layouts[name] for name in self.residency.streamed}
                self._ring = Ring(self._reader, layouts, self.residency.ring_bytes, self._order)
                self._ring.run_ahead()
            if self.residency.cache_bytes:
                self._experts = ExpertCache(self._reader, p.parts, self.residency.cache_bytes, self._vectors)

    # -- what the model asks for --

    def acquire(self, unit: str, cancel: CancelToken | None = None) -> Mapping[str, Matrix]:
        """See `WeightSource.acquire`. Raises ReadError (a later call tries again) and Cancelled."""
        with self._reader.lock:
            self._order.visit(unit)
            resident = self._resident.get(unit)
            if resident is not None:
                self._hits += 1
                if self._ring is not None:
                    self._ring.run_ahead()
                return resident
            if self._ring is None:
                raise KeyError(f"There is no unit {unit}.")
            buffer = self._ring.acquire(unit, cancel)
        layout = self._placement.layouts[unit]
        return matrices(self._placement.unit(unit).tensors, layout.places, buffer, self._vectors)

    def release(self, unit: str) -> None:
        """See `WeightSource.release`."""
        with self._reader.lock:
            view = self._views.pop(unit, None)
            if view is not None:
                view.close()
            if unit not in self._resident and self._ring is not None:
                self._ring.release(unit)

    def experts(
        self, unit: str, ids: Sequence[int], cancel: CancelToken | None = None
    ) -> Mapping[int, Mapping[str, Matrix]]:
        """See `WeightSource.experts`."""
        if self._experts is None:
            resident = self._resident_experts[unit]
            return {expert: resident[expert] for expert in ids}
        with self._reader.lock:
            if unit in self._views:
                self._views[unit].close()
            self._views[unit] = ExpertView(self._experts, self._reader, unit, ids, cancel)
            return self._views[unit]

    def vector(self, name: str) -> FloatArray:
        """See `WeightSource.vector`; `….linear_attn.decay_rate` [v_heads] is exp(A_log). Raises KeyError."""
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
        """See `WeightSource.embedding`. `table` is the MTP layer's own where it has one (`mtp.embed_tokens.weight`)."""
        self._tables[table].decode(ids, out, cancel)

    # -- what people and reports ask for --

    def embedding_ranges(self, ids: npt.NDArray[np.int64]) -> list[ByteRange]:
        """The byte ranges of embedding rows."""
        return self._tables[EMBEDDING].ranges(ids)

    @property
    def draft_step_bytes(self) -> int:
        """Weight bytes that one draft step reads: the MTP layer and the head in use; 0 without an MTP layer."""
        sizes = {unit.name: unit.nbytes for unit in self.units}
        if "mtp" not in sizes:
            return 0
        mtp = self._placement.unit("mtp")
        per_token = self._placement.experts_per_token * (mtp.parts_nbytes // len(mtp.parts)) if mtp.parts else 0
        return sizes["mtp"] + per_token + sizes.get("draft_head", sizes["head"])

    def statistics(self) -> WeightStatistics:
        """A snapshot of the counters."""
        with self._reader.lock:
            ring, cache = self._ring, self._experts
            return WeightStatistics(
                bytes_read=self._reader.bytes_read,
                wait_s=self._reader.wait_seconds,
                read_s=self._reader.busy_seconds,
                hits=self._hits + (ring.hits if ring else 0),
                misses=ring.misses if ring else 0,
                expert_hits=cache.hits if cache else 0,
                expert_misses=cache.misses if cache else 0,
                experts_prefetched=cache.guesses if cache else 0,
                prefetch_hits=cache.good_guesses if cache else 0,
                resident_bytes=self.residency.resident_bytes,
                ring_bytes=ring.nbytes if ring else 0,
                cache_bytes=cache.nbytes if cache else 0,
            )

    def unit_states(self) -> dict[str, str]:
        """Where each unit is now, in execution order: `resident`, `ring`, `reading` or `disk`."""
        with self._reader.lock:
            ring = self._ring
            return {
                unit.name: "resident" if unit.name in self._resident or ring is None else ring.state(unit.name)
                for unit in self.units
            }

    def close(self) -> None:
        """End the I/O threads and give the memory back, once no matrix of it is in use."""
        self._reader.close()
        self._resident, self._resident_experts, self._tables, self._vectors = {}, {}, {}, {}
        self._ring = self._experts = None

    # -- opening --

    def _load_resident(self, progress: Progress | None, cancel: CancelToken | None) -> None:
        names = [*self.residency.resident, *(self._placement.tables if self.residency.complete else ())]
        layouts = [self._placement.resident_layout(name, self.residency.complete) for name in names]
        total, before = sum(layout.nbytes for layout in layouts), 0
        for name, layout in zip(names, layouts, strict=True):
            buffer = aligned_buffer(layout.nbytes)
            with self._reader.lock:
                begin = self._reader.bytes_read
                request = self._reader.submit(name, layout, buffer, Priority.DEMAND)
                while not request.done:
                    seen = self._reader.bytes_read
                    self._reader.wait(name, lambda r=request, s=seen: r.done or self._reader.bytes_read != s, cancel)
                    if progress is not None:
                        progress(before + min(layout.nbytes, self._reader.bytes_read - begin), total)
                if request.error is not None:
                    raise request.error
            before += layout.nbytes
            self._keep(name, layout.places, buffer)

    def _keep(self, name: str, places: Sequence[int], buffer: npt.NDArray[np.uint8]) -> None:
        """Matrices of a resident unit, and of its experts if they came along."""
        if name in self._placement.tables:
            spec = self._placement.specs[name]
            data = buffer[places[0] : places[0] + spec.nbytes]
            self._resident[name] = {"weight": Matrix(spec.format, spec.shape[0], spec.shape[1], data)}
            return
        unit = self._placement.unit(name)
        count = len(unit.tensors)
        self._resident[name] = matrices(unit.tensors, places[:count], buffer, self._vectors)
        if self.residency.complete and unit.parts:
            experts = {}
            for part in unit.parts:
                end = count + len(part.tensors)
                experts[part.expert] = matrices(part.tensors, places[count:end], buffer, self._vectors)
                count = end
            self._resident_experts[name] = experts

    def _open_tables(self) -> None:
        for name in (EMBEDDING, MTP_EMBEDDING):
            spec = self._placement.specs.get(name)
            if spec is not None:
                shared = "head" if name == EMBEDDING and self._placement.tied else name
                kept = self._resident.get(shared)
                self._tables[name] = EmbeddingTable(spec, self._reader, kept["weight"] if kept else None)
