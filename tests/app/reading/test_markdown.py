"""Markdown becomes what Qt can show, and nothing in it is taken for more than text."""

from __future__ import annotations

import pytest

from app.reading.markdown import render
from app.theme import DARK, LIGHT


def test_tables_lists_and_emphasis() -> None:
    html = render("| a | b |\n|---|--:|\n| 1 | 2 |\n\n1. one\n\n~~no~~ **yes**", LIGHT).html
    for part in ("<table", "<th>a</th>", "text-align:right", "<ol>", "<s>no</s>", "<strong>yes</strong>"):
        assert part in html


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_code_is_highlighted_and_can_be_copied(theme: object) -> None:
    rendered = render("```python\ndef f(): return '<b>'\n```\n\n    plain\n", theme)  # type: ignore[arg-type]
    assert rendered.codes == ["def f(): return '<b>'\n", "plain\n"]
    assert '<span style="' in rendered.html
    assert 'href="copy:0"' in rendered.html
    assert 'href="copy:1"' in rendered.html
    assert "<b>" not in rendered.html


def test_html_and_pictures_of_a_reply_are_shown_as_text_and_not_fetched() -> None:
    html = render("<script>x</script> <img src='http://a/b.png'> ![see](http://a/b.png)", LIGHT).html
    assert "<script" not in html
    assert "<img" not in html


def test_a_language_that_nobody_knows_is_text() -> None:
    assert render("```klingon\nqapla\n```", LIGHT).codes == ["qapla\n"]
