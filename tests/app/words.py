"""Finds what the window's code says in plain literals, past `tr`, `trn` and `mark`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TRANSLATED = {"tr", "trn", "mark"}
LOGGED = {"debug", "info", "warning", "error", "exception", "critical", "log"}
SENTENCE = re.compile(r"[A-Za-z]{2,}[,:;.…)”]* [(“]?[A-Za-z]{2,}")
WORD = re.compile(r"^&?[A-Z]&?[a-z][a-z&]+[…:.?!]?$")
SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|BEGIN|COMMIT|ROLLBACK|DROP|ALTER|WITH|VACUUM)\b")
EXCUSE = "# not translated"


@dataclass(frozen=True)
class Literal:
    """A text that people may read and that no translator would get."""

    file: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text!r}"


def untranslated(path: Path) -> list[Literal]:
    """Literals that look like words for people. One with a comment `# not translated: why` in its lines is left out."""
    lines = path.read_text("utf-8").splitlines()
    found = []
    for node, text in _literals(ast.parse("\n".join(lines))):
        own = lines[node.lineno - 1 : node.end_lineno]
        if (SENTENCE.search(text) or WORD.match(text)) and not SQL.match(text) and not any(EXCUSE in s for s in own):
            found.append(Literal(path, node.lineno, text))
    return found


def early_calls(path: Path) -> list[int]:
    """Lines that translate when the module is imported, before the language is known."""
    return [call.lineno for call in _imported(ast.parse(path.read_text("utf-8")).body)]


def computed_texts(path: Path) -> list[int]:
    """Lines where a translated text is put together first, so that nobody can look it up."""
    calls = (n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call))
    return [
        call.lineno
        for call in calls
        if _name(call) in TRANSLATED and not all(_is_text(a) for a in call.args[: 2 if _name(call) == "trn" else 1])
    ]


def _is_text(node: ast.expr) -> bool:
    """A literal, a marked text by its name, or a choice between such."""
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) and _is_text(node.orelse)
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _imported(body: list[ast.stmt]) -> Iterator[ast.Call]:
    """Calls of `tr` and `trn` that run at import: outside of functions, or among a function's defaults."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            stack += [*node.args.defaults, *(d for d in node.args.kw_defaults if d), *node.decorator_list]
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, ast.Call) and _name(node) in {"tr", "trn"}:
                yield node
            stack += ast.iter_child_nodes(node)


def _literals(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Texts in expressions, but for docstrings, annotations, log lines and what is translated."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node, "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
            stack += [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
        elif isinstance(node, ast.Call) and _name(node) in TRANSLATED:
            stack += [*node.args[2 if _name(node) == "trn" else 1 :], *(k.value for k in node.keywords)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOGGED:
            continue
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        elif isinstance(node, ast.Assert):
            stack.append(node.test)
        else:
            for name, child in ast.iter_fields(node):
                if name not in {"annotation", "returns"}:
                    stack += [c for c in (child if isinstance(child, list) else [child]) if isinstance(c, ast.AST)]


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""
