"""The header of a .gguf file, checked against the file: metadata and tensor table.

Layout (little endian): "GGUF", u32 version, u64 tensors, u64 pairs, the pairs, the tensor table, padding, data. Written
from the format's public specification, and suspicious: every count is held against the file's size before memory is
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import CheckpointError
from engine.files.bounded import FileReader
from engine.files.findings import Findings
from engine.files.gguf_cursor import Cursor, Value
from engine.files.tensor_spec import TensorSpec, stored_bytes

GGML_TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    6: "Q5_0",
    7: "Q5_1",
    8: "Q8_0",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    20: "IQ4_NL",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    29: "IQ1_M",
    30: "BF16",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
}
"""Tensor types of ggml that have a known size here. Others are listed as `GGML_n` and cannot run."""

TENSOR_LIMIT = 1 << 20
PAIR_LIMIT = 1 << 16
_SMALLEST_ENTRY = 8 + 4 + 1


@dataclass(frozen=True, slots=True)
class GgufFile:
    """One file's header. Tensors go by their names in the file, shapes rows first; unknown types have 0 bytes."""

    path: Path
    size: int
    version: int
    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorSpec]

    @property
    def unknown_types(self) -> dict[str, list[str]]:
        """Tensors of types that are not known, by type (`GGML_40`)."""
        found: dict[str, list[str]] = {}
        for spec in self.tensors.values():
            if spec.format.startswith("GGML_"):
                found.setdefault(spec.format, []).append(spec.file_name)
        return found


def read_gguf(path: Path, findings: Findings) -> GgufFile:
    """Read and check a header. Faults that leave it readable (a truncated file) go to `findings`.

    Raises CheckpointError for everything else that is wrong.
    """
    with FileReader(path) as file:
        cursor = Cursor(file)
        version = _version(cursor)
        tensors, pairs = cursor.u64(), cursor.u64()
        _check_count(file, "tensors", tensors, TENSOR_LIMIT)
        _check_count(file, "metadata entries", pairs, PAIR_LIMIT)
        metadata: dict[str, Value] = {}
        for _ in range(pairs):
            key = cursor.string()
            if key in metadata:
                raise CheckpointError(f"{path.name} is damaged: the metadata key {key[:100]!r} stands in it twice.")
            metadata[key] = cursor.value(cursor.u32())
        specs = _tensor_table(cursor, tensors, _alignment(metadata, path))
        _check_extent(list(specs.values()), file, findings)
        return GgufFile(path, file.size, version, metadata, specs)


def _version(cursor: Cursor) -> int:
    name = cursor.file.path.name
    if cursor.file.size < 24:
        raise CheckpointError(
            f"{name} is incomplete: {cursor.file.size} bytes hold no GGUF header; get the file again."
        )
    if cursor.take(4) != b"GGUF":
        raise CheckpointError(f"{name} is not a GGUF file: it does not begin with GGUF.")
    version = cursor.u32()
    if version in (2, 3):
        return version
    if version.to_bytes(4, "little")[:2] == b"\0\0":
        raise CheckpointError(f"{name} is a GGUF file for big-endian machines; Draftscope reads little-endian ones.")
    raise CheckpointError(
        f"{name} has GGUF version {version}; Draftscope reads versions 2 and 3: convert the model again."
    )


def _check_count(file: FileReader, what: str, count: int, limit: int) -> None:
    """`limit`, and the smallest entry possible, bound what a header may announce."""
    if count > limit or count * _SMALLEST_ENTRY > file.size:
        raise CheckpointError(
            f"{file.path.name} is damaged: its header announces {count:,} {what}, in {file.size:,} bytes."
        )


def _tensor_table(cursor: Cursor, count: int, alignment: int) -> dict[str, TensorSpec]:
    """The tensors of the table that begins at the cursor; their data begins at the next multiple of `alignment`."""
    path, entries = cursor.file.path, {}
    for _ in range(count):
        entry = _entry(cursor, path)
        if entry.name in entries:
            raise CheckpointError(f"{path.name} is damaged: the tensor {entry.name[:100]!r} stands in it twice.")
        if entry.offset % alignment or entry.offset >= 1 << 62:
            raise CheckpointError(
                f"{entry.where} is damaged: its offset {entry.offset:,} is no multiple of {alignment}."
            )
        entries[entry.name] = entry
    data_start = -(-cursor.position // alignment) * alignment
    return {name: replace(entry, offset=data_start + entry.offset) for name, entry in entries.items()}


def _entry(cursor: Cursor, path: Path) -> TensorSpec:
    """The next tensor of the table, its offset counted from the beginning of the data."""
    name, dimensions = cursor.string(), cursor.u32()
    where = f"Tensor {name[:200]} in {path.name}"
    if dimensions > 4:
        raise CheckpointError(f"{where} is damaged: it has {dimensions} dimensions, at most 4 are possible.")
    shape = tuple(cursor.u64() for _ in range(dimensions))[::-1]
    if any(size >= 1 << 40 for size in shape):
        raise CheckpointError(f"{where} has the impossible shape {list(shape)}.")
    kind, offset = cursor.u32(), cursor.u64()
    format_name = GGML_TYPES.get(kind)
    if format_name is None:
        return TensorSpec(name, f"GGML_{kind}", shape, path, offset, 0, name)
    try:
        return TensorSpec(name, format_name, shape, path, offset, stored_bytes(format_name, shape), name)
    except ValueError as error:
        raise CheckpointError(f"{where} is damaged: {error}.") from error


def _alignment(metadata: Mapping[str, Value], path: Path) -> int:
    value = metadata.get("general.alignment", 32)
    if not isinstance(value, int) or not 8 <= value <= 1 << 20 or value & (value - 1):
        raise CheckpointError(f"{path.name} is damaged: general.alignment is {str(value)[:40]}.")
    return value


def _check_extent(specs: list[TensorSpec], file: FileReader, findings: Findings) -> None:
    """No tensor may reach into the next one, or past the end of the file."""
    end, last = 0, ""
    for spec in sorted(specs, key=lambda spec: (spec.offset, spec.nbytes)):
        if spec.offset < end:
            raise CheckpointError(f"{file.path.name} is damaged: the tensors {last} and {spec.name} overlap.")
        if spec.nbytes:
            end, last = spec.offset + spec.nbytes, spec.name
    if end > file.size:
        findings.add(f"{file.path.name} is truncated: {end - file.size:,} bytes are missing; get the file again.")
