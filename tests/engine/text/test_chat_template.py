"""Chat templates: what they render, how they fail, and that none can run away."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine.errors import TemplateError
from engine.text.chat_template import CHATML, MAX_SOURCE, ChatTemplate
from engine.text.sandbox import MAX_SECONDS
from resources import demo_checkpoint

HELLO = [{"role": "user", "content": "Hello"}]


def render(source: str, **variables: object) -> str:
    return ChatTemplate(source).render([{"role": "user", "content": "Hello", **variables}])


def test_default_is_chatml() -> None:
    template = ChatTemplate(None)
    assert template.is_default
    expected = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert template.render(HELLO) == expected
    assert template.render(HELLO, add_generation_prompt=False) == expected.removesuffix("<|im_start|>assistant\n")


@pytest.mark.parametrize(
    ("thinking", "ending"),
    [(None, "<think>\n\n</think>\n\n"), (False, "<think>\n\n</think>\n\n"), (True, "<think>\n")],
)
def test_demo_template(thinking: bool | None, ending: str) -> None:
    template = ChatTemplate((demo_checkpoint() / "chat_template.jinja").read_text())
    chat = [*HELLO, {"role": "assistant", "content": "<think>hm</think>\nHi!"}, {"role": "user", "content": "Bye"}]
    assert template.render(chat, enable_thinking=thinking) == (
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi!<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
        "<|im_start|>assistant\n" + ending
    )


def test_reference_template(data: Path) -> None:
    template = ChatTemplate((data / "tiny-dense" / "chat_template.jinja").read_text())
    assert template.render(HELLO) == ChatTemplate(CHATML).render(HELLO)


def test_blocks_are_trimmed_as_in_transformers() -> None:
    assert (
        render("{% for m in messages %}\n    {% if true %}\n{{ m.content }}\n    {% endif %}\n{% endfor %}\n")
        == "Hello\n"
    )


def test_tools_of_the_environment() -> None:
    assert render("{{ {'a': '<é>'} | tojson }}") == '{"a": "<é>"}'
    assert render("{{ [1] | tojson(indent=1) }}") == "[\n 1\n]"
    assert render("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "01"
    assert render("{{ strftime_now('%Y') }}") == time.strftime("%Y")
    assert ChatTemplate("{{ eos_token }}", {"eos_token": "<|im_end|>"}).render(HELLO) == "<|im_end|>"


def test_loop_variables_survive_the_checks() -> None:
    source = "{% for m in [1, 2, 3] %}{{ loop.index0 }}{{ loop.length }}{{ loop.last }}{{ loop.previtem }};{% endfor %}"
    assert render(source) == "03False;13False1;23True2;"
    assert (
        render("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}{% for k in {'b': 1} %}{{ k }}{% endfor %}")
        == "a1b"
    )
    assert render("{% for m in messages[::-1] %}{{ m.content[:2] ~ m['role'] }}{% else %}none{% endfor %}") == "Heuser"


def test_broken_template_names_the_line() -> None:
    with pytest.raises(TemplateError, match=r"broken at line 3: .*'endfor'"):
        ChatTemplate("line\n{% for m in messages %}\n{% endif %}")


def test_failing_template_names_the_line() -> None:
    with pytest.raises(TemplateError, match=r"failed at line 2: 'nothing' is undefined"):
        render("{{ messages[0].content }}\n{{ nothing.at.all }}")


def test_refusal_of_the_template_itself() -> None:
    with pytest.raises(TemplateError, match=r"refuses these messages \(at line 1\): no tools here"):
        render("{{ raise_exception('no tools here') }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ self.__init__ }}{{ cycler.__init__.__globals__.os.system('true') }}",
        "{% include 'other' %}",
        "{% import 'other' as other %}",
    ],
)
def test_nothing_of_python_is_within_reach(source: str) -> None:
    with pytest.raises(TemplateError):
        render(source)


BOMBS = {
    "range": "{% for i in range(10**9) %}x{% endfor %}",
    "nested ranges": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "nested loops over text": "{% set s = 'x' * 9999 %}{% for a in s %}{% for b in s %}{% for c in s %}"
    "{% endfor %}{% endfor %}{% endfor %}",
    "multiplied text": "{{ 'x' * 10**9 }}",
    "multiplied list": "{{ ([0] * 10**9) | length }}",
    "doubling by +": "{% set n = namespace(s='x') %}{% for i in range(64) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "doubling by ~": "{% set n = namespace(s='x') %}{% for i in range(64) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "doubling by blocks": "{% set n = namespace(s='x') %}{% for i in range(64) %}"
    "{% set t %}{{ n.s }}{{ n.s }}{% endset %}{% set n.s = t %}{% endfor %}",
    "long output": "{% set s = 'x' * 999999 %}{% for i in range(99) %}{{ s }}{% endfor %}",
    "width by method": "{{ 'x'.ljust(10**10) }}",
    "width by filter": "{{ 'x' | center(10000000000) }}",
    "width by %": "{{ '%10000000000d' % 1 }}",
    "width by * in %": "{{ '%*d' % (10000000000, 1) }}",
    "width by % as filter": "{{ '%10000000000d' | format(1) }}",
    "width by format": "{{ '{:10000000000}'.format(1) }}",
    "nested width by format": "{{ '{:{}}'.format(1, 10000000000) }}",
    "replace": "{% set s = 'x' * 99999 %}{{ s.replace('x', s) }}",
    "replace by filter": "{% set s = 'x' * 99999 %}{{ s | replace('x', s) }}",
    "join": "{% set s = 'x' * 99999 %}{{ s.join(s) }}",
    "join by filter": "{% set s = 'x' * 99999 %}{{ s | join(s) }}",
    "power": "{{ 9 ** 999999999 }}",
    "power of powers": "{% set n = namespace(v=9) %}{% for i in range(64) %}{% set n.v = n.v ** 64 %}{% endfor %}",
    "endless macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "branching macro": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(99) }}",
    "batch": "{{ [1] | batch(10**9, 0) | list }}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_template_runs_away(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.text.sandbox.MAX_SECONDS", 0.2)
    with pytest.raises(TemplateError, match=r"was stopped|failed"):
        render(BOMBS[name])


def test_source_is_bounded() -> None:
    assert MAX_SECONDS > 1
    with pytest.raises(TemplateError, match="characters"):
        ChatTemplate("x" * (MAX_SOURCE + 1))
    with pytest.raises(TemplateError, match="nested too deeply"):
        ChatTemplate("{{ " + "(" * 50_000 + ")" * 50_000 + " }}")


def test_long_chats_render() -> None:
    chat = [{"role": "user", "content": "word " * 200}] * 5000
    assert len(ChatTemplate(None).render(chat)) > 5_000_000
