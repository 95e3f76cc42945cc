"""Two runs in numbers: what was set differently, where the replies part, and which figures differ by more than chance.

Intervals are 95 %: Newcombe's of two shares (from their Wilson intervals), Welch's of two means, and for tokens per
second, a quotient of two sums, a bootstrap over rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from app.language import mark, tr
from app.runs.summary import drafter_words, local_time
from engine import Round, Trace, TraceHeader, wilson_interval

Floats = npt.NDArray[np.float64]
Better = Literal["more", "less", ""]
Fact = tuple[Literal["run", "setting", "machine"], str]
"""What a header says: of the run itself, a setting, or of the machine."""

_Z = 1.959964
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Delta:
    """One figure of two runs. `low` and `high` bound second − first; None where chance has no part, or too little is
    known."""

    name: str
    first: float | None
    second: float | None
    low: float | None = None
    high: float | None = None
    better: Better = ""
    """Which direction is good."""
    digits: int = 2
    unit: str = ""

    @property
    def delta(self) -> float | None:
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def certain(self) -> bool:
        """Whether the interval leaves no doubt about the sign."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, slots=True)
class Setting:
    """Something that was not the same."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Parting:
    """The first token in which two replies differ."""

    token: int
    """Its index in the reply; the shorter reply's length if that is how the longer one begins."""
    rounds: tuple[int | None, int | None]
    """Index, among each run's rounds, of the round that brought it; None where a reply has ended before."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Everything that the comparison shows."""

    deltas: tuple[Delta, ...]
    settings: tuple[Setting, ...]
    parting: Parting | None
    """None if the replies are the same."""
    same_prompt: bool


def compare_runs(first: Trace, second: Trace) -> RunComparison:
    """Set two runs against each other."""
    return RunComparison(
        deltas=tuple(_deltas(_passes(first), _passes(second), len(first.tokens), len(second.tokens))),
        settings=tuple(_settings(first.header, second.header)),
        parting=parting(first, second),
        same_prompt=_prompt(first.header) == _prompt(second.header),
    )


def parting(first: Trace, second: Trace) -> Parting | None:
    """Where two replies part; None if they are the same."""
    a, b = ([(c.token, i) for i, r in enumerate(t.rounds) for c in r.committed] for t in (first, second))
    common = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x[0] != y[0]), min(len(a), len(b)))
    if common == len(a) == len(b):
        return None
    place_a, place_b = (run[common][1] if common < len(run) else None for run in (a, b))
    return Parting(common, (place_a, place_b))


def newcombe(first: tuple[int, int], second: tuple[int, int]) -> tuple[float, float] | None:
    """95 % interval of the difference of two shares, given as (successes, trials); None without trials."""
    if not first[1] or not second[1]:
        return None
    p, q = first[0] / first[1], second[0] / second[1]
    (l1, u1), (l2, u2) = wilson_interval(*first), wilson_interval(*second)
    return q - p - math.hypot(q - l2, u1 - p), q - p + math.hypot(u2 - q, p - l1)


def welch(first: Floats, second: Floats) -> tuple[float, float] | None:
    """95 % interval of the difference of two means (normal approximation); None with fewer than two values in one."""
    if len(first) < 2 or len(second) < 2:
        return None
    middle = float(second.mean() - first.mean())
    half = _Z * math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    return middle - half, middle + half


def bootstrap_speed(first: Sequence[Round], second: Sequence[Round]) -> tuple[float, float] | None:
    """95 % interval of the difference in tokens per second: rounds drawn again and again, always the same way."""
    if len(first) < 2 or len(second) < 2:
        return None
    generator = np.random.default_rng(0)
    speeds = []
    for rounds in (first, second):
        tokens, seconds = _column(rounds, lambda r: len(r.committed)), _column(rounds, _seconds)
        weights = generator.multinomial(len(rounds), np.full(len(rounds), 1 / len(rounds)), size=_RESAMPLES)
        speeds.append((weights @ tokens) / np.maximum(weights @ seconds, 1e-12))
    low, high = np.percentile(speeds[1] - speeds[0], (2.5, 97.5))
    return float(low), float(high)


def _passes(trace: Trace) -> list[Round]:
    """Rounds that were passes of the model: the prompt's own token is left out."""
    return [record for record in trace.rounds if record.index > 0]


