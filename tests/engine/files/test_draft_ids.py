"""`d2t`: widths, absolute ids and offsets, told apart by rule; damage is refused. Row O-18 of the contract."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import SidecarError
from engine.files.draft_ids import decode_draft_ids, read_draft_ids
from engine.files.tensor_spec import TensorSpec


def decode(values: list[int], vocabulary: int = 100, offsets_allowed: bool = True) -> list[int]:
    return decode_draft_ids(
        np.array(values, np.int64), vocabulary, "d2t in s", offsets_allowed=offsets_allowed
    ).tolist()


def test_absolute_ids_in_any_order() -> None:
    assert decode([7, 3, 99, 0]) == [7, 3, 99, 0]


def test_offsets_repeat_and_never_fall() -> None:
    assert decode([0, 0, 5, 5, 90]) == [0, 1, 7, 8, 94]


def test_every_sorted_vocabulary_survives_either_encoding() -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        ids = np.sort(generator.choice(1000, generator.integers(2, 400), replace=False))
        offsets = ids - np.arange(len(ids))
        assert decode(ids.tolist(), 1000) == ids.tolist()
        if len(np.unique(offsets)) < len(offsets):
            assert decode(offsets.tolist(), 1000) == ids.tolist()


def test_gguf_ids_are_always_absolute() -> None:
    with pytest.raises(SidecarError, match="rows 0 and 1 both name token 0"):
        decode([0, 0, 5, 5, 90], offsets_allowed=False)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 100], "row 1 names token 100, outside the vocabulary of 100"),
        ([-1, 5], "row 0 names token -1, outside the vocabulary"),
        ([4, 7, 2, 7], "rows 1 and 3 both name token 7"),
        ([0, 50, 98, 98], "rows 2 and 3 both name token 98"),  # as an offset it would leave the vocabulary
        ([-1, -1, 3], "row 0 names token -1"),
        ([0, 0, 2**40], "row 2 names token 1099511627776"),
        ([-(2**63), 2**63 - 1, 0], "row 0 names token -9223372036854775808"),
    ],
)
def test_ids_outside_or_twice(values: list[int], message: str) -> None:
    with pytest.raises(SidecarError, match=f"d2t in s is damaged: {message}"):
        decode(values)


@pytest.mark.parametrize("dtype", ["I32", "I64"])
def test_the_width_comes_from_the_dtype(tmp_path: Path, dtype: str) -> None:
    values = np.array([5, 1, 9], "<i4" if dtype == "I32" else "<i8")
    path = tmp_path / "s"
    path.write_bytes(b"head" + values.tobytes())
    spec = TensorSpec("mtp.d2t", dtype, (3,), path, 4, values.nbytes, "d2t")
    assert read_draft_ids(spec, 3, 10, offsets_allowed=True).tolist() == [5, 1, 9]


@pytest.mark.parametrize(
    ("dtype", "shape", "message"),
    [
        ("F32", (3,), "d2t in s has type F32; I32 or I64 was expected"),
        ("I32", (0,), "d2t in s is empty"),
        ("I32", (4,), r"d2t in s has shape \[4\], but the draft head has 3 rows"),
        ("I32", (3, 1), r"d2t in s has shape \[3, 1\]"),
    ],
)
def test_other_types_and_lengths(tmp_path: Path, dtype: str, shape: tuple[int, ...], message: str) -> None:
    spec = TensorSpec("mtp.d2t", dtype, shape, tmp_path / "s", 0, 0, "d2t")
    with pytest.raises(SidecarError, match=message):
        read_draft_ids(spec, 3, 10, offsets_allowed=True)
