"""An engine by script: replies made by hand, loads that are slow, fail or wait, all without a model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine import (
    AnswerNow,
    Cancelled,
    CancelToken,
    CheckpointError,
    CommittedToken,
    DraftedToken,
    EngineError,
    Failed,
    Finished,
    GenerateOptions,
    LoadOptions,
    LoadProgress,
    MemoryBudget,
    Message,
    ModelInfo,
    Picture,
    PictureSize,
    PositionCount,
    PrefillProgress,
    Record,
    Round,
    SamplingOptions,
    SelfCheck,
    Stall,
    Stats,
    WeightStatistics,
    find_tool_calls,
)

WORDS = ("The", "capital", "of", "France", "is", "Paris,", "and", "the", "Seine", "runs", "through", "it.")
PATIENCE_S = 20.0
"""No script waits longer for its test."""


def model_info(path: Path, sidecar: Path | None = None, **changes: object) -> ModelInfo:
    facts: dict[str, object] = {
        "name": path.name,
        "path": str(path),
        "sidecar": str(sidecar) if sidecar else None,
        "architecture": "qwen3_5",
        "parameters": 7_121_056,
        "weight_bytes": 14_242_112,
        "layers": 8,
        "hidden_size": 256,
        "vocabulary": 4096,
        "context": 4096,
        "mtp": "sidecar" if sidecar else "checkpoint",
        "draft_note": "",
        "draft_head_rows": 4096,
        "threads": 2,
        "formats": ("BF16",),
        "recommended": SamplingOptions(),
        "thinking": False,
    }
    return ModelInfo(**(facts | changes))  # type: ignore[arg-type]


def drafted(text: str, verdict: str, source: str = "mtp", probability: float = 0.8) -> DraftedToken:
    tested = verdict != "unused"
    return DraftedToken(
        token=len(text),
        text=text,
        source=source,  # type: ignore[arg-type]
        draft_probability=probability,
        model_probability=0.9 if verdict == "accepted" else 0.1 if tested else None,
        verdict=verdict,  # type: ignore[arg-type]
        replacement=7 if verdict == "rejected" else None,
    )


def rounds_of(words: Sequence[str], position: int = 20) -> Iterator[Round]:
    """The prompt's own token, then rounds of three drafts that take turns: all accepted, two, one, none, by lookup."""
    yield Round(0, position, "answer", (), (CommittedToken(1, words[0], "model", "model", 0.7),), 0.0, 0.0)
    at, index = 1, 1
    while at < len(words):
        accepted = (3, 3, 2, 1, 0)[index % 5]
        source = "ngram" if index % 5 == 0 else "mtp"
        said = [f" {word}" for word in words[at : at + accepted + 1]]
        count = min(accepted, len(said))
        drafts = [drafted(word, "accepted", source) for word in said[:count]]
        if count == accepted < 3:
            drafts += [drafted(" perhaps", "rejected", source, 0.4)]
            drafts += [drafted(" then", "unused", source, 0.3) for _ in range(2 - accepted)]
        committed = [CommittedToken(len(word), word, "accepted", source, 0.9) for word in said[:count]]  # type: ignore[arg-type]
        if len(said) > accepted:
            committed.append(CommittedToken(1, said[-1], "bonus" if accepted == 3 else "correction", "model", 0.6))
        yield Round(
            index=index,
            position=position + at,
            phase="answer",
            drafts=tuple(drafts),
            committed=tuple(committed),
            draft_s=0.004 + 0.001 * (index % 3),
            verify_s=0.012 + 0.002 * (index % 4),
            draft_length=3,
            next_draft_length=3,
        )
        at, index = at + len(said), index + 1


def thought(text: str, index: int) -> Round:
    """A round that thinks one token."""
    return Round(index, 20 + index, "think", (), (CommittedToken(3, text, "model", "model", 0.5, "think"),), 0.0, 0.02)


def thinking(texts: Sequence[str]) -> list[Round]:
    """A thought, token by token."""
    return [thought(text, index) for index, text in enumerate(texts)]


