"""Pearson's goodness-of-fit test, without scipy."""

from __future__ import annotations

import numpy as np


def deviation(observed: np.ndarray, probabilities: np.ndarray) -> float:
    """How many standard deviations Pearson's statistic lies above its mean (Wilson and Hilferty's approximation).

    Infinite if something came that cannot come. Cells expected less than 5 times are joined.
    """
    observed, probabilities = np.asarray(observed, float), np.asarray(probabilities, float)
    if observed[probabilities == 0].any():
        return float("inf")
    expected = probabilities / probabilities.sum() * observed.sum()
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    observed, expected = observed[keep], expected[keep]
    freedom = len(observed) - 1
    if freedom == 0:
        return 0.0
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / np.sqrt(2 / (9 * freedom)))
