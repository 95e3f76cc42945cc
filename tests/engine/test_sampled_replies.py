"""O-29: whole sampled replies of a real model, with drafts, have exactly the distribution of plain sampling.

The first tokens of many replies are counted and compared with their exact probabilities, which are worked out token by
token from the model's own logits. A few settings run by default, all of them with `--run-slow`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import engine
from engine.decoding.decoder import Decoder
from engine.decoding.distribution import Distribution
from engine.decoding.drafters.combined import CombinedDrafter
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.drafters.ngram import NgramDrafter
from engine.decoding.protocols import Drafter
from engine.decoding.sampler import Sampler
from engine.options import DraftOptions, GenerateOptions, SamplingOptions
from engine.text.incremental import Detokeniser
from tests.engine.decoding.chi_squared import deviation

PROMPT = [5, 77, 310, 8, 5, 77, 310, 8, 5, 77]
DEPTH = 3
"""Tokens of a reply that are looked at."""
LIKELY = 4
"""Tokens told apart at each place; the others are one cell."""
OTHER = -1
SETTINGS = {
    "temperature": SamplingOptions(1.0),
    "cold": SamplingOptions(0.4),
    "top-k": SamplingOptions(1.0, top_k=5),
    "top-p": SamplingOptions(0.7, top_p=0.6),
    "min-p": SamplingOptions(0.6, min_p=0.2),
    "repetition": SamplingOptions(0.5, top_k=12, repetition_penalty=1.4),
    "presence": SamplingOptions(0.5, top_k=12, presence_penalty=1.5),
    "frequency": SamplingOptions(0.5, top_k=12, frequency_penalty=0.8),
    "bias": SamplingOptions(1.0, logit_bias={5: 8.0, 8: 8.0, 77: 8.0, 310: 8.0}),
    "everything": SamplingOptions(
        0.8, 40, 0.9, 0.02, repetition_penalty=1.1, presence_penalty=0.4, frequency_penalty=0.2, logit_bias={5: 1.0}
    ),
}
DRAFTERS = ["mtp", "ngram", "mtp+ngram"]
QUICK = [("top-k", "mtp"), ("everything", "mtp+ngram"), ("bias", "ngram")]
CASES = [
    pytest.param(name, drafter, marks=() if (name, drafter) in QUICK else pytest.mark.slow)
    for name in SETTINGS
    for drafter in DRAFTERS
]

Cell = tuple[int, ...]


class Bench:
    """A model that has read the prompt, with a drafter, ready to reply to it again and again."""

    def __init__(self, model: engine.Model, drafter: str) -> None:
        self._model, self.target = model, model.new_target()
        mtp, ngram = MtpDrafter(model.new_mtp()), NgramDrafter()
        kinds: dict[str, Drafter] = {"mtp": mtp, "ngram": ngram, "mtp+ngram": CombinedDrafter(mtp, ngram)}
        self._drafter = kinds[drafter]
        hidden = self.target.forward(PROMPT)
        self._drafter.extend(PROMPT, hidden)
        self._last, self._start = hidden[-1], self.target.snapshot()
        self.logits = self.target.logits(hidden[-1:])[0]
        self.accepted = self.refused = 0

    def reply(self, sampling: SamplingOptions, seed: int) -> Cell:
        """The first tokens of a reply."""
        self.target.restore(self._start)
        self._drafter.truncate(len(PROMPT), self._last)
        options = GenerateOptions(
            replace(sampling, seed=seed), DraftOptions("mtp", 3), max_new_tokens=8, ignore_eos=True
        )
        sampler = Sampler(options.sampling, PROMPT)
        detokeniser = Detokeniser(self._model.tokenizer)
        decoder = Decoder(self.target, self._drafter, sampler, options, frozenset(), detokeniser)
        for _ in decoder.run(self.logits):
            if len(decoder.tokens) >= DEPTH:
                break
        self.accepted += decoder.stats.accepted
        self.refused += decoder.stats.tested - decoder.stats.accepted
        return decoder.tokens[:DEPTH]

    def exact(self, sampling: SamplingOptions) -> dict[Cell, tuple[float, list[int]]]:
        """By the tokens that lead there: the probability of getting there, and the likely tokens that follow."""
        found: dict[Cell, tuple[float, list[int]]] = {}
        waiting: list[tuple[Cell, float]] = [((), 1.0)]
        while waiting:
            path, chance = waiting.pop()
            row = self._after(path, sampling)
            likely = [token for token, _ in row.top(LIKELY)]
            found[path] = (chance, likely)
            steps = [((*path, token), chance * row.probability(token)) for token in likely]
            if len(path) + 1 < DEPTH:
                waiting += steps
            else:
                found |= {step: (share, []) for step, share in steps}
        return found

    def _after(self, path: Cell, sampling: SamplingOptions) -> Distribution:
        """What plain sampling draws from after the prompt and `path`."""
        self.target.restore(self._start)
        logits = self.target.logits(self.target.forward(path)[-1:])[0] if path else self.logits
        sampler = Sampler(sampling, PROMPT)
        sampler.commit(path)
        return sampler.row(logits).distribution


def cells(exact: dict[Cell, tuple[float, list[int]]]) -> Iterator[tuple[Cell, float]]:
    """Every outcome that is told apart, with its probability: whole paths, and paths that end in another token."""
    for path, (chance, likely) in exact.items():
        if len(path) == DEPTH:
            yield path, chance
        else:
            yield (*path, OTHER), max(0.0, chance - sum(exact[(*path, token)][0] for token in likely))


def cell_of(tokens: Cell, exact: dict[Cell, tuple[float, list[int]]]) -> Cell:
    for count in range(1, DEPTH + 1):
        if tokens[:count] not in exact:
            return (*tokens[: count - 1], OTHER)
    return tokens


@pytest.mark.parametrize(("name", "drafter"), CASES)
def test_o29_replies_have_the_distribution_of_plain_sampling(
    tiny_dense: engine.Model, pytestconfig: pytest.Config, name: str, drafter: str
) -> None:
    bench, sampling = Bench(tiny_dense, drafter), SETTINGS[name]
    exact = bench.exact(sampling)
    replies = 3_000 if pytestconfig.getoption("--run-slow") else 400
    counts = Counter(cell_of(bench.reply(sampling, seed), exact) for seed in range(replies))
    outcomes = [(cell, chance if chance > 1e-9 else 0.0) for cell, chance in cells(exact)]
    assert sum(chance for _, chance in outcomes) == pytest.approx(1, abs=1e-6)
    observed = np.array([counts[cell] for cell, _ in outcomes])
    assert observed.sum() == replies
    assert deviation(observed, np.array([chance for _, chance in outcomes])) < 4
    if "mtp" in drafter or name == "bias":  # a bias makes the model copy its prompt, else lookups find little
        assert bench.refused > 20
        assert bench.accepted > 20


@pytest.mark.slow
def test_the_count_notices_a_wrong_rule(tiny_dense: engine.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacements drawn from the model's distribution instead of the residual: the classic fault."""
    monkeypatch.setattr(Distribution, "residual", lambda self, draft, token: self)
    bench, sampling = Bench(tiny_dense, "mtp"), SETTINGS["top-k"]
    exact = bench.exact(sampling)
    counts = Counter(cell_of(bench.reply(sampling, seed), exact) for seed in range(1_000))
    outcomes = list(cells(exact))
    assert deviation(np.array([counts[cell] for cell, _ in outcomes]), np.array([c for _, c in outcomes])) > 6
