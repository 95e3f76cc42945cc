"""A round in words: what was proposed, what became of it, what the model said instead. No Qt."""

from __future__ import annotations

from engine import Round

_SOURCES = {"mtp": "MTP", "ngram": "n-gram", "model": "model"}


def sources(record: Round) -> str:
    """Who drafted in a round; empty if nobody did."""
    return " + ".join(dict.fromkeys(_SOURCES[draft.source] for draft in record.drafts))


def accepted(record: Round) -> int:
    """How many of a round's drafts were accepted."""
    return sum(draft.verdict == "accepted" for draft in record.drafts)


def milliseconds(record: Round) -> float:
    """What a round took."""
    return 1000 * (record.draft_s + record.verify_s)


def text_of(record: Round) -> str:
    """What a round added to the reply."""
    return "".join(token.text for token in record.committed)


def sentence(record: Round) -> str:
    """What happened in a round."""
    parts = [f"{milliseconds(record):.1f} ms"]
    if not record.drafts:
        parts.append(record.note or "nothing was drafted")
        return " · ".join([*parts, f"the model said {_quoted(text_of(record))}"])
    parts.append(f"{len(record.drafts)} proposed by {sources(record)}, {accepted(record)} accepted")
    refused = next((draft for draft in record.drafts if draft.verdict == "rejected"), None)
    own = next((token for token in record.committed if token.origin == "correction"), None)
    bonus = next((token for token in record.committed if token.origin == "bonus"), None)
    if refused is not None and own is not None:
        parts.append(f"{_quoted(refused.text)} refused, the model said {_quoted(own.text)} instead")
    elif bonus is not None:
        parts.append(f"the model added {_quoted(bonus.text)}")
    return " · ".join(parts)


def _quoted(text: str) -> str:
    shown = text.replace("\n", "↵").replace("\t", "⇥")
    return f"“{shown if len(shown) <= 40 else shown[:39] + '…'}”"
