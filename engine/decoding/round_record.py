"""From a round's verdict to what the record of it shows."""

from __future__ import annotations

from engine.decoding.protocols import Draft
from engine.decoding.records import DraftedToken, Verdict
from engine.decoding.reply import Candidate, shown
from engine.decoding.text_stream import TextStream
from engine.decoding.verification import Verification


def candidates(draft: Draft, verdict: Verification) -> list[Candidate]:
    """What the reply goes on with: the accepted drafts, then the model's own token."""
    accepted = [Candidate(verdict.judged[i], "accepted", draft.sources[i]) for i in range(verdict.accepted)]
    if verdict.next is None:
        return accepted
    refused = verdict.accepted < len(draft.tokens)
    return [
        *accepted,
        Candidate(verdict.next, "correction" if refused else "bonus" if draft.tokens else "model", "model"),
    ]


def drafted_tokens(draft: Draft, verdict: Verification, committed: int, stream: TextStream) -> tuple[DraftedToken, ...]:
    """Each draft and what became of it, in a round that committed `committed` tokens.

    `stream` is the reply's text before the round. Drafts after the end of the reply count as never judged.
    """
    texts = stream.preview(draft.tokens)
    records = []
    for i, token in enumerate(draft.tokens):
        judged = i < min(len(verdict.judged), committed)
        fate: Verdict = "unused" if not judged else "accepted" if i < verdict.accepted else "rejected"
        likely = draft.alternatives[i] if i < len(draft.alternatives) else ()
        records.append(
            DraftedToken(
                token,
                texts[i],
                draft.sources[i],
                draft_probability=draft.probabilities[i] if i < len(draft.probabilities) else None,
                model_probability=verdict.judged[i].probability if judged else None,
                verdict=fate,
                replacement=verdict.next.token if fate == "rejected" and verdict.next else None,
                uniform=verdict.uniforms[i] if judged else None,
                alternatives=shown(likely, stream, draft.tokens[:i]),
            )
        )
    return tuple(records)
