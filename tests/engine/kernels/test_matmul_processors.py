"""The same bits on every processor: kernels compiled for the generic one and for this one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

_PRODUCTS = """
import hashlib, sys
import numpy as np
from engine.kernels.context import ComputeContext
from engine.kernels.formats import FORMATS
from engine.kernels.matmul import dequantise_rows, linear
from engine.kernels.matrix import Matrix
from tests.naive.weight_matrices import random_matrix

codes = np.arange(65536, dtype=np.uint16)
halves = np.empty((1, codes.size), np.float32)
dequantise_rows(Matrix("F16", 1, codes.size, codes.view(np.uint8)), np.zeros(1, np.int64), halves)
print("halves", hashlib.sha256(halves[~np.isnan(halves)].tobytes()).hexdigest())
for name in sys.argv[1:]:
    rng = np.random.default_rng(1)
    cols = 256 + {1: 77, 32: 96, 64: 64, 256: 256}[FORMATS[name].block_elements]
    matrix, x = random_matrix(name, 11, cols, rng), rng.standard_normal((15, cols), dtype=np.float32)
    digest = hashlib.sha256()
    for count in (1, 2, 4, 15):
        out = np.empty((count, 11), np.float32)
        linear(ComputeContext(1), matrix, np.ascontiguousarray(x[:count]), out)
        digest.update(out.tobytes())
    floats = np.empty((11, cols), np.float32)
    dequantise_rows(matrix, np.arange(11), floats)
    print(name, digest.hexdigest(), hashlib.sha256(floats.tobytes()).hexdigest())
"""

_COMPILATION = """
import sys
from engine.kernels.context import ComputeContext
from engine.kernels.matmul import warm_up
from engine.kernels.simd import has
assert has("avx512bw"), "this would not test what it should"
print(list(warm_up(ComputeContext(1), set(sys.argv[1:]))))
"""


def run(program: str, names: list[str], cache: Path, cpu: str = "", features: str = "") -> str:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(root)}
    if cpu:
        environment |= {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features}
    command = [sys.executable, "-c", program, *names]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


SOME = ["BF16", "Q8_0", "Q4_K"]
OTHERS = [
    "F16",
    "F8_E4M3",
    "Q4_0",
    "Q5_1",
    "IQ4_NL",
    "MXFP4",
    "NVFP4",
    "Q3_K",
    "Q6_K",
    "TQ1_0",
    "IQ1_S",
    "IQ2_XXS",
    "IQ4_XS",
]


@pytest.mark.parametrize("names", [SOME, pytest.param(OTHERS, marks=pytest.mark.slow)])
def test_generic_code_gives_the_bits_of_this_processor(names: list[str], tmp_path: Path) -> None:
    here = os.environ.get("NUMBA_CACHE_DIR", str(tmp_path))
    assert run(_PRODUCTS, names, tmp_path, "generic") == run(_PRODUCTS, names, Path(here))


_AVX512 = "+avx,+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512vnni"


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="AVX-512 is of x86-64")
@pytest.mark.parametrize("names", [["Q8_0", "Q4_K"], pytest.param([*SOME, *OTHERS], marks=pytest.mark.slow)])
def test_avx512_code_compiles_where_it_cannot_run(names: list[str], tmp_path: Path) -> None:
    assert "linear Q8_0" in run(_COMPILATION, [*names, "Q8_0"], tmp_path, "cascadelake", _AVX512)
