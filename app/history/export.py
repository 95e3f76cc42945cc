"""A conversation as a file: Markdown to read, JSON with everything known of each token, HTML that keeps the colours."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from app.chat.cells import AttachedFile, Cell, CellKind, Entry, Note, Reply, UserMessage
from app.chat.token_style import SHORT_WORDS, WORDS
from app.chat.tool_calls import NOT_DONE, answer_parts, arguments
from app.history.export_pictures import PictureFolder, inline, reference
from app.theme import LIGHT, Theme
from engine import ToolCall, __version__

_CLASSES = {kind: kind.name.lower() for kind in CellKind}
_VERDICTS = {
    CellKind.MTP: "accepted",
    CellKind.NGRAM: "accepted",
    CellKind.REFUSED: "rejected",
    CellKind.UNUSED: "unused",
}


def as_markdown(title: str, entries: Sequence[Entry], folder: PictureFolder) -> str:
    """Headings and text; thinking is folded, pictures are links into `folder`, other files are named."""
    parts = [f"# {title}"]
    for entry in entries:
        if isinstance(entry, UserMessage):
            files = [_file_markdown(file, folder) for file in entry.files]
            parts.append("\n\n".join(filter(None, ["## You", *files, entry.said])))
        elif isinstance(entry, Reply):
            thinking, answer = split_thinking(entry)
            folded = f"<details><summary>Thinking</summary>\n\n{thinking}\n\n</details>\n\n" if thinking else ""
            parts.append(f"## Model\n\n{folded}{answer}")
        elif not _is_call(entry):  # calls stand in their places in the answer
            parts.append(f"*{entry.text}*")
    return "\n\n".join(parts) + "\n"


def _file_markdown(file: AttachedFile, folder: PictureFolder) -> str:
    if file.kind != "picture":
        return f"*Attached: {file.name}*"
    name = re.sub(r"([\\\[\]])", r"\\\1", file.name)
    return f"![{name}]({quote(folder.place(file))})"


def split_thinking(reply: Reply) -> tuple[str, str]:
    """What was thought, and what was answered, without the tags between them; tool calls as Markdown of their own."""
    thinking = reply.said()[0].replace("<think>", "").replace("</think>", "").strip()
    answer = "".join(_call_markdown(part) if isinstance(part, ToolCall) else part for part in answer_parts(reply))
    return thinking, answer.strip()


def _call_markdown(call: ToolCall) -> str:
    body = arguments(call)
    return f"\n\n**Tool call: `{call.name}`** ({NOT_DONE})\n\n```json\n{body}\n```\n\n"  # not translated: a file's text


def _is_call(entry: Entry) -> bool:
    return isinstance(entry, Note) and entry.tone == "call"


def _calls(reply: Reply) -> list[ToolCall]:
    return [part for part in answer_parts(reply) if isinstance(part, ToolCall)]


def as_json(title: str, entries: Sequence[Entry], folder: PictureFolder) -> str:
    """Per token: where it came from, its verdict, and the probabilities that model and draft gave it. Pictures are
    named as they stand in `folder`."""
    messages: list[dict[str, Any]] = []
    for entry in entries:
        if isinstance(entry, UserMessage):
            files = [reference(file, folder) for file in entry.files]
            messages.append({"role": "user", "text": entry.said} | ({"files": files} if files else {}))
        elif isinstance(entry, Reply):
            tokens = [_token(cell) for cell in entry.cells()]
            calls = [{"name": call.name, "arguments": call.arguments, "executed": False} for call in _calls(entry)]
            said = {"role": "assistant", "text": entry.text} | ({"tool_calls": calls} if calls else {})
            messages.append(said | {"tokens": tokens})
    data = {"program": f"Draftscope {__version__}", "title": title, "messages": messages}
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def _token(cell: Cell) -> dict[str, Any]:
    source = cell.committed.source if cell.committed is not None else cell.draft.source if cell.draft else "model"
    return {
        "id": cell.token,
        "text": cell.text,
        "position": cell.position,
        "round": cell.round.index,
        "source": source,
        "kind": SHORT_WORDS[cell.kind],
        "verdict": _VERDICTS.get(cell.kind),
        "model_probability": cell.model_probability,
        "draft_probability": cell.draft_probability,
    }


def as_html(title: str, entries: Sequence[Entry], theme: Theme = LIGHT) -> str:
    """One page without scripts or other files, pictures inside; colours, and the shapes that say the same."""
    body = "\n".join(filter(None, (_block(entry) for entry in entries)))
    legend = " ".join(
        f'<span class="{_CLASSES[k]}" title="{html.escape(WORDS[k])}">{SHORT_WORDS[k]}</span>'  # not translated: markup
        for k in CellKind
    )
    day = f"{datetime.now():%Y-%m-%d %H:%M}"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        f"<style>{_style(theme)}</style></head>\n<body><h1>{html.escape(title)}</h1>\n"
        f'<p class="legend">{legend}</p>\n{body}\n'  # not translated: a file's text
        f'<p class="note">Draftscope {__version__}, {day}</p></body></html>\n'
    )


def _block(entry: Entry) -> str:
    if isinstance(entry, UserMessage):
        files = "".join(map(_file_html, entry.files))
        return f'<div class="user">{files}{html.escape(entry.said)}</div>'  # not translated: markup
    if isinstance(entry, Reply):
        calls = "".join(map(_call_html, _calls(entry)))
        return f'<div class="reply">{"".join(_spans(entry))}</div>{calls}'  # not translated: markup
    if _is_call(entry):
        return ""  # it stands below its reply
    return f'<p class="note">{html.escape(entry.text)}</p>'


def _file_html(file: AttachedFile) -> str:
    picture, name = inline(file.data) if file.kind == "picture" else None, html.escape(file.name)
    if picture is None:
        return f"[{name}]<br>"
    size = f'width="{picture.width}" height="{picture.height}"'
    return f'<img src="{picture.uri}" alt="{name}" title="{name}" {size}><br>'  # not translated: markup


def _call_html(call: ToolCall) -> str:
    name, body = html.escape(call.name), html.escape(arguments(call))
    title = f"Tool call: <b>{name}</b> <small>{NOT_DONE}</small>"  # not translated: a file's text
    return f'<div class="call">{title}<pre>{body}</pre></div>'  # not translated: markup


def _spans(reply: Reply) -> Iterator[str]:
    """Tokens of one kind next to each other share a span."""
    start, kinds = 0, reply.kinds(0, len(reply))
    while start < len(kinds):
        end, thinking = start + 1, reply.thinking(start)
        while end < len(kinds) and kinds[end] == kinds[start] and reply.thinking(end) == thinking:
            end += 1
        kind = reply.kind(start)
        names = _CLASSES[kind] + (" thinking" if thinking else "")
        tag = "del" if kind.ghost else "span"
        text = html.escape("".join(reply.texts[start:end]))
        yield f'<{tag} class="{names}" title="{SHORT_WORDS[kind]}">{text}</{tag}>'
        start = end


def _style(theme: Theme) -> str:
    mark = "text-decoration-thickness:2px;text-underline-offset:3px"
    return (
        f"body{{max-width:46rem;margin:2rem auto;padding:0 1rem;"  # not translated: CSS
        f"font:16px/1.6 system-ui,sans-serif;"
        f"background:{theme.surface};color:{theme.text}}}"
        f".user{{background:{theme.accent_soft};border-radius:12px;padding:.6rem 1rem;margin:1.5rem 0 1rem 15%;"
        "white-space:pre-wrap}.reply{white-space:pre-wrap}"
        ".user img{display:inline-block;width:auto;height:auto;max-width:100%;max-height:24rem;border-radius:6px}"
        f".call{{background:{theme.sunken};border-radius:8px;padding:.6rem 1rem;margin:1rem 0}}"
        f".call small{{color:{theme.muted}}}.call pre{{margin:.4rem 0 0;white-space:pre-wrap}}"
        f".note,.thinking,.legend{{color:{theme.muted}}}.note,.legend{{font-size:.85rem}}.legend>*{{margin-right:.8rem}}"
        f".mtp{{background:{theme.tint('accepted_mtp')};text-decoration:underline solid {theme.accepted_mtp};{mark}}}"
        f".ngram{{background:{theme.tint('accepted_ngram')};"
        f"text-decoration:underline dotted {theme.accepted_ngram};{mark}}}"
        f".correction{{background:{theme.tint('correction')};border-left:2px solid {theme.correction}}}"
        f".bonus{{border-bottom:1px solid {theme.bonus}}}"
        f".refused{{background:{theme.tint('refused')};text-decoration:line-through {theme.refused};font-size:.85em}}"
        f".unused{{color:{theme.muted};text-decoration:line-through dotted {theme.refused};font-size:.85em}}"
    )
