"""The header reader of GGUF against the gguf library, and against damage."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.errors import CheckpointError
from engine.files.findings import Findings
from engine.files.gguf import GGML_TYPES, GgufFile, read_gguf
from engine.files.gguf_cursor import Strings
from engine.files.tensor_spec import BLOCKS
from tests.engine.files.build_gguf import F32, Q4_K, gguf_bytes, string, write_gguf


def read(path: Path) -> GgufFile:
    findings = Findings()
    file = read_gguf(path, findings)
    findings.raise_if_any()
    return file


def plain(value: object) -> object:
    return list(value) if isinstance(value, Strings) else value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", ["tiny-dense/gguf/tiny-dense-Q4_K_M.gguf", "tiny-moe/gguf/tiny-moe-Q4_K_M.gguf"])
def test_agrees_with_the_gguf_library(data: Path, name: str) -> None:
    ours, theirs = read(data / name), gguf.GGUFReader(str(data / name))
    fields = {key: field.contents() for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    assert {key: plain(value) for key, value in ours.metadata.items()} == fields
    assert [
        (t.name, t.tensor_type.name, tuple(reversed(t.shape)), t.data_offset, t.n_bytes) for t in theirs.tensors
    ] == [(spec.file_name, spec.format, spec.shape, spec.offset, spec.nbytes) for spec in ours.tensors.values()]


def test_block_sizes_agree_with_the_gguf_library() -> None:
    for number, name in GGML_TYPES.items():
        kind = gguf.GGMLQuantizationType(number)
        assert kind.name == name
        assert BLOCKS[name] == gguf.GGML_QUANT_SIZES[kind]


def test_every_value_type(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "qwen35")
    writer.add_uint8("u8", 200)
    writer.add_int8("i8", -3)
    writer.add_uint16("u16", 60000)
    writer.add_int16("i16", -300)
    writer.add_uint32("u32", 1 << 31)
    writer.add_int32("i32", -70000)
    writer.add_float32("f32", 0.5)
    writer.add_uint64("u64", 1 << 63)
    writer.add_int64("i64", -(1 << 40))
    writer.add_float64("f64", 0.1)
    writer.add_bool("flag", True)
    writer.add_string("text", "grün")
    writer.add_array("texts", ["a", "", "ß" * 700_000, "z"])
    writer.add_array("flags", [True, False])
    writer.add_array("numbers", [1, -2, 3])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    values = read(tmp_path / "x.gguf").metadata
    assert values["u8"] == 200
    assert values["i8"] == -3
    assert values["u16"] == 60000
    assert values["i16"] == -300
    assert values["u32"] == 1 << 31
    assert values["i32"] == -70000
    assert values["f32"] == 0.5
    assert values["u64"] == 1 << 63
    assert values["i64"] == -(1 << 40)
    assert values["f64"] == 0.1
    assert values["flag"] is True
    assert values["text"] == "grün"
    assert plain(values["texts"]) == ["a", "", "ß" * 700_000, "z"]
    assert values["texts"][-1] == "z"
    assert values["texts"][1:3] == ["", "ß" * 700_000]
    assert plain(values["flags"]) == [True, False]
    assert plain(values["numbers"]) == [1, -2, 3]


def test_large_vocabularies_are_not_decoded_until_they_are_looked_at(tmp_path: Path) -> None:
    table = {"tokenizer.ggml.tokens": [f"token {index}" for index in range(50_000)]}
    tokens = read(write_gguf(tmp_path / "x.gguf", table, {})).metadata["tokenizer.ggml.tokens"]
    assert len(tokens) == 50_000
    assert tokens[49_999] == "token 49999"
    assert repr(tokens) == "<50000 strings>"


U32 = struct.pack("<I", 4)


@pytest.mark.parametrize(
    ("table", "tensors", "options", "message"),
    [
        ({}, {}, {"magic": b"GGML"}, "is not a GGUF file"),
        ({}, {}, {"version": 1}, "has GGUF version 1; Draftscope reads versions 2 and 3"),
        ({}, {}, {"version": 3 << 24}, "for big-endian machines"),
        ({}, {}, {"counts": (1 << 62, 0)}, "its header announces 4,611,686,018,427,387,904 tensors, in 32 bytes"),
        ({}, {}, {"counts": (0, 1 << 15)}, "its header announces 32,768 metadata entries"),
        ({}, {}, {"counts": (1, 0)}, "its header does not end within 32 bytes"),
        ({"a": struct.pack("<I", 99)}, {}, {}, "has the unknown value type 99 at byte"),
        ({"a": struct.pack("<IQ", 8, 1 << 60)}, {}, {}, "has a string of 1,152,921,504,606,846,976 bytes"),
        ({"a": struct.pack("<I", 8) + string(b"\xff\xfe")}, {}, {}, "has text that is not UTF-8"),
        ({"a": struct.pack("<IIQ", 9, 4, 1 << 60)}, {}, {}, "has an array of 1,152,921,504,606,846,976 values"),
        ({"a": struct.pack("<IIQ", 9, 9, 1)}, {}, {}, "has an array of type 9"),
        ({"a": struct.pack("<IIQQ", 9, 8, 1, 1 << 50)}, {}, {}, "its header does not end within"),
        ({"general.alignment": 33}, {}, {}, "general.alignment is 33"),
        ({"general.alignment": "32"}, {}, {}, "general.alignment is 32"),
        ({}, {"a": (F32, (1,) * 5)}, {}, "Tensor a in x.gguf is damaged: it has 5 dimensions"),
        ({}, {"a": (F32, (1 << 41,))}, {}, "Tensor a in x.gguf has the impossible shape"),
        ({}, {"a": (Q4_K, (2, 100))}, {}, "rows of 100 are not a multiple of Q4_K's blocks of 256"),
    ],
)
def test_damage_is_named(tmp_path: Path, table: dict, tensors: dict, options: dict, message: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf_bytes(table, tensors, **options)[0] + b"\0" * 0)
    with pytest.raises(CheckpointError, match=message):
        read(path)


def patched(path: Path, old: bytes, new: bytes) -> Path:
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    return path


def test_repeated_names(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "x.gguf", {"key1": 1, "key2": 2}, {})
    with pytest.raises(CheckpointError, match="the metadata key 'key1' stands in it twice"):
        read(patched(path, b"key2", b"key1"))
    path = write_gguf(tmp_path / "x.gguf", {}, {"tensor1": (F32, (8,)), "tensor2": (F32, (8,))})
    with pytest.raises(CheckpointError, match="the tensor 'tensor1' stands in it twice"):
        read(patched(path, b"tensor2", b"tensor1"))


def test_overlap_and_misalignment(tmp_path: Path) -> None:
    for offset, message in ((0, "the tensors a and b overlap"), (40, "its offset 40 is no multiple of 32")):
        path = write_gguf(tmp_path / "x.gguf", {}, {"a": (F32, (8,)), "b": (F32, (9,))})
        with pytest.raises(CheckpointError, match=message):
            read(patched(path, struct.pack("<QIQ", 9, F32, 32), struct.pack("<QIQ", 9, F32, offset)))


@pytest.mark.parametrize("missing", [1, 31, 100])
def test_a_truncated_file_names_the_missing_bytes(tmp_path: Path, missing: int) -> None:
    path = write_gguf(tmp_path / "x.gguf", {}, {"a": (F32, (8,)), "b": (F32, (24,))})
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - missing)
    with pytest.raises(CheckpointError, match=f"x.gguf is truncated: {missing} bytes are missing"):
        read(path)


def test_a_file_cut_inside_its_header(tmp_path: Path) -> None:
    """lyogavin/airllm#137: a half-downloaded file is named as that."""
    path = write_gguf(tmp_path / "x.gguf", {"general.name": "x" * 500}, {})
    for size in (0, 3, 23, 24, 60, 300):
        path.write_bytes(path.read_bytes()[:size]) if size else path.write_bytes(b"")
        with pytest.raises(CheckpointError, match=r"x\.gguf is (incomplete|damaged)"):
            read(path)
        write_gguf(path, {"general.name": "x" * 500}, {})


def test_unknown_types_are_kept_with_their_number(tmp_path: Path) -> None:
    """llama.cpp#11975: an unknown type is no reason to stop reading."""
    file = read(
        write_gguf(tmp_path / "x.gguf", {}, {"a": (40, (64,)), "b": (F32, (8,)), "c": (77, (64,)), "d": (40, (64,))})
    )
    assert file.unknown_types == {"GGML_40": ["a", "d"], "GGML_77": ["c"]}
    assert file.tensors["b"].nbytes == 32


def test_only_the_header_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.files.bounded import FileReader

    path = write_gguf(tmp_path / "x.gguf", {"general.name": "x"}, {"a": (F32, (1 << 20, 1 << 10))})
    reads = []
    original = FileReader.read
    monkeypatch.setattr(FileReader, "read", lambda self, at, count: reads.append(count) or original(self, at, count))
    read(path)
    assert sum(reads) <= 1 << 20
