"""The line above a reply's thinking: how long it took, how many tokens, how many drafts were taken. No widgets."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from app.chat.cells import Reply
from app.language import tr, trn


@dataclass
class _Sums:
    """What was counted of the first `rounds` rounds."""

    rounds: int = 0
    tokens: int = 0
    seconds: float = 0.0
    tested: int = 0
    accepted: int = 0


_known: WeakKeyDictionary[Reply, _Sums] = WeakKeyDictionary()


def thinking_label(reply: Reply, folded: bool) -> str:
    """The label, with a sign that says what a click does."""
    sums = _sums(reply)
    parts = [("▸ " if folded else "▾ ") + tr("Thinking"), trn("{n} token", "{n} tokens", sums.tokens)]
    if sums.seconds > 0:
        parts.append(f"{sums.seconds:.1f} s")
    if sums.tested:
        parts.append(tr("{share:.0f} % of tested drafts accepted", share=100 * sums.accepted / sums.tested))
    return " · ".join(parts)


def _sums(reply: Reply) -> _Sums:
    """Counted on from where the last painting stopped, since a long reply is painted often."""
    sums = _known.setdefault(reply, _Sums())
    for record in reply.rounds[sums.rounds :]:
        sums.tokens += sum(token.phase == "think" for token in record.committed)
        if record.phase == "think":
            sums.seconds += record.draft_s + record.verify_s
            sums.tested += sum(draft.verdict != "unused" for draft in record.drafts)
            sums.accepted += sum(draft.verdict == "accepted" for draft in record.drafts)
    sums.rounds = len(reply.rounds)
    return sums
