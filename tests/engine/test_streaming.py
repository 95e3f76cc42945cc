"""A whole model larger than its memory budget: the same bits at every budget, and replies that survive a bad disk."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import engine
from engine import DraftOptions, Failed, Finished, GenerateOptions, LoadOptions, Message, PrefillProgress, Round
from engine.options import DrafterName
from engine.weights import reader as reader_module
from engine.weights.reader import Stall
from tests.engine.weights.faulty import FaultyFiles

DATA = Path(__file__).parents[1] / "data"
CHECKPOINTS: dict[str, str | Path] = {
    "demo": "demo",
    "dense": DATA / "tiny-dense",
    "dense-gguf": DATA / "tiny-dense" / "gguf" / "tiny-dense-Q4_K_M.gguf",
    "moe": DATA / "tiny-moe",
    "moe-gguf": DATA / "tiny-moe" / "gguf" / "tiny-moe-Q4_K_M.gguf",
}
DRAFTERS: tuple[DrafterName, ...] = ("none", "mtp", "mtp+ngram")
TOKENS = [5, 17, 99, 3, 40, 41, 42, 5, 17, 99, 3, 40]
LENGTH = 12


def options(drafter: DrafterName) -> GenerateOptions:
    return GenerateOptions(draft=DraftOptions(drafter), max_new_tokens=LENGTH, ignore_eos=True)


def written(model: engine.Model, drafter: DrafterName) -> tuple[tuple[int, ...], list[Round]]:
    records = list(model.new_session().complete(TOKENS, options(drafter)))
    assert isinstance(records[-1], Finished), records[-1]
    return records[-1].tokens, [record for record in records if isinstance(record, Round)]


def bits(model: engine.Model) -> dict[str, bytes]:
    arrays = model.logits(TOKENS, rows_per_pass=4, mtp=model.info.mtp != "none")
    return {name: array.tobytes() for name, array in arrays.items()}


def budgets(path: str | Path) -> list[int]:
    """The smallest that works, three times the largest unit, and half-way to everything."""
    planner = engine.open_planner(path)
    largest = max(unit.nbytes for unit in planner.plan(planner.minimum).units)
    least = max(planner.minimum, 3 * largest)
    return sorted({planner.minimum, least, least + (planner.everything - least) // 2})


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_budget_gives_the_bits_of_the_resident_model(name: str) -> None:
    """The budget changes between replies, up and down, and conversations go on across the change."""
    path = CHECKPOINTS[name]
    model = engine.load_model(path, options=LoadOptions(threads=2))
    try:
        expected = {drafter: written(model, drafter)[0] for drafter in DRAFTERS}
        logits = bits(model)
        session = model.new_session()
        for budget in [*budgets(path), *budgets(path)[:1]]:
            model.set_budget(budget)
            assert bits(model) == logits
            for drafter in DRAFTERS:
                tokens, rounds = written(model, drafter)
                assert tokens == expected[drafter]
                assert sum(r.bytes_read for r in rounds) > 0
                assert all(0 < r.disk.memory_bytes <= budget for r in rounds[1:])
            again = list(session.complete(TOKENS, options("mtp")))[-1]
            assert isinstance(again, Finished)
            assert again.tokens == expected["mtp"]
        model.set_budget(None)
        tokens, rounds = written(model, "mtp")
        assert tokens == expected["mtp"]
        assert sum(r.bytes_read + r.disk.misses for r in rounds) == 0
    finally:
        model.close()


def test_a_budget_from_the_start_is_the_same_as_one_set_later(tiny_dense: engine.Model) -> None:
    path = CHECKPOINTS["dense"]
    model = engine.load_model(path, options=LoadOptions(threads=1, memory_budget=budgets(path)[0]))
    try:
        assert written(model, "mtp")[0] == written(tiny_dense, "mtp")[0]
        assert set(model.residency().values()) <= {"resident", "ring", "reading", "disk"}
        assert model.statistics().misses > 0
    finally:
        model.close()


def test_a_budget_that_is_too_small_changes_nothing(tiny_dense: engine.Model) -> None:
    before = tiny_dense.statistics().memory_bytes
    with pytest.raises(engine.OptionError, match="needs at least"):
        tiny_dense.set_budget(1000)
    assert tiny_dense.statistics().memory_bytes == before
    assert len(written(tiny_dense, "mtp")[0]) == LENGTH


def test_rounds_and_reply_count_the_same() -> None:
    path = CHECKPOINTS["moe"]
    model = engine.load_model(path, options=LoadOptions(threads=1, memory_budget=budgets(path)[0]))
    try:
        records = list(model.new_session().complete(TOKENS, options("mtp")))
        stats = records[-1].stats if isinstance(records[-1], Finished) else None
        assert stats is not None
        rounds = [r for r in records if isinstance(r, Round)]
        for field in ("read_s", "hits", "misses", "expert_hits", "expert_misses"):
            assert getattr(stats.disk, field) == pytest.approx(sum(getattr(r.disk, field) for r in rounds))
        assert stats.bytes_read == sum(r.bytes_read for r in rounds) > 0
        assert stats.disk.hits + stats.disk.misses >= len(rounds[1:]) * model.info.layers
        assert stats.disk.expert_hits + stats.disk.expert_misses > 0
        assert 0 <= (stats.disk.overlap(stats.disk_wait_s) or 0) <= 1
    finally:
        model.close()


# ---- a bad disk


class Chat:
    """A streamed model on a disk that fails as a test asks."""

    def __init__(self, folder: Path, files: FaultyFiles, stalled: Callable[[Stall], None] | None = None) -> None:
        self.folder, self.files = folder, files
        self.model = engine.load_model(
            folder, options=LoadOptions(threads=1, memory_budget=budgets(folder)[0]), stalled=stalled
        )
        self.session = self.model.new_session()
        self.cancel = engine.CancelToken()

    def ask(self, trouble: Callable[[], None] = lambda: None, after: int = 3) -> list[engine.Record]:
        """A whole reply; `trouble` begins after round `after`."""
        said = [Message("user", "Once upon a time")]
        records: list[engine.Record] = []
        for record in self.session.reply(said, options("mtp"), self.cancel):
            records.append(record)
            if isinstance(record, Round) and record.index == after:
                trouble()
        return records


@pytest.fixture(params=["tiny-dense", "tiny-moe"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    copy: Path = tmp_path / request.param
    shutil.copytree(DATA / request.param, copy, ignore=shutil.ignore_patterns("*.npz", "gguf"))
    return copy


@pytest.fixture
def chat(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    files = FaultyFiles()
    monkeypatch.setattr("engine.loading.DiskFiles", lambda: files)
    stalls: list[Stall] = []
    made = Chat(folder, files, stalls.append)
    made.stalls = stalls  # type: ignore[attr-defined]
    yield made
    files.gate.set()
    made.model.close()


def reply_of(records: list[engine.Record]) -> tuple[int, ...]:
    assert isinstance(records[-1], Finished), records[-1]
    return records[-1].tokens


def check_failure(records: list[engine.Record], whole: tuple[int, ...], where: str) -> Failed:
    """The reply failed, kept what was said, and says where."""
    failed = records[-1]
    assert isinstance(failed, Failed), failed
    assert failed.kind == "ReadError"
    assert 0 < len(failed.tokens) < len(whole)
    assert failed.tokens == whole[: len(failed.tokens)]
    assert failed.tokens == tuple(c.token for r in records if isinstance(r, Round) for c in r.committed)
    assert __import__("re").search(where, failed.message), failed.message
    return failed


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def test_a_read_error_ends_the_reply_and_not_the_session(chat: Chat) -> None:
    whole = reply_of(chat.ask())

    def break_disk() -> None:
        chat.files.errors = {path.name: errno.EIO for path in shards(chat.folder)}

    failed = check_failure(chat.ask(break_disk), whole, r"Reading .*safetensors at byte \d+ failed")
    assert failed.stats.stop_reason == "failed"
    assert isinstance(chat.ask()[-1], Failed), "the disk is still broken"
    chat.files.errors = {}
    assert reply_of(chat.ask()) == whole


def test_a_file_cut_short_while_streaming(chat: Chat) -> None:
    """On the real file system, in place: what a broken download or a careless tool does."""
    whole = reply_of(chat.ask())
    kept = {path: path.read_bytes() for path in shards(chat.folder)}

    def cut() -> None:
        for path in kept:
            with path.open("r+b") as file:
                file.truncate(100_000)

    check_failure(chat.ask(cut), whole, r"safetensors ends at byte \d+, \d+ bytes too early")
    for path, data in kept.items():
        path.write_bytes(data)
    assert reply_of(chat.ask()) == whole


def test_a_file_that_cannot_be_opened_any_more(chat: Chat) -> None:
    whole = reply_of(chat.ask())

    def remove() -> None:
        chat.files.errors = {path.name: errno.ESTALE for path in shards(chat.folder)}  # open handles are dead
        chat.files.missing = {path.name for path in shards(chat.folder)}

    check_failure(chat.ask(remove), whole, r"safetensors at byte \d+")
    chat.files.errors = {}
    assert isinstance(chat.ask()[-1], Failed), "the file is still gone"
    chat.files.missing = set()
    assert reply_of(chat.ask()) == whole


def test_a_stalled_disk_is_told_and_waited_for(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "_STALL_AFTER", 0.05)
    monkeypatch.setattr(reader_module, "_REPORT_EVERY", 0.01)
    whole = reply_of(chat.ask())
    told = threading.Event()
    stalls: list[Stall] = chat.stalls  # type: ignore[attr-defined]

    def go_on_once_told() -> None:
        while not stalls and not told.wait(0.02):
            pass
        chat.files.gate.set()

    waker = threading.Thread(target=go_on_once_told)

    def stall() -> None:
        chat.files.gate.clear()
        waker.start()

    assert reply_of(chat.ask(stall)) == whole
    told.set()
    waker.join()
    assert stalls
    assert stalls[0].file in {path.name for path in shards(chat.folder)}
    assert stalls[0].offset >= 0


def test_a_stop_during_a_read_that_never_ends(chat: Chat) -> None:
    """The reply ends while the disk still holds the read; afterwards all goes on."""
    whole = reply_of(chat.ask())

    def hang() -> None:
        chat.files.gate.clear()
        threading.Timer(0.2, chat.cancel.cancel).start()

    patience = threading.Timer(10, chat.files.gate.set)  # long before a stalled read of the tests gives up
    patience.start()
    stopped = chat.ask(hang)[-1]
    patience.cancel()
    patience.join()
    assert isinstance(stopped, Finished)
    assert stopped.stats.stop_reason == "cancelled"
    assert not chat.files.gate.is_set(), "nobody let the disk go on"
    assert 0 < len(stopped.tokens) < len(whole)
    assert stopped.tokens == whole[: len(stopped.tokens)]
    chat.files.gate.set()
    chat.cancel = engine.CancelToken()
    assert reply_of(chat.ask()) == whole


def test_changing_the_budget_on_a_bad_disk_says_where(chat: Chat) -> None:
    chat.files.errors = {path.name: errno.EIO for path in shards(chat.folder)}
    with pytest.raises(engine.ReadError, match=r"at byte \d+"):
        chat.model.set_budget(None)


def test_logits_of_a_streamed_model_are_finite(chat: Chat) -> None:
    assert np.isfinite(chat.model.logits(TOKENS)["logits"]).all()


def test_memory_follows_what_drafts(tiny_dense: engine.Model) -> None:
    """A reply without MTP drafts has other weights in memory, says so, and is the same."""
    path = CHECKPOINTS["dense"]
    planner = engine.open_planner(path)
    budget = planner.minimum + int(0.7 * (planner.everything - planner.minimum))
    model = engine.load_model(path, options=LoadOptions(threads=1, memory_budget=budget))
    try:
        session = model.new_session()
        kept = []
        for drafter in ("mtp", "none", "none", "mtp"):
            records = list(session.complete(TOKENS, options(drafter)))
            told = any(isinstance(r, PrefillProgress) and "memory" in r.stage for r in records)
            assert isinstance(records[-1], Finished), records[-1]
            assert records[-1].tokens == written(tiny_dense, drafter)[0]
            kept.append((told, model.residency()["mtp"] == "resident"))
        assert kept == [(False, True), (True, False), (False, False), (True, True)]
    finally:
        model.close()


def test_a_bad_disk_while_memory_is_shared_out_anew(chat: Chat) -> None:
    whole = reply_of(chat.ask())
    planner = engine.open_planner(chat.folder)
    chat.model.set_budget(planner.minimum + int(0.7 * (planner.everything - planner.minimum)))
    chat.files.errors = {path.name: errno.EIO for path in shards(chat.folder)}
    failed = list(chat.session.complete(TOKENS, options("none")))[-1]
    assert isinstance(failed, Failed)
    assert failed.kind == "ReadError"
    chat.files.errors = {}
    assert reply_of(chat.ask()) == whole


def test_a_proof_after_a_stop_in_another_session(chat: Chat) -> None:
    """Sharing memory out for the other session was stopped half-way; the proof gets its weights all the same."""
    planner = engine.open_planner(chat.folder)
    chat.model.set_budget(planner.minimum + int(0.7 * (planner.everything - planner.minimum)))
    reply_of(list(chat.session.complete(TOKENS, replace(options("mtp"), provable=True))))
    cancel = engine.CancelToken()
    cancel.cancel()
    stopped = list(chat.model.new_session().complete(TOKENS, options("none"), cancel))[-1]
    assert isinstance(stopped, Finished)
    assert stopped.stats.stop_reason == "cancelled"
    assert set(chat.model.residency().values()) == {"disk"}
    assert chat.session.check().passed
