"""What this machine offers, and the environment that Numba needs before it is imported. Imports no Numba itself."""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import psutil

from engine.kernels.cache_folder import cache_folder

_OPENMP = {"linux": "libgomp.so.1", "darwin": "libomp.dylib", "win32": "vcomp140.dll"}
_TBB = {"linux": "libtbb.so.12", "darwin": "libtbb.12.dylib", "win32": "tbb12.dll"}
_Quota = Callable[[Path], float | None]
_NOTABLE_FEATURES = (
    "sse4_2", "f16c", "fma", "avx", "avx2", "avx_vnni",
    "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16",
    "asimd", "asimdhp", "asimddp", "i8mm", "sve",
)  # fmt: skip


_STRAY_SETTINGS = ".numba_config.yaml"


def configure_environment() -> None:
    """Set what Numba and OpenMP read once, before Numba is imported. What the person has set already stays.

    The team has as many threads as there are cores worth one: every dispatch wakes all of them. Idle ones sleep instead
    of spinning: with two busy neighbours a spinning team was measured a hundred times slower. Compiled kernels go to
    the user's cache folder, under a name that changes with the kernels' source, because Numba alone does not see that a
    function *called by* a kernel has changed.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if "NUMBA_THREADING_LAYER" not in os.environ:
        os.environ["NUMBA_THREADING_LAYER"] = _available_layer()
    if "NUMBA_NUM_THREADS" not in os.environ and "numba" not in sys.modules:
        os.environ["NUMBA_NUM_THREADS"] = str(physical_cores())
    if "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(cache_folder())
    if "numba" in sys.modules:  # imported earlier by somebody else's code: let it read the variables again
        sys.modules["numba"].config.reload_config()
    elif Path(_STRAY_SETTINGS).exists():
        _import_numba_by_itself()


def _import_numba_by_itself() -> None:
    """Numba takes settings from a file in the working folder if it finds PyYAML: what lies about where the program is
    started must neither slow its arithmetic nor end it."""
    kept = sys.modules.get("yaml")
    warnings.filterwarnings("ignore", "A Numba config file is found")
    sys.modules["yaml"] = None  # type: ignore[assignment]  # Python's way to say that there is no such module
    try:
        importlib.import_module("numba")
    finally:
        if kept is None:
            del sys.modules["yaml"]
        else:
            sys.modules["yaml"] = kept


def threading_layer() -> str:
    """The library that starts Numba's threads: `omp`, `tbb` or, where neither is there, `workqueue`."""
    return os.environ.get("NUMBA_THREADING_LAYER", "") or _available_layer()


def threads_may_share_team() -> bool:
    """Whether several threads may start parallel work at once; `workqueue` ends the process if they do."""
    return threading_layer() != "workqueue"


@cache
def _available_layer() -> str:
    for layer, libraries in (("omp", _OPENMP), ("tbb", _TBB)):
        if _loads(libraries.get(sys.platform, "")):
            return layer
    return "workqueue"


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return bool(library)


# ---- how many threads ----


def physical_cores() -> int:
    """Cores worth a thread each: physical ones that this process may run on, within a container's limit; at least 1."""
    cores = _cores_in_affinity()
    quota = container_cpus()
    return max(1, cores if quota is None else min(cores, int(quota)))


def _cores_in_affinity() -> int:
    if not hasattr(os, "sched_getaffinity"):
        return psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = os.sched_getaffinity(0)
    cores = set()
    for number in allowed:
        topology = Path(f"/sys/devices/system/cpu/cpu{number}/topology")
        try:
            package, core = ((topology / name).read_text() for name in ("physical_package_id", "core_id"))
        except OSError:
            return min(len(allowed), psutil.cpu_count(logical=False) or len(allowed))
        cores.add((package.strip(), core.strip()))
    return len(cores)


def container_cpus(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> float | None:
    """CPUs that the control group of this process (Docker, systemd) may use, None without a limit."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "":
            limits += _limits_upwards(root, group, _quota_v2)
        elif "cpu" in controllers.split(","):
            limits += _limits_upwards(root / "cpu", group, _quota_v1)
    return min(limits, default=None)


def _limits_upwards(root: Path, group: str, quota: _Quota) -> list[float]:
    """Limits of a control group and all above it. Inside a container the path may not exist: then the root is ours."""
    folder = root / group.strip("/")
    folders = [folder, *folder.parents]
    return [limit for f in folders if f.is_relative_to(root) and (limit := quota(f)) is not None]


def _quota_v2(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _quota_v1(folder: Path) -> float | None:
    try:
        quota, period = (
            int((folder / f"cpu.cfs_{name}_us").read_text(encoding="utf-8")) for name in ("quota", "period")
        )
        return None if quota < 0 else quota / period
    except (OSError, ValueError, ZeroDivisionError):
        return None


# ---- names for people ----


@cache
def cpu_name() -> str:
    """The processor as its maker calls it, e.g. "AMD EPYC 9R14"."""
    name = _cpu_info().get("model name", "")
    if not name and sys.platform == "darwin":
        name = _output("sysctl", "-n", "machdep.cpu.brand_string")
    return name or platform.processor() or platform.machine()


@cache
def features() -> tuple[str, ...]:
    """Vector extensions that matter for the kernels, in Linux's names; empty where the system does not tell."""
    info = _cpu_info()
    present = set((info.get("flags") or info.get("Features") or "").split())
    return tuple(name for name in _NOTABLE_FEATURES if name in present)


@cache
def _cpu_info() -> dict[str, str]:
    """The first processor's entries of /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
