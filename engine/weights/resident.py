"""What stays in memory: read once, when the weights are opened or the budget changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from engine.cancel import CancelToken
from engine.kernels.matrix import Matrix
from engine.weights.allocation import Allocation
from engine.weights.buffers import ByteArray, aligned_buffer
from engine.weights.precision import lowered
from engine.weights.ranges import Layout
from engine.weights.reader import Priority, Reader, Request
from engine.weights.sizes import Placement
from engine.weights.vectors import FloatArray
from engine.weights.views import matrices

Progress = Callable[[int, int], None]
"""Called with (bytes read so far, bytes in all)."""


@dataclass(slots=True)
class Resident:
    """Matrices in memory by unit; experts by unit and number; embedding tables by name."""

    units: dict[str, dict[str, Matrix]] = field(default_factory=dict)
    experts: dict[str, dict[int, dict[str, Matrix]]] = field(default_factory=dict)
    tables: dict[str, Matrix] = field(default_factory=dict)

    def part_for(self, placement: Placement, allocation: Allocation) -> Resident:
        """What of it stays under another allocation. Its other memory is free as soon as nobody looks at it."""
        units = {n: m for n, m in self.units.items() if n in allocation.resident and n not in placement.parts}
        if allocation.complete and self.experts:
            return Resident(units | {n: self.units[n] for n in self.experts}, self.experts, self.tables)
        return Resident(units, {}, self.tables if allocation.complete else {})


def load_resident(
    placement: Placement,
    allocation: Allocation,
    reader: Reader,
    vectors: Mapping[str, FloatArray],
    resident: Resident,
    *,
    precision: str | None = None,
    progress: Progress | None,
    cancel: CancelToken | None,
) -> None:
    """Add to `resident` what the allocation keeps and is not there yet. With a `precision` it is quantised, unit by
    unit, so that no more than one of them is in memory as it was read.

    Raises:
        ReadError: a file cannot be read.
        Cancelled.
    """
    tables = placement.tables if allocation.complete else ()
    missing = [n for n in allocation.resident if n not in resident.units]
    missing += [n for n in tables if n not in resident.tables]
    layouts = {name: placement.resident_layout(name, allocation.complete) for name in missing}
    total = sum(layout.nbytes for layout in layouts.values())
    done = 0
    for batch in [missing] if precision is None else [[name] for name in missing]:
        told = None if progress is None else partial(_tell, progress, done, total)
        some = {name: layouts[name] for name in batch}
        done += sum(layout.nbytes for layout in some.values())
        for name, buffer in _read(some, reader, told, cancel).items():
            _keep(
                name,
                placement,
                with_experts=allocation.complete,
                layout=layouts[name],
                buffer=buffer,
                vectors=vectors,
                resident=resident,
            )
            if precision is not None:
                _lower(name, resident, precision, cancel)


def _tell(progress: Progress, before: int, total: int, done: int, _batch: int) -> None:
    progress(before + done, total)


def _read(
    layouts: Mapping[str, Layout], reader: Reader, progress: Progress | None, cancel: CancelToken | None
) -> dict[str, ByteArray]:
    """Buffers with the bytes of units, by name."""
    with reader.lock:
        before = reader.bytes_read  # while nothing of it can have been read
        requests = _submit(layouts, reader)
    try:
        _wait(requests, reader, before, sum(layout.nbytes for layout in layouts.values()), progress, cancel)
    except BaseException:
        with reader.lock:
            for request in requests.values():
                reader.drop(request)
        raise
    return {name: request.buffer for name, request in requests.items()}


def _lower(name: str, resident: Resident, precision: str, cancel: CancelToken | None) -> None:
    """Quantise what was just kept under this name."""
    if name in resident.tables:
        resident.tables |= lowered({name: resident.tables[name]}, precision)
        return
    resident.units[name] = lowered(resident.units[name], precision)
    for expert, matrices_of_it in resident.experts.get(name, {}).items():
        if cancel is not None:
            cancel.check()
        resident.experts[name][expert] = lowered(matrices_of_it, precision)


def _submit(layouts: Mapping[str, Layout], reader: Reader) -> dict[str, Request]:
    with reader.lock:
        return {
            name: reader.submit(name, layout, aligned_buffer(layout.nbytes), Priority.DEMAND)
            for name, layout in layouts.items()
        }


def _wait(
    requests: Mapping[str, Request],
    reader: Reader,
    before: int,
    total: int,
    progress: Progress | None,
    cancel: CancelToken | None,
) -> None:
    """Until all are read, reporting after every few chunks. `before`: bytes that were read before."""
    for name, request in requests.items():
        done = False
        while not done:
            with reader.lock:
                seen = reader.bytes_read
                reader.wait(name, lambda r=request, s=seen: r.done or reader.bytes_read != s, cancel)  # type: ignore[misc]
                if request.error is not None:
                    raise request.error
                done, read = request.done, reader.bytes_read - before
            if progress is not None:
                progress(min(read, total), total)
            if cancel is not None:
                cancel.check()


def _keep(
    name: str,
    placement: Placement,
    *,
    with_experts: bool,
    layout: Layout,
    buffer: ByteArray,
    vectors: Mapping[str, FloatArray],
    resident: Resident,
) -> None:
    """Matrices of a table, or of a unit and the experts that came along."""
    if name in placement.tables:
        spec, place = placement.specs[name], layout.places[0]
        resident.tables[name] = Matrix(spec.format, spec.shape[0], spec.shape[1], buffer[place : place + spec.nbytes])
        return
    unit = placement.unit(name)
    begin = len(unit.tensors)
    resident.units[name] = matrices(unit.tensors, layout.places[:begin], buffer, vectors)
    if with_experts and unit.parts:
        resident.experts[name] = {}
        for part in unit.parts:
            end = begin + len(part.tensors)
            resident.experts[name][part.expert] = matrices(part.tensors, layout.places[begin:end], buffer, vectors)
            begin = end
