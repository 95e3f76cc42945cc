"""What has been said so far: tokens, text and phase of one reply, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engine.decoding.protocols import Detokeniser
from engine.decoding.records import Alternative, CommittedToken, Origin, Phase, Source, StopReason
from engine.decoding.text_stream import TextStream
from engine.decoding.verification import Said
from engine.options import GenerateOptions


@dataclass(frozen=True, slots=True)
class ThinkTokens:
    """The tokens around a thought. Both belong to it."""

    open: int
    close: int
    ending: tuple[int, ...] = ()
    """What ends a thought that has to end; the closing token alone if empty."""

    @property
    def forced(self) -> tuple[int, ...]:
        return self.ending or (self.close,)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that the reply goes on with, unless it is over before."""

    said: Said
    origin: Origin
    source: Source


@dataclass(frozen=True, slots=True)
class Taken:
    """How the reply goes on: made by `Reply.consider`, made true by `Reply.commit`."""

    committed: tuple[CommittedToken, ...]
    stop_reason: StopReason | None
    stream: TextStream
    phase: Phase
    """Of the token that comes next, as far as is known."""
    thought: int
    """Thinking tokens so far."""


class Reply:
    """A growing reply."""

    def __init__(
        self,
        detokeniser: Detokeniser,
        options: GenerateOptions,
        end_tokens: frozenset[int],
        think: ThinkTokens | None = None,
        thinking: bool = False,
    ) -> None:
        """`thinking`: the prompt ended inside a thought (a template may open it)."""
        self.tokens: list[int] = []
        self.stream = TextStream(detokeniser, options.stop_strings)
        self.phase: Phase = "think" if thinking else "answer"
        self.stop_reason: StopReason | None = None
        self.end_tokens = frozenset() if options.ignore_eos else end_tokens
        self._think = think
        self._think_budget = options.think_budget
        self._thought = 0
        self._most = options.max_new_tokens
        self._pieces: list[str] = []
        self._answer: list[str] = []

    @property
    def text(self) -> str:
        """All text, with what is still held back (an unfinished character, the beginning of a stop string)."""
        return "".join(self._pieces) + self.stream.clone().finish()

    @property
    def answer(self) -> str:
        """The text without thoughts, as far as it has been shown."""
        return "".join(self._answer)

    @property
    def has_thought_enough(self) -> bool:
        """Is it in a thought that has used up the budget?"""
        return self._exhausted(self.phase, self._thought)

    @property
    def left(self) -> int:
        """Tokens that may still come."""
        return self._most - len(self.tokens)

    def consider(self, candidates: Iterable[Candidate], room: int, forced: bool = False) -> Taken:
        """Go on with `candidates` up to the first that ends the reply or, unless they are `forced`, that uses up the
        budget of a thought. Changes nothing.

        `room`: with that many more tokens the context is full.
        """
        stream, phase, thought = self.stream.clone(), self.phase, self._thought
        committed: list[CommittedToken] = []
        stop: StopReason | None = None
        for candidate in candidates:
            token = candidate.said.token
            if self._think and token == self._think.open:
                phase = "think"
            alternatives = shown(candidate.said.alternatives, stream)
            text = "" if token in self.end_tokens else stream.push(token)
            committed.append(
                CommittedToken(
                    token, text, candidate.origin, candidate.source, candidate.said.probability, phase, alternatives
                )
            )
            thought += phase == "think"
            if self._think and token == self._think.close:
                phase = "answer"
            stop = self._stop_after(token, len(committed), room, stream)
            if stop:
                committed[-1] = replace(committed[-1], text=text + stream.finish())
                break
            if not forced and self._exhausted(phase, thought):
                break
        return Taken(tuple(committed), stop, stream, phase, thought)

    def commit(self, taken: Taken) -> None:
        """The reply has gone on so."""
        self.tokens += [committed.token for committed in taken.committed]
        self._pieces += [committed.text for committed in taken.committed]
        self._answer += [committed.text for committed in taken.committed if committed.phase == "answer"]
        self.stream, self.phase, self.stop_reason = taken.stream, taken.phase, taken.stop_reason
        self._thought = taken.thought

    def _exhausted(self, phase: Phase, thought: int) -> bool:
        return phase == "think" and self._think_budget is not None and thought >= self._think_budget

    def _stop_after(self, token: int, new: int, room: int, stream: TextStream) -> StopReason | None:
        if token in self.end_tokens:
            return "end"
        if stream.stopped:
            return "stop-string"
        if new >= self.left:
            return "length"
        return "context" if new >= room else None


def shown(
    pairs: Sequence[tuple[int, float]], stream: TextStream, ahead: tuple[int, ...] = ()
) -> tuple[Alternative, ...]:
    """(token, probability) pairs with the text that each would add after `stream` and the tokens `ahead`."""
    return tuple(Alternative(token, stream.preview((*ahead, token))[-1], probability) for token, probability in pairs)