def finished(rounds: Sequence[Round], reason: str = "end") -> Finished:
    """The end of a reply of these rounds, with the numbers that go with them."""
    tokens = [token for record in rounds for token in record.committed]
    verdicts = [draft.verdict for record in rounds for draft in record.drafts]
    accepted, tested = verdicts.count("accepted"), verdicts.count("accepted") + verdicts.count("rejected")
    passes = max(0, len(rounds) - 1)
    said = max(0, len(tokens) - 1)
    seconds = sum(record.draft_s + record.verify_s for record in rounds)
    stats = Stats(
        rounds=passes,
        drafted=len(verdicts),
        tested=tested,
        accepted=accepted,
        emitted=len(tokens),
        per_position=(PositionCount(tested, accepted),),
        tokens_per_s=said / seconds if seconds else 0.0,
        tokens_per_round=said / passes if passes else 0.0,
        acceptance=accepted / tested if tested else None,
        stop_reason=reason,  # type: ignore[arg-type]
    )
    text = "".join(token.text for token in tokens)
    calls = find_tool_calls(text)
    return Finished(tokens=tuple(token.token for token in tokens), text=text, stats=stats, tool_calls=calls)


@dataclass
class Script:
    """How the scripted engine behaves; tests change it as they go."""

    words: Sequence[str] = WORDS
    pace_s: float = 0.0
    """Pause before each round; the cancel token ends it early."""
    thoughts: Sequence[str] = ()
    """Thought before the answer; the thought goes on until the answer is asked for."""
    hold_after: int | None = None
    """Wait at this round until the test sets `go`, or Stop."""
    fail_after: int | None = None
    """Fail at this round."""
    raise_after: int | None = None
    """Raise what no engine should at this round."""
    silent_end: bool = False
    load_problem: str = ""
    load_surprise: bool = False
    load_steps: int = 3
    hold_load: bool = False
    """Wait in the middle of the load until the test sets `go`, or Cancel."""
    deaf: bool = False
    """Do not look at the cancel token while waiting."""
    facts: dict[str, object] = field(default_factory=dict)
    go: threading.Event = field(default_factory=threading.Event)
    started: threading.Event = field(default_factory=threading.Event)
    """Set when a wait has begun."""
    calls: list[str] = field(default_factory=list)
    asked: list[tuple[Message, ...]] = field(default_factory=list)
    completed: list[tuple[int, ...]] = field(default_factory=list)
    options: list[GenerateOptions] = field(default_factory=list)
    encoded: list[str] = field(default_factory=list)
    searched: list[list[list[int]]] = field(default_factory=list)
    """Other texts that sessions were to look into."""
    load_options: list[LoadOptions] = field(default_factory=list)
    stalled: Callable[[Stall], None] = field(default=lambda _: None)
    """Tells a stalled disk, once a model is loaded."""
    units: dict[str, str] = field(default_factory=lambda: {f"layers.{i}": "resident" for i in range(8)})
    layer: int = 0
    bytes_read: int = 0
    budget_problems: list[EngineError] = field(default_factory=list)
    """Raised by the next changes of the budget."""

    def wait(self, cancel: CancelToken) -> None:
        self.started.set()
        for _ in range(round(PATIENCE_S / 0.01)):
            if self.go.wait(0.01):
                return
            if not self.deaf:
                cancel.check()

    def load_model(
        self,
        path: Path,
        *,
        sidecar: Path | None,
        mmproj: Path | None,
        options: LoadOptions,
        progress: Callable[[LoadProgress], None],
        stalled: Callable[[Stall], None],
        cancel: CancelToken,
    ) -> ScriptedModel:
        self.stalled = stalled
        self.load_options.append(options)
        self.calls.append(f"load {path.name}")
        if self.load_surprise:
            raise ZeroDivisionError("a fault that nobody foresaw")
        for step in range(self.load_steps):
            cancel.check()
            message = f"preparing kernels for this CPU: {step + 1} of {self.load_steps}"
            progress(LoadProgress("kernels", message, step + 1, self.load_steps, "kernels"))
            if self.hold_load and step == self.load_steps // 2:
                self.wait(cancel)
        if self.load_problem:
            raise CheckpointError(self.load_problem)
        seeing = {"mmproj": str(mmproj), "vision": True} if mmproj else {}
        return ScriptedModel(self, model_info(path, sidecar, **self.facts | seeing))


