"""Tool calls in words: what the model wants to have done, which this program shows and does not do. No widgets."""

from __future__ import annotations

import json

from app.chat.cells import Reply
from app.language import mark, tr
from engine import ToolCall, split_tool_calls

NOT_DONE = mark("shown, not executed")


def title(call: ToolCall) -> str:
    """The line above a call."""
    return tr("Tool call: {name} (shown, not executed)", name=call.name)


def arguments(call: ToolCall) -> str:
    """A call's arguments as JSON to be read."""
    return json.dumps(call.arguments, ensure_ascii=False, indent=2)


def note_text(call: ToolCall) -> str:
    """A call as it stands below a reply whose tokens are shown."""
    return f"{title(call)}\n{arguments(call)}"


def answer_parts(reply: Reply) -> tuple[str | ToolCall, ...]:
    """What a reply answered, with each call in its place; what only looks like one is text."""
    return split_tool_calls(reply.said()[1].replace("</think>", "").strip())
