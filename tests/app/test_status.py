"""The numbers of the status line, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.status import StatusLine, Tally, context_text, drafting_text
from engine import DraftOptions, PrefillProgress, Round
from tests.app.scripted import WORDS, finished, model_info, rounds_of

INFO = model_info(Path("/models/demo"))


def tally_of(*records: object) -> Tally:
    tally = Tally()
    for record in records:
        tally = tally.add(record)  # type: ignore[arg-type]
    return tally


def test_a_tally_counts_what_the_finished_record_says() -> None:
    rounds = list(rounds_of(WORDS))
    live, settled = tally_of(*rounds), tally_of(*rounds, finished(rounds))
    assert (live.rounds, live.emitted, live.tested, live.accepted) == (5, 11, 10, 7)
    assert (settled.rounds, settled.emitted, settled.tested, settled.accepted) == (5, 11, 10, 7)
    assert live.tokens_per_second == pytest.approx(settled.tokens_per_second)
    assert live.tokens_per_round == pytest.approx(11 / 5)
    assert live.acceptance == pytest.approx(7 / 10)
    assert live.position == 20 + 12


def test_unused_drafts_do_not_count_as_tested() -> None:
    first_refused = list(rounds_of([str(i) for i in range(11)]))[4]
    assert [draft.verdict for draft in first_refused.drafts] == ["rejected", "unused", "unused"]
    assert tally_of(first_refused).tested == 1


def test_before_the_first_round_there_are_no_numbers() -> None:
    tally = tally_of(PrefillProgress(8, 20))
    assert tally.prefill == (8, 20)
    assert tally.position == 8
    assert (tally.tokens_per_second, tally.acceptance, tally.tokens_per_round) == (None, None, None)
    assert tally_of(PrefillProgress(8, 20), *list(rounds_of(WORDS))[:1]).prefill is None


def test_the_reply_that_never_began_ends_the_prefill() -> None:
    assert tally_of(PrefillProgress(8, 20), finished([], "cancelled")).prefill is None


@pytest.mark.parametrize(
    ("draft", "facts", "short", "why"),
    [
        (DraftOptions(), {}, "MTP, 3", "proposes"),
        (DraftOptions("ngram", 5), {"mtp": "none"}, "lookup, 5", "proposes"),
        (DraftOptions("none"), {}, "off", "switched off"),
        (DraftOptions(tokens=0), {}, "off", "switched off"),
        (DraftOptions(), {"mtp": "none"}, "off", "no MTP layer"),
        (DraftOptions(), {"mtp": "none", "draft_note": "0 drafts: sizes differ."}, "off", "sizes differ"),
        (DraftOptions("mtp+ngram"), {"mtp": "none"}, "lookup only", "no MTP layer"),
    ],
)
def test_drafting_is_on_or_off_for_a_reason(
    draft: DraftOptions, facts: dict[str, object], short: str, why: str
) -> None:
    said = drafting_text(model_info(Path("/m"), **facts), draft)
    assert said[0] == short
    assert why in said[1]


def test_a_note_of_the_engine_says_why_there_were_no_drafts(qapp: object) -> None:
    record = Round(0, 0, "answer", (), (), 0.0, 0.1, note="0 drafts: nothing in the text to copy.")
    line = StatusLine()
    line.show_drafting(INFO, DraftOptions("ngram"), tally_of(record).note)
    assert line.drafting.toolTip() == "0 drafts: nothing in the text to copy."


def test_the_line_shows_dashes_then_numbers(qapp: object) -> None:
    line = StatusLine()
    line.show_tally(Tally(), None)
    assert line.speed.text() == line.acceptance.text() == line.per_round.text() == line.context.text() == "–"
    line.show_tally(tally_of(*rounds_of(WORDS)), INFO)
    assert (line.acceptance.text(), line.per_round.text(), line.context.text()) == ("70 %", "2.20", "32 of 4,096")


def test_the_meter_says_what_the_context_takes(qapp: object) -> None:
    info = model_info(Path("/models/demo"), context=4096, kv_cache="q8", position_bytes=1024)
    assert context_text(32, info) == (
        "Keys and values, stored as q8, take 32.0 KiB now and 4.0 MiB when the context is full."
    )
