"""What can be done with the last reply beside reading it: proving it, and measuring plain decoding on its prompt.

Both run in the engine's thread as tasks.
"""

from __future__ import annotations

from dataclasses import replace

from app.worker import ReplyJob, SessionLike, TaskJob
from engine import DraftOptions, EngineError, Failed, Finished, PrefillProgress, SelfCheck

PLAIN_TOKENS = 64
"""Enough for a steady speed, and soon done."""


def prove(session: SessionLike | None, task: TaskJob) -> SelfCheck:
    """Read the last reply again without drafts and compare every row of logits bit by bit."""
    if session is None:
        raise EngineError("There is no reply to prove yet.")

    def progress(done: int, total: int) -> None:
        task.mailbox.put(PrefillProgress(done, total, stage="proving"))

    return session.check(progress, task.cancel)


def verdict(check: SelfCheck) -> str:
    """What a proof found, in a sentence."""
    if check.rows == 0:
        return "There was nothing to compare: the reply is empty."
    if check.passed:
        return (
            f"Proved: all {check.rows} rows of logits are equal in every bit to those of plain decoding, "
            "one token at a time without drafts."
        )
    words = f"Not proved: {check.identical_rows} of {check.rows} rows of logits are equal in every bit."
    if check.first is not None:
        first = check.first
        words += (
            f" The first difference is at position {first.position}: the reply has token {first.token}, plain decoding "
            f"says {first.plain_token}; logits differ by up to {first.largest_logit_difference:.3g}. Please report it."
        )
    return words


def measure_plain(session: SessionLike | None, task: TaskJob, job: ReplyJob, tokens: int) -> Finished:
    """Answer the prompt of `job` once more without drafts, at most `tokens` tokens long."""
    if session is None:
        raise EngineError("There is no reply to measure against yet.")
    options = replace(
        job.options, draft=DraftOptions("none"), max_new_tokens=max(2, min(tokens, PLAIN_TOKENS)), provable=False
    )
    last: Finished | Failed | None = None
    for record in session.reply(job.messages, options, task.cancel):
        if isinstance(record, Finished | Failed):
            last = record
    if isinstance(last, Finished) and last.stats.rounds:
        return last
    raise EngineError(last.message if isinstance(last, Failed) else "Plain decoding ended before it could be measured.")
