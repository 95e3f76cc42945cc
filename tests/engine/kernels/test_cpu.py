"""The environment is set before Numba is imported, and the number of threads respects affinity and containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.kernels import cache_folder, cpu

ROOT = Path(__file__).resolve().parents[3]
VARIABLES = ("OMP_WAIT_POLICY", "NUMBA_THREADING_LAYER", "NUMBA_NUM_THREADS", "NUMBA_CACHE_DIR")


def _fresh(code: str, folder: Path = ROOT, **environment: str) -> object:
    """What `code` prints as JSON in a new process without our variables, but with `environment`."""
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return json.loads(done.stdout)


_SHOW = (
    "import json, os, sys; from engine.kernels import cpu; cpu.configure_environment();"
    f"print(json.dumps([[os.environ.get(v) for v in {VARIABLES!r}], 'numba' in sys.modules]))"
)


_USABLE = (
    "import json, os; from engine.kernels import cpu; cpu.configure_environment();"
    "folder = os.environ['NUMBA_CACHE_DIR'];"
    "print(json.dumps([folder, os.path.isdir(folder) and os.access(folder, os.W_OK)]))"
)


def test_sets_the_environment_without_importing_numba(tmp_path: Path) -> None:
    values, numba_imported = _fresh(_SHOW, XDG_CACHE_HOME=str(tmp_path))  # type: ignore[misc]
    assert not numba_imported
    assert values[0] == "passive"
    assert values[1] in {"omp", "tbb", "workqueue"}
    assert int(values[2]) == cpu.physical_cores()
    assert values[3].endswith(cache_folder.source_hash())
    assert Path(values[3]).is_dir()


@pytest.mark.parametrize("content", ["disable_jit: 1", "opt: 0", ": : [", "", "\x00"])
def test_a_file_in_the_working_folder_changes_nothing(tmp_path: Path, content: str) -> None:
    """Numba would take settings from it."""
    (tmp_path / ".numba_config.yaml").write_text(content)
    code = (
        "import json, sys; from engine.kernels import cpu; cpu.configure_environment(); import engine.loading;"
        "from numba.core import config; import yaml;"
        "print(json.dumps([config.DISABLE_JIT, int(config.OPT), yaml.safe_load('1')]))"
    )
    assert _fresh(code, tmp_path, XDG_CACHE_HOME=str(tmp_path)) == [0, 3, 1]


def test_leaves_what_the_person_has_set(tmp_path: Path) -> None:
    mine = dict(zip(VARIABLES, ("active", "workqueue", "1", str(tmp_path)), strict=True))
    values, _ = _fresh(_SHOW, **mine)  # type: ignore[misc]
    assert values == list(mine.values())


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root may write anywhere")
def test_a_read_only_cache_folder_is_replaced(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    folder, usable = _fresh(_USABLE, XDG_CACHE_HOME=str(tmp_path))  # type: ignore[misc]
    assert usable
    assert not folder.startswith(str(tmp_path))


def test_a_cache_folder_that_cannot_be_made_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "draftscope").write_text("a file in the way")
    (tmp_path / "temporary").mkdir()
    folder, usable = _fresh(_USABLE, XDG_CACHE_HOME=str(tmp_path), TMPDIR=str(tmp_path / "temporary"))  # type: ignore[misc]
    assert usable
    assert folder.startswith(str(tmp_path / "temporary"))
    assert list((tmp_path / "temporary").iterdir()) == [], "nothing was compiled, and so nothing is left behind"


def test_importing_kernels_compiles_nothing_of_ours() -> None:
    code = (
        "import json; from engine.kernels import activation, attention, deltanet, logits, norm, router, ngram_index;"
        "from engine.kernels.compiled import _registered;"
        "print(json.dumps([len(_registered), sum(k._entry != k._compile_and_call if hasattr(k, '_entry')"
        " else k._compiled is not None for k in _registered)]))"
    )
    declared, compiled = _fresh(code)  # type: ignore[misc]
    assert declared > 15
    assert compiled == 0


def test_kernels_from_the_cache_do_not_get_numba_ready_to_compile(tmp_path: Path) -> None:
    code = (
        "import json, sys, numpy as np; from engine.kernels.context import ComputeContext;"
        "from engine.kernels.warm_up import warm_up; warm_up(ComputeContext(2), {'Q8_0'});"
        "from engine.kernels.logits import argmax;"
        "print(json.dumps([int(argmax(np.array([1, 3, 2], np.float32))), 'numba.typed.dictimpl' in sys.modules]))"
    )
    _fresh(code)
    assert _fresh(code) == [1, False]


def test_two_teams_at_once_survive_the_simplest_threading_layer() -> None:
    """`workqueue` ends the process when two threads start parallel work at once; the gate keeps them apart."""
    code = """
import json, threading, numba, numpy as np
from engine.kernels.compiled import Task
from engine.kernels.team import argument, run, take_number
@Task
def work(arguments, _index, _count):
    while take_number(arguments) < argument(arguments, 1):
        pass
def loop():
    for _ in range(200):
        arguments = np.array([0, 20_000], np.int64)
        run(work, arguments, 2)
threads = [threading.Thread(target=loop) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
print(json.dumps(numba.threading_layer()))
"""
    assert _fresh(code, NUMBA_THREADING_LAYER="workqueue", NUMBA_NUM_THREADS="2") == "workqueue"


# ---- how many threads ----


def test_counts_at_least_one_core_and_no_more_than_allowed() -> None:
    cores = cpu.physical_cores()
    assert 1 <= cores <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_respects_affinity() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert cpu.physical_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize(("limit", "cores"), [(None, 4), (8.0, 4), (2.0, 2), (1.5, 1), (0.5, 1)])
def test_respects_the_limit_of_a_container(monkeypatch: pytest.MonkeyPatch, limit: float | None, cores: int) -> None:
    monkeypatch.setattr(cpu, "_cores_in_affinity", lambda: 4)
    monkeypatch.setattr(cpu, "container_cpus", lambda: limit)
    assert cpu.physical_cores() == cores


def _group(tmp_path: Path, membership: str, files: dict[str, str]) -> float | None:
    root = tmp_path / "cgroup"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "self").write_text(membership)
    return cpu.container_cpus(root, tmp_path / "self")


def test_reads_the_limit_of_a_container(tmp_path: Path) -> None:
    assert _group(tmp_path, "0::/\n", {"cpu.max": "150000 100000\n"}) == 1.5


def test_the_tightest_limit_of_all_groups_above_holds(tmp_path: Path) -> None:
    files = {"user/app/cpu.max": "max 100000\n", "user/cpu.max": "400000 100000\n", "cpu.max": "max 100000\n"}
    assert _group(tmp_path, "0::/user/app\n", files) == 4.0


def test_reads_the_older_form_of_limits(tmp_path: Path) -> None:
    files = {"cpu/docker/cpu.cfs_quota_us": "200000\n", "cpu/docker/cpu.cfs_period_us": "100000\n"}
    assert _group(tmp_path, "4:cpu,cpuacct:/docker\n0::/\n", files) == 2.0


@pytest.mark.parametrize("text", ["max 100000\n", "", "nonsense\n", "1 0\n"])
def test_no_limit_or_an_unreadable_one(tmp_path: Path, text: str) -> None:
    assert _group(tmp_path, "0::/\n", {"cpu.max": text}) is None
    assert cpu.container_cpus(tmp_path / "missing", tmp_path / "missing") is None


def test_names_the_processor() -> None:
    assert cpu.cpu_name()
    assert all(feature == feature.lower() for feature in cpu.features())
