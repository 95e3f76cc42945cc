"""Kept runs: written, listed from both ends of their files, bounded, deleted."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.runs.store import RunStore
from app.runs.summary import drafter_words, read_summary
from engine import Finished, Record, TraceError, TraceHeader, read_trace
from tests.app.chat import scripted_records as script

HEADER = TraceHeader(
    draftscope="1",
    created="2026-01-02T03:04:05+00:00",
    model="demo",
    settings={"draft": {"drafter": "mtp", "tokens": 3, "length": "fixed"}},
    prompt="Say  something\nlong",
)


def written(store: RunStore, records: list[Record], second: int = 0) -> Path:
    path = store.write(replace(HEADER, created=f"2026-01-02T03:04:{second:02}+00:00"), records)
    os.utime(path, ns=(second * 10**9, second * 10**9))
    return path


def test_a_run_is_read_back_and_summed_up(tmp_path: Path) -> None:
    records = script.reply(thinking=script.THINKING)
    path = RunStore(tmp_path / "runs").write(HEADER, records)
    assert read_trace(path).records == tuple(records)
    summary, last = read_summary(path), records[-1]
    assert isinstance(last, Finished)
    assert (summary.model, summary.drafter, summary.stats) == ("demo", "MTP, 3", last.stats)
    assert summary.size == path.stat().st_size


def test_a_run_that_was_cut_off_is_listed_without_numbers(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    path = written(store, script.reply())
    path.write_bytes(path.read_bytes()[:-40])
    (run,) = store.summaries()
    assert run.stats.emitted == 0


def test_a_last_line_longer_than_one_read_is_found(tmp_path: Path) -> None:
    records = script.reply()
    last = records[-1]
    assert isinstance(last, Finished)
    path = written(RunStore(tmp_path), [*records[:-1], replace(last, text="x" * 300_000)])
    assert read_summary(path).stats == last.stats


def test_newest_first_and_strangers_are_passed_over(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    paths = [written(store, script.reply(), second) for second in (1, 3, 2)]
    (tmp_path / "other.jsonl").write_text('{"event": "something"}\n')
    assert [run.path for run in store.summaries()] == [paths[1], paths[2], paths[0]]
    with pytest.raises(TraceError, match="no run"):
        read_summary(tmp_path / "other.jsonl")


def test_the_oldest_go_beyond_the_bounds_but_never_the_newest(tmp_path: Path) -> None:
    store = RunStore(tmp_path, most=2)
    paths = [written(store, script.reply(), second) for second in (1, 2, 3)]
    store.prune()
    assert sorted(tmp_path.iterdir()) == paths[1:]
    tiny = RunStore(tmp_path, most_bytes=10)
    kept = tiny.write(HEADER, script.reply())
    assert list(tmp_path.iterdir()) == [kept]


def test_two_runs_of_the_same_second_keep_apart(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    assert written(store, script.reply()) != written(store, script.reply())


def test_only_files_of_the_folder_are_deleted(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    inside, outside = written(store, script.reply()), tmp_path / "mine.jsonl"
    outside.write_text("{}")
    store.delete([inside, outside])
    assert not inside.exists()
    assert outside.exists()


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        ({"drafter": "none", "tokens": 3}, "none"),
        ({"drafter": "mtp", "tokens": 0}, "none"),
        ({"drafter": "mtp+ngram", "tokens": 4, "length": "cost-aware"}, "MTP + n-gram, cost-aware"),
    ],
)
def test_drafters_in_words(draft: dict[str, object], words: str) -> None:
    assert drafter_words({"draft": draft}) == words
