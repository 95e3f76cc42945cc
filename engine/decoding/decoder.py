"""One reply by speculative decoding.

A round, with next token x (committed, not yet read by the model):

    draft     d1 … dk      the drafter's guess at what follows x
    read      [x, d1 … dk] in one pass of the model: row i of the logits says what the model would say after d_i
    verify    the longest acceptable prefix d1 … da, then one token y of the model's own
    commit    d1 … da, y   cut at the first stop; y is the next round's x
    rewind    the model's caches to [… x, d1 … da]

With k = 0 that is plain decoding. The last token of a reply is committed, but never read.

A thought that has to end (its budget is used up, or the person wants the answer) ends in a round of its own: nothing is
drafted, and what is committed are the tokens that close it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from engine.cancel import AnswerNow, CancelToken
from engine.decoding.costs import CostMeter, RoundCosts, RoundOutcome
from engine.decoding.draft_length import LengthPolicy, length_policy
from engine.decoding.protocols import Detokeniser, Draft, Drafter, FloatArray, TargetModel
from engine.decoding.randomness import Purpose
from engine.decoding.records import DraftedToken, Phase, Round, Stats, StopReason
from engine.decoding.reply import Candidate, Reply, Taken, ThinkTokens
from engine.decoding.round_record import candidates, drafted_tokens
from engine.decoding.sampler import Sampler
from engine.decoding.selfcheck import VerifiedRow, verified_row
from engine.decoding.statistics import StatsCounter
from engine.decoding.verification import Verification, said, verify
from engine.errors import Cancelled
from engine.options import GenerateOptions
from engine.weights.statistics import WeightStatistics

_NOTHING = Draft((), (), ())
_MOST_FORCED = 15  # rows of a pass that can be taken back
_NO_VERDICT = Verification((), (), 0, None)


class Decoder:
    """Generates one reply. Target and drafter must have read the prompt, all of it, and the sampler must know it."""

    def __init__(
        self,
        target: TargetModel,
        drafter: Drafter | None,
        sampler: Sampler,
        options: GenerateOptions,
        end_tokens: frozenset[int],
        detokeniser: Detokeniser,
        *,
        think: ThinkTokens | None = None,
        thinking: bool = False,
        policy: LengthPolicy | None = None,
        reads: Callable[[], WeightStatistics] = WeightStatistics,
        clock: Callable[[], float] = time.perf_counter,
        keep_rows: bool = False,
    ) -> None:
        """
        Args:
            drafter: None for plain decoding.
            policy: decides draft lengths; None makes the one that `options.draft` names. A policy that is kept from
                reply to reply keeps what it learnt.
            thinking: the prompt ended inside a thought.
            reads: the counters of the weights, from any fixed start.
            keep_rows: keep in `rows` what the self check needs of every row that gave a token.
        """
        self._target = target
        self._drafter = drafter
        self._sampler = sampler
        self._reply = Reply(detokeniser, options, end_tokens, think, thinking)
        self._think = think
        self._forced: tuple[int, ...] = ()  # what has to come next
        self._policy = policy or length_policy(options.draft)
        self._reads = reads
        self._clock = clock
        self._keep_rows = keep_rows
        self._counter = StatsCounter(drafter.draft_step_bytes if drafter else 0)
        self._index = 0
        self._asked = 0
        self.rows: list[VerifiedRow] = []
        self.thought_closed: Literal["", "asked", "budget"] = ""
        """Why a thought was ended that the model would have gone on with: somebody asked, or its budget was used up."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The reply so far, with a stop token at its end if one came."""
        return tuple(self._reply.tokens)

    @property
    def text(self) -> str:
        """The reply's text so far, including characters that no record has shown yet because more might have come."""
        return self._reply.text

    @property
    def answer(self) -> str:
        """The text so far without thoughts."""
        return self._reply.answer

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the reply ended; None while it goes on."""
        return self._reply.stop_reason

    @property
    def stats(self) -> Stats:
        """The reply in numbers, without what only the session knows (prompt, prefill)."""
        return self._counter.stats(self.stop_reason or "cancelled")

    def run(
        self, logits: FloatArray, cancel: CancelToken | None = None, answer_now: AnswerNow | None = None
    ) -> Iterator[Round]:
        """Generate, beginning with the token that `logits` [V], those after the prompt's last token, give. A thought is
        closed before the next round once `answer_now` is asked.

        Every round yielded is committed: when the generator ends, is closed, or raises, the caches hold the prompt and
        `tokens` without the last. A cancelled run ends without an error, with stop reason "cancelled".

        Raises:
            EngineError: a round failed (NaN, a disk read). Caches and reply are as before that round.
        """
        try:
            self._end_thought(answer_now)
            yield self._first_round(logits)
            while self._reply.stop_reason is None:
                if cancel:
                    cancel.check()
                self._end_thought(answer_now)
                yield self._round(cancel)
        except Cancelled:
            self._reply.stop_reason = "cancelled"
        except Exception:
            self._reply.stop_reason = "failed"
            raise

    # ---- one round

    def _first_round(self, logits: FloatArray) -> Round:
        """The prompt's own logits give the first token: no pass, no drafts."""
        position = self._target.position
        room = self._room_from(position) + 1
        if self._forced:
            taken = self._take_forced(logits[None], room)
        else:
            row = self._sampler.row(logits)
            token = said(row, row.draw(Purpose.TARGET))
            taken = self._reply.consider([Candidate(token, "model", "model")], room)
        return self._commit(position, _NOTHING, _NO_VERDICT, taken, logits[None], RoundCosts())

    def _round(self, cancel: CancelToken | None) -> Round:
        """Draft, read, verify, rewind, commit. If anything fails before the commit, all is as before the round."""
        start, x = self._target.position, self._reply.tokens[-1]
        room = self._room_from(start)
        meter = CostMeter(self._clock, self._reads)
        try:
            draft = self._propose(x, cancel)
            meter.lap("draft")
            following = self._forced[: min(room, _MOST_FORCED)][:-1] or draft.tokens
            hidden = self._target.forward([x, *following], cancel)  # [k + 1, H]
            logits = self._target.logits(hidden)  # [k + 1, V]
            if self._forced:
                verdict, taken = _NO_VERDICT, self._take_forced(logits, room)
            else:
                verdict = verify(draft, logits, self._sampler, self._reply.end_tokens)
                taken = self._reply.consider(candidates(draft, verdict), room)
            meter.lap("verify")
            read = [x, *following][: len(taken.committed)]  # the last committed token is not read yet
            if self._drafter:
                self._drafter.extend(read, hidden[: len(read)])
            meter.lap("draft")
            self._target.rollback(start + len(read))
            meter.lap("verify")
        except BaseException:
            self._restore(start)
            raise
        return self._commit(start + 1, draft, verdict, taken, logits, meter.costs())

    def _propose(self, next_token: int, cancel: CancelToken | None) -> Draft:
        if self._drafter is None or self._forced:
            return _NOTHING
        return self._drafter.propose(next_token, self._asked, self._sampler, cancel)

    def _restore(self, start: int) -> None:
        if self._target.position != start:
            self._target.rollback(start)
        if self._drafter:
            self._drafter.truncate(start)

    def _commit(
        self, position: int, draft: Draft, verdict: Verification, taken: Taken, logits: FloatArray, costs: RoundCosts
    ) -> Round:
        """Make a round true, learn from it, and report it. Nothing here can fail."""
        asked, drafts = self._asked, drafted_tokens(draft, verdict, len(taken.committed), self._reply.stream)
        tokens = [committed.token for committed in taken.committed]
        phase = taken.committed[0].phase
        if self._keep_rows:
            forced = bool(self._forced)
            self.rows += [verified_row(position + i, token, logits[i], forced) for i, token in enumerate(tokens)]
        self._reply.commit(taken)
        self._sampler.commit(tokens)
        if self._index and not self._forced:
            self._learn(phase, drafts, costs)
        self._forced = self._forced[len(tokens) :]
        self._asked = self._next_length()
        record = Round(
            index=self._index,
            position=position,
            phase=phase,
            drafts=drafts,
            committed=taken.committed,
            draft_s=costs.draft_s,
            verify_s=costs.verify_s,
            disk_wait_s=costs.disk_wait_s,
            bytes_read=costs.bytes_read,
            draft_length=asked,
            next_draft_length=self._asked,
            note=draft.note,
            draft_passes=draft.passes,
            disk=costs.disk,
        )
        self._index += 1
        self._counter.add(record)
        return record

    # ---- the end of a thought

    def _end_thought(self, answer_now: AnswerNow | None) -> None:
        """Force the tokens that close the thought, if it has to end."""
        wanted = answer_now is not None and answer_now.asked and self._reply.phase == "think"
        if self._think and not self._forced and (wanted or self._reply.has_thought_enough):
            self._forced = self._think.forced
            self.thought_closed = "asked" if wanted else "budget"

    def _take_forced(self, logits: FloatArray, room: int) -> Taken:
        """Go on with as many of the forced tokens as there are rows of logits [T, V] for them."""
        tokens = self._forced[: len(logits)]
        rows = [self._sampler.row(logits[i], tokens[:i]) for i in range(len(tokens))]
        forced = [Candidate(said(row, token), "model", "model") for row, token in zip(rows, tokens, strict=True)]
        return self._reply.consider(forced, room, forced=True)

    # ---- draft lengths

    def _learn(self, phase: Phase, drafts: Sequence[DraftedToken], costs: RoundCosts) -> None:
        accepted = sum(draft.verdict == "accepted" for draft in drafts)
        tested = accepted + sum(draft.verdict == "rejected" for draft in drafts)
        self._policy.observe(RoundOutcome(phase, len(drafts), tested, accepted, costs.draft_s, costs.verify_s))
        if self._drafter:
            self._drafter.observe(tested, accepted)

    def _next_length(self) -> int:
        """Drafts to ask for next: what the policy says, but never past the last token that may come."""
        if self._drafter is None or self._reply.stop_reason:
            return 0
        longest = min(self._reply.left, self._room_from(self._target.position)) - 1  # one token is the model's own
        return max(0, min(self._policy.choose(self._reply.phase), longest))

    def _room_from(self, position: int) -> int:
        """Positions free in the context from `position` on."""
        return self._target.context - position
