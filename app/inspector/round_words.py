"""A round in words: what was proposed, what became of it, what the model said instead. No widgets."""

from __future__ import annotations

from app.language import mark, tr
from engine import Round

_SOURCES = {"mtp": mark("MTP"), "ngram": mark("n-gram"), "model": mark("model")}
_PHASES = {"think": mark("think"), "answer": mark("answer")}


def sources(record: Round) -> str:
    """Who drafted in a round; empty if nobody did."""
    return " + ".join(tr(_SOURCES[source]) for source in dict.fromkeys(draft.source for draft in record.drafts))


def phase(record: Round) -> str:
    """Whether a round was part of the thinking or of the answer."""
    return tr(_PHASES[record.phase])


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
        parts.append(record.note or tr("nothing was drafted"))
        return " · ".join([*parts, tr("the model said {said}", said=_quoted(text_of(record)))])
    counts = {"proposed": len(record.drafts), "drafter": sources(record), "accepted": accepted(record)}
    parts.append(tr("{proposed} proposed by {drafter}, {accepted} accepted", **counts))
    refused = next((draft for draft in record.drafts if draft.verdict == "rejected"), None)
    own = next((token for token in record.committed if token.origin == "correction"), None)
    bonus = next((token for token in record.committed if token.origin == "bonus"), None)
    if refused is not None and own is not None:
        texts = {"refused": _quoted(refused.text), "said": _quoted(own.text)}
        parts.append(tr("{refused} refused, the model said {said} instead", **texts))
    elif bonus is not None:
        parts.append(tr("the model added {added}", added=_quoted(bonus.text)))
    return " · ".join(parts)


def _quoted(text: str) -> str:
    """The text between quotation marks; no line is broken between the first mark and a word that a space begins."""
    shown = text.replace("\n", "↵").replace("\t", "⇥")
    word = shown.lstrip(" ")
    shown = "\u00a0" * (len(shown) - len(word)) + word
    return f"“{shown if len(shown) <= 40 else shown[:39] + '…'}”"
