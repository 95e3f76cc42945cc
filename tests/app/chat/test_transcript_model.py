"""The transcript's view model: what each record does to the entries, and what the signals say."""

from __future__ import annotations

import pytest

from app.chat.cells import Note, Reply, UserMessage
from app.chat.transcript_model import TranscriptModel
from engine import Failed, Finished, LoadProgress, PrefillProgress, Round, Stats
from tests.app.chat import scripted_records as script


@pytest.fixture
def model() -> TranscriptModel:
    return TranscriptModel()


@pytest.fixture
def told(model: TranscriptModel) -> list[int]:
    seen: list[int] = []
    model.appended.connect(seen.append)
    return seen


def notes(model: TranscriptModel) -> list[str]:
    return [entry.text for entry in model.entries if isinstance(entry, Note)]


def test_a_whole_conversation(model: TranscriptModel) -> None:
    model.add_user(script.QUESTION)
    model.begin_reply()
    model.add_records(script.reply("Because. It works.\n"))
    assert [type(entry) for entry in model.entries] == [UserMessage, Reply, Note]
    assert model.replies[0].text == "Because. It works.\n"
    assert not model.replies[0].active
    assert model.active_reply is None


def test_rounds_in_batches_give_the_same_as_all_at_once(model: TranscriptModel) -> None:
    records = script.reply(thinking=script.THINKING)
    model.begin_reply()
    for record in records:
        model.add_records([record])
    whole = TranscriptModel()
    whole.begin_reply()
    whole.add_records(records)
    assert model.plain_text(marks=True) == whole.plain_text(marks=True)
    assert script.ANSWER in model.plain_text()


def test_one_signal_for_a_batch_tells_the_open_reply(model: TranscriptModel, told: list[int]) -> None:
    model.add_user("a")
    model.begin_reply()
    told.clear()
    rounds = [record for record in script.reply() if isinstance(record, Round)]
    model.add_records(rounds[:5])
    model.add_records(rounds[5:6])
    assert told == [1, 1]


def test_records_without_meaning_for_the_transcript_are_silent(model: TranscriptModel, told: list[int]) -> None:
    model.add_records([LoadProgress("weights", "loading")])
    model.add_records([])
    assert told == []


def test_prefill_shows_until_the_first_round(model: TranscriptModel) -> None:
    model.begin_reply()
    model.add_records([PrefillProgress(100, 300), PrefillProgress(200, 300)])
    assert notes(model) == ["Reading the prompt: 200 of 300 tokens"]
    model.add_records(list(script.rounds("Now.")))
    assert notes(model) == []


def test_stop_keeps_what_was_said_and_says_so(model: TranscriptModel) -> None:
    model.begin_reply()
    model.add_records(script.reply("Half a sen", stop_reason="cancelled"))
    assert notes(model)[0] == "Stopped."
    assert model.replies[0].text == "Half a sen"


def test_failure_is_a_note_in_the_error_tone(model: TranscriptModel) -> None:
    model.begin_reply()
    model.add_records([*script.rounds("Once"), Failed("layer 3 gave NaN.", "NumericsError")])
    note = model.entries[-1]
    assert isinstance(note, Note)
    assert (note.text, note.tone) == ("layer 3 gave NaN.", "error")
    assert model.replies[0].text == "Once"


def test_the_reason_for_no_drafts_is_told_once(model: TranscriptModel) -> None:
    reason = "0 drafts: the sidecar's hidden size is 1024, the model's 2048."
    base = list(script.rounds("a b c", drafts=0))
    noted = [Round(r.index, r.position, r.phase, (), r.committed, 0.0, 0.1, note=reason) for r in base]
    model.begin_reply()
    model.add_records([*noted, Finished((), "a b c", Stats(rounds=3, emitted=3), notes=(reason,))])
    assert notes(model).count(reason) == 1


def test_a_reply_that_never_finished_is_closed(model: TranscriptModel) -> None:
    model.begin_reply()
    model.add_records([PrefillProgress(1, 2)])
    model.end_reply()
    assert notes(model) == []
    assert model.active_reply is None
    model.end_reply()


def test_drop_last_reply_takes_its_notes_along(model: TranscriptModel) -> None:
    for _ in range(2):
        model.add_user("q")
        model.begin_reply()
        model.add_records(script.reply("One two."))
    resets: list[int] = []
    model.reset.connect(lambda: resets.append(1))
    model.drop_last_reply()
    assert [type(entry) for entry in model.entries] == [UserMessage, Reply, Note, UserMessage]
    assert resets == [1]
    model.clear()
    assert list(model.entries) == []
    model.drop_last_reply()


def test_incomplete_characters_keep_their_cells(model: TranscriptModel) -> None:
    """An emoji that took three tokens: two without text, then the character."""
    model.begin_reply()
    tokens = [script.plain_token(""), script.plain_token(""), script.plain_token("🦉")]
    model.add_records([Round(0, 4, "answer", (), (token,), 0.0, 0.1) for token in tokens])
    assert len(model.replies[0]) == 3
    assert model.replies[0].text == "🦉"
