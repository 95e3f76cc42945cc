"""Over a whole row of logits."""

from __future__ import annotations

import numpy as np


def argmax(row):
    good = ~np.isnan(row)
    return int(np.nanargmax(row)) if good.any() else -1


def all_finite(row):
    return bool(np.isfinite(row).all())


def top_k(row, k):
    ids = np.flatnonzero(~np.isnan(row))
    ids = ids[np.argsort(-row[ids], kind="stable")[:k]]
    return ids, row[ids]


def softmax(row, out, temperature=1.0):
    p = np.exp((row - row.max()) / np.float32(temperature))
    out[:] = p / p.sum()
