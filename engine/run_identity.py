"""What identifies a run: the files by their bytes, the machine, the settings. The header of a trace."""

from __future__ import annotations

import dataclasses
import hashlib
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from engine.decoding.trace import TracedFile, TraceHeader
from engine.errors import ReadError
from engine.files.checkpoint import open_checkpoint
from engine.kernels.cpu import cpu_name, features, physical_cores
from engine.options import GenerateOptions
from engine.version import __version__

if TYPE_CHECKING:
    from engine.loaded_model import ModelInfo

_WHOLE = 64 << 20  # bytes up to which a file is digested whole
_SAMPLES, _SAMPLE = 64, 1 << 20


def digest_file(path: Path) -> str:
    """SHA-256 of a file, or, above 64 MiB, of its size and 64 pieces of 1 MiB from the first byte to the last.

    A sampled digest tells checkpoints apart without reading hundreds of gigabytes; it is no proof of integrity.
    """
    digest = hashlib.sha256()
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if size <= _WHOLE:
                while chunk := file.read(_SAMPLE):
                    digest.update(chunk)
                return f"sha256:{digest.hexdigest()}"
            digest.update(size.to_bytes(8, "little"))
            for index in range(_SAMPLES):
                file.seek((size - _SAMPLE) * index // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE))
    except OSError as error:
        raise ReadError(f"{path.name} cannot be read: {error.strerror}.") from None
    return f"sha256-sampled:{digest.hexdigest()}"


def traced_files(paths: Iterable[Path]) -> tuple[TracedFile, ...]:
    """Name, size and digest of each file; paths are left out, they say nothing on another machine."""
    return tuple(TracedFile(path.name, path.stat().st_size, digest_file(path)) for path in paths)


def machine_facts(threads: int) -> dict[str, Any]:
    """What decides speed here: processor, threads, memory, system."""
    return {
        "cpu": cpu_name(),
        "features": list(features()),
        "cores": physical_cores(),
        "threads": threads,
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.system(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


def describe_run(info: ModelInfo, options: GenerateOptions, prompt: str, prompt_tokens: Sequence[int]) -> TraceHeader:
    """The header for a trace of one reply by the model that `info` tells of."""
    return TraceHeader(
        draftscope=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        model=info.name,
        files=traced_files(_files(info)),
        sidecar=None if info.sidecar is None else Path(info.sidecar).name,
        settings=dataclasses.asdict(options) | _loading(info),
        seed=options.sampling.seed,
        machine=machine_facts(info.threads),
        prompt=prompt,
        prompt_tokens=tuple(prompt_tokens),
    )


def _loading(info: ModelInfo) -> dict[str, Any]:
    """What changes the numbers, of how the model was loaded."""
    return {"kv_cache": info.kv_cache} | ({"precision": info.precision} if info.precision else {})


def _files(info: ModelInfo) -> tuple[Path, ...]:
    files = open_checkpoint(info.path).files
    return files if info.sidecar is None else (*files, Path(info.sidecar))
