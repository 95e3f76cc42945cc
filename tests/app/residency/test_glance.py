"""What is said of the weights: states counted, a long pass described, a stall named."""

from __future__ import annotations

from dataclasses import replace

from app.residency.glance import Glance, long_pass, read_speed, summary
from engine import Stall

UNITS = {"layers.0": "resident", "layers.1": "ring", "layers.2": "reading", "layers.3": "disk", "head": "resident"}
GLANCE = Glance(UNITS, layer=2, layers=4, bytes_read=1_000_000_000, at=10.0)


def test_counts_name_every_state() -> None:
    assert GLANCE.counts() == {"resident": 2, "ring": 1, "reading": 1, "disk": 1}
    assert GLANCE.streams
    assert not Glance({"head": "resident"}).streams


def test_the_running_layer_is_the_one_after_those_done() -> None:
    assert GLANCE.current() == "layers.2"
    assert replace(GLANCE, layer=0).current() == ""


def test_a_long_pass_says_layer_and_speed() -> None:
    assert long_pass("Round 12", GLANCE, 1.2e9) == "Round 12: layer 3 of 4, 1.2 GB/s from disk"
    assert long_pass("Round 12", GLANCE, 0) == "Round 12: layer 3 of 4"


def test_a_stall_names_file_and_offset() -> None:
    stalled = replace(GLANCE, stall=Stall("layers.2", "model.safetensors", 4096, 12.4))
    sentence = long_pass("Round 1", stalled, 0)
    assert "nothing for 12 s" in sentence
    assert "model.safetensors at byte 4,096" in sentence


def test_speed_is_of_the_time_between() -> None:
    later = replace(GLANCE, bytes_read=1_600_000_000, at=10.5)
    assert read_speed(GLANCE, later) == 1.2e9
    assert read_speed(None, later) == 0
    assert read_speed(later, replace(GLANCE, at=11.0)) == 0, "another model counts from its own beginning"


def test_the_summary_counts_or_says_that_all_is_there() -> None:
    assert summary(GLANCE) == "Of 5 units, 2 in memory, 1 passing through, 1 being read, 1 on disk."
    assert summary(Glance({"head": "resident"})).startswith("All 1 units are in memory")
    assert summary(Glance()) == "No model is loaded."
