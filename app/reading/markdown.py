"""Markdown as the HTML that Qt's text documents understand, with code highlighted and a link to copy each block."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from app.language import tr
from app.theme import Theme

if TYPE_CHECKING:  # imported when there is something to render: the window's first paint does not wait for them
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

COPY = "copy:"
STYLES = {False: "xcode", True: "github-dark"}


@dataclass
class Rendered:
    """HTML, and the code blocks in it: `copy:n` is the link that copies the n-th."""

    html: str = ""
    codes: list[str] = field(default_factory=list)


def render(text: str, theme: Theme) -> Rendered:
    """Render Markdown. HTML inside it is shown as text; pictures become links, nothing is fetched."""
    rendered = Rendered()
    parser = _parser()
    tokens = parser.parse(text)
    parts = [_token_html(parser, tokens, at, theme, rendered) for at in range(len(tokens))]
    rendered.html = "".join(parts)
    return rendered


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    return parser.disable(["image"])


def _token_html(parser: MarkdownIt, tokens: Sequence[Token], at: int, theme: Theme, rendered: Rendered) -> str:
    token = tokens[at]
    if token.type in ("fence", "code_block"):
        rendered.codes.append(token.content)
        return _code(token.content, token.info.strip().split(" ")[0], len(rendered.codes) - 1, theme)
    if token.type == "table_open":
        look = f"border-color:{theme.border_strong}"
        return f'<table border="1" cellspacing="0" cellpadding="6" style="{look}">'  # not translated: markup
    if token.type == "inline":
        for child in token.children or ():
            if child.type == "code_inline":
                look = f"background-color:{theme.sunken}; font-family:monospace"  # not translated: style
                child.attrSet("style", look)
    if token.type == "hr":
        return "<hr>"
    options: Any = parser.options
    if token.type == "inline":
        return str(parser.renderer.render([token], options, {}))
    rule = parser.renderer.rules.get(token.type)  # type: ignore[attr-defined]
    return str(rule(tokens, at, options, {}) if rule else parser.renderer.renderToken(tokens, at, options, {}))  # type: ignore[attr-defined]


def _code(code: str, language: str, number: int, theme: Theme) -> str:
    return _card(_small(language or tr("text"), theme), highlighted(code, language, theme), number, theme)


def call_card(name: str, what: str, arguments: str, number: int, theme: Theme) -> str:
    """A tool call: its name, `what` becomes of it, and its arguments as JSON."""
    caption = _small(tr("Tool call"), theme) + f" <b>{html.escape(name)}</b> " + _small(what, theme)
    return _card(caption, highlighted(arguments, "json", theme), number, theme)


def link(target: str, words: str, colour: str) -> str:
    """A link without a line below it."""
    look = f"text-decoration:none; color:{colour}"  # not translated: style
    return f'<a href="{target}" style="{look}">{html.escape(words)}</a>'


def _small(words: str, theme: Theme) -> str:
    return f'<span style="color:{theme.muted}; font-size:small">{html.escape(words)}</span>'  # not translated: markup


def highlighted(code: str, language: str, theme: Theme) -> str:
    """Code as HTML with coloured words."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.lexers.special import TextLexer
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language) if language else TextLexer()
    except ClassNotFound:
        lexer = TextLexer()
    formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True, noclasses=True, style=STYLES[theme.dark])
    return str(highlight(code.rstrip("\n"), lexer, formatter)).rstrip("\n")


def _card(caption: str, coloured: str, number: int, theme: Theme) -> str:
    copy = link(f"{COPY}{number}", tr("Copy"), theme.accent)
    return (
        f'<table width="100%" cellspacing="0" cellpadding="8" bgcolor="{theme.sunken}"><tr>'
        f'<td>{caption}</td><td align="right">{copy}</td></tr><tr><td colspan="2">'
        f'<pre style="white-space:pre-wrap; margin:0">{coloured}</pre></td></tr></table>'  # not translated: markup
    )
