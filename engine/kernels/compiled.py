"""How this program compiles: each function for one declared signature, when it is first needed, and never again.

A plain `@njit(signature)` compiles when its module is imported, one without a signature compiles anew for every kind of
array it meets. A `Kernel` does neither: importing costs nothing, `warm_up` compiles (or reads from the cache) what a
model needs while it can say so, and a wrong argument is a TypeError instead of another ten seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from numba import njit, types
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature

from engine.kernels.stored import StoredKernels

TASK = types.void(types.intp, types.intp, types.intp)
"""(address of the arguments, number of this task, number of tasks)"""

_LOCK = threading.RLock()


class Compilable(Protocol):
    """What `warm_up` asks of a kernel."""

    name: str
    module: str

    def compile(self) -> None: ...


_registered: list[Compilable] = []


def registered(*modules: str) -> list[Compilable]:
    """Every kernel that was declared in the given modules (full names), which have been imported."""
    return [item for item in _registered if item.module in modules]


class Kernel:
    """A function that Numba compiles for one signature; runs without the interpreter lock."""

    __slots__ = ("_entry", "_function", "_options", "_signature", "module", "name")

    def __init__(self, function: Callable[..., Any], signature: Any, **options: bool) -> None:
        self.name, self.module = function.__name__.strip("_"), function.__module__
        self._function, self._signature, self._options = function, signature, options
        self._entry: Callable[..., Any] = self._compile_and_call
        _registered.append(self)

    def __call__(self, *arguments: Any) -> Any:
        return self._entry(*arguments)

    def compile(self) -> None:
        """Compile, or read from the cache, unless done before."""
        with _LOCK:
            if self._entry == self._compile_and_call:
                options = {"nogil": True, "error_model": "numpy", **self._options}
                stored = options.pop("cache", True)
                dispatcher = njit(**options)(self._function)
                if stored:
                    dispatcher._cache = StoredKernels(self._function)
                dispatcher.compile(self._signature)
                dispatcher.disable_compile()
                self._entry = dispatcher

    def _compile_and_call(self, *arguments: Any) -> Any:
        self.compile()
        return self._entry(*arguments)


class Task:
    """A function of (address of the arguments, number of this task, number of tasks) that team threads call."""

    __slots__ = ("_address", "_compiled", "_function", "_options", "module", "name")

    def __init__(self, function: Callable[[int, int, int], None], **options: bool) -> None:
        self.name, self.module = function.__name__.strip("_"), function.__module__
        self._function, self._options = function, options
        self._compiled: Any = None  # keeps the machine code alive
        self._address = 0
        _registered.append(self)

    @property
    def address(self) -> int:
        """Where the machine code starts; compiles at first use."""
        if not self._address:
            self.compile()
        return self._address

    def compile(self) -> None:
        """Compile, or read from the cache, unless done before."""
        with _LOCK:
            if self._compiled is None:
                options = {"error_model": "numpy", **self._options}
                compiled: Any = CFunc(self._function, normalize_signature(TASK), {}, options)
                compiled._cache = StoredKernels(self._function)
                compiled.compile()
                self._compiled, self._address = compiled, compiled.address


def kernel(signature: Any, **options: bool) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator: a `Kernel` with this signature (a Numba type or its text); options are those of `njit`."""

    def declare(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, signature, **options)

    return declare
