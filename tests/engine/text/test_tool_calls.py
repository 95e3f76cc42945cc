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
        '<tool_call>{"name": "x", "arguments": {"a": ' + "[" * 500 + "]" * 500 + "}}</tool_call>",
        '<tool_call>{"name": "x", "arguments": {"a": NaN}}</tool_call>',
        '<tool_call>{"name": "x", "arguments": {"a": [-1e999]}}</tool_call>',
        "<tool_call>" * 200_000,
        "<tool_call>" * 2 + "<function=x>" * 100_000,
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


def test_a_parameter_that_is_not_closed_is_none() -> None:
    many = "<parameter=a>" * 100_000
    blank = " " * 100_000
    assert find_tool_calls(f"<tool_call><function=x>{many}</function></tool_call>") == (ToolCall("x"),)
    assert find_tool_calls(f"<tool_call><function=x>{blank}.{blank}</function></tool_call>") == (ToolCall("x"),)


def test_a_value_that_is_nested_too_deeply_is_its_text() -> None:
    deep = "[" * 500 + "]" * 500
    (call,) = find_tool_calls(f"<tool_call><function=x><parameter=a>\n{deep}\n</parameter></function></tool_call>")
    assert call.arguments == {"a": deep}


def test_half_a_character_can_be_written_to_a_file() -> None:
    escaped = r'{"name": "x\ud800", "arguments": {"\udc00": ["\ud83d\ude00", "\ud800"]}}'
    assert find_tool_calls(f"<tool_call>{escaped}</tool_call>") == (
        ToolCall("x\ufffd", {"\ufffd": ["\U0001f600", "\ufffd"]}),
    )
