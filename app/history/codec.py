"""Records as compact JSON for the history: fields that have their default are left out. Reading is tolerant.

Written for every round while the model talks, and read thousands at a time, so both ways go by tables of fields that
are made once.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from typing import Any

from engine import Failed, Finished, Round, Stats, ToolCall

_FIELDS: dict[type[Any], tuple[tuple[str, Any], ...]] = {}
"""Names and defaults of the fields of each kind of record."""
_PARTS: dict[tuple[type[Any], str], tuple[type[Any], bool]] = {}
"""The kind of record that a field holds, and whether it holds many."""


def _learn(kind: type[Any]) -> None:
    """Put a kind of record, and those that it is made of, into the tables."""
    _FIELDS[kind] = tuple((field.name, field.default) for field in dataclasses.fields(kind))
    for name, hint in typing.get_type_hints(kind).items():
        many = typing.get_origin(hint) is tuple
        part = typing.get_args(hint)[0] if many else hint
        if isinstance(part, type) and dataclasses.is_dataclass(part):
            _PARTS[kind, name] = part, many
            _learn(part)


_learn(Round)
_learn(Stats)


def round_to_text(record: Round) -> str:
    """One round as a line of JSON."""
    return _dump(_shrink(record))


def round_from_text(text: str) -> Round | None:
    """The round of such a line; None if it cannot be understood."""
    try:
        record = _grow(Round, json.loads(text))
    except (ValueError, TypeError, AttributeError):
        return None
    return record if isinstance(record, Round) else None


def ending_to_text(last: Finished | Failed) -> str:
    """How a reply ended, without its text and tokens, which are stored anyway."""
    data: dict[str, Any] = {"event": last.event, "stats": _shrink(last.stats)}
    if isinstance(last, Failed):
        data |= {"message": last.message, "kind": last.kind}
        return _dump(data)
    if last.notes:
        data["notes"] = last.notes
    if last.tool_calls:
        data["calls"] = [[call.name, call.arguments] for call in last.tool_calls]
    return _dump(data)


def ending_from_text(text: str, said: str = "") -> Finished | Failed | None:
    """The end of a reply that said `said`; None if it has none or it cannot be understood."""
    try:
        data = json.loads(text)
        stats = _grow(Stats, data["stats"])
        if data["event"] == Failed.event:
            return Failed(str(data["message"]), str(data["kind"]), (), said, stats)
        calls = tuple(ToolCall(str(name), dict(arguments)) for name, arguments in data.get("calls", ()))
        return Finished((), said, stats, tuple(str(note) for note in data.get("notes", ())), calls)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _dump(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _shrink(value: Any) -> Any:
    fields = _FIELDS.get(type(value))
    if fields is not None:
        found = ((name, default, getattr(value, name)) for name, default in fields)
        return {name: _shrink(item) for name, default, item in found if item != default}
    return [_shrink(item) for item in value] if isinstance(value, tuple) else value


def _grow(kind: type[Any], data: dict[str, Any]) -> Any:
    given = {}
    for name, _ in _FIELDS[kind]:
        if name in data:
            value, (part, many) = data[name], _PARTS.get((kind, name), (None, False))
            if part is not None:
                value = tuple(_grow(part, item) for item in value) if many else _grow(part, value)
            elif isinstance(value, list):
                value = tuple(value)
            given[name] = value
    return kind(**given)
