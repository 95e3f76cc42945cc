"""A checkpoint of any kind → one GGUF file of another precision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from engine.cancel import CancelToken
from engine.demo import resolve
from engine.errors import OptionError
from engine.export.atomic import check_target, new_file
from engine.export.choose import check_type
from engine.export.gguf_metadata import gguf_metadata
from engine.export.gguf_tensors import GgufTensor, gguf_tensors
from engine.export.gguf_writer import file_bytes, header, padding
from engine.export.rows import SourceFiles, encoded
from engine.files.bounded import named_path
from engine.files.checkpoint import open_checkpoint
from engine.weights.file_layer import DiskFiles
from engine.weights.vectors import load_vectors

Progress = Callable[[int, int], None]
"""(bytes written, bytes in all)"""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    path: str
    nbytes: int
    source_bytes: int
    """Of the tensors that were read."""
    tensors: int
    formats: Mapping[str, int]
    """Bytes by format."""
    kept: int
    """Matrices that stay as they were quantised before: more bits bring nothing back, and some lose none."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def quantise(
    source: str | Path,
    target: str | Path,
    wanted: str,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    cancel: CancelToken | None = None,
) -> Written:
    """Write the model `source` (any that can be loaded) as `target`, a GGUF file of type `wanted` (`Q8_0`, `Q4_K`, …).

    Tensor by tensor in bounded memory; the file appears when it is whole, and the source is only read.

    Raises:
        CheckpointError, UnsupportedError: the source cannot be used.
        OptionError: no such type, or the target cannot be written there.
        WriteError: the disk is full or fails.
        Cancelled: nothing stays.
    """
    wanted, out, cancel = check_type(wanted), named_path(target), cancel or CancelToken()
    if out.suffix != ".gguf":
        raise OptionError(f"{out.name} must end in .gguf, for that is what is written.")
    checkpoint = open_checkpoint(resolve(source))
    check_target(out, checkpoint.files, overwrite)
    vectors = load_vectors(checkpoint.tensors, checkpoint.conventions, checkpoint.mtp_conventions, DiskFiles(), cancel)
    tensors = gguf_tensors(checkpoint, vectors, wanted)
    entries = [tensor.entry for tensor in tensors]
    head = header(gguf_metadata(checkpoint, wanted), entries)
    total = file_bytes(head, entries)
    with new_file(out, total) as file, SourceFiles(checkpoint.files) as files:
        file.write(head)
        for tensor in tensors:
            _write(tensor, file, files, lambda: progress and progress(file.tell(), total), cancel)
    formats: Counter[str] = Counter()
    for entry in entries:
        formats[entry.format] += entry.nbytes
    return Written(
        str(out), total, checkpoint.weight_bytes, len(tensors), dict(formats), _kept(tensors, wanted), checkpoint.notes
    )


def _write(
    tensor: GgufTensor, file: IO[bytes], files: SourceFiles, report: Callable[[], object], cancel: CancelToken
) -> None:
    if tensor.values is not None:
        file.write(tensor.values.tobytes())
    for part in encoded(tensor.slabs, tensor.entry.format, files, cancel):
        file.write(part.data)
        report()
    file.write(b"\0" * padding(tensor.entry.nbytes))


def _kept(tensors: list[GgufTensor], wanted: str) -> int:
    return sum(
        bool(tensor.slabs) and tensor.entry.format == tensor.source not in ("F32", "F16", "BF16", wanted)
        for tensor in tensors
    )
