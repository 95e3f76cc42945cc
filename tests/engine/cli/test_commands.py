"""The other commands: logits, inspect, bench, trace, doctor, and what all of them share."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine import doctor, system_libraries
from engine.cli.arguments import byte_size, token_ids
from engine.cli.console import PATIENCE_S, Console, styled_round, wants_colour
from engine.decoding.records import CommittedToken, DraftedToken, Finished, LoadProgress, PositionCount, Round, Stats
from engine.decoding.trace import TraceHeader, TraceWriter
from engine.version import __version__
from resources import demo_sidecar
from tests.engine.cli.conftest import Result

Run = Callable[..., Result]


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"Draftscope {__version__}\n"
    for command in ("generate", "logits", "inspect", "bench", "trace", "doctor"):
        assert command in run("--help").out
        assert run(command, "--help").code == 0


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("1024", 1024), ("2GiB", 2 << 30), ("1.5 gib", 3 << 29), ("500MB", 500_000_000), ("7k", 7000), ("1TiB", 1 << 40)],
)
def test_sizes(text: str, nbytes: int) -> None:
    assert byte_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1e9", "2 gallons"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no size"):
        byte_size(text)


def test_token_lists() -> None:
    assert token_ids("1,2, 3") == token_ids("1 2 3") == [1, 2, 3]


# -- logits ------------------------------------------------------------------------------------------------------------


def test_logits_do_not_depend_on_rows_per_pass(run: Run, tiny: Path, tmp_path: Path) -> None:
    tokens = ",".join(str(7 * i % 900) for i in range(20))
    for rows in (1, 8):
        assert (
            run(
                "logits", tiny, "--tokens", tokens, "--rows-per-pass", rows, "--mtp", "--out", tmp_path / str(rows)
            ).code
            == 0
        )
    one, eight = (np.load(tmp_path / name) for name in ("1", "8"))
    assert sorted(one) == ["hidden", "logits", "mtp_logits"]
    for name in one:
        assert one[name].dtype == np.float32
        assert one[name].shape == (20, 256 if name == "hidden" else 1024)  # the whole head, its padding too
        assert np.array_equal(one[name].view(np.uint32), eight[name].view(np.uint32)), name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "8"]


# -- inspect -----------------------------------------------------------------------------------------------------------


def test_inspect(run: Run, data: Path) -> None:
    text = run("inspect", "demo").out
    assert "qwen3_5, 6 linear + 2 full attention layers" in text
    assert "7,121,056" in text
    assert "a position takes 3.0 KiB as f32, 1.5 KiB as bf16, 864 bytes as q8" in text
    report = json.loads(run("inspect", data / "tiny-moe", "--json").out)
    assert report["usable"] is True
    assert report["experts"] == 8
    assert report["mtp"] == "inside"


def test_inspect_of_other_files(run: Run, tmp_path: Path) -> None:
    assert "sidecar" in run("inspect", demo_sidecar()).out
    (tmp_path / "notes.txt").write_text("hello")
    result = run("inspect", tmp_path / "notes.txt", "--json")
    assert result.code == 2
    assert json.loads(result.out)["problems"]
    assert "notes.txt is no model" in result.err


def test_inspect_tells_all_faults(run: Run, copy: Path) -> None:
    shards = sorted(copy.glob("*.safetensors"))
    for shard in shards:
        content = shard.read_bytes()
        shard.unlink()
        shard.write_bytes(content[:-100])
    result = run("inspect", copy)
    assert result.code == 2
    assert all(shard.name in result.err for shard in shards)


# -- bench -------------------------------------------------------------------------------------------------------------


def test_bench(run: Run, tiny: Path) -> None:
    result = run("bench", tiny, "--repeats", "1", "--json")
    assert result.code == 0
    figures = json.loads(result.out.splitlines()[-1])
    assert list(figures["prefill_tok_s"]) == ["128", "512"]
    assert list(figures["verify_ms"]) == [str(rows) for rows in range(1, 16)]
    for name in ("decode_tok_s", "draft_step_ms", "read_gb_s", "bandwidth_share", "threads"):
        assert figures[name] > 0, name
    assert set(figures["compile_s"]) == {"cold", "warm"}
    assert "verify 15 rows" in run("bench", tiny, "--repeats", "1").out


def test_bench_streaming(run: Run, tiny: Path) -> None:
    figures = json.loads(run("bench", tiny, "--repeats", "1", "--streaming", "--json").out.splitlines()[-1])
    assert figures["raw_read_gb_s"] > 0
    budgets = [entry["budget"] for entry in figures["streaming"]]
    assert budgets == sorted(budgets, reverse=True)
    assert [entry["share"] for entry in figures["streaming"]][:3] == [1.0, 0.75, 0.5]
    everything, *streamed = figures["streaming"]
    assert everything["achieved_gb_s"] == 0
    assert everything["overlap"] is None
    for entry in streamed:
        assert entry["tok_s"] > 0
        assert entry["draft_tok_s"] > 0
        assert entry["achieved_gb_s"] > 0, "something must have been read"
        assert entry["overlap"] > 0
        assert entry["memory_bytes"] <= entry["budget"]


def test_inspect_plans_a_budget(run: Run, tiny: Path) -> None:
    plan = json.loads(run("inspect", tiny, "--plan", "--memory-budget", "6MB", "--json").out)["plan"]
    assert plan["budget"] == 6_000_000
    assert plan["streams"]
    assert [p["draft_tokens"] for p in plan["predictions"]] == list(range(15))
    assert plan["resident_bytes"] + plan["ring_bytes"] + plan["cache_bytes"] <= 6_000_000
    text = run("inspect", tiny, "--plan", "--memory-budget", "6MB").out
    assert "streams from disk" in text
    assert "best" in text
    assert "keeps everything" in run("inspect", tiny, "--plan", "--memory-budget", "everything").out
    assert "keeps everything" in run("inspect", tiny, "--plan", "--memory-budget", "auto").out


def test_inspect_plans_a_smaller_kv_cache(run: Run, tiny: Path) -> None:
    whole, less = (
        json.loads(run("inspect", tiny, "--plan", "--kv-cache", kind, "--json").out)["plan"] for kind in ("f32", "q8")
    )
    assert (whole["kv_cache"], less["kv_cache"]) == ("f32", "q8")
    assert less["session_bytes"] < whole["session_bytes"]
    assert "positions with a KV cache of q8" in run("inspect", tiny, "--plan", "--kv-cache", "q8").out
    assert run("inspect", tiny, "--plan", "--kv-cache", "q4").code == 2


@pytest.mark.parametrize("size", ["2 pounds", "-1GiB", "0", "all"])
def test_inspect_refuses_senseless_budgets(run: Run, tiny: Path, size: str) -> None:
    result = run("inspect", tiny, "--plan", "--memory-budget", size)
    assert result.code == 2
    assert "memory budget" in result.err or "expected one argument" in result.err


def test_inspect_refuses_a_budget_below_the_minimum(run: Run, tiny: Path) -> None:
    result = run("inspect", tiny, "--plan", "--memory-budget", "1kB")
    assert result.code == 2
    assert "needs at least" in result.err


def test_bench_refuses_an_impossible_budget(run: Run, tiny: Path) -> None:
    result = run("bench", tiny, "--repeats", "1", "--streaming", "--budget", "1000")
    assert result.code == 2
    assert "too small" in result.err


# -- trace -------------------------------------------------------------------------------------------------------------

DRAFTS = (
    DraftedToken(5, " cat", "mtp", 0.6, 0.7, "accepted"),
    DraftedToken(6, " dog", "ngram", None, 0.1, "rejected", 7),
)
COMMITTED = (
    CommittedToken(5, " cat", "accepted", "mtp", 0.7),
    CommittedToken(7, ' "cow"\n', "correction", "model", 0.8),
)
STATS = Stats(
    rounds=1, drafted=2, tested=2, accepted=1, emitted=2, tokens_per_round=2.0, per_position=(PositionCount(1, 1),)
)


def save(path: Path, committed: tuple[CommittedToken, ...] = COMMITTED) -> Path:
    with TraceWriter(path, TraceHeader("0.1.0", "2026-11-30", "demo", prompt="Hi", prompt_tokens=(1,))) as writer:
        writer.write(Round(0, 1, "answer", DRAFTS, committed, 0.001, 0.002, draft_length=2))
        tokens = tuple(token.token for token in committed)
        writer.write(Finished(tokens, "".join(token.text for token in committed), STATS))
    return path


def test_trace_show(run: Run, tmp_path: Path) -> None:
    out = run("trace", "show", save(tmp_path / "a")).out
    assert "prompt (1 tokens): Hi" in out
    assert "+' cat' -' dog' → ' cat \"cow\"\\n'" in out
    assert "1 of 2 tested drafts accepted, 2.00 tokens per round" in out


def test_trace_show_of_a_cut_file(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "a")
    path.write_text(path.read_text()[:-9])
    assert "the run was cut off" in run("trace", "show", path).out


def test_trace_compare(run: Run, tmp_path: Path) -> None:
    first, same = save(tmp_path / "a"), save(tmp_path / "b")
    other = save(tmp_path / "c", COMMITTED[:1])
    assert run("trace", "compare", first, same).code == 0
    assert "replies: the same 2 tokens" in run("trace", "compare", first, same).out
    result = run("trace", "compare", first, other)
    assert result.code == 1
    assert "the same up to token 1 of 2 and 1" in result.out
    figures = json.loads(run("trace", "compare", first, other, "--json").out)
    assert figures["same_reply"] is False
    assert figures["common"] == 1


def test_trace_export_csv(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "a")
    rows = list(csv.DictReader(io.StringIO(run("trace", "export", path).out)))
    assert [(row["kind"], row["token"], row["verdict"], row["source"], row["text"]) for row in rows] == [
        ("draft", "5", "accepted", "mtp", " cat"),
        ("draft", "6", "rejected", "ngram", " dog"),
        ("committed", "5", "accepted", "mtp", " cat"),
        ("committed", "7", "correction", "model", ' "cow"\n'),
    ]
    assert rows[1]["replacement"] == "7"
    assert rows[1]["draft_probability"] == ""
    (only,) = csv.DictReader(io.StringIO(run("trace", "export", path, "--rows", "rounds").out))
    assert (only["drafted"], only["accepted"], only["committed"], only["draft_length"]) == ("2", "1", "2", "2")


def test_trace_export_json(run: Run, tmp_path: Path) -> None:
    assert run("trace", "export", save(tmp_path / "a"), "--format", "json", "--out", tmp_path / "out.json").out == ""
    whole = json.loads((tmp_path / "out.json").read_text())
    assert whole["header"]["model"] == "demo"
    assert [record["event"] for record in whole["records"]] == ["round", "finished"]


# -- doctor ------------------------------------------------------------------------------------------------------------


def test_doctor(run: Run) -> None:
    report = json.loads(run("doctor", "--json").out)
    names = [finding["name"] for finding in report["findings"]]
    assert {"Python", "numba", "processor", "threads", "threading layer", "kernel cache", "memory", "display"} <= set(
        names
    )
    assert run("doctor").out.count("\n") >= len(names)


def test_doctor_says_how_to_mend(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = (system_libraries.SystemLibrary("libxcb-cursor.so.0", "libxcb-cursor0"),)
    monkeypatch.setattr(
        system_libraries, "missing", lambda libraries: lacking if libraries != system_libraries.NUMBERS else ()
    )
    result = run("doctor")
    assert result.code == 2
    assert "libxcb-cursor.so.0 not found" in result.out
    assert "libxcb-cursor0" in result.out
    assert result.err == "Missing: Qt's libraries.\n"


def test_doctor_knows_the_bad_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "6.12.0")
    monkeypatch.setattr("sys.version_info", (3, 11, 7))
    (finding,) = [f for f in doctor.diagnose() if f.name == "PySide6-Essentials"]
    assert finding.state == "missing"
    monkeypatch.setattr("sys.version_info", (3, 12, 1))
    (finding,) = [f for f in doctor.diagnose() if f.name == "PySide6-Essentials"]
    assert finding.state == "ok"


def test_system_libraries() -> None:
    real = system_libraries.SystemLibrary("libc.so.6", "libc6")
    invented = system_libraries.SystemLibrary("libdoes-not-exist.so.9", "libnone9")
    assert system_libraries.missing((real, invented, invented)) == (invented, invented)
    assert system_libraries.packages_for((invented, invented)) == ("libnone9",)


# -- the terminal ------------------------------------------------------------------------------------------------------


def test_styles_end_before_line_breaks() -> None:
    record = Round(0, 1, "answer", DRAFTS, COMMITTED, 0.0, 0.0)
    assert styled_round(record, colour=True, show_refused=True) == (
        '\x1b[4m cat\x1b[0m\x1b[2;9m dog\x1b[0m\x1b[1m "cow"\x1b[0m\n'
    )
    assert styled_round(record, colour=False, show_refused=False) == ' cat "cow"\n'


def test_slow_kernels_are_said_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for quiet, step, lines in ((False, PATIENCE_S / 2, 1), (True, PATIENCE_S / 2, 0), (False, 0.0, 0)):
        console = Console(quiet)
        now[0] += 2 * PATIENCE_S  # for reading a slow disk, say
        for done in range(4):
            now[0] += step
            console.progress(
                LoadProgress("kernels", f"preparing kernels for this CPU: {done} of 4", done, 4, "kernels")
            )
        assert capsys.readouterr().err.count("\n") == lines


def test_colour_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wants_colour("always")
    assert not wants_colour("never")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert wants_colour("auto")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour("auto")
