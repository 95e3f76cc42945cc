"""Takes compiled kernels from Numba's cache without getting Numba ready to compile, which would take longer."""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import CacheImpl, CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys

from engine.kernels.cache_folder import installed_folder, source_hash

_SUM_BYTES = 4


class KernelLocator(_CacheLocator):
    """Where a kernel is kept: all lie in one folder, by module and line, valid for these sources of the kernels.

    Numba's own locators name the place after the path of the source file and, in a frozen program, take the executable
    for the source: the window and the command line would throw away each other's kernels.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._module, self._line = function.__module__, function.__code__.co_firstlineno
        self._py_file = inspect.getfile(function)  # Numba names it in warnings

    @classmethod
    def from_function(cls, function: Callable[..., Any], _file: str) -> KernelLocator | None:
        """None, so that Numba looks for another place, if none was chosen or it cannot be written."""
        folder = config.CACHE_DIR
        return cls(function) if folder and os.access(folder, os.W_OK) else None

    def get_cache_path(self) -> str:
        """The folder."""
        return str(config.CACHE_DIR)

    def get_source_stamp(self) -> str:
        """What changes with the sources."""
        return source_hash()

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart."""
        return f"{self._module}-{self._line}"


class _KernelStore(CompileResultCacheImpl):
    """Keeps the machine code alone. Numba keeps, beside it, what another function needs that is linked with this one,
    and looks through all of it whenever it loads one. Kernels are never linked: each is called by its address."""

    _locator_classes = [KernelLocator, *CacheImpl._locator_classes]  # noqa: RUF012 - as Numba declares it

    def reduce(self, cres: Any) -> Any:
        """What is written to the disk."""
        (name, kind, (machine_code, _)), *rest = super().reduce(cres)
        return (name, kind, machine_code), *rest

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """The compiled function again: as Numba's `CompileResult._rebuild`, without anything to link with."""
        (name, _, machine_code), function, environment, signature, objectmode, lifted, annotation, init, others = (
            payload
        )
        for step in init:
            step()
        codegen = target_context.codegen()
        library = codegen.create_library(name)
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        codegen._engine._defined_symbols |= {
            function.llvm_func_name,
            function.llvm_cpython_wrapper_name,
            function.llvm_cfunc_wrapper_name,
        }
        result = CompileResult(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, function, environment),
            fndesc=function,
            type_annotation=annotation,
            signature=signature,
            objectmode=objectmode,
            lifted=lifted,
            typing_error=None,
            call_helper=None,
            metadata=None,
            reload_init=init,
            referenced_envs=others,
        )
        for other in others:
            codegen.set_env(other.env_name, other)
        return result


class _KernelFile(IndexDataCacheFile):
    """Files of one kernel that notice when they are not what was written. Numba would run it: after a power failure
    some of a file may be zeros, and two processors that share a home may write the same file at the same time."""

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """What was kept under this key; None if it is not there. An exception, or None, if it is damaged."""
        kept, data = super().load(key) or (None, None)
        return data if kept == key else None

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(zlib.crc32(content).to_bytes(_SUM_BYTES))
            file.write(content)

    def _load_data(self, name: str) -> Any:
        content = Path(self._data_path(name)).read_bytes()
        if zlib.crc32(content[_SUM_BYTES:]) != int.from_bytes(content[:_SUM_BYTES]):
            raise ValueError(f"{name} is damaged.")
        return pickle.loads(content[_SUM_BYTES:])


class StoredKernels(FunctionCache):
    """Numba's cache of one function, for the versions of Numba that this program allows.

    Numba loads what it knows of Python, NumPy and its own containers before it looks into the cache: a third of a
    second, and of no use to a program whose kernels are all there. What is not there still compiles as usual.
    """

    _impl_class = _KernelStore

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        base, stamp = self._impl.filename_base, self._impl.locator.get_source_stamp()
        self._cache_file = _KernelFile(self._cache_path, base, stamp)
        self._files = [self._cache_file]
        if installed := installed_folder():
            self._files.append(_KernelFile(str(installed), base, source_hash()))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for a signature, None if it is not in the cache."""
        rtsys.initialize(target_context)  # machine code refers to it
        key = self._index_key(sig, target_context.codegen())
        for file in self._files:
            try:
                data = file.load(key)
            except Exception:  # cut short by a full disk, say: then it is compiled again and replaced
                continue
            if data is not None:
                return self._impl.rebuild(target_context, data)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function. A full disk or a damaged index is no reason to fail: the kernel is there."""
        with contextlib.suppress(OSError):
            try:
                super().save_overload(sig, data)
            except (EOFError, ValueError, pickle.UnpicklingError):
                self.flush()
                super().save_overload(sig, data)
