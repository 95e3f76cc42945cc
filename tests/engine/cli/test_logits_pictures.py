"""`logits --image`: pictures among given tokens and in a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.engine.cli.conftest import Run

LOGITS = 2e-3
PROMPTS = ("a", "b", "ab")


@pytest.fixture
def seeing(data: Path) -> Path:
    return data / "tiny-vl"


@pytest.fixture
def gold(seeing: Path) -> dict[str, np.ndarray]:
    with np.load(seeing / "goldens-vision.npz") as archive:
        return dict(archive)


def images(seeing: Path, names: str) -> list[object]:
    return [word for name in names for word in ("--image", seeing / "images" / f"{name}.png")]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_pictures_fill_the_runs_of_placeholders_in_order(
    run: Run, seeing: Path, gold: dict[str, np.ndarray], tmp_path: Path, prompt: str
) -> None:
    ids = ",".join(map(str, gold[f"{prompt}.ids"]))
    out = tmp_path / "out.npz"
    for rows in ((), ("--rows-per-pass", 7)):
        result = run("logits", seeing, "--tokens", ids, *images(seeing, prompt), "--mtp", "--out", out, *rows)
        assert result.code == 0, result.err
        arrays = np.load(out)
        np.testing.assert_allclose(arrays["logits"][-8:], gold[f"{prompt}.logits"], atol=LOGITS)
        np.testing.assert_array_equal(arrays["logits"].argmax(1), gold[f"{prompt}.argmax_all"])
        np.testing.assert_allclose(arrays["mtp_logits"][-8:], gold[f"{prompt}.mtp_logits"], atol=LOGITS)


def test_the_template_places_the_pictures_of_a_conversation(run: Run, seeing: Path, tmp_path: Path) -> None:
    file, out, same = tmp_path / "m.json", tmp_path / "out.npz", tmp_path / "same.npz"
    file.write_text(json.dumps([{"role": "user", "content": "header"}]))
    assert run("logits", seeing, "--messages", file, *images(seeing, "ab"), "--out", out).code == 0
    trace = tmp_path / "run.trace"
    asked = ("generate", seeing, "--messages", file, *images(seeing, "ab"), "--max-new", 1, "--trace", trace)
    assert run(*asked).code == 0
    ids = json.loads(trace.read_text().splitlines()[0])["prompt_tokens"]
    tokens = ",".join(map(str, ids))
    assert run("logits", seeing, "--tokens", tokens, *images(seeing, "ab"), "--out", same).code == 0
    np.testing.assert_array_equal(np.load(out)["logits"], np.load(same)["logits"])


def test_pictures_that_do_not_fit_are_told(
    refused: Callable[..., str], seeing: Path, gold: dict[str, np.ndarray], tmp_path: Path, data: Path
) -> None:
    out, ids = tmp_path / "out.npz", ",".join(map(str, gold["a.ids"]))
    message = refused("logits", seeing, "--tokens", ids, *images(seeing, "ab"), "--out", out)
    assert "1 runs of the placeholder" in message
    assert "takes" in refused("logits", seeing, "--tokens", ids, *images(seeing, "b"), "--out", out)
    blind = refused("logits", data / "tiny-dense", "--tokens", "1,2", *images(seeing, "a"), "--out", out)
    assert "cannot see pictures" in blind
    missing = refused("logits", seeing, "--tokens", ids, "--image", tmp_path / "no.png", "--out", out)
    assert "no.png cannot be read" in missing
    assert "not allowed with" in refused("logits", seeing, "--tokens", "1", "--messages", "x", "--out", out)
