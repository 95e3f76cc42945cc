"""Makes a sidecar: the MTP layer of a checkpoint in a file of its own, with a draft head of the tokens one needs."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.cancel import CancelToken
from engine.demo import resolve
from engine.errors import CheckpointError, OptionError
from engine.export.atomic import check_target, new_file
from engine.export.draft_vocabulary import DraftVocabulary, IntArray, choose_vocabulary, count_tokens
from engine.export.gguf_metadata import gguf_metadata
from engine.export.gguf_tensors import gguf_tensors
from engine.export.gguf_writer import Entry, file_bytes, header, padding
from engine.export.rows import FloatArray, Slab, SourceFiles, encoded
from engine.files.bounded import named_path
from engine.files.checkpoint import open_checkpoint
from engine.files.expected import MTP_HEAD
from engine.files.safetensors_names import SCALE_SUFFIX
from engine.files.tensor_spec import FLOAT_FORMATS, TensorSpec
from engine.kernels.formats import FORMATS, row_bytes
from engine.text.tokenizer import open_tokenizer
from engine.weights.file_layer import DiskFiles
from engine.weights.roles import VECTOR_ROLES, Role, keeps_precision, role_of
from engine.weights.vectors import load_vectors

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint

TYPES = ("BF16", "F16", "F32", "Q8_0", "Q4_0")
_STORED = {"Q8_0": ".q8", "Q4_0": ".q4"}
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class MadeSidecar:
    """What was written, and what the draft head covers."""

    path: str
    nbytes: int
    rows: int
    """Of the draft head."""
    vocabulary: int
    always: int
    counted: int
    held_out: int
    coverage: float | None
    """See `DraftVocabulary`."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Tensor:
    """One tensor to write: rows of stored matrices, or bytes that are ready."""

    entry: Entry
    slabs: tuple[Slab, ...] = ()
    ready: bytes = b""


def make_sidecar(
    source: str | Path,
    target: str | Path,
    size: int,
    *,
    texts: Sequence[str | Path] = (),
    traces: Sequence[str | Path] = (),
    wanted: str = "BF16",
    overwrite: bool = False,
    progress: Progress | None = None,
    cancel: CancelToken | None = None,
) -> MadeSidecar:
    """Write the MTP layer of `source` with a draft head of `size` tokens, chosen by what `texts` and `traces` use, to
    `target`: a .safetensors file, or a .gguf file in FastMTP's form (with the embedding, and types that are floats or
    Q8_0 or Q4_0 alike).

    Raises:
        CheckpointError: there is no MTP layer, or the source cannot be used.
        OptionError: a setting is impossible, or a text cannot be read.
        WriteError, TraceError, Cancelled: nothing stays.
    """
    out, cancel = named_path(target), cancel or CancelToken()
    if wanted.upper() not in TYPES:
        raise OptionError(f"A sidecar cannot be written as {wanted}; choose one of {', '.join(TYPES)}.")
    if out.suffix not in (".safetensors", ".gguf"):
        raise OptionError(f"{out.name} must end in .safetensors or .gguf, for these are what is written.")
    if not texts and not traces:
        raise OptionError("Nothing says which tokens to keep: give texts or traces.")
    checkpoint = open_checkpoint(resolve(source))
    check_target(out, checkpoint.files, overwrite)
    if not checkpoint.has("mtp.fc.weight"):
        raise CheckpointError(f"{checkpoint.path.name} has no MTP layer that a sidecar could hold.")
    tokenizer = open_tokenizer(checkpoint.tokenizer)
    counts = count_tokens(map(Path, texts), map(Path, traces), tokenizer, checkpoint.config.vocabulary, cancel)
    chosen = choose_vocabulary(counts, tokenizer, size)
    plan = _gguf if out.suffix == ".gguf" else _safetensors
    head, tensors = plan(checkpoint, chosen.ids, wanted.upper())
    nbytes = _write(out, head, tensors, checkpoint.files, pad=out.suffix == ".gguf", progress=progress, cancel=cancel)
    return _made(out, nbytes, checkpoint, chosen)


def _made(out: Path, nbytes: int, checkpoint: Checkpoint, chosen: DraftVocabulary) -> MadeSidecar:
    return MadeSidecar(
        str(out), nbytes, len(chosen.ids), checkpoint.config.vocabulary, chosen.always, chosen.counted,
        chosen.held_out, chosen.coverage,
    )  # fmt: skip


def _write(
    out: Path,
    head: bytes,
    tensors: Sequence[_Tensor],
    sources: Iterable[Path],
    *,
    pad: bool,
    progress: Progress | None,
    cancel: CancelToken,
) -> int:
    total = file_bytes(head, [t.entry for t in tensors]) if pad else len(head) + sum(t.entry.nbytes for t in tensors)
    with new_file(out, total) as file, SourceFiles(sources) as files:
        file.write(head)
        for tensor in tensors:
            file.write(tensor.ready)
            for part in encoded(tensor.slabs, tensor.entry.format, files, cancel):
                file.write(part.data)
                if progress is not None:
                    progress(file.tell(), total)
            file.write(b"\0" * (padding(tensor.entry.nbytes) if pad else 0))
    return total


