"""Encoders against the gguf library where it has them, and against ggml's own blocks in the reference files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.quantise.encode import WRITABLE, encode_rows
from tests.engine.model.conftest import DATA

PLAIN = ["F32", "F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0"]
NORMAL = {
    "F32": 0, "F16": 0.0002, "BF16": 0.0017, "Q8_0": 0.0053, "Q6_K": 0.0178, "Q5_K": 0.0357, "Q5_1": 0.0378,
    "Q5_0": 0.0426, "Q4_K": 0.0719, "Q4_1": 0.0777, "Q4_0": 0.0857, "IQ4_NL": 0.0764, "IQ4_XS": 0.077, "Q3_K": 0.154,
    "Q2_K": 0.275,
}  # fmt: skip
"""Root mean square of the error of normally distributed values, as a share of their spread."""
NEAR = {"Q2_K": 1.0, "Q3_K": 1.02, "Q4_K": 1.01, "Q5_K": 1.0, "Q6_K": 1.001, "IQ4_XS": 1.005}
"""Most error that is accepted, as a share of the error of ggml's own quantisation of the same tensor."""


def kind(format_name: str) -> gguf.GGMLQuantizationType:
    return getattr(gguf.GGMLQuantizationType, format_name)


def decoded(data: np.ndarray, format_name: str) -> np.ndarray:
    return gguf.quants.dequantize(data, kind(format_name))


def numbers(seed: int = 0) -> np.ndarray:
    """Weights as they occur, and rows that are all zero, constant, one-sided, or have one large value."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((40, 1024)).astype(np.float32) * 0.02
    values[1] = 0
    values[2] = 0.5
    values[3] = -0.25
    values[4] = np.abs(values[4])
    values[5] = -np.abs(values[5])
    values[6, ::97] = 8
    values[7, 256:512] = 0
    values[8] *= 1e-2
    values[9] = np.round(values[9] * 200) / 8
    return values


@pytest.mark.parametrize("format_name", PLAIN)
def test_the_same_bits_as_the_gguf_library(format_name: str) -> None:
    values = numbers()
    known = gguf.quants.quantize(values, kind(format_name)).view(np.uint8).reshape(len(values), -1)
    np.testing.assert_array_equal(encode_rows(values, format_name), known)


@pytest.mark.parametrize("format_name", WRITABLE)
def test_the_error_is_as_small_as_the_bits_allow(format_name: str) -> None:
    values = numbers(1)
    back = decoded(encode_rows(values, format_name), format_name)
    usual = np.sqrt(np.mean((back - values)[10:] ** 2)) / values[10:].std()
    assert usual <= 1.05 * NORMAL[format_name]
    spread = np.sqrt(np.mean((back - values) ** 2, axis=1)) / np.maximum(values.std(axis=1), 1e-9)
    assert (spread[[0, 4, 5, 6, 7, 8, 9]] <= 3 * NORMAL[format_name]).all(), spread
    for row, constant in ((1, 0), (2, 0.5), (3, -0.25)):
        np.testing.assert_allclose(back[row], constant, rtol=1e-3)


def tensors_of_ggml() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(format, published values, what llama-quantize made of them, decoded)."""
    from safetensors import safe_open

    originals = {}
    for path in sorted((DATA / "tiny-dense").glob("*.safetensors")):
        with safe_open(path, "np") as file:
            originals |= {name: (path, name) for name in file.keys()}  # noqa: SIM118
    names = {
        "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj", "ffn_down": "mlp.down_proj", "ffn_up": "mlp.up_proj",
        "ffn_gate": "mlp.gate_proj",
    }  # fmt: skip
    for quant in ("Q8_0", "Q4_K_M", "IQ4_XS", "Q2_K"):
        reader = gguf.GGUFReader(DATA / "tiny-dense" / "gguf" / f"tiny-dense-{quant}.gguf")
        for tensor in reader.tensors:
            parts = tensor.name.split(".")
            if len(parts) != 4 or parts[2] not in names or int(parts[1]) > 7:
                continue
            path, name = originals[f"model.language_model.layers.{parts[1]}.{names[parts[2]]}.weight"]
            yield tensor.tensor_type.name, bfloat16(path, name), decoded(tensor.data, tensor.tensor_type.name)


def bfloat16(path: Path, name: str) -> np.ndarray:
    """A BF16 tensor as float32, which the safetensors library cannot give to numpy."""
    import json

    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(size))[name]
        begin, end = entry["data_offsets"]
        file.seek(8 + size + begin)
        raw = np.frombuffer(file.read(end - begin), np.uint16)
    return (raw.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])


def test_as_near_as_ggml_comes() -> None:
    ratios: dict[str, list[float]] = {}
    for format_name, values, theirs in tensors_of_ggml():
        ours = decoded(encode_rows(values, format_name), format_name)
        error, known = (float(np.sqrt(np.mean((back - values) ** 2))) for back in (ours, theirs))
        if format_name == "Q8_0":
            np.testing.assert_array_equal(ours, theirs)
        ratios.setdefault(format_name, []).append(error / known)
    means = {name: float(np.mean(found)) for name, found in ratios.items()}
    assert set(means) >= set(NEAR) - {"Q5_K"}
    for name, limit in NEAR.items():
        assert means.get(name, 0) <= limit, means


def test_rows_are_independent() -> None:
    values = numbers(2)
    for format_name in WRITABLE:
        whole = encode_rows(values, format_name)
        for row in (0, 17, 39):
            np.testing.assert_array_equal(encode_rows(values[row : row + 1], format_name)[0], whole[row])


def test_what_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="IQ2_XXS cannot be written"):
        encode_rows(numbers(), "IQ2_XXS")
    with pytest.raises(ValueError, match="no whole number of Q4_K blocks"):
        encode_rows(np.zeros((2, 96), np.float32), "Q4_K")
