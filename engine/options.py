"""Validated settings. All are frozen: what was checked once stays checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from engine.errors import OptionError

DrafterName = Literal["none", "mtp", "ngram", "mtp+ngram"]
LengthPolicyName = Literal["fixed", "adaptive", "cost-aware"]
Precision = Literal["q8", "q4"]
KvCache = Literal["f32", "bf16", "q8"]
ContextFull = Literal["stop", "drop-oldest"]
MemoryBudget = int | Literal["auto"] | None
"""Bytes for weights; "auto" takes what is free less a margin, None keeps everything in memory."""

MAX_DRAFT_TOKENS = 14
"""A verification pass has one row more than drafts, and decode kernels are exact up to 15 rows."""


def _require(ok: bool, setting: str, value: object, expected: str) -> None:
    if not ok:
        raise OptionError(f"{setting} is {value}, but it must be {expected}.")


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How the next token is chosen from the logits. `temperature` 0 is greedy."""

    temperature: float = 0.0
    top_k: int = 0
    """Keep the k most likely tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep the smallest set of most likely tokens whose probability reaches top_p."""
    min_p: float = 0.0
    """Drop tokens less likely than min_p times the most likely one."""
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        _require(
            math.isfinite(self.temperature) and 0 <= self.temperature <= 100, "temperature", self.temperature, "0…100"
        )
        _require(self.top_k >= 0, "top-k", self.top_k, "0 (off) or more")
        _require(0 < self.top_p <= 1, "top-p", self.top_p, "above 0 and at most 1")
        _require(0 <= self.min_p < 1, "min-p", self.min_p, "0 or more and below 1")
        _require(
            math.isfinite(self.repetition_penalty) and self.repetition_penalty > 0,
            "repetition penalty",
            self.repetition_penalty,
            "above 0",
        )
        for name in ("presence_penalty", "frequency_penalty"):
            value = getattr(self, name)
            _require(math.isfinite(value) and -10 <= value <= 10, name.replace("_", " "), value, "-10…10")
        _require(all(math.isfinite(v) for v in self.logit_bias.values()), "logit bias", self.logit_bias, "finite")
        _require(0 <= self.seed < 2**63, "seed", self.seed, "0 or more and below 2^63")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """What drafts, how many tokens a round, and who decides the number."""

    drafter: DrafterName = "mtp"
    tokens: int = 3
    """Draft tokens a round: exactly so for `fixed`, the starting point for the other policies; 0 is plain decoding."""
    length: LengthPolicyName = "fixed"

    def __post_init__(self) -> None:
        _require(self.drafter in get_args(DrafterName), "drafter", self.drafter, " | ".join(get_args(DrafterName)))
        _require(0 <= self.tokens <= MAX_DRAFT_TOKENS, "draft tokens", self.tokens, f"0…{MAX_DRAFT_TOKENS}")
        _require(
            self.length in get_args(LengthPolicyName),
            "draft length",
            self.length,
            " | ".join(get_args(LengthPolicyName)),
        )

    @property
    def enabled(self) -> bool:
        return self.drafter != "none" and self.tokens > 0


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """Everything that decides one reply."""

    sampling: SamplingOptions = SamplingOptions()
    draft: DraftOptions = DraftOptions()
    max_new_tokens: int = 512
    stop_strings: tuple[str, ...] = ()
    ignore_eos: bool = False
    """Go on past end tokens (benchmarks)."""
    thinking: bool | None = None
    """The template's `enable_thinking`; None leaves it to the template."""
    think_budget: int | None = None
    """After so many thinking tokens the thought is closed and the answer begins; None lets the model think as long as
    it likes."""
    context_full: ContextFull = "stop"
    """When a conversation does not fit into the context: say so and stop, or leave out its oldest turns (system
    messages stay)."""
    top_alternatives: int = 0
    """How many alternatives of model and drafter each token's record carries."""
    provable: bool = False
    """Keep of each row of logits what `ChatSession.check` compares (a checksum and the highest logits)."""

    def __post_init__(self) -> None:
        _require(self.max_new_tokens >= 1, "max new tokens", self.max_new_tokens, "1 or more")
        if not all(self.stop_strings):
            raise OptionError("A stop string is empty: give the text at which the reply is to end, or none.")
        _require(self.think_budget is None or self.think_budget >= 0, "think budget", self.think_budget, "0 or more")
        choices = get_args(ContextFull)
        _require(self.context_full in choices, "context full", self.context_full, " | ".join(choices))
        _require(0 <= self.top_alternatives <= 20, "top alternatives", self.top_alternatives, "0…20")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How a checkpoint is opened."""

    threads: int | None = None
    """Compute threads; None takes the physical cores."""
    context: int | None = None
    """Most positions a session may use; None takes the checkpoint's own limit."""
    memory_budget: MemoryBudget = None
    soft_picture_drafts: bool = False
    """What the MTP layer sees where a picture stands: the picture's embeddings, or (False) the placeholder tokens'."""
    precision: Precision | None = None
    """Quantise the matrices of a float checkpoint while it is loaded; None keeps what is stored."""
    kv_cache: KvCache = "f32"
    """What keys and values are stored as: exact, in half the bytes, or in 9/32 of them."""
    clip_context: bool = False
    """A context beyond the checkpoint's own limit is that limit, for who chooses one for many checkpoints, and no
    mistake."""

    def __post_init__(self) -> None:
        _require(self.threads is None or 1 <= self.threads <= 256, "threads", self.threads, "1…256")
        _require(self.context is None or self.context >= 16, "context", self.context, "16 or more")
        _require(self.precision in (None, *get_args(Precision)), "precision", self.precision, "q8 or q4")
        _require(self.kv_cache in get_args(KvCache), "KV cache", self.kv_cache, "f32, bf16 or q8")
        budget = self.memory_budget
        _require(
            budget in (None, "auto") or (isinstance(budget, int) and budget > 0), "memory budget", budget, "above 0"
        )