def _head_slab(checkpoint: Checkpoint, ids: IntArray) -> Slab:
    """The rows of the head that drafts use."""
    names = (MTP_HEAD, "lm_head.weight", "embed_tokens.weight")
    spec = checkpoint.spec(next(name for name in names if checkpoint.has(name)))
    scale = _scales(checkpoint).get(spec.name + SCALE_SUFFIX)
    return Slab(spec, ids, scale)


def _scales(checkpoint: Checkpoint) -> dict[str, FloatArray]:
    wanted = {name: spec for name, spec in checkpoint.tensors.items() if role_of(name) is Role.SCALE}
    return load_vectors(wanted, checkpoint.conventions, checkpoint.mtp_conventions, DiskFiles())


def _safetensors(checkpoint: Checkpoint, ids: IntArray, wanted: str) -> tuple[bytes, list[_Tensor]]:
    """(header, tensors) in the published layout; what is quantised as `X.weight.q8` or `.q4`."""
    scales = _scales(checkpoint)
    tensors = [_Tensor(Entry("mtp.d2t", "I32", ids.shape), ready=ids.astype("<i4").tobytes())]
    slab = _head_slab(checkpoint, ids)
    tensors.append(_stored("lm_head.weight", (len(ids), slab.width), (slab,), wanted))
    for name, spec in sorted(checkpoint.tensors.items()):
        if not name.startswith("mtp.") or name == MTP_HEAD or role_of(name) is Role.SCALE:
            continue
        if role_of(name) in VECTOR_ROLES:
            flat = replace(spec, shape=(1, spec.elements))
            tensors.append(_Tensor(Entry(name, spec.format, spec.shape), (Slab(flat, np.arange(1)),)))
        else:
            tensors.append(_stored(name, spec.shape, _slabs(spec, scales), wanted))
    # Norms stay as they are stored: 1 + w, which only the mark of MLX's exports says, or w.
    mark = "mlx" if checkpoint.mtp_conventions.norm_offset == 0 else "pt"
    table: dict[str, Any] = {"__metadata__": {"format": mark}}
    end = 0
    for tensor in tensors:
        entry = tensor.entry
        suffix = _STORED.get(entry.format, "")
        shape = (*entry.shape[:-1], row_bytes(entry.format, entry.shape[-1])) if suffix else entry.shape
        offsets = [end, end + entry.nbytes]
        dtype = "U8" if suffix else entry.format
        table[entry.name + suffix] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        end += entry.nbytes
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, tensors


def _stored(name: str, shape: tuple[int, ...], slabs: tuple[Slab, ...], wanted: str) -> _Tensor:
    blocks = shape[-1] % FORMATS[wanted].block_elements == 0
    source = slabs[0].spec.format
    exact = source if source in FLOAT_FORMATS else "BF16"
    chosen = exact if keeps_precision(name) or not blocks else wanted
    return _Tensor(Entry(name, chosen, shape), slabs)


def _slabs(spec: TensorSpec, scales: dict[str, FloatArray]) -> tuple[Slab, ...]:
    """A matrix, or a stack of experts one by one."""
    scale = scales.get(spec.name + SCALE_SUFFIX)
    if len(spec.shape) == 2:
        return (Slab(spec, np.arange(spec.shape[0]), scale),)
    count, rows, columns = spec.shape
    stride = spec.nbytes // count
    return tuple(
        Slab(
            replace(spec, shape=(rows, columns), offset=spec.offset + index * stride, nbytes=stride),
            np.arange(rows),
            None if scale is None else scale[index],
        )
        for index in range(count)
    )


def _gguf(checkpoint: Checkpoint, ids: IntArray, wanted: str) -> tuple[bytes, list[_Tensor]]:
    """(header, tensors) in FastMTP's form: the MTP block, the embedding, `output.weight` [n, H] and `d2t` [n]."""
    vectors = load_vectors(checkpoint.tensors, checkpoint.conventions, checkpoint.mtp_conventions, DiskFiles())
    block = f"blk.{len(checkpoint.config.layers)}."
    tensors = [
        _Tensor(found.entry, found.slabs, b"" if found.values is None else found.values.tobytes())
        for found in gguf_tensors(checkpoint, vectors, wanted)
        if found.entry.name == "token_embd.weight"
        or (found.entry.name.startswith(block) and not found.entry.name.endswith("shared_head_head.weight"))
    ]
    slab = _head_slab(checkpoint, ids)
    head = _stored("lm_head.weight", (len(ids), slab.width), (slab,), wanted)
    tensors.append(replace(head, entry=replace(head.entry, name="output.weight")))
    tensors.append(_Tensor(Entry("d2t", "I32", ids.shape), ready=ids.astype("<i4").tobytes()))
    return header(gguf_metadata(checkpoint, wanted), [tensor.entry for tensor in tensors]), tensors
