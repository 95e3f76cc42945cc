"""The header reader of safetensors against the reference implementation, and against damage."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import safetensors

from engine.errors import CheckpointError
from engine.files.findings import Findings
from engine.files.safetensors import SafetensorsFile, read_safetensors
from tests.engine.files.build import safetensors_bytes, write_safetensors


def read(path: Path) -> SafetensorsFile:
    findings = Findings()
    file = read_safetensors(path, findings)
    findings.raise_if_any()
    return file


def test_agrees_with_the_reference_implementation(data: Path) -> None:
    for path in sorted((data / "tiny-dense").glob("*.safetensors")):
        ours = read(path)
        with safetensors.safe_open(path, "np") as theirs:
            assert set(ours.tensors) == set(theirs.keys())
            assert dict(ours.metadata) == (theirs.metadata() or {})
            for name, spec in ours.tensors.items():
                piece = theirs.get_slice(name)
                assert list(spec.shape) == piece.get_shape()
                assert spec.format == piece.get_dtype()


def test_offsets_point_at_the_values(tmp_path: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.arange(4, dtype=np.int64),
        "c": np.float16([[7]]),
    }
    save_file(arrays, tmp_path / "x.safetensors", {"format": "np"})
    content = (tmp_path / "x.safetensors").read_bytes()
    for name, spec in read(tmp_path / "x.safetensors").tensors.items():
        assert content[spec.offset : spec.offset + spec.nbytes] == arrays[name].tobytes()


ONE = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x.safetensors is incomplete: 0 bytes hold no safetensors header"),
        (b"\0" * 7, "7 bytes hold no safetensors header"),
        (struct.pack("<Q", 1 << 40) + b"{}", "not a safetensors file: its header would have 1,099,511,627,776 bytes"),
        (struct.pack("<Q", 5000) + b"{}", "incomplete: its header has 5,000 bytes, the whole file 10"),
        (safetensors_bytes(b"[1]"), "not a safetensors file: its header is no JSON object"),
        (safetensors_bytes(b'{"a":'), "The header of x.safetensors is not valid JSON"),
        (safetensors_bytes(b'{"a":' * 200_000), "The header of x.safetensors is nested too deeply"),
        (safetensors_bytes(b'{"a":1,"a":2}'), "the key 'a' stands in it twice"),
        (safetensors_bytes(b'{"\xff":1}'), "is not valid JSON"),
        (
            safetensors_bytes({"__metadata__": {"a": 1}}),
            "__metadata__ in the header of x.safetensors is not a table of strings",
        ),
        (safetensors_bytes({"a": 1}), "Tensor a in x.safetensors has no description"),
        (safetensors_bytes({"a": ONE["a"] | {"dtype": 3}}), "Tensor a in x.safetensors has the impossible dtype '3'"),
        (safetensors_bytes({"a": ONE["a"] | {"shape": [-1]}}), r"has the impossible shape \[-1\]"),
        (safetensors_bytes({"a": ONE["a"] | {"shape": [2.0]}}), r"has the impossible shape \[2.0\]"),
        (safetensors_bytes({"a": ONE["a"] | {"shape": [True]}}), r"has the impossible shape \[True\]"),
        (safetensors_bytes({"a": ONE["a"] | {"shape": [1] * 9}}), "has the impossible shape"),
        (safetensors_bytes({"a": ONE["a"] | {"data_offsets": [8, 0]}}), r"has the impossible data_offsets \[8, 0\]"),
        (safetensors_bytes({"a": ONE["a"] | {"data_offsets": [0]}}), "has the impossible data_offsets"),
        # ml-explore/mlx#3363: offsets that do not fit shape and dtype lead to reads out of bounds
        (
            safetensors_bytes({"a": ONE["a"] | {"shape": [3]}}, b"\0" * 8),
            r"Tensor a in x.safetensors is damaged: its data_offsets span 8 bytes, but shape \[3\] in F32 needs 12",
        ),
        (
            safetensors_bytes({"a": ONE["a"] | {"shape": [1 << 47, 1 << 47]}}, b"\0" * 8),
            "is damaged: its data_offsets span 8",
        ),
        (
            safetensors_bytes({**ONE, "b": ONE["a"]}, b"\0" * 8),
            "Tensor b in x.safetensors overlaps the tensor before it",
        ),
        (
            safetensors_bytes({**ONE, "b": ONE["a"] | {"data_offsets": [9, 17]}}, b"\0" * 17),
            "Tensor b in x.safetensors leaves a gap before it",
        ),
        # osaurus-ai/vmlx-swift#217: a short shard reads as zeros
        (safetensors_bytes(ONE, b"\0" * 5), "x.safetensors is truncated: 3 bytes are missing; get the file again"),
        (safetensors_bytes(ONE, b"\0" * 9), "x.safetensors is 1 bytes longer than its header says"),
    ],
)
def test_damage_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read(path)


def test_a_whole_number_of_thousands_of_digits(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(safetensors_bytes(b'{"a":{"dtype":"F32","shape":[' + b"9" * 10_000 + b'],"data_offsets":[0,8]}}'))
    with pytest.raises(CheckpointError, match="not valid JSON"):
        read(path)


def test_faults_of_single_tensors_leave_the_others_readable(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(safetensors_bytes({"bad": ONE["a"] | {"shape": [5]}, "good": ONE["a"]}, b"\0" * 8))
    findings = Findings()
    assert list(read_safetensors(path, findings).tensors) == ["good"]
    assert len(findings.sentences) == 1


def test_an_unknown_dtype_is_kept_apart_from_known_layouts(tmp_path: Path) -> None:
    header = {"a": {"dtype": "Q4_0", "shape": [32], "data_offsets": [0, 18]}}
    path = tmp_path / "x.safetensors"
    path.write_bytes(safetensors_bytes(header, b"\0" * 18))
    assert read(path).tensors["a"].format == "dtype Q4_0"


def test_only_the_header_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.files.bounded import FileReader

    path = write_safetensors(tmp_path / "x.safetensors", {"a": ("F32", (1 << 20, 1 << 10))})
    reads = []
    original = FileReader.read
    monkeypatch.setattr(FileReader, "read", lambda self, at, count: reads.append(count) or original(self, at, count))
    read(path)
    assert sum(reads) == 8 + len(
        json.dumps({"a": {"dtype": "F32", "shape": [1 << 20, 1 << 10], "data_offsets": [0, 1 << 32]}})
    )


def test_no_folder_device_or_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="There is no file"):
        read(tmp_path / "none")
    with pytest.raises(CheckpointError, match="is not a file"):
        read(tmp_path)
