"""Nothing that a file says is trusted: mutated headers end in a result or in one of our errors, never in anything else.

DRAFTSCOPE_FUZZ sets the number of cases per test (160 without it, some 2,000 together; 5000 is a long run).
"""

from __future__ import annotations

import copy
import json
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import EngineError, SidecarError
from engine.files.bounded import FileReader
from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.files.config_json import config_from_json
from engine.files.gguf_cursor import HEADER_LIMIT as GGUF_HEADER_LIMIT
from engine.files.report import describe
from engine.files.safetensors_names import SCALE_SUFFIX
from engine.files.sidecar import open_sidecar
from engine.files.tensor_spec import BLOCKS, TensorSpec, stored_bytes
from tests.engine.files import build, build_gguf

CASES = int(os.environ.get("DRAFTSCOPE_FUZZ", "160"))
fuzz = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
READ_LIMIT = GGUF_HEADER_LIMIT + (1 << 20)

CONFIG = config_from_json(build.config())
EXTREMES = (0, 1, 7, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([*EXTREMES, -1, 0.5, 1e300, "", "qwen3_5", "BF16", "F8_E4M3", "../x.safetensors", "x" * 300])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def damaged_bytes(draw: st.DrawFn, length: int) -> list[tuple[int, bytes]]:
    """Overwrites inside the first `length` bytes: single bytes, or whole little-endian numbers."""
    piece = st.binary(min_size=1, max_size=4) | st.sampled_from([n.to_bytes(8, "little") for n in EXTREMES])
    piece |= st.sampled_from([n.to_bytes(4, "little") for n in EXTREMES if n < 1 << 32])
    return draw(st.lists(st.tuples(st.integers(0, length - 1), piece), min_size=1, max_size=3))


def patch(path: Path, original: Path, changes: list[tuple[int, bytes]], size: int | None = None) -> Path:
    """A copy of a sparse file with some bytes replaced, and perhaps another size."""
    head = bytearray(original.read_bytes()[:200_000])
    for offset, piece in changes:
        head[offset : offset + len(piece)] = piece
    with path.open("wb") as file:
        file.write(head)
        file.truncate(original.stat().st_size if size is None else size)
    return path


@contextmanager
def bounded_reads() -> Iterator[None]:
    """No survey may read more of a file than a header can be long."""
    read, count = FileReader.read, 0

    def counted(self: FileReader, offset: int, size: int) -> bytes:
        nonlocal count
        count += size
        assert count <= READ_LIMIT
        return read(self, offset, size)

    FileReader.read = counted  # type: ignore[method-assign]
    try:
        yield
    finally:
        FileReader.read = read  # type: ignore[method-assign]


def check_specs(specs: dict[str, TensorSpec]) -> None:
    """What a load would rely on: known layouts, whole tensors inside their files."""
    for name, spec in specs.items():
        assert spec.name == name
        assert spec.format in BLOCKS
        assert spec.nbytes == stored_bytes(spec.format, spec.shape)
        assert spec.offset >= 0
        assert spec.offset + spec.nbytes <= spec.file.stat().st_size


def survey(path: Path) -> Checkpoint | None:
    """Open and describe; a checkpoint without a complaint must be sound in itself."""
    with bounded_reads():
        try:
            checkpoint = open_checkpoint(path)
        except EngineError as error:
            assert 10 < len(str(error)) < 4000  # noqa: PT017 - either way is right
            checkpoint = None
        report = describe(path)
    assert (checkpoint is None) == (report.kind != "model" or bool(report.problems))
    json.dumps(report.to_dict())
    if checkpoint is not None:
        check_specs(dict(checkpoint.tensors))
        config = checkpoint.config
        assert checkpoint.spec("embed_tokens.weight").shape == (config.vocabulary, config.hidden_size)
        assert (
            sum(name.endswith("input_layernorm.weight") for name in checkpoint.tensors)
            == len(config.layers) + config.mtp_layers
        )
        assert all(checkpoint.scale(name) for name, spec in checkpoint.tensors.items() if spec.format == "F8_E4M3")
        assert all(0 <= token < config.vocabulary for token in config.eos_ids)
    return checkpoint


def try_sidecar(path: Path) -> None:
    with bounded_reads():
        try:
            sidecar = open_sidecar(path, CONFIG)
        except SidecarError as error:
            assert 10 < len(str(error)) < 4000  # noqa: PT017
            return
    check_specs(dict(sidecar.tensors))
    if sidecar.draft_ids is not None:
        ids = sidecar.draft_ids.tolist()
        assert len(set(ids)) == len(ids) == sidecar.spec("mtp.lm_head.weight").shape[0]
        assert all(0 <= token < CONFIG.vocabulary for token in ids)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.dense_folder(tmp_path_factory.mktemp("dense") / "m")


@pytest.fixture(scope="module")
def moe_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tensors = build.trunk(True) | build.mtp(True)
    return build.write_folder(tmp_path_factory.mktemp("moe") / "m", build.config(moe=True), tensors, shards=2)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


def test_the_undamaged_files_are_sound(folder: Path, moe_folder: Path, scratch: Path) -> None:
    assert survey(folder) is not None
    assert survey(moe_folder) is not None
    assert survey(build_gguf.dense(scratch / "sound.gguf")) is not None


@fuzz
@given(st.data())
def test_safetensors_bytes(folder: Path, scratch: Path, data: st.DataObject) -> None:
    original = folder / "model.safetensors"
    length = 8 + int.from_bytes(original.read_bytes()[:8], "little")
    size = data.draw(st.none() | st.integers(0, original.stat().st_size + 1000))
    changes = data.draw(damaged_bytes(length=length))
    (scratch / "config.json").write_bytes((folder / "config.json").read_bytes())
    path = patch(scratch / "x.safetensors", original, changes, size)
    survey(path)
    try_sidecar(path)


@fuzz
@given(st.data())
def test_safetensors_tables(moe_folder: Path, scratch: Path, data: st.DataObject) -> None:
    header, size = build.header_of(build.trunk(True) | build.mtp(True), {"format": "pt"})
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(header)))
        action = data.draw(st.sampled_from(["entry", "dtype", "shape", "data_offsets", "remove", "rename"]))
        if action == "remove":
            del header[name]
        elif action == "rename":
            other = data.draw(st.text(max_size=10) | st.sampled_from(sorted(header)))
            header[data.draw(st.sampled_from([other, name + ".q8", name + SCALE_SUFFIX, "mtp." + name]))] = header.pop(
                name
            )
        elif action == "entry" or not isinstance(header[name], dict):
            header[name] = data.draw(json_values)
        else:
            header[name] = header[name] | {
                action: data.draw(json_values | st.lists(st.integers(0, 1 << 20), max_size=3))
            }
    (scratch / "config.json").write_bytes((moe_folder / "config.json").read_bytes())
    content = build.safetensors_bytes(header)
    path = scratch / "x.safetensors"
    with path.open("wb") as file:
        file.write(content)
        file.truncate(len(content) + size)
    survey(path)
    try_sidecar(path)


