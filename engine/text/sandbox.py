"""A Jinja sandbox for templates that come with model files: no access to Python, bounded time, memory and output.

Jinja's own sandbox keeps a template away from attributes and functions. What it leaves open is work without end: nested
loops, recursive macros, strings that double or are multiplied. Here every loop step, call, filter and operation on text
passes a check against a clock and a size limit.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_TEXT = 8_000_000
"""Characters of any single text that a template may build, its output included."""
MAX_NUMBER = 1_000_000
"""Largest whole number that a call, a filter or a text operation may be given: it may be a width or a count."""
MAX_SECONDS = 5.0

_LONG_NUMBER = re.compile(r"\d{7,}")
_CHECK = "_check"  # the name of the filter that is put around what loops run over and what `~` joins


class TooMuchError(Exception):
    """The template asks for more time or memory than a chat template can need."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox that gives up on templates that do too much. `start_clock` before each rendering."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._deadline = float("inf")
        self.filters = {name: self._checked(function) for name, function in self.filters.items()}
        self.filters[_CHECK] = self._check_value
        self.globals.pop("lipsum", None)  # random text has no place in a prompt

    def start_clock(self) -> None:
        """A rendering begins; it has `MAX_SECONDS`."""
        self._deadline = time.monotonic() + MAX_SECONDS

    def check_clock(self) -> None:
        """Raise `TooMuchError` if the time is up."""
        if time.monotonic() > self._deadline:
            raise TooMuchError(f"it needs more than {MAX_SECONDS:g} seconds")

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        """Compile, with a check around each loop's iterable and each operand of `~`."""
        for loop in source.find_all(nodes.For):
            loop.iter = self._check_node(loop.iter)
        for concat in source.find_all(nodes.Concat):
            concat.nodes = [self._check_node(operand) for operand in concat.nodes]
        return super()._generate(source, *args, **kwargs)

    def _check_node(self, node: Any) -> nodes.Expr:
        check = nodes.Filter(node, _CHECK, [], [], None, None, lineno=node.lineno)
        check.set_environment(self)
        return check

    def _check_value(self, value: Any) -> Any:
        self.check_clock()
        if isinstance(value, str):
            return _short(value)
        if isinstance(value, Iterable):
            return value if isinstance(value, dict) else self._clocked(value)
        return value

    def _clocked(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.check_clock()
            yield item

    def _checked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter with checked arguments and result. Marks that tell Jinja to pass its context are kept."""

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            self.check_clock()
            _check_arguments(args, kwargs)
            if function.__name__ in {"do_replace", "do_join"}:
                _check_growth(args)
            elif function.__name__ == "do_format":
                _check_width(args[0])
            return _short(function(*args, **kwargs))

        return checked

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Every call of a template comes through here."""
        self.check_clock()
        _check_arguments(args, kwargs)
        owner = getattr(function, "__self__", None)
        if isinstance(owner, str):
            _check_method(owner, function.__name__, args)
        return _short(super().call(context, function, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Jinja asks here whether `value` is a text's `format` method, and takes a safe one for it."""
        wrapper: Callable[..., str] | None = super().wrap_str_format(value)
        if wrapper is not None:
            _check_width(value.__self__)
        return wrapper

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Every `*`, `**`, `+` and `%` of a template comes through here."""
        self.check_clock()
        _check_operation(operator, left, right)
        return _short(super().call_binop(context, operator, left, right))


def _check_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise TooMuchError(f"{value} is too large a number for a chat template")


def _check_growth(args: tuple[Any, ...]) -> None:
    """Texts and lists whose sizes multiply in `replace` and `join`."""
    size = 1
    for value in args:
        if isinstance(value, str | list | tuple):
            size *= max(1, len(value))
    if size > MAX_TEXT * 8:
        raise TooMuchError("it builds too long a text")


def _check_method(owner: str, name: str, args: tuple[Any, ...]) -> None:
    if name in {"replace", "join"}:
        _check_growth((owner, *args))


def _check_width(form: Any) -> None:
    """A format with a number of seven digits or more asks for that many characters."""
    if _LONG_NUMBER.search(str(form)):
        raise TooMuchError("it formats to too great a width")


def _check_operation(operator: str, left: Any, right: Any) -> None:
    if operator == "*":
        for sized, count in ((left, right), (right, left)):
            if (
                isinstance(sized, str | bytes | list | tuple)
                and isinstance(count, int)
                and len(sized) * count > MAX_TEXT
            ):
                raise TooMuchError("it builds too long a text")
        _check_number_size(left, right)
    elif operator == "**" and isinstance(right, int | float) and abs(right) > 64:
        raise TooMuchError("it raises to too high a power")
    elif operator == "**":
        _check_number_size(left, right)
    elif operator == "%" and isinstance(left, str):
        _check_arguments(right if isinstance(right, tuple) else (right,), {})
        _check_width(left)


def _check_number_size(*values: Any) -> None:
    if any(isinstance(value, int) and value.bit_length() > 4096 for value in values):
        raise TooMuchError("it computes with too large a number")


def _short(value: Any) -> Any:
    if isinstance(value, str | list | tuple) and len(value) > MAX_TEXT:
        raise TooMuchError("it builds too long a text")
    return value
