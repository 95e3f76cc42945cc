"""Small tensors: converted exactly, and every convention applied once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine.cancel import CancelToken
from engine.errors import Cancelled, CheckpointError, ReadError
from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.files.conventions import GGUF, PUBLISHED, Conventions
from engine.files.findings import Findings
from engine.files.safetensors import read_safetensors
from engine.files.tensor_spec import TensorSpec
from engine.weights.file_layer import DiskFiles
from engine.weights.vectors import load_vectors, to_float32
from tests.engine.weights.faulty import FaultyFiles

VALUES = np.array([0.5, -0.25, 1.0], np.float32)


def load(folder: Path, arrays: dict[str, np.ndarray], trunk: Conventions, mtp: Conventions = PUBLISHED):  # type: ignore[no-untyped-def]
    path = folder / "x.safetensors"
    save_file(arrays, path)
    specs = dict(read_safetensors(path, Findings()).tensors)
    return load_vectors(specs, trunk, mtp, DiskFiles())


def test_zero_centred_norms_get_their_offset_once_and_only_norms(tmp_path: Path) -> None:
    names = ("norm.weight", "layers.0.linear_attn.norm.weight", "layers.0.linear_attn.dt_bias")
    found = load(tmp_path, dict.fromkeys(names, VALUES), PUBLISHED)
    np.testing.assert_array_equal(found["norm.weight"], VALUES + 1)
    np.testing.assert_array_equal(found["layers.0.linear_attn.norm.weight"], VALUES)
    np.testing.assert_array_equal(found["layers.0.linear_attn.dt_bias"], VALUES)


def test_norms_that_are_shifted_already_stay(tmp_path: Path) -> None:
    np.testing.assert_array_equal(load(tmp_path, {"norm.weight": VALUES}, GGUF)["norm.weight"], VALUES)


def test_the_mtp_layer_has_conventions_of_its_own(tmp_path: Path) -> None:
    found = load(tmp_path, {"norm.weight": VALUES, "mtp.norm.weight": VALUES}, GGUF, PUBLISHED)
    np.testing.assert_array_equal(found["norm.weight"], VALUES)
    np.testing.assert_array_equal(found["mtp.norm.weight"], VALUES + 1)


def test_decay_rates_of_both_conventions_agree(tmp_path: Path) -> None:
    name = "layers.0.linear_attn.A_log"
    published = load(tmp_path, {name: VALUES}, PUBLISHED)
    gguf = load(tmp_path, {name: -np.exp(VALUES)}, GGUF)
    assert set(published) == {"layers.0.linear_attn.decay_rate"}
    np.testing.assert_array_equal(published["layers.0.linear_attn.decay_rate"], np.exp(VALUES))
    np.testing.assert_array_equal(gguf["layers.0.linear_attn.decay_rate"], np.exp(VALUES))


@pytest.mark.parametrize("shape", [(6, 1, 4), (6, 4, 1), (6, 4), (3, 1, 4)])
def test_convolutions_become_channels_by_taps(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    conv = load(tmp_path, {"layers.0.linear_attn.conv1d.weight": values}, PUBLISHED)[
        "layers.0.linear_attn.conv1d.weight"
    ]
    np.testing.assert_array_equal(conv, values.reshape(shape[0], 4))


def test_a_gate_of_one_row_is_flat(tmp_path: Path) -> None:
    found = load(tmp_path, {"layers.0.mlp.shared_expert_gate.weight": VALUES.reshape(1, 3)}, PUBLISHED)
    assert found["layers.0.mlp.shared_expert_gate.weight"].shape == (3,)


def raw_spec(format_name: str, raw: np.ndarray, shape: tuple[int, ...]) -> tuple[TensorSpec, np.ndarray]:
    data = raw.view(np.uint8).reshape(-1)
    return TensorSpec("norm.weight", format_name, shape, Path("f"), 0, data.size, "n"), data


def test_every_float_format_is_exact() -> None:
    numbers = np.array([1.5, -0.0, 3.0e38, 2.0**-140, np.inf], np.float32)
    np.testing.assert_array_equal(to_float32(*raw_spec("F32", numbers, (5,))), numbers)
    halves = np.array([1.5, -0.0, 6e-8, 65504], np.float16)
    np.testing.assert_array_equal(to_float32(*raw_spec("F16", halves, (4,))), halves.astype(np.float32))
    brain = np.array([0x3FC0, 0x8000, 0x7F80, 0x0001], np.uint16)
    np.testing.assert_array_equal(
        to_float32(*raw_spec("BF16", brain, (4,))).view(np.uint32), brain.astype(np.uint32) << 16
    )


def test_a_quantised_vector_is_decoded() -> None:
    block = np.zeros(34, np.uint8)
    block[:2] = np.array([0.5], np.float16).view(np.uint8)
    block[2:] = np.arange(32, dtype=np.int8).view(np.uint8)
    np.testing.assert_array_equal(to_float32(*raw_spec("Q8_0", block, (32,))), np.arange(32) * np.float32(0.5))


def test_a_type_without_values_is_refused() -> None:
    with pytest.raises(CheckpointError, match="type I32"):
        to_float32(*raw_spec("I32", np.zeros(3, np.int32), (3,)))


def test_safetensors_and_gguf_of_one_model_agree(data: Path) -> None:
    """The converter re-orders value heads, where there are more of them than key heads; norms keep their place."""
    published, converted = (
        load_vectors(c.tensors, c.conventions, c.mtp_conventions, DiskFiles())
        for c in (
            open_checkpoint(data / "tiny-dense"),
            open_checkpoint(data / "tiny-dense/gguf/tiny-dense-Q8_0.gguf"),
        )
    )
    assert published.keys() == converted.keys()
    for name, values in published.items():
        assert values.shape == converted[name].shape
        if name.endswith("norm.weight"):
            np.testing.assert_allclose(values, converted[name], atol=1e-6)
        elif name.endswith("decay_rate"):
            np.testing.assert_allclose(np.sort(values), np.sort(converted[name]), rtol=1e-6)
            assert (values > 0).all()


def test_a_disk_error_names_the_file(dense: Checkpoint, files: FaultyFiles) -> None:
    files.errors[dense.files[0].name] = 5
    with pytest.raises(ReadError, match=dense.files[0].name):
        load_vectors(dense.tensors, dense.conventions, dense.mtp_conventions, files)
    assert files.opened == files.closed


def test_cancel(dense: Checkpoint, files: FaultyFiles) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        load_vectors(dense.tensors, dense.conventions, dense.mtp_conventions, files, token)
    assert files.opened == files.closed