@fuzz
@given(st.data())
def test_config(folder: Path, data: st.DataObject) -> None:
    root = build.config()
    for _ in range(data.draw(st.integers(1, 3))):
        table = data.draw(st.sampled_from([t for t in (root, root.get("text_config")) if isinstance(t, dict) and t]))
        key = data.draw(
            st.sampled_from(sorted(table)) | st.sampled_from(["quantization_config", "rope_scaling", "layer_types"])
        )
        if data.draw(st.booleans()):
            table.pop(key, None)
        else:
            table[key] = data.draw(json_values)
    original = (folder / "config.json").read_bytes()
    try:
        (folder / "config.json").write_text(json.dumps(root))
        survey(folder)
    finally:
        (folder / "config.json").write_bytes(original)


@fuzz
@given(st.data())
def test_settings_that_are_any_bytes(folder: Path, data: st.DataObject) -> None:
    name = data.draw(
        st.sampled_from(["config.json", "generation_config.json", "tokenizer_config.json", "chat_template.jinja"])
    )
    path = folder / name
    original = path.read_bytes() if path.exists() else None
    content = data.draw(st.binary(max_size=40) | json_values.map(lambda value: json.dumps(value).encode()))
    try:
        path.write_bytes(content)
        survey(folder)
    finally:
        if original is None:
            path.unlink()
        else:
            path.write_bytes(original)


@fuzz
@given(st.data())
def test_index(moe_folder: Path, data: st.DataObject) -> None:
    path = moe_folder / "model.safetensors.index.json"
    original = path.read_bytes()
    table = copy.deepcopy(json.loads(original))
    names = sorted(table["weight_map"])
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(names) | st.text(max_size=8))
        files = [
            "../model.safetensors",
            "model-00001-of-00002.safetensors",
            "/x.safetensors",
            "a/b.safetensors",
            "\0.safetensors",
        ]
        table["weight_map"][name] = data.draw(st.sampled_from(files) | json_values)
    if data.draw(st.integers(0, 9)) == 0:
        table["weight_map"] = data.draw(json_values)
    try:
        path.write_text(json.dumps(table))
        survey(moe_folder)
    finally:
        path.write_bytes(original)


