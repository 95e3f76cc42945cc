"""The sampler, slow and obvious: the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from engine.options import SamplingOptions


def scores(logits: np.ndarray, options: SamplingOptions, prompt: Sequence[int], reply: Sequence[int]) -> np.ndarray:
    out = logits.astype(np.float32).copy()
    for token, bias in options.logit_bias.items():
        if token < len(out):
            out[token] += np.float32(bias)
    counts = Counter(reply)
    for token in sorted({*prompt, *reply}):
        if token >= len(out):
            continue
        value, repetition = out[token], np.float32(options.repetition_penalty)
        value = value / repetition if value > 0 else value * repetition
        value -= np.float32(options.frequency_penalty) * np.float32(counts[token])
        value -= np.float32(options.presence_penalty) * np.float32(counts[token] > 0)
        out[token] = value
    return out


def distribution(
    logits: np.ndarray, options: SamplingOptions, prompt: Sequence[int] = (), reply: Sequence[int] = ()
) -> np.ndarray:
    """Probabilities [V]."""
    z = scores(logits, options, prompt, reply).astype(np.float64)
    if options.greedy:
        return np.eye(len(z))[int(np.argmax(z))]
    p = np.exp((z - z.max()) / options.temperature)
    p /= p.sum()
    order = sorted(range(len(p)), key=lambda i: (-z[i], i))
    if options.top_k:
        order = order[: options.top_k]
    kept, mass, total = [], 0.0, sum(p[i] for i in order)
    for i in order:
        kept.append(i)
        mass += p[i]
        if mass >= options.top_p * total and options.top_p < 1:
            break
    kept = [i for i in kept if p[i] >= options.min_p * p.max()]
    out = np.zeros(len(p))
    out[kept] = p[kept]
    return out / out.sum()
