"""The lines of the library: a checkpoint with the sidecars and vision towers beside it, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.language import tr, trn
from app.library.choice import parameters_text, size_text

if TYPE_CHECKING:
    from engine import Report

TOWER = "vision tower"  # not translated: the engine's word for such a file
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
        return tuple(c for c in self.companions if c.report.kind == TOWER and not c.problem)

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
    others = [report for report in reports if report.kind in ("sidecar", TOWER)]
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
            return " · ".join((tr("Sidecar"), size_text(report.weight_bytes), tr("no checkpoint beside it")))
        if report.kind == TOWER:
            return " · ".join((tr("Vision tower"), size_text(report.weight_bytes), tr("no checkpoint beside it")))
        return report.problems[0] if report.problems else tr("Not a model")
    types = "/".join(use.format for use in report.formats[:2])
    return " · ".join((parameters_text(report.parameters), size_text(report.weight_bytes), types, drafts(entry)))


def drafts(entry: Entry) -> str:
    """Where drafts could come from, in a few words."""
    if entry.report.mtp not in ("", "none"):
        return tr("MTP inside")
    return tr("MTP sidecar beside it") if entry.sidecars else tr("no MTP")


def facts_table(entry: Entry) -> list[tuple[str, str]]:
    """(name, value) of everything that the headers tell."""
    report = entry.report
    rows = [(tr("Place"), report.path), (tr("Files"), _files(report))]
    if report.weight_bytes:
        rows.append((tr("Size"), f"{size_text(report.weight_bytes)}, {parameters_text(report.parameters)}"))
    if report.formats:
        rows.append(
            (tr("Types"), ", ".join(f"{u.format} {_share(u.nbytes, report.weight_bytes)}" for u in report.formats))
        )
    if report.kind != "model":
        return rows
    rows += [
        (tr("Architecture"), f"{report.architecture}: {_layers(report)}"),
        (tr("Context"), trn("{n:,} token", "{n:,} tokens", report.context)),
        (tr("MTP layer"), _mtp(report)),
        (tr("Vision"), tr("inside") if report.vision == "inside" else report.vision or tr("none")),
        (tr("Memory"), report.memory),
        (tr("Tokenizer"), report.tokenizer or tr("missing")),
    ]
    return rows


def _files(report: Report) -> str:
    count = max(1, len(report.files))
    if not report.container:
        return trn("{n} file", "{n} files", count)
    return trn("{n} {container} file", "{n} {container} files", count, container=report.container)


def _layers(report: Report) -> str:
    counts = {"linear": report.linear_layers, "full": report.full_layers, "width": report.hidden_size}
    if not report.experts:
        return tr("{linear} DeltaNet and {full} attention layers, width {width:,}", **counts)
    return tr(
        "{linear} DeltaNet and {full} attention layers, width {width:,}, {experts} experts of which {used} are used "
        "per token",
        experts=report.experts,
        used=report.experts_per_token,
        **counts,
    )


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole if whole else 0
    return tr("under 1 %") if percent < 1 else f"{percent:.0f} %"


def _mtp(report: Report) -> str:
    if report.mtp == "inside":
        return tr("inside")
    return tr("none") if report.mtp in ("", "none") else tr("in {place}", place=report.mtp)
