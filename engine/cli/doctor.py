"""`doctor`: what this machine has, what is missing, and how to mend it."""

from __future__ import annotations

import argparse
import json
import sys

_INCOMPLETE = 2
_MARKS = {"ok": " ", "note": "!", "missing": "✗"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="what this machine has and what is missing",
        description="Show what this machine has, what is missing and how to mend it.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 if nothing is missing, else 2."""
    import dataclasses

    from engine.doctor import diagnose

    findings = diagnose()
    missing = [finding for finding in findings if finding.state == "missing"]
    if arguments.json:
        print(json.dumps({"ok": not missing, "findings": [dataclasses.asdict(f) for f in findings]}, indent=2))
    else:
        for finding in findings:
            print(f"{_MARKS[finding.state]} {finding.name:<20}{finding.value}")
            if finding.remedy:
                print(f"  {'':<20}→ {finding.remedy}")
    if missing:
        print(f"Missing: {', '.join(finding.name for finding in missing)}.", file=sys.stderr)
    return _INCOMPLETE if missing else 0
