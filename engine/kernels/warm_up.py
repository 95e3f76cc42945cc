"""Compile, or read from the cache, every kernel that a model needs, with progress."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.kernels.compiled import Compilable
    from engine.kernels.context import ComputeContext

_EVERY_MODEL = (
    "norm",
    "attention_inputs",
    "attention",
    "deltanet",
    "convolution",
    "activation",
    "logits",
    "ngram_index",
    "team",
)
_WITH_EXPERTS = ("router",)
_WITH_PICTURES = ("vision",)


class Cancel(Protocol):
    """What can stop a warm-up: `check` raises if it is to end."""

    def check(self) -> None: ...


def kernels_for(experts: bool = True, pictures: bool = False) -> list[Compilable]:
    """The kernels beside matrix products that a model needs; imports their modules, compiles nothing."""
    from engine.kernels.compiled import registered

    names = _EVERY_MODEL + (_WITH_EXPERTS if experts else ()) + (_WITH_PICTURES if pictures else ())
    modules = [f"engine.kernels.{name}" for name in names]
    for module in modules:
        importlib.import_module(module)
    return registered(*modules)


def warm_up(
    context: ComputeContext,
    formats: Iterable[str],
    progress: Callable[[int, int, str], None] | None = None,
    cancel: Cancel | None = None,
    experts: bool = True,
    pictures: bool = False,
) -> None:
    """Make ready what a model with these weight formats needs, so that its first token does not wait for a compiler.

    Formats that no matrix has (integers) are passed over. `progress` gets (done, total, name of the last one done);
    `cancel.check()` is called before each.
    """
    from engine.kernels.formats import FORMATS

    items, weights = kernels_for(experts, pictures), {name for name in formats if name in FORMATS}
    total = len(items) + len(weights)
    for done, name in enumerate(_steps(context, items, weights, cancel), 1):
        if progress is not None:
            progress(done, total, name)


def _steps(context: ComputeContext, items: list[Compilable], weights: set[str], cancel: Cancel | None) -> Iterator[str]:
    from engine.kernels import matmul

    for item in items:
        if cancel is not None:
            cancel.check()
        item.compile()
        yield item.name
    for name in sorted(weights):
        for _ in matmul.warm_up(context, {name}):
            if cancel is not None:
                cancel.check()
        yield f"products with {name}"
