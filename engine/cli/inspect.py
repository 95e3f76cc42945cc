"""`inspect`: what is in a model file, from its headers alone."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby
from typing import TYPE_CHECKING

from engine.cli.arguments import add_kv_cache, add_memory_budget, sidecar_path
from engine.cli.plan import plan_lines, planned_json, size
from engine.kernels.kv_types import KV_TYPES

if TYPE_CHECKING:
    from engine.files.report import Report
    from engine.weights.plan import Plan
    from engine.weights.prediction import Machine

_UNUSABLE = 2


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "inspect",
        help="what is in a model file",
        description="Show architecture, sizes per unit and format, MTP layer and faults, without loading the weights.",
    )
    parser.add_argument("model", metavar="MODEL", help="folder, .safetensors or .gguf file, or demo")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    plan = parser.add_argument_group("plan", "how a memory budget would be spent, and what speed to expect")
    plan.add_argument("--plan", action="store_true", help="plan a memory budget; measures the disk for half a second")
    add_memory_budget(plan)
    plan.add_argument("--sidecar", metavar="FILE", help="MTP layer from another file (demo: the demo's own sidecar)")
    plan.add_argument("--context", type=int, metavar="N", help="positions of a conversation to leave memory for")
    add_kv_cache(plan)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The command; 2 if the file cannot be used."""
    from engine.demo import resolve
    from engine.files.report import describe

    report = describe(resolve(arguments.model))
    planned = _plan(arguments) if arguments.plan and report.kind == "model" and report.usable else None
    if arguments.json:
        added = {} if planned is None else {"plan": planned_json(*planned)}
        print(json.dumps(report.to_dict() | added, ensure_ascii=False, indent=2))
    elif planned is not None:
        print("\n".join(plan_lines(*planned)))
    elif report.kind != "unusable":
        print("\n".join(_lines(report)))
    for problem in report.problems:
        print(problem, file=sys.stderr)
    return 0 if report.usable else _UNUSABLE


def _plan(arguments: argparse.Namespace) -> tuple[Plan, Machine]:
    from engine.planning import measure_machine, plan_for

    machine = measure_machine(arguments.model)
    plan = plan_for(
        arguments.model,
        sidecar_path(arguments.sidecar),
        budget=arguments.memory_budget,
        context=arguments.context,
        kv_cache=arguments.kv_cache,
        machine=machine,
    )
    return plan, machine


def _lines(report: Report) -> list[str]:
    table = [
        ("name", report.name),
        ("kind", f"{report.kind}, {report.container}, {len(report.files)} file{'s' if len(report.files) != 1 else ''}"),
        ("architecture", _architecture(report)),
        ("parameters", f"{report.parameters:,} in {size(report.weight_bytes)}"),
        ("context", f"{report.context:,} positions" if report.context else ""),
        (
            "vocabulary",
            f"{report.vocabulary:,} rows, head {'tied' if report.tied else 'of its own'}" if report.vocabulary else "",
        ),
        ("MTP layer", report.mtp),
        ("tokenizer", report.tokenizer),
        ("chat template", "" if report.kind != "model" else "own" if report.chat_template else "none (ChatML is used)"),
        ("memory", report.memory),
        ("KV cache", _kv_cache(report)),
        *((f"format {use.format}", f"{use.tensors} tensors, {size(use.nbytes)}") for use in report.formats),
        *(("unit " + name, text) for name, text in _units(report)),
        *(("note", note) for note in report.notes),
    ]
    return [f"{name:<18}{value}" for name, value in table if value]


def _kv_cache(report: Report) -> str:
    """What a position of a conversation takes, by what keys and values are stored as."""
    kinds = [kind for kind in KV_TYPES.values() if kind.fits(report.head_dim)]
    sizes = [f"{size(report.position_vectors * kind.row_bytes(report.head_dim))} as {kind.name}" for kind in kinds]
    return f"a position takes {', '.join(sizes)}" if report.position_vectors else ""


def _architecture(report: Report) -> str:
    if not report.architecture:
        return ""
    experts = f", {report.experts_per_token} of {report.experts} experts" if report.experts else ""
    layers = f"{report.linear_layers} linear + {report.full_layers} full attention layers"
    return f"{report.architecture}, {layers}, hidden size {report.hidden_size}{experts}"


def _units(report: Report) -> list[tuple[str, str]]:
    """Name and bytes of each unit, runs of equal layers as one line."""
    rows: list[tuple[str, str]] = []
    alike = groupby(report.units, lambda unit: (unit.name.split(".")[0], unit.nbytes, unit.expert_bytes))
    for (_, nbytes, expert_bytes), group in alike:
        units = list(group)
        name = units[0].name if len(units) == 1 else f"{units[0].name}…{units[-1].name.split('.')[-1]}"
        text = size(nbytes) + (f" + experts {size(expert_bytes)}" if expert_bytes else "")
        rows.append((name, text if len(units) == 1 else f"{text} each"))
    return rows
