"""What comes next: as declared, then as the last pass did."""

from __future__ import annotations

from engine.weights.order import ExecutionOrder

DECLARED = ("layers.0", "layers.1", "layers.2", "head", "mtp", "draft_head")


def visit(order: ExecutionOrder, *units: str) -> ExecutionOrder:
    for unit in units:
        order.visit(unit)
    return order


def fresh() -> ExecutionOrder:
    return ExecutionOrder(DECLARED, "layers.2")


def test_the_declared_order_at_first_and_across_the_end_of_a_pass() -> None:
    order = visit(fresh(), "layers.0", "layers.1")
    assert order.coming() == ["layers.2", "head", "mtp", "draft_head", "layers.0", "layers.1"]


def test_a_drafting_loop_is_expected_again() -> None:
    order = visit(fresh(), *DECLARED[:4], "mtp", "draft_head", "mtp", "draft_head", "layers.0")
    visit(order, "layers.1", "layers.2", "head", "mtp")
    assert order.coming()[:4] == ["draft_head", "mtp", "draft_head", "layers.0"]


def test_a_unit_that_is_left_out_is_not_expected_again() -> None:
    order = visit(fresh(), "layers.0", "layers.1", "layers.2", "layers.0", "layers.1", "layers.2")
    assert order.coming() == ["layers.0", "layers.1", "layers.2"]


def test_a_pass_that_was_broken_off_teaches_nothing() -> None:
    order = visit(fresh(), "layers.0", "layers.1", "layers.0")
    assert order.coming()[0] == "layers.1"
    assert "head" in order.coming()


def test_fewer_drafts_than_last_time() -> None:
    order = visit(fresh(), *DECLARED[:4], "mtp", "draft_head", "mtp", "draft_head", "layers.0", "layers.1", "layers.2")
    visit(order, "head", "mtp", "draft_head", "layers.0")
    assert order.coming()[0] == "layers.1"


def test_a_unit_never_seen_leaves_expectations_alone() -> None:
    order = visit(fresh(), "layers.0", "layers.1")
    before = order.coming()
    assert visit(order, "vision").coming() == before


def test_around_begins_with_the_running_unit() -> None:
    assert fresh().around(2) == ["layers.0", "layers.1"]
    assert visit(fresh(), "layers.0", "layers.1").around(3) == ["layers.1", "layers.2", "head"]
