"""A sidecar of another model and an empty head are noticed: with real files, and in the arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import engine
from engine import DraftedToken, Round
from engine.suspicions import SidecarWatch, flatness_note
from tests.engine import other_exports as other

DATA = Path(__file__).parents[1] / "data"
SENTENCE = "This sidecar does not seem to belong to this checkpoint"


def user(text: str) -> list[engine.Message]:
    return [engine.Message("user", text)]


def finish(session: engine.ChatSession, text: str, drafter: str = "mtp", tokens: int = 3) -> engine.Finished:
    options = engine.GenerateOptions(draft=engine.DraftOptions(drafter, tokens), max_new_tokens=60)  # type: ignore[arg-type]
    ending = list(session.reply(user(text), options))[-1]
    assert isinstance(ending, engine.Finished), ending
    return ending


def test_a_shuffled_sidecar_is_noticed_once_a_session(tmp_path: Path) -> None:
    stored = other.published(engine.demo_path())
    rng = np.random.default_rng(5)
    mtp = {name: item for name, item in stored.items() if name.startswith("mtp.") and name != "mtp.d2t"}
    assert mtp
    shuffled = {
        name: (dtype, rng.permutation(values.reshape(-1)).reshape(values.shape))
        for name, (dtype, values) in mtp.items()
    }
    model = engine.load_model("demo", sidecar=other.write_file(tmp_path / "foreign.safetensors", shuffled))
    try:
        session = model.new_session()
        first = finish(session, "Tell me a story about a fox and a lamp.")
        assert first.stats.tested >= 24
        assert [note for note in first.notes if SENTENCE in note and "foreign.safetensors" in note]
        assert finish(session, "Tell me a short story").notes == ()
        other_session = model.new_session()
        assert finish(other_session, "Tell me a short story", drafter="ngram").notes == ()
        assert SENTENCE in finish(other_session, "Tell me a short story").notes[0]
    finally:
        model.close()


def test_a_sidecar_that_belongs_is_not_suspected(demo_with_sidecar: engine.Model) -> None:
    session = demo_with_sidecar.new_session()
    for text in ("Tell me a short story", "What is the capital of France?"):
        assert finish(session, text).notes == ()


def a_round(verdicts: str, source: str = "mtp") -> Round:
    """A letter per draft: accepted, rejected, unused."""
    words = {"a": "accepted", "r": "rejected", "u": "unused"}
    drafts = tuple(DraftedToken(1, "x", source, None, None, words[letter]) for letter in verdicts)  # type: ignore[arg-type]
    return Round(0, 0, "answer", drafts, (), 0.0, 0.0)


@pytest.mark.parametrize(
    ("rounds", "suspected"),
    [
        (["r"] * 23, False),
        (["r"] * 24, True),
        (["ru"] * 23, False),
        (["r"] * 24 + ["a"], False),
        (["r"] * 33 + ["a"], True),
        (["r"] * 20 + ["arr", "rr"], False),
    ],
)
def test_how_many_drafts_are_enough(rounds: list[str], suspected: bool) -> None:
    watch = SidecarWatch("folder/side.gguf")
    for verdicts in rounds:
        list(watch.over(iter([a_round(verdicts), a_round("rrrr", "ngram")])))
    assert bool(watch.notes()) is suspected
    assert watch.notes() == ()
    silent = SidecarWatch(None)
    list(silent.over(iter([a_round("r" * 40)])))
    assert silent.notes() == ()


def test_closing_it_closes_what_it_watches() -> None:
    closed = []

    def rounds():  # type: ignore[no-untyped-def]
        try:
            while True:
                yield a_round("r")
        finally:
            closed.append(True)

    seen = SidecarWatch("s").over(rounds())
    next(seen)
    seen.close()  # type: ignore[attr-defined]
    assert closed == [True]


def test_an_empty_head_is_noticed(tmp_path: Path) -> None:
    """A tied head that is not used makes every token equally likely: the perplexity is the vocabulary's size."""
    stored = other.published(DATA / "tiny-moe")
    dtype, values = stored["lm_head.weight"]
    stored["lm_head.weight"] = dtype, np.zeros_like(values)
    notes = []
    for name, head in (("empty", stored), ("sound", other.published(DATA / "tiny-moe"))):
        model = engine.load_model(other.write(tmp_path / name, DATA / "tiny-moe", {"model.safetensors": head}))
        notes.append(finish(model.new_session(), "Hello", drafter="none").notes)
        model.close()
    assert len(notes[0]) == 1
    assert "nearly all tokens equally likely" in notes[0][0]
    assert notes[1] == ()


def test_untrained_weights_are_not_flat() -> None:
    rng = np.random.default_rng(0)
    assert flatness_note(rng.standard_normal(248_320).astype(np.float32)) == ""
    assert flatness_note(0.5 * rng.standard_normal(248_320).astype(np.float32)) != ""
    assert flatness_note(np.zeros(1000, np.float32)) != ""
    peaked = np.zeros(1000, np.float32)
    peaked[3] = 20
    assert flatness_note(peaked) == ""
