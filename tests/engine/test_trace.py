"""Saved traces: what is written is what is read, whatever happened in between."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from engine.decoding.records import (
    Alternative,
    CommittedToken,
    DraftedToken,
    Failed,
    Finished,
    LoadProgress,
    PositionCount,
    PrefillProgress,
    Record,
    Round,
    Stats,
)
from engine.decoding.trace import FORMAT, TracedFile, TraceHeader, TraceWriter, read_trace
from engine.errors import TraceError

HEADER = TraceHeader(
    draftscope="0.1.0",
    created="2026-11-30T10:00:00+00:00",
    model="demo",
    files=(TracedFile("model.safetensors", 123, "sha256:00"),),
    settings={"sampling": {"temperature": 0.0}, "max_new_tokens": 8},
    machine={"cpu": "a processor"},
    prompt="Wie heißt die Hauptstadt? 🚀",
    prompt_tokens=(1, 2, 3),
)
DRAFT = DraftedToken(7, " é", "mtp", 0.25, 0.5, "rejected", replacement=8, alternatives=(Alternative(9, "x", 0.1),))
COMMITTED = CommittedToken(8, "🚀\n\u2028", "correction", "model", 0.9)
STATS = Stats(rounds=1, per_position=(PositionCount(1, 0),), accepted_histogram=(1,))
RECORDS: tuple[Record, ...] = (
    LoadProgress("weights", "reading weights", 1, 2, "bytes"),
    PrefillProgress(3, 3),
    Round(0, 3, "answer", (DRAFT,), (COMMITTED,), 0.01, 0.02),
    Finished((8,), "🚀\n\u2028", STATS, notes=("done",)),
)


def write(path: Path, records: tuple[Record, ...] = RECORDS) -> Path:
    with TraceWriter(path, HEADER) as writer:
        for record in records:
            writer.write(record)
    return path


def test_round_trip(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "run.jsonl"))
    assert trace.header == HEADER
    assert trace.records == RECORDS
    assert not trace.cut
    assert trace.rounds == (RECORDS[2],)
    assert trace.ending == RECORDS[3]
    assert trace.tokens == (8,)
    assert len((tmp_path / "run.jsonl").read_text().split("\n")) == len(RECORDS) + 2


def test_a_name_that_is_not_utf8_is_written_and_read(tmp_path: Path) -> None:
    header = dataclasses.replace(HEADER, model="/models/\udcff é.gguf")
    with TraceWriter(tmp_path / "run.jsonl", header):
        pass
    assert read_trace(tmp_path / "run.jsonl").header == header


def test_every_line_says_its_event(tmp_path: Path) -> None:
    lines = write(tmp_path / "run.jsonl").read_text().rstrip("\n").split("\n")
    assert [json.loads(line)["event"] for line in lines] == ["header", "load", "prefill", "round", "finished"]


def test_records_are_on_disk_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    writer = TraceWriter(path, HEADER)
    writer.write(RECORDS[0])
    assert not path.exists()
    assert read_trace(tmp_path / "run.jsonl.part").records == RECORDS[:1]
    writer.finish()
    assert not (tmp_path / "run.jsonl.part").exists()
    writer.finish()
    assert read_trace(path).records == RECORDS[:1]


def test_old_trace_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl")
    writer = TraceWriter(path, HEADER)
    assert read_trace(path).records == RECORDS
    writer.finish()
    assert read_trace(path).records == ()


def test_an_error_inside_keeps_what_was_written(tmp_path: Path) -> None:
    def run() -> None:
        with TraceWriter(tmp_path / "run.jsonl", HEADER) as writer:
            writer.write(RECORDS[0])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert read_trace(tmp_path / "run.jsonl").records == RECORDS[:1]


@pytest.mark.parametrize("kept", range(1, 60, 7))
def test_cut_last_line_is_left_out(tmp_path: Path, kept: int) -> None:
    text = write(tmp_path / "run.jsonl").read_text()
    start = text.rstrip("\n").rindex("\n") + 1
    cut = tmp_path / "cut.jsonl"
    cut.write_text(text[: start + kept])
    trace = read_trace(cut)
    assert trace.cut
    assert trace.records == RECORDS[:-1]
    assert trace.ending is None
    assert trace.tokens == (8,)


def test_unknown_keys_are_ignored(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", (Failed("NaN", "NumericsError"),))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "new_in_version_9": [1]}) + "\n" for line in lines))
    assert read_trace(path).ending == Failed("NaN", "NumericsError")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json}", "line 3: not JSON"),
        ("[1, 2]", "line 3: not a record"),
        ('{"event": "party"}', "line 3: Unknown event 'party'"),
        ('{"event": "prefill"}', "line 3: PrefillProgress"),
        ('{"event": "prefill", "done": "1", "total": 2}', "line 3: '1' should be int"),
        ('{"event": "finished", "tokens": 5, "text": "", "stats": {}}', "line 3: A list was expected"),
        ("[" * 100_000, "line 3: not JSON"),
    ],
)
def test_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    lines = write(tmp_path / "run.jsonl").read_text().splitlines()
    lines[2] = line
    (tmp_path / "bad.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(TraceError, match=r"bad\.jsonl, " + message):
        read_trace(tmp_path / "bad.jsonl")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "first line is not a header"),
        (b"hello\n", "first line is not a header"),
        (b'{"event": "round"}\n', "first line is not a header"),
        (b"\xff\xfe\x00\x01", "not UTF-8"),
        (json.dumps({**HEADER.to_json(), "format": FORMAT + 1}).encode(), f"format {FORMAT + 1}, .* update it"),
        (b'{"event": "header", "format": 1}\n', "line 1: the header is incomplete"),
        (json.dumps({**HEADER.to_json(), "files": [{"name": "x"}]}).encode(), "line 1: the header is incomplete"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "bad.jsonl").write_bytes(content)
    with pytest.raises(TraceError, match=message):
        read_trace(tmp_path / "bad.jsonl")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")
    with pytest.raises(TraceError, match="cannot be written"):
        TraceWriter(tmp_path / "none" / "run.jsonl", HEADER)
