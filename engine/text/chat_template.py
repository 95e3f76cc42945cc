"""From messages to the prompt's text, by the Jinja template that comes with a checkpoint.

The environment is the one that Hugging Face's documentation of chat templates describes: trimmed blocks,
`raise_exception`, `strftime_now`, `tojson` without HTML escapes, `break` and `continue`.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import meta
from jinja2.ext import loopcontrols

from engine.errors import TemplateError
from engine.files.checkpoint import Checkpoint
from engine.files.tokenizer_source import TokenizerSource
from engine.text.sandbox import MAX_TEXT, BoundedEnvironment, TooMuchError

CHATML = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}"""
"""The layout of a chat that this family was trained on, for checkpoints that bring no template."""

MAX_SOURCE = 1_000_000
_NAME = "<chat template>"
_TOKEN_NAMES = ("bos", "eos", "pad", "unk")


class ChatTemplate:
    """A compiled template.

    Raises:
        TemplateError: the template is no Jinja (the message names the line).
    """

    def __init__(self, source: str | None, special_tokens: Mapping[str, str] | None = None) -> None:
        """`source` None takes `CHATML`. `special_tokens` are names a template may use, such as `bos_token`."""
        self.is_default = source is None
        self.source = CHATML if source is None else source
        self._variables = dict(special_tokens or {})
        self._environment = _environment()
        self._template = self._compile()
        self.knows_thinking = "enable_thinking" in meta.find_undeclared_variables(self._environment.parse(self.source))
        """Does the template ask whether to think?"""

    def _compile(self) -> jinja2.Template:
        if len(self.source) > MAX_SOURCE:
            raise TemplateError(f"The chat template has {len(self.source):,} characters; {MAX_SOURCE:,} are plausible.")
        try:
            code = self._environment.compile(self.source, filename=_NAME)
            return self._environment.template_class.from_code(self._environment, code, self._environment.globals)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"The chat template is broken at line {error.lineno}: {error.message}") from None
        except (RecursionError, MemoryError, SyntaxError):
            raise TemplateError("The chat template is nested too deeply.") from None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool = True,
        enable_thinking: bool | None = None,
    ) -> str:
        """The prompt's text. `enable_thinking` None leaves the choice to the template.

        Raises:
            TemplateError: the template refused the messages, failed, or did too much.
        """
        variables: dict[str, Any] = {**self._variables, "messages": [dict(message) for message in messages]}
        variables["add_generation_prompt"] = add_generation_prompt
        if enable_thinking is not None:
            variables["enable_thinking"] = enable_thinking
        self._environment.start_clock()
        try:
            return self._collect(variables)
        except Exception as error:  # whatever the template's own code runs into
            raise TemplateError(_sentence(error)) from None

    def _collect(self, variables: Mapping[str, Any]) -> str:
        pieces, size = [], 0
        for piece in self._template.generate(variables):
            self._environment.check_clock()
            size += len(piece)
            if size > MAX_TEXT:
                raise TooMuchError("it builds too long a text")
            pieces.append(piece)
        return "".join(pieces)


def open_chat_template(checkpoint: Checkpoint) -> ChatTemplate:
    """The checkpoint's chat template, or ChatML if it has none; TemplateError if it is broken."""
    return ChatTemplate(checkpoint.chat_template, template_tokens(checkpoint.tokenizer))


def template_tokens(source: TokenizerSource) -> dict[str, str]:
    """The special tokens by the names that templates use: `bos_token`, `eos_token`, `pad_token`, `unk_token`."""
    found = {f"{name}_token": _spelling(source.settings, f"{name}_token") for name in _TOKEN_NAMES}
    for name, token in source.special_ids.items():
        short = "pad" if name == "padding" else name
        if short in _TOKEN_NAMES and 0 <= token < len(source.tokens):
            found[f"{short}_token"] = source.tokens[token]
    return {name: text for name, text in found.items() if text is not None}


def _spelling(settings: Mapping[str, Any], name: str) -> str | None:
    value = settings.get(name)
    if isinstance(value, Mapping):  # {"content": "<|im_end|>", "lstrip": …}
        value = value.get("content")
    return value if isinstance(value, str) else None


class _RaisedByTemplateError(Exception):
    """The template called `raise_exception`."""


def _environment() -> BoundedEnvironment:
    environment = BoundedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _raise_exception(message: object) -> NoReturn:
    raise _RaisedByTemplateError(str(message))


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, sort_keys=sort_keys)


def _sentence(error: Exception) -> str:
    """What went wrong in the template, and at which of its lines."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _NAME]
    where = f"at line {lines[-1]}" if lines and lines[-1] else "while it was filled in"
    if isinstance(error, _RaisedByTemplateError):
        return f"The chat template refuses these messages ({where}): {error}"
    if isinstance(error, TooMuchError):
        return f"The chat template was stopped ({where}): {error}."
    if isinstance(error, RecursionError):
        return f"The chat template was stopped ({where}): it calls itself without end."
    return f"The chat template failed {where}: {error}"