class ScriptedModel:
    def __init__(self, script: Script, info: ModelInfo) -> None:
        self.script, self.info = script, info

    def new_session(self) -> ScriptedSession:
        self.script.calls.append("session")
        return ScriptedSession(self.script)

    def encode(self, text: str) -> list[int]:
        self.script.encoded.append(text)
        return [len(word) for word in text.split()]

    def picture_sizes(self, picture: Picture) -> tuple[PictureSize, ...]:
        return PictureSize(None, 1600, 800, 1250), PictureSize(1024, 1024, 512, 512), PictureSize(512, 512, 256, 128)

    def statistics(self) -> WeightStatistics:
        return WeightStatistics(bytes_read=self.script.bytes_read, ring_bytes=1000)

    def residency(self) -> dict[str, str]:
        return dict(self.script.units)

    def activity(self) -> tuple[int, int]:
        return self.script.layer, self.info.layers

    def set_budget(
        self,
        budget: MemoryBudget,
        progress: Callable[[int, int], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        self.script.calls.append(f"budget {budget}")
        if self.script.budget_problems:
            raise self.script.budget_problems.pop(0)

    def close(self) -> None:
        self.script.calls.append(f"close {self.info.name}")


class ScriptedSession:
    def __init__(self, script: Script) -> None:
        self.script = script

    def prompt_tokens(self, messages: Sequence[Message], options: GenerateOptions) -> list[int]:
        return [len(word) for message in messages for word in message.content.split()]

    def search_also(self, texts: Sequence[Sequence[int]]) -> None:
        self.script.searched.append([list(text) for text in texts])

    def check(self, progress: Callable[[int, int], None] | None = None, cancel: CancelToken | None = None) -> SelfCheck:
        self.script.calls.append("check")
        if progress is not None:
            progress(3, 3)
        return SelfCheck(3, 3, None)

    def complete(
        self,
        tokens: Sequence[int],
        options: GenerateOptions,
        cancel: CancelToken | None = None,
        images: Sequence[Picture] = (),
        answer_now: AnswerNow | None = None,
    ) -> Iterator[Record]:
        self.script.completed.append(tuple(tokens))
        yield from self.reply((), options, cancel, answer_now)

    def reply(
        self,
        messages: Sequence[Message],
        options: GenerateOptions,
        cancel: CancelToken | None = None,
        answer_now: AnswerNow | None = None,
    ) -> Iterator[Record]:
        script, token = self.script, cancel or CancelToken()
        script.calls.append("reply")
        script.asked.append(tuple(messages))
        script.options.append(options)
        said: list[Round] = []
        try:
            for done in (8, 20):
                token.check()
                yield PrefillProgress(done, 20)
            for record in thinking(script.thoughts):
                said.append(record)
                yield record
            while said and answer_now is not None and not answer_now.asked:
                token.check()
                token.wait(0.01)
            if said:
                said.append(thought("\n</think>\n\n", len(said)))
                yield said[-1]
            for record in rounds_of(script.words):
                if script.pace_s and token.wait(script.pace_s):
                    token.check()
                if record.index == script.hold_after:
                    script.wait(token)
                if record.index == script.raise_after:
                    raise ZeroDivisionError("a fault that nobody foresaw")
                if record.index == script.fail_after:
                    text = finished(said).text
                    yield Failed("Layer 3 gave NaN; open another checkpoint.", "NumericsError", (), text)
                    return
                token.check()
                said.append(record)
                yield record
        except Cancelled:
            yield finished(said, "cancelled")
            return
        if not script.silent_end:
            yield finished(said)
