"""Tool calls in a reply, in the two layouts of this family's templates. They are told, never carried out.

<tool_call>                                  <tool_call>
{"name": "weather", "arguments": {…}}        <function=weather>
</tool_call>                                 <parameter=city>
                                             Paris
                                             </parameter>
                                             </function>
                                             </tool_call>
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from engine.decoding.records import ToolCall

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_FUNCTION = re.compile(r"<function=([^<>\n]+)>")
_FUNCTION_END = "</function>"
_PARAMETER, _PARAMETER_END = re.compile(r"<parameter=([^<>\n]+)>\n?"), "</parameter>"
_DEEPEST = 100
"""Levels of arguments: what is nested deeper cannot be written out again from everywhere, and is no call of use."""


def find_tool_calls(text: str) -> tuple[ToolCall, ...]:
    """The complete tool calls in `text`, in order. What only looks like one is passed over: it stays text. In the
    layout with tags, arguments that are no JSON are their text."""
    return tuple(part for part in split_tool_calls(text) if isinstance(part, ToolCall))


def split_tool_calls(text: str) -> tuple[str | ToolCall, ...]:
    """`text` with each complete tool call in its place; no two strings stand side by side, and none is empty."""
    parts: list[str | ToolCall] = []
    plain = 0  # where the text begins that is not in `parts` yet
    at = 0
    # Each step goes on behind the last one: a reply that repeats an opening tag must not take time squared.
    while (start := text.find(_OPEN, at)) >= 0 and (end := text.find(_CLOSE, start)) >= 0:
        at = end + len(_CLOSE)
        body = text[start + len(_OPEN) : end]
        call = _from_json(body) or _from_tags(body)
        if call is not None:
            parts += [text[plain:start], call]
            plain = at
    return tuple(part for part in (*parts, text[plain:]) if part)


def _from_json(body: str) -> ToolCall | None:
    try:
        call = _clean(json.loads(body))
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    return ToolCall(call["name"], arguments) if isinstance(arguments, dict) else None


def _from_tags(body: str) -> ToolCall | None:
    body = body.strip().removesuffix(_FUNCTION_END)
    function = _FUNCTION.match(body)
    if function is None:
        return None
    arguments: dict[str, Any] = {}
    at = function.end()
    while (found := _PARAMETER.search(body, at)) and (end := body.find(_PARAMETER_END, found.end())) >= 0:
        arguments[found[1].strip()] = _value(body[found.end() : end].removesuffix("\n"))
        at = end + len(_PARAMETER_END)
    return ToolCall(function[1].strip(), arguments)


def _value(text: str) -> Any:
    """The template writes text as it is and everything else as JSON."""
    try:
        return _clean(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _clean(value: Any, levels: int = _DEEPEST) -> Any:
    """JSON that any file can hold: no halves of characters. ValueError if it is nested too deeply, or holds NaN."""
    if levels == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("no number that JSON has")
    if isinstance(value, list):
        return [_clean(part, levels - 1) for part in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(part, levels - 1) for name, part in value.items()}
    return value
