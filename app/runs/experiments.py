"""What can be done with the last reply beside reading it: proving it, and measuring plain decoding on its prompt.

Both run in the engine's thread as tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.jobs import ReplyJob, SessionLike, TaskJob
from app.language import tr, trn
from app.worker import records_of
from engine import DraftOptions, EngineError, Failed, Finished, PrefillProgress, Record, Round

if TYPE_CHECKING:
    from engine import GenerateOptions, SelfCheck

PLAIN_TOKENS = 64
"""Enough for a steady speed, and soon done."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a proof found."""

    check: SelfCheck
    same: bool
    """Whether the reply, said once more with drafts, had the same tokens."""


def closed_thought(records: Iterable[Record]) -> int | None:
    """After how many thinking tokens a thought was closed by force; None if none was. The round that closes it has
    several tokens, but no drafts."""
    thought = 0
    for record in records:
        if isinstance(record, Round):
            if record.phase == "think" and len(record.committed) > 1 and not record.drafts:
                return thought
            thought += sum(token.phase == "think" for token in record.committed)
    return None


def prove(
    session: SessionLike | None, task: TaskJob, job: ReplyJob, reply: Finished | Failed, closed: int | None = None
) -> Proof:
    """Say the reply once more with drafts, keeping what each row of logits was, then read it without drafts, one token
    at a time, and compare every row bit by bit.

    Replies do not keep their rows while they are written: with a wide vocabulary that costs milliseconds a token.
    `closed`: after so many tokens the person ended the thought; a budget ends it again at the same token.
    """
    if session is None:
        raise EngineError(tr("There is no reply to prove yet."))
    total = len(reply.tokens)
    options = replace(job.options, provable=True, top_alternatives=0, max_new_tokens=max(1, total))
    if closed is not None:
        options = replace(options, think_budget=closed)
    said = 0
    tokens: tuple[int, ...] = ()
    for record in records_of(session, replace_job(job, options, task)):
        if isinstance(record, Failed):
            raise EngineError(record.message)
        if isinstance(record, Finished):
            tokens = record.tokens
        elif isinstance(record, Round):
            said += len(record.committed)
            task.mailbox.put(PrefillProgress(said, 2 * total, stage="proving"))
    task.cancel.check()

    def progress(done: int, rows: int) -> None:
        task.mailbox.put(PrefillProgress(rows + done, 2 * rows, stage="proving"))

    return Proof(session.check(progress, task.cancel), tokens == reply.tokens)


def replace_job(job: ReplyJob, options: GenerateOptions, task: TaskJob) -> ReplyJob:
    """The same question with other options, stopped by the task's Stop."""
    again = ReplyJob(job.messages, options, so_far=job.so_far)
    again.cancel = task.cancel
    return again


def verdict(proof: Proof) -> str:
    """What a proof found, in a sentence."""
    check = proof.check
    if check.rows == 0:
        return tr("There was nothing to compare: the reply is empty.")
    if not check.passed:
        return _difference(check)
    words = trn(
        "Proved: {n} row compared, {identical} identical in every bit with plain decoding, one token at a time "
        "without drafts.",
        "Proved: {n} rows compared, {identical} identical in every bit with plain decoding, one token at a time "
        "without drafts.",
        check.rows,
        identical=check.identical_rows,
    )
    if proof.same:
        return words
    other = tr("Said again, the reply took other tokens: with sampling, other draft lengths draw other numbers.")
    return f"{words} {other}"


def _difference(check: SelfCheck) -> str:
    words = trn(
        "Not proved: {n} row compared, {identical} identical in every bit.",
        "Not proved: {n} rows compared, {identical} identical in every bit.",
        check.rows,
        identical=check.identical_rows,
    )
    if (first := check.first) is None:
        return words
    where = tr(
        "The first difference is at position {position}: the reply has token {token}, plain decoding says {plain}; "
        "logits differ by up to {most:.3g}. Please report it.",
        position=first.position,
        token=first.token,
        plain=first.plain_token,
        most=first.largest_logit_difference,
    )
    return f"{words} {where}"


def measure_plain(session: SessionLike | None, task: TaskJob, job: ReplyJob, tokens: int) -> Finished:
    """Answer the prompt of `job` once more without drafts, at most `tokens` tokens long."""
    if session is None:
        raise EngineError(tr("There is no reply to measure against yet."))
    options = replace(
        job.options, draft=DraftOptions("none"), max_new_tokens=max(2, min(tokens, PLAIN_TOKENS)), provable=False
    )
    last: Finished | Failed | None = None
    for record in records_of(session, replace_job(job, options, task)):
        if isinstance(record, Finished | Failed):
            last = record
    if isinstance(last, Finished) and last.stats.rounds:
        return last
    raise EngineError(
        last.message if isinstance(last, Failed) else tr("Plain decoding ended before it could be measured.")
    )