def _deltas(first: list[Round], second: list[Round], tokens_a: int, tokens_b: int) -> list[Delta]:
    low, high = bootstrap_speed(first, second) or (None, None)
    return [
        Delta(tr("Tokens"), tokens_a, tokens_b, digits=0),
        Delta(tr("Rounds"), len(first), len(second), digits=0, better="less"),
        Delta(tr("Tokens per second"), _speed(first), _speed(second), low, high, "more", 1),
        _mean(tr("Tokens per round"), first, second, lambda r: len(r.committed), better="more"),
        _share(tr("Drafts accepted, of tested"), _tested(first), _tested(second)),
        _share(tr("First draft accepted"), _tested(first, 0), _tested(second, 0)),
        _mean(tr("Drafts proposed per round"), first, second, lambda r: len(r.drafts)),
        _mean(tr("Time per round"), first, second, lambda r: 1e3 * _seconds(r), "less", 1, "ms"),
        _mean(tr("Draft time per round"), first, second, lambda r: 1e3 * r.draft_s, "less", 1, "ms"),
        _mean(tr("Verify time per round"), first, second, lambda r: 1e3 * r.verify_s, "less", 1, "ms"),
        _mean(tr("Disk wait per round"), first, second, lambda r: 1e3 * r.disk_wait_s, "less", 1, "ms"),
        _mean(tr("Read from disk per round"), first, second, lambda r: r.bytes_read / 2**20, "less", 1, "MiB"),
    ]


def _mean(
    name: str,
    first: list[Round],
    second: list[Round],
    value: Callable[[Round], float],
    better: Better = "",
    digits: int = 2,
    unit: str = "",
) -> Delta:
    a, b = _column(first, value), _column(second, value)
    low, high = welch(a, b) or (None, None)
    return Delta(name, _average(a), _average(b), low, high, better, digits, unit)


def _share(name: str, first: tuple[int, int], second: tuple[int, int]) -> Delta:
    bounds = newcombe(first, second)
    low, high = (None, None) if bounds is None else (100 * bounds[0], 100 * bounds[1])
    return Delta(name, _percent(*first), _percent(*second), low, high, "more", 1, "%")


def _average(column: Floats) -> float | None:
    return float(column.mean()) if len(column) else None


def _percent(accepted: int, tested: int) -> float | None:
    return 100 * accepted / tested if tested else None


def _column(rounds: Sequence[Round], value: Callable[[Round], float]) -> Floats:
    return np.array([value(record) for record in rounds], dtype=np.float64)


def _seconds(record: Round) -> float:
    return record.draft_s + record.verify_s


def _speed(rounds: list[Round]) -> float | None:
    seconds = sum(map(_seconds, rounds))
    return sum(len(r.committed) for r in rounds) / seconds if seconds > 0 else None


def _tested(rounds: list[Round], place: int | None = None) -> tuple[int, int]:
    """(accepted, tested) of all drafts, or of those at one place of their round."""
    drafts = [d for r in rounds for d in (r.drafts if place is None else r.drafts[place : place + 1])]
    return sum(d.verdict == "accepted" for d in drafts), sum(d.verdict != "unused" for d in drafts)


def _prompt(header: TraceHeader) -> object:
    return header.prompt_tokens or header.prompt


def _settings(first: TraceHeader, second: TraceHeader) -> list[Setting]:
    """Everything that the two headers say differently."""
    a, b = (_facts(header) for header in (first, second))
    facts = dict.fromkeys([*a, *b])
    return [Setting(_shown(f), a.get(f, "–"), b.get(f, "–")) for f in facts if a.get(f) != b.get(f)]


def _facts(header: TraceHeader) -> dict[Fact, str]:
    """What a header says, by what it says it of."""
    facts: dict[Fact, str] = {
        ("run", mark("Date")): local_time(header.created),
        ("run", mark("Model")): header.model,
        ("run", mark("Files")): ", ".join(f"{file.name} {file.digest[-8:]}" for file in header.files),
        ("run", mark("Sidecar")): header.sidecar or tr("none"),
        ("run", mark("Drafter")): drafter_words(header.settings),
        ("run", mark("Prompt")): header.prompt,
        ("run", mark("Program")): header.draftscope,
    }
    facts |= {("setting", name): value for name, value in _flat(header.settings) if not name.startswith("draft ")}
    facts |= {("machine", name): value for name, value in _flat(header.machine) if not name.startswith("draft ")}
    return facts


def _shown(fact: Fact) -> str:
    """Its name; settings are called as in the file."""
    kind, name = fact
    if kind == "machine":
        return tr("Machine: {name}", name=name)
    return tr(name) if kind == "run" else name


def _flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as (name, value) in words."""
    found: list[tuple[str, str]] = []
    for key, value in settings.items():
        name = f"{prefix}{key.replace('_', ' ')}"
        found += _flat(value, f"{name} ") if isinstance(value, Mapping) and value else [(name, str(value))]
    return found
