"""Argmax, top-k and routing by sorting everything."""

from __future__ import annotations

import numpy as np

from tests.naive.functions import Array, softmax


def ranking(row: Array) -> list[int]:
    """Ids of all numbers of the row, largest first, equals by id; NaN is no number."""
    return sorted((i for i in range(len(row)) if not np.isnan(row[i])), key=lambda i: (-float(row[i]), i))


def argmax(row: Array) -> int:
    order = ranking(row)
    return order[0] if order else -1


def route(logits: Array, k: int) -> tuple[Array, Array]:
    """ids and renormalised weights [T, k]."""
    p = softmax(logits)
    ids = np.array([ranking(row)[:k] for row in p], np.int64).reshape(len(logits), k)
    chosen = np.take_along_axis(p, ids, 1)
    return ids, (chosen / chosen.sum(1, keepdims=True)).astype(np.float32)
