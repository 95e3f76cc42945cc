"""Cells: what a round turns into, and the texts of a reply."""

from __future__ import annotations

import pytest

from app.chat.cells import CellKind, Note, Reply, UserMessage, plain_text, summary
from engine import CommittedToken, DraftedToken, Round, Stats


def draft(text: str, verdict: str, source: str = "mtp", token: int = 5) -> DraftedToken:
    return DraftedToken(token, text, source, 0.5, None if verdict == "unused" else 0.25, verdict, uniform=0.75)


def said(text: str, origin: str, source: str = "model", phase: str = "answer", token: int = 5) -> CommittedToken:
    return CommittedToken(token, text, origin, source, 0.25, phase)


def one_round(drafts: list[DraftedToken], committed: list[CommittedToken], position: int = 10) -> Round:
    return Round(1, position, "answer", tuple(drafts), tuple(committed), 0.001, 0.002)


def reply_of(*rounds: Round) -> Reply:
    reply = Reply()
    for record in rounds:
        reply.add_round(record)
    return reply


REFUSED = one_round(
    [draft(" a", "accepted", "ngram"), draft(" b", "rejected", token=6), draft(" c", "unused", token=7)],
    [said(" a", "accepted", "ngram"), said(" x", "correction", token=8)],
)
FULL = one_round([draft(" d", "accepted")], [said(" d", "accepted", "mtp"), said(" e", "bonus")], position=12)
PLAIN = one_round([], [said(" f", "model")], position=14)


def test_ghosts_stand_between_the_accepted_drafts_and_the_correction() -> None:
    reply = reply_of(REFUSED, FULL, PLAIN)
    assert reply.texts == [" a", " b", " c", " x", " d", " e", " f"]
    assert [reply.kind(i) for i in range(len(reply))] == [
        CellKind.NGRAM,
        CellKind.REFUSED,
        CellKind.UNUSED,
        CellKind.CORRECTION,
        CellKind.MTP,
        CellKind.BONUS,
        CellKind.PLAIN,
    ]
    assert reply.text == " a x d e f"
    assert reply.tokens == 5


def test_marked_text_shows_every_verdict() -> None:
    reply = reply_of(REFUSED, FULL, PLAIN)
    assert reply.marked_text() == " a[n]⟨ b⟩[x]⟨ c⟩[x] x[c] d[m] e[b] f"


def test_a_stop_token_that_was_dropped_leaves_its_ghosts_at_the_end() -> None:
    record = one_round(
        [draft(" a", "accepted"), draft("<end>", "accepted"), draft(" z", "unused")],
        [
            said(" a", "accepted", "mtp"),
        ],
    )
    reply = reply_of(record)
    assert reply.texts == [" a", " z"]
    assert reply.text == " a"


@pytest.mark.parametrize(
    ("index", "position", "place", "token", "model", "offered"),
    [(0, 10, 0, 5, 0.25, 0.5), (1, 11, 1, 6, 0.25, 0.5), (2, 12, 2, 7, None, 0.5), (3, 11, 1, 8, 0.25, None)],
)
def test_a_cell_knows_its_place_and_probabilities(
    index: int, position: int, place: int, token: int, model: float | None, offered: float | None
) -> None:
    cell = reply_of(REFUSED).cell(index)
    assert (cell.position, cell.place, cell.token) == (position, place, token)
    assert cell.model_probability == model
    assert cell.draft_probability == offered
    assert cell.round is REFUSED


def test_a_correction_knows_the_draft_that_it_replaced() -> None:
    cell = reply_of(REFUSED).cell(3)
    assert cell.draft is not None
    assert cell.draft.text == " b"
    assert reply_of(FULL).cell(1).draft is None


def test_round_starts_and_phases() -> None:
    thinking = one_round([], [said("hm", "model", phase="think")])
    reply = reply_of(thinking, REFUSED, FULL)
    assert [i for i in range(len(reply)) if reply.starts_round(i)] == [0, 1, 5]
    assert [reply.thinking(i) for i in range(3)] == [True, False, False]
    assert reply.phase_end(0) == 1
    assert reply.phase_end(1) == len(reply)


@pytest.mark.parametrize("text", ["", "a", "one  two\n\n\tthree \n", "x\ny", "  lead"])
def test_a_message_of_words_keeps_every_character(text: str) -> None:
    assert UserMessage(text).text == text


def test_summary_counts_in_words() -> None:
    stats = Stats(rounds=1, emitted=1234, tested=4, accepted=3, acceptance=0.75, tokens_per_s=9.0, tokens_per_round=2.5)
    assert (
        summary(stats)
        == "1\u202f234 tokens · 1 round · 2.50 tokens per round · 75 % of tested drafts accepted · 9.0 tokens/s"
    )
    assert summary(Stats(rounds=2, emitted=1)) == "1 token · 2 rounds · 0.50 tokens per round"


def test_transcript_as_text_names_the_speakers() -> None:
    entries = [UserMessage("Hi"), reply_of(FULL), Note("Stopped.")]
    assert plain_text(entries) == "You:\nHi\n\nModel:\n d e\n\n(Stopped.)"
    assert "[m]" in plain_text(entries, marks=True)
