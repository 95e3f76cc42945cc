"""The ring: always the newest rows, in order, as one contiguous view."""

from __future__ import annotations

import numpy as np
import pytest

from app.inspector.ring import Ring


@pytest.mark.parametrize("written", [0, 1, 6, 7, 8, 20])
@pytest.mark.parametrize("count", [1, 5, 7, 99])
def test_the_newest_rows_in_order(written: int, count: int) -> None:
    ring = Ring(7, 2)
    for i in range(written):
        ring.append((i, -i))
    kept = min(written, 7, count)
    expected = [[i, -i] for i in range(written - kept, written)]
    assert ring.last(count).tolist() == expected
    assert ring.last(count).flags.c_contiguous or kept <= 1
    assert np.shares_memory(ring.last(count), ring.last(7)) or not kept
    assert (len(ring), ring.total) == (min(written, 7), written)


def test_clear_forgets() -> None:
    ring = Ring(3, 1)
    ring.append((1,))
    ring.clear()
    assert ring.last(3).shape == (0, 1)
