"""How fast memory is read by all cores together: a short measurement, as predictions need it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil

_EACH = 64 * 1024 * 1024
"""Bytes per thread: more than processors keep in their caches."""
_PASSES = 4
_SHARE = 8
"""The measurement takes no more than this part of the memory that is free."""


def measure_memory_speed(threads: int) -> float:
    """Bytes per second that so many threads read together, the best of a few passes; takes about a tenth of a second
    and 64 MiB per thread, or less where memory is short."""
    threads = max(1, threads)
    nbytes = min(_EACH, psutil.virtual_memory().available // (_SHARE * threads))
    parts = [np.ones(max(1, nbytes // 8)) for _ in range(threads)]  # written, or no memory would be behind it

    def one_pass(pool: ThreadPoolExecutor) -> float:
        begin = time.perf_counter()
        list(pool.map(np.sum, parts))
        return time.perf_counter() - begin

    with ThreadPoolExecutor(threads) as pool:
        seconds = min(one_pass(pool) for _ in range(_PASSES))
    return threads * parts[0].nbytes / max(seconds, 1e-9)
