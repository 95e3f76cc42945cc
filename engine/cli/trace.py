"""`trace show|compare|export`: saved runs, without a model."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.console import counted
from engine.errors import OptionError

if TYPE_CHECKING:
    from engine.decoding.records import DraftedToken, Round
    from engine.decoding.trace import Trace

_DIFFERENT = 1
_MARKS = {"accepted": "+", "rejected": "-", "unused": "·"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("trace", help="look at saved runs", description="Look at runs saved with --trace.")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="the run, round by round")
    show.add_argument("file", metavar="FILE")
    show.set_defaults(run=run_show)
    compare = actions.add_parser("compare", help="two runs: where they part, and what each cost (exit 1 if they part)")
    compare.add_argument("first", metavar="FILE")
    compare.add_argument("second", metavar="FILE")
    compare.add_argument("--json", action="store_true", help="one JSON object")
    compare.set_defaults(run=run_compare)
    export = actions.add_parser("export", help="as CSV or JSON")
    export.add_argument("file", metavar="FILE")
    export.add_argument("--format", choices=("csv", "json"), default="csv", help="default: csv")
    export.add_argument(
        "--rows", choices=("tokens", "rounds"), default="tokens", help="rows of the CSV (default: tokens)"
    )
    export.add_argument("--out", metavar="FILE", help="default: standard output")
    export.set_defaults(run=run_export)


def run_show(arguments: argparse.Namespace) -> int:
    """Header, one line a round, and how the reply ended."""
    from engine.decoding.records import Failed
    from engine.decoding.trace import read_trace

    trace = read_trace(arguments.file)
    header = trace.header
    kv_cache = header.settings.get("kv_cache", "f32")
    stored = "" if kv_cache == "f32" else f", KV cache {kv_cache}"
    print(f"{header.model}, Draftscope {header.draftscope}, {header.created}, seed {header.seed}{stored}")
    for file in header.files:
        print(f"  {file.name}  {file.size:,} bytes  {file.digest[:24]}…")
    print(f"prompt ({len(header.prompt_tokens)} tokens): {header.prompt}")
    print("round  position   draft ms  verify ms  drafts (+ accepted, - refused, · unused) → reply")
    for record in trace.rounds:
        print(_round_line(record))
    if trace.cut:
        print("The file ends inside a line: the run was cut off.")
    if isinstance(trace.ending, Failed):
        print(f"failed: {trace.ending.message}")
    elif trace.ending is not None:
        stats = trace.ending.stats
        drafts = f"{stats.accepted} of {stats.tested} tested drafts accepted"
        speed = f"{stats.tokens_per_round:.2f} tokens per round, {stats.tokens_per_s:.1f} tokens/s"
        figures = f", {drafts}, {speed}" if stats.rounds else ""
        counts = f"{counted(stats.emitted, 'token')}, {counted(stats.rounds, 'round')}"
        print(f"{counts}{figures}; ended by {stats.stop_reason}.")
    return 0


def _round_line(record: Round) -> str:
    drafts = " ".join(_draft(draft) for draft in record.drafts) or "none"
    text = "".join(token.text for token in record.committed)
    times = f"{1000 * record.draft_s:>9.1f}  {1000 * record.verify_s:>9.1f}"
    return f"{record.index:>5}  {record.position:>8}  {times}  {drafts} → {text!r}"


def _draft(draft: DraftedToken) -> str:
    return f"{_MARKS[draft.verdict]}{draft.text!r}"


def run_compare(arguments: argparse.Namespace) -> int:
    """0 if both replies have the same tokens, else 1."""
    import dataclasses

    from engine.decoding.trace import read_trace
    from engine.decoding.trace_tables import compare

    first, second = read_trace(arguments.first), read_trace(arguments.second)
    result = compare(first, second)
    if arguments.json:
        print(json.dumps(dataclasses.asdict(result) | {"same_reply": result.same_reply}, indent=2))
        return 0 if result.same_reply else _DIFFERENT
    print(f"prompts: {'the same' if result.same_prompt else 'different'}")
    print(f"model files: {'the same' if result.same_files else 'different'}")
    if result.same_reply:
        print(f"replies: the same {result.common} tokens")
    else:
        print(f"replies: the same up to token {result.common} of {result.lengths[0]} and {result.lengths[1]}")
        print(f"  first   {_around(first, result.common)}")
        print(f"  second  {_around(second, result.common)}")
    print(f"{'':<18}{'first':>14}{'second':>14}")
    for measure in result.measures:
        print(f"{measure.name:<18}{_number(measure.first):>14}{_number(measure.second):>14}")
    return 0 if result.same_reply else _DIFFERENT


def _around(trace: Trace, place: int) -> str:
    """The text at the token where two replies part, with some before it."""
    texts = [token.text for record in trace.rounds for token in record.committed]
    before, after = "".join(texts[max(0, place - 8) : place]), "".join(texts[place : place + 4])
    return f"{before!r} then {after!r}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def run_export(arguments: argparse.Namespace) -> int:
    """CSV of tokens or rounds, or the whole trace as one JSON object."""
    from engine.decoding.records import to_json
    from engine.decoding.trace import read_trace
    from engine.decoding.trace_tables import ROUND_COLUMNS, TOKEN_COLUMNS, round_rows, to_csv, token_rows

    trace = read_trace(arguments.file)
    if arguments.format == "json":
        whole = {"header": trace.header.to_json(), "records": [to_json(record) for record in trace.records]}
        text = json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
    elif arguments.rows == "rounds":
        text = to_csv(round_rows(trace), ROUND_COLUMNS)
    else:
        text = to_csv(token_rows(trace), TOKEN_COLUMNS)
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    try:
        Path(arguments.out).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise OptionError(f"{arguments.out} cannot be written: {error.strerror}.") from None
    return 0
