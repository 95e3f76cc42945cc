"""`generate`: the demo answers, drafts are taken, scripts get records, a trace is kept."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.decoding.selfcheck import VerifiedRow
from engine.decoding.trace import read_trace
from tests.engine.cli.conftest import Result

Run = Callable[..., Result]
FRANCE = ("generate", "demo", "--prompt", "What is the capital of France?")
ANSWER = "The capital of France is Paris."


def test_text(run: Run) -> None:
    result = run(*FRANCE)
    assert result.code == 0
    assert result.out == ANSWER + "\n"
    assert "tested drafts accepted" in result.err
    assert result.err.endswith("ended by end.\n")


def test_records(run: Run) -> None:
    result = run(*FRANCE, "--json")
    assert result.code == 0
    assert result.err == ""
    events = [record["event"] for record in result.records]
    assert events[-1] == "finished"
    assert [event for i, event in enumerate(events) if event not in events[:i]] == [
        "load",
        "prefill",
        "round",
        "finished",
    ]
    assert ANSWER in result.records[-1]["text"]
    stats = result.records[-1]["stats"]
    assert {
        "rounds", "drafted", "accepted", "emitted", "per_position", "draft_s", "verify_s", "disk_wait_s", "bytes_read",
        "tokens_per_s", "stop_reason",
    } <= set(stats)  # fmt: skip
    assert stats["tokens_per_round"] > 1.5
    committed = [
        token["token"] for record in result.records if record["event"] == "round" for token in record["committed"]
    ]
    assert committed == result.records[-1]["tokens"]


@pytest.mark.parametrize("draft", ["mtp", "ngram", "mtp+ngram"])
def test_drafting_does_not_change_the_tokens(run: Run, draft: str) -> None:
    plain = run(*FRANCE, "--json", "--draft", "none").records[-1]
    drafted = run(*FRANCE, "--json", "--draft", draft).records[-1]
    assert plain["stats"]["drafted"] == 0
    assert drafted["tokens"] == plain["tokens"]


def test_sidecar(run: Run) -> None:
    result = run(*FRANCE, "--sidecar", "demo", "--json")
    assert ANSWER in result.records[-1]["text"]
    assert result.records[-1]["stats"]["accepted"] > 0


def test_check(run: Run) -> None:
    result = run(*FRANCE, "--check")
    assert result.code == 0
    assert "are those of plain decoding" in result.err


def test_check_of_a_sampled_reply(run: Run) -> None:
    result = run(*FRANCE, "--check", "--temperature", "1.2", "--json")
    assert result.code == 0
    assert result.records[-1]["event"] == "check"
    assert result.records[-1]["identical_rows"] == result.records[-1]["rows"] > 0


def test_check_notices_a_difference(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import engine.chat

    real = engine.chat.check_reply

    def with_one_wrong_row(target: object, logits: object, rows: list[VerifiedRow], *rest: object) -> object:
        return real(target, logits, [*rows[:-1], replace(rows[-1], digest=b"")], *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.chat, "check_reply", with_one_wrong_row)
    result = run(*FRANCE, "--check")
    assert result.code == 1
    assert "1 of 8 rows differ: at position 29" in result.err


def test_tokens_raw_and_messages_agree(run: Run, tmp_path: Path) -> None:
    whole = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    raw = run("generate", "demo", "--raw", "--prompt", whole, "--json").records[-1]
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps({"messages": [{"role": "user", "content": "What is the capital of France?"}]}))
    messages = run("generate", "demo", "--messages", chat, "--json").records[-1]
    trace = tmp_path / "run.jsonl"
    plain = run(*FRANCE, "--json", "--trace", trace).records[-1]
    ids = ",".join(map(str, read_trace(trace).header.prompt_tokens))
    tokens = run("generate", "demo", "--tokens", ids, "--json").records[-1]
    assert raw["tokens"] == messages["tokens"] == plain["tokens"] == tokens["tokens"]


def test_prompt_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("What is the capital of France?")
    with (tmp_path / "in").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert run("generate", "demo", "--prompt", "-").out == ANSWER + "\n"


def test_limits(run: Run) -> None:
    short = run(*FRANCE, "--max-new", "3", "--json").records[-1]
    assert len(short["tokens"]) == 3
    assert short["stats"]["stop_reason"] == "length"
    stopped = run(*FRANCE, "--stop", " France", "--json").records[-1]
    assert stopped["text"] == "The capital of"
    assert stopped["stats"]["stop_reason"] == "stop-string"


def test_bias_and_system(run: Run) -> None:
    first = run(*FRANCE, "--json").records[-1]["tokens"][0]
    biased = run(*FRANCE, "--json", "--logit-bias", f"{first}=-100").records[-1]["tokens"][0]
    assert biased != first
    with_system = run(*FRANCE, "--system", "Be brief.", "--json").records
    prefill = [record for record in with_system if record["event"] == "prefill"]
    assert prefill[-1]["total"] > 22


def test_same_seed_same_sample(run: Run) -> None:
    sampled = (*FRANCE, "--temperature", "20", "--max-new", "16", "--json")
    one, again, other = (run(*sampled, "--seed", seed).records[-1]["tokens"] for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_trace(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    result = run(*FRANCE, "--json", "--trace", path, "--seed", "7")
    trace = read_trace(path)
    assert trace.header.seed == 7
    assert trace.header.prompt == "What is the capital of France?"
    assert trace.header.files[0].name == "model.safetensors"
    assert trace.header.files[0].digest.startswith("sha256:")
    assert trace.header.settings["draft"]["drafter"] == "mtp"
    assert trace.ending is not None
    assert list(trace.ending.tokens) == result.records[-1]["tokens"]
    assert str(Path.home()) not in path.read_text()


def test_colours(run: Run) -> None:
    coloured = run(*FRANCE, "--colour", "always").out
    assert "\x1b[4m" in coloured
    assert run(*FRANCE).out == ANSWER + "\n"


# -- as a process ------------------------------------------------------------------------------------------------------

LONG = [sys.executable, "-m", "engine", *FRANCE, "--max-new", "3500", "--ignore-eos", "--json"]


def start() -> subprocess.Popen[str]:
    return subprocess.Popen(LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy())


def read_until_round(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if '"event": "round"' in line:
            return
    raise AssertionError("no round came")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT to one process is a POSIX matter")
def test_interrupt_keeps_what_was_said() -> None:
    with start() as process:
        read_until_round(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    last = json.loads(out.splitlines()[-1])
    assert process.returncode == 130
    assert last["event"] == "finished"
    assert last["stats"]["stop_reason"] == "cancelled"
    assert last["tokens"]
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break differently there")
def test_reader_that_goes_away() -> None:
    with start() as process:
        read_until_round(process)
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only there can every write fail")
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_output_that_cannot_be_written(flags: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "engine", *FRANCE, *flags]
        process = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert process.returncode == 2
    assert process.stderr.splitlines()[-1] == "The output cannot be written: No space left on device."
    assert "Traceback" not in process.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell's redirection")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_streams_that_are_closed(closed: str) -> None:
    command = " ".join(shlex.quote(word) for word in (sys.executable, "-m", "engine", *FRANCE))
    process = subprocess.run(f"{command} {closed}", check=False, shell=True, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr


def test_messages_with_a_byte_order_mark(run: Run, tmp_path: Path) -> None:
    """As some editors on Windows write every text file."""
    path = tmp_path / "messages.json"
    path.write_text('[{"role": "user", "content": "What is the capital of France?"}]', encoding="utf-8-sig")
    assert run("generate", "demo", "--messages", path).out == ANSWER + "\n"


def test_picture(run: Run, data: Path) -> None:
    """The weights are random: what counts is that the picture is read and changes what is said."""
    ask = ("generate", data / "tiny-vl", "--prompt", "What is this?", "--max-new", "8", "--json")
    plain = run(*ask)
    seen = run(*ask, "--image", data / "tiny-vl" / "images" / "a.png")
    assert plain.code == seen.code == 0
    prompt_tokens = [result.records[-1]["stats"]["prompt_tokens"] for result in (plain, seen)]
    assert prompt_tokens[1] > prompt_tokens[0] + 10


def test_a_reply_of_one_token_is_summed_up_without_rounds(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "run.trace"
    result = run("generate", "demo", "--prompt", "Hi", "--max-new", "1", "--trace", file)
    assert "1 token; ended by length." in result.err
    assert "1 token, 0 rounds; ended by length." in run("trace", "show", file).out
