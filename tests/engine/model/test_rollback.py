"""Taking tokens back leaves the state of never having read them; rows do not depend on how a text is cut."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.cancel import CancelToken
from engine.errors import Cancelled
from engine.kernels.kv_types import KV_TYPES
from engine.model.state import AttentionCache, RecurrentCache, TrunkState
from engine.model.target import TargetSession
from tests.engine.model.conftest import Loaded

Load = Callable[..., Loaded]


@pytest.fixture(params=KV_TYPES)
def new_session(request: pytest.FixtureRequest, loaded: Load) -> Callable[[], TargetSession]:
    """With every type of KV cache."""
    return partial(loaded("tiny-dense").session, KV_TYPES[request.param])


def assert_equal_states(a: TrunkState, b: TrunkState) -> None:
    """Everything that the future of a conversation depends on, bit for bit."""
    assert a.position == b.position
    for x, y in zip(a.layers, b.layers, strict=True):
        if isinstance(x, RecurrentCache) and isinstance(y, RecurrentCache):
            np.testing.assert_array_equal(x.state, y.state)
            np.testing.assert_array_equal(x.conv_tail, y.conv_tail)
        elif isinstance(x, AttentionCache) and isinstance(y, AttentionCache):
            np.testing.assert_array_equal(x.keys[:, : a.position], y.keys[:, : a.position])
            np.testing.assert_array_equal(x.values[:, : a.position], y.values[:, : a.position])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_o08_rollback_after_any_mix_of_passes_equals_a_replay(
    new_session: Callable[[], TargetSession], data: st.DataObject
) -> None:
    session, kept = new_session(), []
    token = st.integers(0, 972)
    for _ in range(data.draw(st.integers(1, 6), label="passes")):
        tokens = data.draw(st.lists(token, min_size=1, max_size=20), label="tokens")
        session.forward(tokens)
        keep = len(tokens) if len(tokens) > 15 else data.draw(st.integers(0, len(tokens)), label="keep")
        session.rollback(session.position - len(tokens) + keep)
        kept += tokens[:keep]
        if 0 < keep <= 15 and data.draw(st.booleans(), label="again"):
            session.rollback(session.position - 1)
            kept.pop()
    replay = new_session()
    for token_id in kept:
        replay.forward([token_id])
    assert_equal_states(session.state, replay.state)
    np.testing.assert_array_equal(session.forward([5, 6]), replay.forward([5, 6]))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 972), min_size=2, max_size=40), st.data())
def test_o04_rows_do_not_depend_on_the_cut(
    new_session: Callable[[], TargetSession], tokens: list[int], data: st.DataObject
) -> None:
    whole = new_session().forward(tokens)
    session, rows = new_session(), []
    rest = tokens
    while rest:
        n = data.draw(st.integers(1, min(15, len(rest))))
        rows.append(session.forward(rest[:n]))
        rest = rest[n:]
    np.testing.assert_array_equal(np.concatenate(rows), whole)


@pytest.mark.parametrize("name", ["tiny-dense", "tiny-moe"])
def test_thread_count_changes_nothing(loaded: Load, name: str) -> None:
    tokens = [941, 84, 421, 198, 567, 75, 291] * 4
    one = loaded(name, 1).session()
    two = loaded(name, 2).session()
    np.testing.assert_array_equal(one.logits(one.forward(tokens)), two.logits(two.forward(tokens)))


def test_l08_rollback_outside_the_last_pass_is_refused(new_session: Callable[[], TargetSession]) -> None:
    session = new_session()
    session.forward([1, 2, 3])
    session.forward([4, 5])
    with pytest.raises(ValueError, match="the last pass covers 3 to 5"):
        session.rollback(2)


def test_cancelled_pass_leaves_the_state_as_it_was(new_session: Callable[[], TargetSession]) -> None:
    class AfterThreeLayers(CancelToken):
        checks = 0

        def check(self) -> None:
            self.checks += 1
            if self.checks > 3:
                raise Cancelled

    for rows in (4, 30):
        session, untouched = new_session(), new_session()
        for s in (session, untouched):
            s.forward([7, 8, 9])
        with pytest.raises(Cancelled):
            session.forward(list(range(rows)), AfterThreeLayers())
        assert_equal_states(session.state, untouched.state)
        np.testing.assert_array_equal(session.forward([3]), untouched.forward([3]))


def test_o13_clone_and_snapshot_are_independent(new_session: Callable[[], TargetSession]) -> None:
    session = new_session()
    session.forward([1, 2, 3, 4])
    snapshot = session.snapshot()
    other = session.clone()
    ahead = session.forward([5, 6])
    np.testing.assert_array_equal(other.forward([5, 6]), ahead)
    session.forward([9] * 20)
    session.restore(snapshot)
    np.testing.assert_array_equal(session.forward([5, 6]), ahead)
