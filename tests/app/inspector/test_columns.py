"""The growing table: every row stays, in order, also where the array had to grow."""

from __future__ import annotations

import pytest

from app.inspector.columns import Columns


@pytest.mark.parametrize("written", [0, 1, 1024, 1025, 5000])
def test_rows_in_order(written: int) -> None:
    columns = Columns(2)
    for i in range(written):
        columns.append((i, -i))
    assert len(columns) == written
    assert columns.rows(0, written).tolist() == [[i, -i] for i in range(written)]
    assert columns.rows(written - 3, written + 9).tolist() == [[i, -i] for i in range(max(0, written - 3), written)]


def test_clear_forgets() -> None:
    columns = Columns(1)
    columns.append((1,))
    columns.clear()
    assert columns.rows(0, 9).shape == (0, 1)
