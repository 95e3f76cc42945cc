"""The same model as other programs write it: copies of a published checkpoint in other layouts."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from engine.export.gguf_metadata import stored_metadata
from engine.files.findings import Findings
from engine.files.gguf import GGML_TYPES, read_gguf
from engine.quantise.encode import encode_rows
from tests.engine.files import build

Stored = dict[str, tuple[str, np.ndarray]]
"""name → (dtype, values: BF16 as uint16, FP8 as uint8)"""

_NUMPY = {"BF16": np.uint16, "F32": np.float32, "F8_E4M3": np.uint8, "U8": np.uint8, "I32": np.int32}
_NUMBER_OF = {name: number for number, name in GGML_TYPES.items()}


def published(folder: Path) -> Stored:
    """Every tensor of a folder of safetensors, but for the vision tower's."""
    found: Stored = {}
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8 : 8 + size]).items():
            if name != "__metadata__" and ".visual." not in name:
                begin, end = entry["data_offsets"]
                raw = np.frombuffer(data[8 + size + begin : 8 + size + end], _NUMPY[entry["dtype"]])
                found[name] = entry["dtype"], raw.reshape(entry["shape"])
    return found


def floats(dtype: str, values: np.ndarray) -> np.ndarray:
    """Stored values as float32."""
    return (values.astype(np.uint32) << 16).view(np.float32) if dtype == "BF16" else values


def write(target: Path, source: Path, files: Mapping[str, Stored], metadata: Mapping[str, str] | None = None) -> Path:
    """A folder with the settings of `source` and these files of tensors."""
    target.mkdir()
    for path in source.glob("*.json"):
        if "index" not in path.name and "golden" not in path.name:
            shutil.copy(path, target)
    shutil.copy(source / "chat_template.jinja", target)
    for name, stored in files.items():
        write_file(target / name, stored, metadata)
    return target


def write_file(path: Path, stored: Stored, metadata: Mapping[str, str] | None = None) -> Path:
    """One .safetensors file."""
    table = {name: (dtype, values.shape) for name, (dtype, values) in stored.items()}
    return build.write_safetensors(path, table, metadata, {name: values for name, (_, values) in stored.items()})


def as_mlx(stored: Stored) -> Stored:
    """Norms shifted by one, convolutions with channels last, other names."""
    found: Stored = {}
    for name, (dtype, values) in stored.items():
        new = name.replace("model.language_model.", "language_model.model.")
        if name.endswith("conv1d.weight"):
            found[new] = dtype, np.ascontiguousarray(values.transpose(0, 2, 1))
        elif "norm" in name and not name.endswith("linear_attn.norm.weight"):
            found[new] = "F32", floats(dtype, values) + np.float32(1)
        else:
            found[new] = dtype, values
    return found


def e4m3(bits: np.ndarray) -> np.ndarray:
    """The values of FP8 bytes (four bits of exponent, bias 7; three of mantissa)."""
    sign, exponent, mantissa = bits >> 7, (bits >> 3 & 15).astype(int), (bits & 7).astype(np.float64)
    size = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7))
    return np.where(sign == 1, -size, size).astype(np.float32)


def as_fp8(stored: Stored, per_expert: bool = False) -> tuple[Stored, Stored]:
    """(FP8 with a factor per block of 128 × 128, the same values as F32); matrices only, embeddings and gates apart.

    Fused gate_up halves of 64 rows, which no real model has, stay: a block would be of both."""
    coded: Stored = {}
    decoded: Stored = {}
    for name, (dtype, values) in stored.items():
        expert = ".mlp.experts." in name and (per_expert or not name.endswith("gate_up_proj"))
        if not expert and not name.endswith("_proj.weight"):
            coded[name] = decoded[name] = dtype, values
            continue
        matrices = {name: floats(dtype, values)}
        if expert and per_expert and values.ndim == 3:
            matrices = _apart(name, floats(dtype, values))
        for each, numbers in matrices.items():
            bits, scales, exact = _rounded(numbers.reshape(-1, *numbers.shape[-2:]))
            coded[each] = "F8_E4M3", bits.reshape(numbers.shape)
            blocks = scales.reshape(*numbers.shape[:-2], *scales.shape[-2:])
            coded[each + "_scale_inv"] = "F32", blocks
            decoded[each] = "F32", exact.reshape(numbers.shape)
    return coded, decoded


def _apart(name: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
    at = name.rpartition(".")[0]
    found = {}
    for index, matrix in enumerate(numbers):
        if name.endswith("gate_up_proj"):
            found[f"{at}.{index}.gate_proj.weight"], found[f"{at}.{index}.up_proj.weight"] = np.split(matrix, 2)
        else:
            found[f"{at}.{index}.down_proj.weight"] = matrix
    return found


_POSITIVE = e4m3(np.arange(127, dtype=np.uint8))


def _rounded(stack: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(bytes, scales, values) of matrices [n, rows, columns]."""
    count, rows, columns = stack.shape
    grid = (count, math.ceil(rows / 128), math.ceil(columns / 128))
    bits, scales, exact = np.empty(stack.shape, np.uint8), np.empty(grid, np.float32), np.empty_like(stack)
    for place in np.ndindex(grid):
        block = (place[0], slice(128 * place[1], 128 * place[1] + 128), slice(128 * place[2], 128 * place[2] + 128))
        scales[place] = np.abs(stack[block]).max() / np.float32(448)
        middle = (_POSITIVE[1:] + _POSITIVE[:-1]) / 2
        code = np.searchsorted(middle, np.abs(stack[block]) / scales[place]).astype(np.uint8)
        bits[block] = code | (stack[block] < 0).astype(np.uint8) << 7
        exact[block] = e4m3(bits[block]) * scales[place]
    return bits, scales, exact


def stored_quantised(stored: Stored, suffix: str) -> Stored:
    """Every projection as `X.weight.q8` or `.q4` in place of `X.weight`."""
    format_name = {".q8": "Q8_0", ".q4": "Q4_0"}[suffix]
    found: Stored = {}
    for name, (dtype, values) in stored.items():
        if name.endswith(("_proj.weight", "in_proj_qkv.weight", "in_proj_z.weight", "embed_tokens.weight")):
            found[name + suffix] = "U8", encode_rows(floats(dtype, values), format_name)
        else:
            found[name] = dtype, values
    return found


def rewrite_gguf(source: Path, target: Path, names: list[str], metadata: Mapping[str, bytes] | None = None) -> Path:
    """Some tensors of a GGUF file, byte for byte, under its metadata with changes."""
    from engine.export.gguf_writer import Entry, header, padding

    specs = [read_gguf(source, Findings()).tensors[name] for name in names]
    entries = [Entry(spec.name, spec.format, spec.shape) for spec in specs]
    data = source.read_bytes()
    with target.open("wb") as file:
        file.write(header(stored_metadata(source) | dict(metadata or {}), entries))
        for spec in specs:
            file.write(data[spec.offset : spec.offset + spec.nbytes] + b"\0" * padding(spec.nbytes))
    return target
