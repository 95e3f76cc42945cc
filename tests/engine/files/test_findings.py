"""How faults are collected and told."""

from __future__ import annotations

import pytest

from engine.errors import CheckpointError, SidecarError, UnsupportedError
from engine.files.findings import LIMIT, Findings, listed


def test_the_same_sentence_counts_once() -> None:
    findings = Findings()
    findings.add("One.")
    findings.add(CheckpointError("One."))
    assert findings.sentences == ["One."]


def test_one_fault_is_raised_as_it_is_and_several_with_their_number() -> None:
    findings = Findings()
    findings.raise_if_any()
    findings.add(UnsupportedError("One."))
    with pytest.raises(UnsupportedError, match=r"^One\.$"):
        findings.raise_if_any()
    findings.add("Two.")
    with pytest.raises(CheckpointError, match=r"^One\. \(and 1 more problem: `inspect` lists all\)$") as caught:
        findings.raise_if_any()
    assert not isinstance(caught.value, UnsupportedError)
    with pytest.raises(SidecarError):
        findings.raise_if_any(SidecarError)


def test_a_million_faults_are_counted_not_kept() -> None:
    findings = Findings()
    for number in range(1_000_000):
        findings.add(f"Fault {number}.")
    assert len(findings.sentences) == LIMIT + 1
    assert findings.sentences[-1] == "There are 999,900 more problems of this kind."
    with pytest.raises(CheckpointError, match=r"^Fault 0\. \(and 999,999 more problems"):
        findings.raise_if_any()


def test_long_lists_and_names_stay_readable() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"
    assert len(listed(["x" * 10_000] * 10)) < 1300
