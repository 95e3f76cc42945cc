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
    found = (_from_json(body) or _from_tags(body) for body in _CALL.findall(text))
    return tuple(call for call in found if call is not None)


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
