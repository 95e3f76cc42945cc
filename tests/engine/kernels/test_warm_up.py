"""Warming up: every kernel once, with progress, and it can be stopped."""

from __future__ import annotations

import pytest

import engine
from engine.kernels.context import ComputeContext
from engine.kernels.formats import FORMATS
from engine.kernels.warm_up import kernels_for, warm_up
from tests.conftest import DATA


def test_reports_each_kernel_and_ends_at_the_total() -> None:
    seen: list[tuple[int, int, str]] = []
    warm_up(ComputeContext(1), {"F32", "I64"}, lambda *step: seen.append(step))
    total = seen[-1][1]
    assert [done for done, _, _ in seen] == list(range(1, total + 1))
    assert {size for _, size, _ in seen} == {total}
    assert {"rms_norm", "attend", "run_heads", "argmax", "route"} <= {name for _, _, name in seen}
    assert any("F32" in name for _, _, name in seen)


def test_a_model_without_experts_needs_no_router() -> None:
    with_experts, without = ({item.name for item in kernels_for(experts)} for experts in (True, False))
    assert with_experts - without == {"route"}


@pytest.mark.parametrize(("name", "experts"), [("tiny-dense", False), ("tiny-moe", True)])
def test_loading_prepares_what_the_model_needs(name: str, experts: bool) -> None:
    told: list[engine.LoadProgress] = []
    model = engine.load_model(DATA / name, progress=told.append)
    model.close()
    totals = {record.total for record in told if record.stage == "kernels"}
    assert totals == {len(kernels_for(experts)) + len(set(model.info.formats) & set(FORMATS))}


def test_can_be_cancelled_between_two_kernels() -> None:
    class Stop:
        calls = 0

        def check(self) -> None:
            self.calls += 1
            if self.calls == 3:
                raise InterruptedError

    done: list[str] = []
    with pytest.raises(InterruptedError):
        warm_up(ComputeContext(1), set(), lambda _done, _total, name: done.append(name), Stop())
    assert len(done) == 2
