"""What this machine offers, and the environment that Numba needs before it is imported. Imports no Numba itself."""

from __future__ import annotations

import os

import psutil


def configure_environment() -> None:
    """Set the variables that Numba and OpenMP read once, unless they are set; before Numba is imported."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def physical_cores() -> int:
    """Cores that this process may use."""
    return min(psutil.cpu_count(logical=False) or 1, len(os.sched_getaffinity(0)))
