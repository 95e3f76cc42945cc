"""O-30, L-09: greedy tokens and logits with drafts are bit for bit those without, in every combination that is drawn.

Replies of every checkpoint at hand (safetensors and GGUF, dense and with experts, with a sidecar, streamed under a
budget, with every type of KV cache) are made with drafters, draft lengths and policies drawn at random, half of them
with drafts that are corrupted on purpose, and compared with plain decoding. The default takes about 3,000 tokens,
`--run-slow` 20,000, and the variable DRAFTSCOPE_EXACT_TOKENS any number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import engine
from engine.decoding.decoder import Decoder
from engine.decoding.drafters.combined import CombinedDrafter
from engine.decoding.drafters.mtp import MtpDrafter
from engine.decoding.drafters.ngram import NgramDrafter
from engine.decoding.protocols import Draft, Drafter
from engine.decoding.sampler import Sampler
from engine.options import DraftOptions, GenerateOptions, KvCache, LengthPolicyName
from engine.text.incremental import Detokeniser

DATA = Path(__file__).parents[1] / "data"
REPLY = 40
"""Tokens of one reply."""
CHUNK = 32
"""Prompt tokens read in one pass, in every run alike: long passes of quantised weights may round differently."""


@dataclass(frozen=True)
class Source:
    path: str
    sidecar: bool = False
    budget: int | None = None
    kv_cache: KvCache = "f32"

    def replies(self, tokens: int) -> int:
        """How many replies are this one's share of `tokens`: every pass of a streamed model waits for the disk."""
        fair = -(-tokens // (len(SOURCES) * REPLY))
        return fair if self.budget is None else -(-fair // 4)


SOURCES = {
    "demo": Source("demo"),
    "demo-sidecar": Source("demo", sidecar=True),
    "demo-streamed": Source("demo", budget=9 << 20),
    "demo-bf16": Source("demo", kv_cache="bf16"),
    "demo-q8": Source("demo", kv_cache="q8"),
    "tiny-dense": Source("tiny-dense"),
    "tiny-moe": Source("tiny-moe"),
    "tiny-moe-q8": Source("tiny-moe", kv_cache="q8"),
    "tiny-moe-streamed": Source("tiny-moe", budget=3_500_000),
    "dense-Q8_0": Source("tiny-dense/gguf/tiny-dense-Q8_0.gguf"),
    "dense-Q4_K_M": Source("tiny-dense/gguf/tiny-dense-Q4_K_M.gguf"),
    "dense-Q2_K": Source("tiny-dense/gguf/tiny-dense-Q2_K.gguf"),
    "dense-IQ4_XS": Source("tiny-dense/gguf/tiny-dense-IQ4_XS.gguf"),
    "moe-Q4_K_M": Source("tiny-moe/gguf/tiny-moe-Q4_K_M.gguf"),
}


def tokens_wanted(config: pytest.Config) -> int:
    default = 24_000 if config.getoption("--run-slow") else 4_000
    # Streamed models do less than their share.
    return int(os.environ.get("DRAFTSCOPE_EXACT_TOKENS", default))


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Source:
    return SOURCES[request.param]


@pytest.fixture
def model(source: Source) -> Iterator[engine.Model]:
    model = engine.load_model(
        source.path if source.path == "demo" else DATA / source.path,
        sidecar=engine.demo_sidecar_path() if source.sidecar else None,
        options=engine.LoadOptions(threads=1, memory_budget=source.budget, kv_cache=source.kv_cache),
    )
    yield model
    model.close()


class Corrupted:
    """A drafter some of whose tokens are replaced by others, so that refusals come at every place."""

    def __init__(self, inner: Drafter, share: float, vocabulary: int, seed: int) -> None:
        self._inner, self._share, self._vocabulary = inner, share, vocabulary
        self._random = np.random.default_rng(seed)
        self.extend, self.observe, self.truncate = inner.extend, inner.observe, inner.truncate

    @property
    def draft_step_bytes(self) -> int:
        return self._inner.draft_step_bytes

    def propose(self, next_token: int, limit: int, sampler: Sampler, cancel: engine.CancelToken | None = None) -> Draft:
        draft = self._inner.propose(next_token, limit, sampler, cancel)
        wrong = self._random.random(len(draft.tokens)) < self._share
        others = self._random.integers(0, self._vocabulary, len(draft.tokens))
        tokens = [int(o) if bad else t for t, o, bad in zip(draft.tokens, others, wrong, strict=True)]
        return replace(draft, tokens=tuple(tokens))


class UnsteadyClock:
    """Time that jumps, the same way every time: the cost-aware policy tries one length after the other."""

    def __init__(self, seed: int) -> None:
        self._random, self._now = np.random.default_rng(seed), 0.0

    def __call__(self) -> float:
        self._now += float(self._random.exponential(0.01))
        return self._now


@dataclass(frozen=True)
class Case:
    drafter: str
    tokens: int
    policy: LengthPolicyName
    corrupted: float
    seed: int


def draw_case(random: np.random.Generator, seed: int) -> Case:
    drafters = ("mtp", "ngram", "mtp+ngram")
    return Case(
        drafters[random.integers(3)],
        int(random.integers(0, engine.MAX_DRAFT_TOKENS + 1)),
        get_args(LengthPolicyName)[random.integers(3)],
        float(random.choice([0.0, 0.0, 0.15, 0.4])),
        seed,
    )


def drafter_of(model: engine.Model, case: Case) -> Drafter:
    mtp, ngram = MtpDrafter(model.new_mtp()), NgramDrafter()
    drafter: Drafter = {"mtp": mtp, "ngram": ngram, "mtp+ngram": CombinedDrafter(mtp, ngram)}[case.drafter]
    return drafter if not case.corrupted else Corrupted(drafter, case.corrupted, model.info.vocabulary, case.seed)


def reply(model: engine.Model, prompt: Sequence[int], case: Case | None) -> Decoder:
    """A finished reply; `case` None is plain decoding."""
    draft = DraftOptions("none") if case is None else DraftOptions("mtp", case.tokens, case.policy)
    options = GenerateOptions(draft=draft, max_new_tokens=REPLY, ignore_eos=True)
    target, drafter = model.new_target(), None if case is None else drafter_of(model, case)
    for start in range(0, len(prompt), CHUNK):
        part = prompt[start : start + CHUNK]
        hidden = target.forward(part)
        if drafter is not None:
            drafter.extend(part, hidden)
    decoder = Decoder(
        target,
        drafter,
        Sampler(options.sampling, prompt),
        options,
        frozenset(),
        Detokeniser(model.tokenizer),
        clock=UnsteadyClock(0 if case is None else case.seed),
        keep_rows=True,
    )
    for _ in decoder.run(target.logits(hidden[-1:])[0]):
        pass
    assert target.position == len(prompt) + len(decoder.tokens) - 1
    return decoder


def prompts(model: engine.Model) -> list[list[int]]:
    """Text, text that repeats itself, and ids without sense, also longer than one pass."""
    random = np.random.default_rng(5)
    sense = model.encode("The fox said: copy this, copy this again, and then count 1 2 3 4 5. The fox said: copy")
    noise = [int(token) for token in random.integers(0, model.info.vocabulary, 70)]
    return [sense, noise[:5] * 6, noise]


def test_o30_tokens_and_logits_are_those_of_plain_decoding(
    source: Source, model: engine.Model, pytestconfig: pytest.Config
) -> None:
    random = np.random.default_rng(0)
    texts = prompts(model)
    plain = cache(lambda index: reply(model, texts[index], None))
    refused = 0
    for run in range(source.replies(tokens_wanted(pytestconfig))):
        index, case = run % len(texts), draw_case(random, run)
        drafted = reply(model, texts[index], case)
        assert drafted.tokens == plain(index).tokens, case
        assert [row.digest for row in drafted.rows] == [row.digest for row in plain(index).rows], case
        refused += drafted.stats.tested - drafted.stats.accepted
    assert refused  # else nothing was rolled back


def test_a_single_changed_bit_is_noticed() -> None:
    """The comparison itself: a row kept for it differs when one bit of the row does."""
    from engine.decoding.selfcheck import verified_row

    row = np.linspace(0, 1, 50, dtype=np.float32)
    other = row.copy()
    other.view(np.int32)[3] ^= 1
    assert verified_row(1, 2, row).digest == verified_row(1, 2, row.copy()).digest
    assert verified_row(1, 2, row).digest != verified_row(1, 2, other).digest
