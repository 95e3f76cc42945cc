"""The lines of the library: a checkpoint with the sidecars and vision towers beside it, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.library.choice import parameters_text, size_text

if TYPE_CHECKING:
    from engine import Report

Problems = Mapping[tuple[str, str], str]
"""(checkpoint, companion) → why the two do not fit, '' if they do. Pairs not looked at yet are missing."""


@dataclass(frozen=True, slots=True)
class Companion:
    """A sidecar or a vision tower beside a checkpoint."""

    report: Report
    problem: str = ""

    @property
    def path(self) -> Path:
        return Path(self.report.path)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the library."""

    report: Report
    companions: tuple[Companion, ...] = ()

    @property
    def path(self) -> Path:
        return Path(self.report.path)

    @property
    def openable(self) -> bool:
        """Whether a click can load it: a whole model, or a sidecar for a model beside which it was not found."""
        return self.report.kind == "model" and not self.report.problems

    @property
    def sidecars(self) -> tuple[Companion, ...]:
        """The sidecars that fit."""
        return tuple(c for c in self.companions if c.report.kind == "sidecar" and not c.problem)

    @property
    def towers(self) -> tuple[Companion, ...]:
        """The vision towers that fit."""
        return tuple(c for c in self.companions if c.report.kind == "vision tower" and not c.problem)

    @property
    def haystack(self) -> str:
        """What a search looks through."""
        report = self.report
        formats = " ".join(use.format for use in report.formats)
        return f"{report.name} {report.path} {report.architecture} {formats} {report.kind}".lower()


def beside(model: Path, other: Path) -> bool:
    """Whether `other` belongs to the same place as the checkpoint: in its folder, next to it, or one folder below."""
    home = model if not model.suffix or model.is_dir() else model.parent
    return other.parent in (home, model.parent) or other.parent.parent == home


def pairs(reports: Iterable[Report]) -> list[tuple[Report, Report]]:
    """Every checkpoint with every sidecar and vision tower beside it."""
    reports = list(reports)
    models = [report for report in reports if report.kind == "model"]
    others = [report for report in reports if report.kind in ("sidecar", "vision tower")]
    return [(m, o) for m in models for o in others if beside(Path(m.path), Path(o.path))]


def entries(reports: Iterable[Report], problems: Problems) -> list[Entry]:
    """The library's lines: what can be opened first, then sidecars without a checkpoint, then what cannot be used."""
    reports = list(reports)
    companions: dict[str, list[Companion]] = {}
    taken = set()
    for model, other in pairs(reports):
        companions.setdefault(model.path, []).append(Companion(other, problems.get((model.path, other.path), "")))
        taken.add(other.path)
    lines = [Entry(r, tuple(companions.get(r.path, ()))) for r in reports if r.path not in taken]
    return sorted(
        lines, key=lambda e: (not e.openable, e.report.kind == "unusable", e.report.name.lower(), str(e.path))
    )


def headline(entry: Entry) -> str:
    """The second line of an entry: size, types, where drafts come from; or why it cannot be used."""
    report = entry.report
    if not entry.openable:
        if report.kind == "sidecar" and report.usable:
            return f"Sidecar · {size_text(report.weight_bytes)} · no checkpoint beside it"
        if report.kind == "vision tower":
            return f"Vision tower · {size_text(report.weight_bytes)} · no checkpoint beside it"
        return report.problems[0] if report.problems else "Not a model"
    types = "/".join(use.format for use in report.formats[:2])
    return " · ".join((parameters_text(report.parameters), size_text(report.weight_bytes), types, drafts(entry)))


def drafts(entry: Entry) -> str:
    """Where drafts could come from, in a few words."""
    if entry.report.mtp not in ("", "none"):
        return "MTP inside"
    return "MTP sidecar beside it" if entry.sidecars else "no MTP"


def facts_table(entry: Entry) -> list[tuple[str, str]]:
    """(name, value) of everything that the headers tell."""
    report = entry.report
    rows = [("Place", report.path), ("Files", _files(report))]
    if report.weight_bytes:
        rows.append(("Size", f"{size_text(report.weight_bytes)}, {parameters_text(report.parameters)}"))
    if report.formats:
        rows.append(("Types", ", ".join(f"{u.format} {_share(u.nbytes, report.weight_bytes)}" for u in report.formats)))
    if report.kind != "model":
        return rows
    layers = f"{report.linear_layers} DeltaNet and {report.full_layers} attention layers, width {report.hidden_size:,}"
    if report.experts:
        layers += f", {report.experts} experts of which {report.experts_per_token} are used per token"
    rows += [
        ("Architecture", f"{report.architecture}: {layers}"),
        ("Context", f"{report.context:,} tokens"),
        ("MTP layer", _mtp(report)),
        ("Vision", report.vision or "none"),
        ("Memory", report.memory),
        ("Tokenizer", report.tokenizer or "missing"),
    ]
    return rows


def _files(report: Report) -> str:
    count = len(report.files)
    if count <= 1:
        return f"1 {report.container} file" if report.container else "1 file"
    return f"{count} {report.container} files"


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole if whole else 0
    return "under 1 %" if percent < 1 else f"{percent:.0f} %"


def _mtp(report: Report) -> str:
    if report.mtp == "inside":
        return "inside"
    return "none" if report.mtp in ("", "none") else f"in {report.mtp}"
