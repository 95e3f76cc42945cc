"""GGUF files against an independent implementation that computed on the dequantised weights with float activations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine.model.mtp import MtpSession
from tests.engine.model.conftest import DATA, Loaded, load

FILES = [*(("tiny-dense", q) for q in ("Q8_0", "Q4_K_M", "IQ4_XS", "Q2_K")), ("tiny-moe", "Q4_K_M")]
FLOAT = 2e-3
"""Float activations: the reference's tolerance on logits."""
INT8 = {"tiny-dense": 0.06, "tiny-moe": 0.11}
"""Int8 activations: root mean square of the difference, as a share of the logits' spread. Measured: 0.028 (Q8_0) to
0.052 (Q2_K) for the dense files, 0.102 for the mixture of experts. These models are far more sensitive to rounding than
real ones."""


@pytest.fixture(scope="module", params=FILES, ids="-".join)
def gold(request: pytest.FixtureRequest) -> tuple[str, str, dict[str, np.ndarray]]:
    name, quant = request.param
    with np.load(DATA / name / f"goldens-gguf-{quant}.npz") as archive:
        return name, quant, dict(archive)


def open_gguf(name: str, quant: str, float_activations: bool) -> Loaded:
    return load(DATA / name / "gguf" / f"{name}-{quant}.gguf", float_activations=float_activations)


@pytest.fixture(scope="module")
def exact(gold: tuple[str, str, dict[str, np.ndarray]]) -> Iterator[Loaded]:
    model = open_gguf(gold[0], gold[1], float_activations=True)
    yield model
    model.weights.close()


@pytest.fixture(scope="module")
def rounded(gold: tuple[str, str, dict[str, np.ndarray]]) -> Iterator[Loaded]:
    model = open_gguf(gold[0], gold[1], float_activations=False)
    yield model
    model.weights.close()


def prompt_ids(name: str, prompt: str) -> list[int]:
    with np.load(DATA / name / f"goldens-{prompt}.npz") as archive:
        return archive["ids"].tolist()


@pytest.mark.parametrize("prompt", ["short", "long"])
def test_float_activations_match(exact: Loaded, gold: tuple[str, str, dict[str, np.ndarray]], prompt: str) -> None:
    name, _, arrays = gold
    ids = prompt_ids(name, prompt)
    session = exact.session()
    hidden = session.forward(ids)
    logits = session.logits(hidden)
    expected = arrays[f"{prompt}.logits"]
    np.testing.assert_allclose(logits[-len(expected) :], expected, atol=FLOAT)
    known = arrays[f"{prompt}.hidden_normed"]
    np.testing.assert_allclose(hidden[-len(known) :], known, atol=FLOAT)
    margins, greedy = arrays[f"{prompt}.greedy_margin"], arrays[f"{prompt}.greedy"].tolist()
    decided = next((i for i, margin in enumerate(margins) if margin < 2 * FLOAT), len(greedy))
    said, row = [], logits[-1:]
    while len(said) < decided:
        said.append(int(row.argmax()))
        row = session.logits(session.forward(said[-1:]))
    assert said == greedy[:decided]


@pytest.mark.parametrize("prompt", ["short", "long"])
def test_mtp_with_float_activations_matches(
    exact: Loaded, gold: tuple[str, str, dict[str, np.ndarray]], prompt: str
) -> None:
    name, _, arrays = gold
    ids = prompt_ids(name, prompt)
    session = exact.session()
    hidden = session.forward(ids)
    following = [*ids[1:], int(session.logits(hidden[-1:])[0].argmax())]
    mtp = MtpSession(exact.mtp, exact.checkpoint.config.vocabulary, 4096)
    logits = mtp.logits(mtp.forward(hidden, following))
    np.testing.assert_allclose(logits[-4:], arrays[f"{prompt}.mtp_logits"], atol=FLOAT)


def test_int8_activations_are_near(rounded: Loaded, gold: tuple[str, str, dict[str, np.ndarray]]) -> None:
    name, _, arrays = gold
    session = rounded.session()
    logits = session.logits(session.forward(prompt_ids(name, "long")))
    expected = arrays["long.logits"]
    error = np.sqrt(np.mean((logits[-len(expected) :] - expected) ** 2)) / expected.std()
    assert error < INT8[name]


def test_int8_rows_do_not_depend_on_the_pass(rounded: Loaded, gold: tuple[str, str, dict[str, np.ndarray]]) -> None:
    ids = prompt_ids(gold[0], "long")[:30]
    one, many = rounded.session(), rounded.session()
    singles = np.concatenate([one.forward([token]) for token in ids])
    passes = np.concatenate([many.forward(ids[:15]), many.forward(ids[15:19]), many.forward(ids[19:])])
    np.testing.assert_array_equal(singles, passes)
    rows = [one.logits(singles[i : i + 1]) for i in range(15)]
    np.testing.assert_array_equal(one.logits(singles[:15]), np.concatenate(rows))
