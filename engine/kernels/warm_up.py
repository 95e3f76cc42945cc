"""Compile, or read from the cache, every kernel that a model needs, with progress."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from engine.kernels.compiled import registered

if TYPE_CHECKING:
    from engine.kernels.context import ComputeContext

_EVERY_MODEL = (
    "team",
    "norm",
    "attention_inputs",
    "attention",
    "deltanet",
    "convolution",
    "activation",
    "logits",
    "ngram_index",
)
_EXPERTS = ("router",)


class _Cancel(Protocol):
    def check(self) -> None: ...


def warm_up(
    context: ComputeContext,
    formats: Iterable[str],
    progress: Callable[[int, int, str], None] | None = None,
    cancel: _Cancel | None = None,
) -> None:
    """Make ready what a model with these weight formats needs, so that its first token does not wait for a compiler.

    `progress` gets (done, total, name of the one to come); `cancel.check()` is called between two of them.
    """
    modules = [f"engine.kernels.{name}" for name in (*_EVERY_MODEL, *_EXPERTS)]
    for module in modules:
        importlib.import_module(module)
    items = registered(*modules)
    for done, item in enumerate(items):
        if cancel is not None:
            cancel.check()
        if progress is not None:
            progress(done, len(items), item.name)
        item.compile()
