"""Takes compiled kernels from Numba's cache without getting Numba ready to compile, which would take longer."""

from __future__ import annotations

from typing import Any

from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys


class StoredKernels(FunctionCache):
    """Numba's cache of one function, for the versions of Numba that this program allows.

    Numba loads what it knows of Python, NumPy and its own containers before it looks into the cache: a third of a
    second, and of no use to a program whose kernels are all there. What is not there still compiles as usual.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for a signature, None if it is not in the cache."""
        rtsys.initialize(target_context)  # machine code refers to it
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
