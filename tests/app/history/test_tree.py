"""Branches: which messages are shown, and how to get to the others."""

from __future__ import annotations

from app.history.store import MessageRow
from app.history.tree import MessageTree


def message(made: int, parent: int | None) -> MessageRow:
    return MessageRow(made, parent, "user" if made % 2 else "assistant", f"m{made}", 0.0, "", "done", "")


def ids(tree: MessageTree) -> list[int]:
    return [m.id for m in tree.path]


def forked() -> MessageTree:
    """1 ─ 2 ─ 3 ─ 4, another reply 6 to 1 (with 7 after it), another beginning 9."""
    pairs = [(1, None), (2, 1), (3, 2), (4, 3), (6, 1), (7, 6), (9, None)]
    return MessageTree([message(made, parent) for made, parent in pairs], leaf=4)


def test_the_path_goes_from_the_beginning_to_the_leaf() -> None:
    assert ids(forked()) == [1, 2, 3, 4]
    assert ids(MessageTree()) == []


def test_a_branch_is_shown_to_its_newest_end() -> None:
    tree = forked()
    assert tree.branches(2) == [2, 6]
    assert tree.show_branch(2, +1)
    assert ids(tree) == [1, 6, 7]
    assert not tree.show_branch(6, +1)
    assert tree.show_branch(1, +1)
    assert ids(tree) == [9]
    assert tree.show_branch(9, -1)
    assert ids(tree) == [1, 6, 7]


def test_a_new_message_is_shown() -> None:
    tree = forked()
    tree.add(message(10, 4))
    assert ids(tree) == [1, 2, 3, 4, 10]
    tree.add(message(12, 1))
    assert ids(tree) == [1, 12]
    assert tree.branches(12) == [2, 6, 12]


def test_taking_a_message_away_shows_a_sibling_or_ends_before_it() -> None:
    tree = forked()
    tree.remove(2)
    assert ids(tree) == [1, 6, 7]
    assert 4 not in tree
    tree.remove(6)
    assert ids(tree) == [1]
    tree.remove(1)
    assert ids(tree) == [9]
    tree.remove(9)
    assert ids(tree) == []


def test_a_leaf_that_is_gone_leaves_the_newest_branch() -> None:
    rows = [message(1, None), message(2, 1), message(4, 3)]
    assert ids(MessageTree(rows, leaf=4)) == [1, 2]
    assert ids(MessageTree(rows, leaf=99)) == [1, 2]
    assert ids(MessageTree(rows)) == [1, 2]
