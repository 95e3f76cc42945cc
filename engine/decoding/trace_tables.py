"""A trace as tables: one row a token or a round, for spreadsheets and scripts, and two traces side by side."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.decoding.records import Round, Stats
from engine.decoding.trace import Trace

TOKEN_COLUMNS = (
    "round", "place", "kind", "position", "token", "text", "source", "phase", "verdict", "replacement",
    "model_probability", "draft_probability",
)  # fmt: skip
ROUND_COLUMNS = (
    "round", "position", "phase", "draft_length", "drafted", "tested", "accepted", "committed", "draft_s", "verify_s",
    "disk_wait_s", "bytes_read", "disk_read_s", "hits", "misses", "expert_hits", "expert_misses", "memory_bytes",
    "text",
)  # fmt: skip

Row = dict[str, Any]


def token_rows(trace: Trace) -> list[Row]:
    """Every draft and every committed token, round by round. `place` counts from 0 within a round and kind.

    `kind` is `draft` or `committed`; `verdict` is a draft's verdict or a committed token's origin.
    """
    return [row for record in trace.rounds for row in (*_drafts(record), *_committed(record))]


def _drafts(record: Round) -> Iterable[Row]:
    for place, draft in enumerate(record.drafts):
        yield {
            "round": record.index,
            "place": place,
            "kind": "draft",
            "position": record.position + place,
            "token": draft.token,
            "text": draft.text,
            "source": draft.source,
            "phase": record.phase,
            "verdict": draft.verdict,
            "replacement": draft.replacement,
            "model_probability": draft.model_probability,
            "draft_probability": draft.draft_probability,
        }


def _committed(record: Round) -> Iterable[Row]:
    for place, token in enumerate(record.committed):
        yield {
            "round": record.index,
            "place": place,
            "kind": "committed",
            "position": record.position + place,
            "token": token.token,
            "text": token.text,
            "source": token.source,
            "phase": token.phase,
            "verdict": token.origin,
            "replacement": None,
            "model_probability": token.model_probability,
            "draft_probability": None,
        }


def round_rows(trace: Trace) -> list[Row]:
    """One row a round: what was drafted, tested, accepted and committed, and what it cost."""
    return [
        {
            "round": record.index,
            "position": record.position,
            "phase": record.phase,
            "draft_length": record.draft_length,
            "drafted": len(record.drafts),
            "tested": sum(draft.verdict != "unused" for draft in record.drafts),
            "accepted": sum(draft.verdict == "accepted" for draft in record.drafts),
            "committed": len(record.committed),
            "draft_s": record.draft_s,
            "verify_s": record.verify_s,
            "disk_wait_s": record.disk_wait_s,
            "bytes_read": record.bytes_read,
            "disk_read_s": record.disk.read_s,
            "hits": record.disk.hits,
            "misses": record.disk.misses,
            "expert_hits": record.disk.expert_hits,
            "expert_misses": record.disk.expert_misses,
            "memory_bytes": record.disk.memory_bytes,
            "text": "".join(token.text for token in record.committed),
        }
        for record in trace.rounds
    ]


def to_csv(rows: Iterable[Row], columns: Sequence[str]) -> str:
    """Comma-separated values with a header line (RFC 4180); None is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of two runs."""

    name: str
    first: float | None
    second: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side."""

    same_prompt: bool
    same_files: bool
    common: int
    """Tokens that both replies begin with."""
    lengths: tuple[int, int]
    measures: tuple[Measure, ...]

    @property
    def same_reply(self) -> bool:
        """Are all tokens equal? Two greedy runs of one model must be, whatever drafted."""
        return self.common == self.lengths[0] == self.lengths[1]


def compare(first: Trace, second: Trace) -> Comparison:
    """Where two replies part, and what each cost."""
    a, b = first.tokens, second.tokens
    common = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    one, two = (_stats(trace) for trace in (first, second))
    names = ("rounds", "drafted", "accepted", "tokens_per_round", "acceptance", "draft_s", "verify_s", "disk_wait_s",
             "bytes_read", "total_s", "tokens_per_s")  # fmt: skip
    return Comparison(
        same_prompt=first.header.prompt_tokens == second.header.prompt_tokens,
        same_files=first.header.files == second.header.files,
        common=common,
        lengths=(len(a), len(b)),
        measures=tuple(Measure(name, getattr(one, name), getattr(two, name)) for name in names),
    )


def _stats(trace: Trace) -> Stats:
    return Stats() if trace.ending is None else trace.ending.stats
