"""Tool calls are recognised in both layouts, and nothing else is."""

from __future__ import annotations

import pytest

from engine.decoding.records import ToolCall
from engine.text.tool_calls import find_tool_calls, split_tool_calls

JSON = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>'
TAGS = """<tool_call>
<function=weather>
<parameter=city>
Paris
</parameter>
<parameter=days>
3
</parameter>
<parameter=note>
two
lines
</parameter>
</function>
</tool_call>"""


def test_json() -> None:
    assert find_tool_calls(f"Let me look.\n{JSON}") == (ToolCall("weather", {"city": "Paris", "days": 3}),)


def test_tags() -> None:
    (call,) = find_tool_calls(TAGS)
    assert call == ToolCall("weather", {"city": "Paris", "days": 3, "note": "two\nlines"})


def test_several_in_order() -> None:
    assert [call.name for call in find_tool_calls(f"{JSON} and {TAGS}{JSON.replace('weather', 'time')}")] == [
        "weather",
        "weather",
        "time",
    ]


def test_without_arguments() -> None:
    assert find_tool_calls('<tool_call>{"name": "now"}</tool_call>') == (ToolCall("now"),)
    assert find_tool_calls("<tool_call><function=now></function></tool_call>") == (ToolCall("now"),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no call at all",
        JSON.removesuffix("</tool_call>"),
        '<tool_call>{"name": "cut off", </tool_call>',
        "<tool_call>[1, 2]</tool_call>",
        '<tool_call>{"name": 7}</tool_call>',
        '<tool_call>{"name": "x", "arguments": "y"}</tool_call>',
        "<tool_call>just talk</tool_call>",
        "<tool_call>" + "[" * 200_000 + "</tool_call>",
    ],
)
def test_what_only_looks_like_a_call_stays_text(text: str) -> None:
    assert find_tool_calls(text) == ()


def test_the_text_around_calls_keeps_its_place() -> None:
    broken = "<tool_call>no call</tool_call>"
    weather = ToolCall("weather", {"city": "Paris", "days": 3})
    assert split_tool_calls(f"Look:{JSON}{JSON} {broken} done") == ("Look:", weather, weather, f" {broken} done")
    assert split_tool_calls("no call at all") == ("no call at all",)
    assert split_tool_calls("") == ()
