"""Tool calls in words: what the model wants to have done, which this program shows and does not do. No Qt."""

from __future__ import annotations

import json

from app.chat.cells import Reply
from engine import ToolCall, split_tool_calls

NOT_DONE = "shown, not executed"


def title(call: ToolCall) -> str:
    """The line above a call."""
    return f"Tool call: {call.name} ({NOT_DONE})"


def arguments(call: ToolCall) -> str:
    """A call's arguments as JSON to be read."""
    return json.dumps(call.arguments, ensure_ascii=False, indent=2)


def note_text(call: ToolCall) -> str:
    """A call as it stands below a reply whose tokens are shown."""
    return f"{title(call)}\n{arguments(call)}"


def answer_parts(reply: Reply) -> tuple[str | ToolCall, ...]:
    """What a reply answered, with each call in its place; what only looks like one is text."""
    return split_tool_calls(reply.said()[1].replace("</think>", "").strip())
