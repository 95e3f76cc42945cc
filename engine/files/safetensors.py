"""The header of a .safetensors file, checked against the file.

Layout: u64 header length, JSON header {name: {dtype, shape, data_offsets}}, then the data without gaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError
from engine.files.bounded import FileReader, parse_json_object
from engine.files.findings import Findings
from engine.files.tensor_spec import BLOCKS, TensorSpec, stored_bytes

HEADER_LIMIT = 100_000_000
"""Bytes; the same as the format's reference implementation."""
DIMENSION_LIMIT = 1 << 48
FORMAT_OF_DTYPE = {dtype: dtype for dtype in BLOCKS if BLOCKS[dtype][0] == 1 and not dtype.startswith("F8")} | {
    "F8_E4M3": "F8_E4M3",
    "F8_E4M3FN": "F8_E4M3",
    "F8_E5M2": "F8_E5M2",
}


@dataclass(frozen=True, slots=True)
class SafetensorsFile:
    """One file's tensors, by their names in the file (`TensorSpec.name` is that name too), in the order of the data."""

    path: Path
    size: int
    metadata: Mapping[str, str]
    tensors: Mapping[str, TensorSpec]


def read_safetensors(path: Path, findings: Findings) -> SafetensorsFile:
    """Read and check a header. Faults that leave the other tensors readable go to `findings`.

    Raises CheckpointError if there is no header to speak of.
    """
    with FileReader(path) as file:
        header, data_start = _read_header(file)
        metadata = _metadata(header.pop("__metadata__", None), path)
        specs = []
        for name, entry in header.items():
            try:
                specs.append(_spec(name, entry, data_start, path))
            except CheckpointError as error:
                findings.add(error)
        specs.sort(key=lambda spec: spec.offset)
        if len(specs) == len(header):
            _check_extent(specs, data_start, file.size, path, findings)
        return SafetensorsFile(path, file.size, metadata, {spec.name: spec for spec in specs})


def _read_header(file: FileReader) -> tuple[dict[str, Any], int]:
    name = file.path.name
    if file.size < 8:
        raise CheckpointError(
            f"{name} is incomplete: {file.size} bytes hold no safetensors header; get the file again."
        )
    length = int.from_bytes(file.read(0, 8), "little")
    if length > HEADER_LIMIT:
        raise CheckpointError(
            f"{name} is not a safetensors file: its header would have {length:,} bytes, more than {HEADER_LIMIT:,}."
        )
    if 8 + length > file.size:
        raise CheckpointError(
            f"{name} is incomplete: its header has {length:,} bytes, the whole file {file.size:,}; get the file again."
        )
    data = file.read(8, length)
    if not data.startswith(b"{"):
        raise CheckpointError(f"{name} is not a safetensors file: its header is no JSON object.")
    return parse_json_object(data, f"The header of {name}"), 8 + length


def _metadata(value: object, path: Path) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise CheckpointError(f"__metadata__ in the header of {path.name} is not a table of strings.")
    return value


def _spec(name: str, entry: object, data_start: int, path: Path) -> TensorSpec:
    where = f"Tensor {name[:200]} in {path.name}"
    if not isinstance(entry, dict):
        raise CheckpointError(f"{where} has no description in the header.")
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or not 0 < len(dtype) < 32:
        raise CheckpointError(f"{where} has the impossible dtype {str(dtype)[:40]!r}.")
    shape = _whole_numbers(entry.get("shape"), DIMENSION_LIMIT)
    if shape is None or len(shape) > 8:
        raise CheckpointError(f"{where} has the impossible shape {str(entry.get('shape'))[:80]}.")
    offsets = _whole_numbers(entry.get("data_offsets"), 1 << 62)
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(f"{where} has the impossible data_offsets {str(entry.get('data_offsets'))[:80]}.")
    begin, end = offsets
    format_name = FORMAT_OF_DTYPE.get(dtype)
    if format_name is None:  # what needs the tensor will say that it cannot use it
        return TensorSpec(name, f"dtype {dtype}", shape, path, data_start + begin, end - begin, name)
    expected = stored_bytes(format_name, shape)
    if end - begin != expected:
        raise CheckpointError(
            f"{where} is damaged: its data_offsets span {end - begin:,} bytes, "
            f"but shape {list(shape)} in {dtype} needs {expected:,}."
        )
    return TensorSpec(name, format_name, shape, path, data_start + begin, expected, name)


def _whole_numbers(value: object, limit: int) -> tuple[int, ...] | None:
    """A JSON list of whole numbers below `limit`; None if it is anything else."""
    if not isinstance(value, list) or not all(type(item) is int and 0 <= item < limit for item in value):
        return None
    return tuple(value)


def _check_extent(specs: list[TensorSpec], data_start: int, size: int, path: Path, findings: Findings) -> None:
    """The data must be covered exactly: no gap, no overlap, no missing or surplus bytes."""
    end = data_start
    for spec in specs:
        if spec.offset != end:
            kind = "overlaps the tensor before it" if spec.offset < end else "leaves a gap before it"
            findings.add(f"Tensor {spec.name} in {path.name} {kind}: it begins at byte {spec.offset:,}, not {end:,}.")
            return
        end += spec.nbytes
    if end > size:
        findings.add(f"{path.name} is truncated: {end - size:,} bytes are missing; get the file again.")
    elif end < size:
        findings.add(f"{path.name} is {size - end:,} bytes longer than its header says; get the file again.")
