"""Records survive the way into the history and back."""

from __future__ import annotations

import json

from app.history.codec import ending_from_text, ending_to_text, round_from_text, round_to_text
from engine import Alternative, CommittedToken, DraftedToken, Failed, Finished, PositionCount, Round, Stats, ToolCall
from tests.app.scripted import WORDS, finished, rounds_of

RICH = Round(
    3,
    40,
    "think",
    (DraftedToken(7, " a", "mtp", 0.5, 0.25, "rejected", 9, 0.75, (Alternative(7, " a", 0.5),)),),
    (
        CommittedToken(
            9, " b", "correction", "model", 0.6, "think", (Alternative(9, " b", 0.6), Alternative(1, "é", 0.1))
        ),
    ),
    0.001,
    0.002,
    0.003,
    1024,
    3,
    2,
    "no drafts: the context is nearly full",
    1,
)


def test_rounds_come_back_as_they_were() -> None:
    for record in (RICH, *rounds_of(WORDS)):
        assert round_from_text(round_to_text(record)) == record


def test_what_has_its_default_takes_no_room() -> None:
    data = json.loads(round_to_text(next(iter(rounds_of(WORDS)))))
    assert set(data) == {"index", "position", "phase", "drafts", "committed", "draft_s", "verify_s"}


def test_fields_of_a_newer_version_are_passed_over_and_nonsense_is_no_round() -> None:
    data = json.loads(round_to_text(RICH))
    data["colour"] = "blue"
    data["drafts"][0]["mood"] = 3
    assert round_from_text(json.dumps(data)) == RICH
    for nonsense in ("", "{", "[]", "3", "{}", '{"drafts": 3}'):
        assert round_from_text(nonsense) is None


def test_endings_come_back_with_the_text_that_is_stored_elsewhere() -> None:
    last = finished(list(rounds_of(WORDS)))
    back = ending_from_text(ending_to_text(last), last.text)
    assert isinstance(back, Finished)
    assert (back.stats, back.text) == (last.stats, last.text)
    calls = (ToolCall("weather", {"city": "Paris", "days": [1, 2]}), ToolCall("now"))
    calling = Finished((), "said", Stats(), ("A note.",), calls)
    assert ending_from_text(ending_to_text(calling), "said") == calling
    failed = Failed("It failed.", "ReadError", (), "half", Stats(per_position=(PositionCount(3, 2),)))
    assert ending_from_text(ending_to_text(failed), "half") == failed
    assert ending_from_text("{}") is None
