"""`quantize` and `make-sidecar`, and `--precision`, as a person types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.engine.cli.conftest import Result

Run = Callable[..., Result]


def test_quantize_writes_a_model_that_runs(run: Run, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.gguf"
    result = run("quantize", tiny, out, "--type", "q8_0")
    assert result.code == 0
    assert f"{out}: 4.8 MiB, from 8.7 MiB" in result.out
    assert "Q8_0 4.4 MiB" in result.out
    replies = [
        run("generate", path, "--tokens", "1,2,3,4", "--max-new", "6", "--ignore-eos").out for path in (out, out)
    ]
    assert replies[0] == replies[1] != ""
    assert "already" in run("quantize", tiny, out, "--type", "q4_0").err
    report = json.loads(run("quantise", out, tmp_path / "floats.gguf", "--type", "F32", "--json").out)
    assert report["formats"].keys() == {"F32"}
    assert report["nbytes"] == (tmp_path / "floats.gguf").stat().st_size
    again = run("quantize", out, out, "--type", "F32", "--overwrite")
    assert (again.code, again.out) == (2, "")
    assert "is the model that is read" in again.err


def test_bad_input_is_one_line(refused: Callable[..., str], tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    assert "choose one of F32" in refused("quantize", tiny, out, "--type", "Q9")
    assert "There is no file" in refused("quantize", tmp_path / "absent", out, "--type", "Q8_0")
    assert "give texts or traces" in refused("make-sidecar", tiny, tmp_path / "s.gguf")
    assert "cannot be read" in refused("make-sidecar", tiny, tmp_path / "s.gguf", "--text", tmp_path / "absent")
    assert "is not possible here" in refused("make-sidecar", tiny, tmp_path / "s.gguf", "--text", tiny / "config.json")
    assert "invalid choice: 'q5'" in refused("generate", tiny, "--prompt", "a", "--precision", "q5")
    assert list(tmp_path.iterdir()) == []


def test_make_sidecar_reports_coverage(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Once there was a quiet girl called Victor, who lived near the river.\n" * 600)
    out = tmp_path / "s.safetensors"
    result = run("make-sidecar", "demo", out, "--vocab", "900", "--text", text)
    assert result.code == 0
    assert "head of 900 of 4,096 tokens" in result.out
    assert "100.0 % of " in result.out
    made = json.loads(run("make-sidecar", "demo", out, "--vocab", "900", "--text", text, "--json", "--overwrite").out)
    assert (made["rows"], made["coverage"]) == (900, 1.0)
    generated = run("generate", "demo", "--sidecar", out, "--prompt", "Tell me a short story", "--max-new", "20")
    assert generated.code == 0
    assert generated.out == run("generate", "demo", "--prompt", "Tell me a short story", "--max-new", "20").out


def test_precision(run: Run) -> None:
    result = run(
        "generate", "demo", "--precision", "q8", "--prompt", "What is the capital of France?", "--max-new", "12"
    )
    assert result.code == 0
    assert "Paris" in result.out