@fuzz
@given(st.data())
def test_gguf_bytes(scratch: Path, data: st.DataObject) -> None:
    original = scratch / "original.gguf"
    if not original.exists():
        build_gguf.dense(original)
    header, size = build_gguf.gguf_bytes(build_gguf.metadata(), build_gguf.trunk() | build_gguf.mtp())
    changes = data.draw(damaged_bytes(length=len(header)))
    length = data.draw(st.none() | st.integers(0, len(header) + size + 1000))
    path = patch(scratch / "x.gguf", original, changes, length)
    survey(path)
    try_sidecar(path)


gguf_values = (
    st.booleans()
    | st.integers(0, (1 << 32) - 1)
    | st.sampled_from([n for n in EXTREMES if n < 1 << 32])
    | st.floats(width=32)
    | st.text(max_size=12)
    | st.lists(st.integers(0, 300), max_size=6)
    | st.lists(st.booleans(), max_size=6)
    | st.lists(st.text(max_size=5), max_size=6)
    | st.binary(min_size=4, max_size=24)
)


@fuzz
@given(st.data())
def test_gguf_tables(scratch: Path, data: st.DataObject) -> None:
    moe = data.draw(st.booleans())
    table: dict[str, Any] = build_gguf.metadata(moe)
    tensors = build_gguf.trunk(moe) | build_gguf.mtp(moe)
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()):
            extra = ["general.alignment", "general.type", "split.count", "qwen35.attention.recurrent_layers"]
            table[data.draw(st.sampled_from(sorted(table)) | st.sampled_from(extra))] = data.draw(gguf_values)
            continue
        name = data.draw(st.sampled_from(sorted(tensors)))
        kind, shape = tensors.pop(name)
        if data.draw(st.booleans()):
            kind = data.draw(st.integers(0, 45) | st.sampled_from([n for n in EXTREMES if n < 1 << 32]))
        if data.draw(st.booleans()):
            shape = tuple(
                data.draw(st.lists(st.integers(0, 600), max_size=3) | st.lists(st.integers(0, 3), max_size=6))
            )
        if data.draw(st.booleans()):
            name = data.draw(st.text(max_size=8) | st.sampled_from([*sorted(tensors), "d2t", "blk.5.attn_q.weight"]))
        tensors[name] = (kind, shape)
    path = build_gguf.write_gguf(scratch / "x.gguf", table, tensors)
    survey(path)
    try_sidecar(path)


@fuzz
@given(st.data())
def test_sidecar_ids(scratch: Path, data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 12))
    dtype = data.draw(st.sampled_from(["I32", "I64", "F32", "U8"]))
    tensors = build.mtp() | {"lm_head.weight": ("BF16", (data.draw(st.sampled_from([rows, 4])), build.HIDDEN))}
    tensors["d2t"] = (dtype, (rows,))
    path = build.write_safetensors(scratch / "s.safetensors", tensors)
    with path.open("r+b") as file:  # d2t is the last tensor
        file.seek(-rows * build.SIZES[dtype], 2)
        content = data.draw(st.binary(max_size=96) | st.lists(st.integers(0, 310), max_size=12).map(numbers(dtype)))
        file.write(content[: rows * build.SIZES[dtype]])
    try_sidecar(path)


def numbers(dtype: str) -> Any:
    width = build.SIZES[dtype]
    return lambda values: b"".join((value % (1 << 8 * width)).to_bytes(width, "little") for value in values)


HUNGRY = {
    "a header of nothing but brackets": build.safetensors_bytes(b'{"a":' + b"[" * (1 << 20)),
    "a header of many small keys": build.safetensors_bytes(
        b"{" + b",".join(b'"%d":0' % n for n in range(40_000)) + b"}"
    ),
    "a shape of enormous numbers": build.safetensors_bytes(
        {"a": {"dtype": "F32", "shape": [1 << 47] * 8, "data_offsets": [0, 8]}}
    ),
}


@pytest.mark.parametrize("content", HUNGRY.values(), ids=HUNGRY.keys())
def test_memory_stays_in_proportion_to_the_file(scratch: Path, content: bytes) -> None:
    path = scratch / "hungry.safetensors"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        describe(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (16 << 20) + 60 * len(content)


def test_counts_of_an_enormous_sparse_gguf_ask_for_no_memory(scratch: Path) -> None:
    """The file is large enough for every count that it announces; the header's own bounds must hold."""
    import struct

    cases = (
        {"a": struct.pack("<IIQ", 9, 8, 1 << 33)},
        {"a": struct.pack("<IIQ", 9, 0, 1 << 38)},
        {"a": struct.pack("<IQ", 8, 1 << 38)},
    )
    for table in cases:
        path = scratch / "enormous.gguf"
        path.write_bytes(build_gguf.gguf_bytes(table, {})[0])
        with path.open("r+b") as file:
            file.truncate(1 << 39)
        tracemalloc.start()
        try:
            with bounded_reads():
                describe(path)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 8 << 20
