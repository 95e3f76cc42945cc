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
import re
from typing import Any

from engine.decoding.records import ToolCall

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_FUNCTION = re.compile(r"\s*<function=([^<>\n]+)>(.*?)(?:</function>)?\s*", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^<>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def find_tool_calls(text: str) -> tuple[ToolCall, ...]:
    """The complete tool calls in `text`, in order. What only looks like one is passed over: it stays text. In the
    layout with tags, arguments that are no JSON are their text."""
    return tuple(part for part in split_tool_calls(text) if isinstance(part, ToolCall))


def split_tool_calls(text: str) -> tuple[str | ToolCall, ...]:
    """`text` with each complete tool call in its place; no two strings stand side by side, and none is empty."""
    parts: list[str | ToolCall] = []
    plain = 0  # where the text begins that is not in `parts` yet
    for found in _CALL.finditer(text):
        call = _from_json(found[1]) or _from_tags(found[1])
        if call is not None:
            parts += [text[plain : found.start()], call]
            plain = found.end()
    return tuple(part for part in (*parts, text[plain:]) if part)


def _from_json(body: str) -> ToolCall | None:
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    return ToolCall(call["name"], arguments) if isinstance(arguments, dict) else None


def _from_tags(body: str) -> ToolCall | None:
    call = _FUNCTION.fullmatch(body)
    if call is None:
        return None
    return ToolCall(call[1].strip(), {name.strip(): _value(text) for name, text in _PARAMETER.findall(call[2])})


def _value(text: str) -> Any:
    """The template writes text as it is and everything else as JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
