"""The same bits on every processor: the small kernels compiled for the generic one and for this one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

_RESULTS = """
import hashlib
import numpy as np
from engine.kernels.activation import silu_multiply
from engine.kernels.attention import attention
from engine.kernels.context import ComputeContext
from engine.kernels.deltanet import delta_gates, delta_rule
from engine.kernels.kv_rows import encode_rows
from engine.kernels.kv_types import KV_TYPES
from engine.kernels.norm import rms_norm

rng, context = np.random.default_rng(0), ComputeContext(1)
def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)
def show(name, *arrays):
    print(name, hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest())

x, y = normal(3, 1001) * 9, normal(3, 1001)
rms_norm(x, y[0], 1e-6, y)
show("norm", y)
silu_multiply(x, y, y)
show("silu", y)
g, beta = normal(19, 2), normal(19, 2)
delta_gates(g, beta, np.ones(2, np.float32), g[0], g, beta)
show("gates", g, beta)
state, out = normal(2, 32, 32) * np.float32(0.1), np.empty((19, 64), np.float32)
delta_rule(context, state, state, normal(19, 128), g, beta, np.zeros(2, np.int64), out)
show("delta rule", state, out)
rows, q, gates, out = normal(2200, 64), normal(6, 5, 64), normal(6, 640), np.empty((6, 320), np.float32)
rows[5, 5], rows[1000] = 1e-40, 0
for kind in KV_TYPES.values():
    stored = np.empty((len(rows), kind.row_bytes(64)), np.uint8)
    encode_rows(kind.code, rows, stored)
    keys, values = stored.reshape(2, 1, 1100, -1)
    attention(context, q, keys, values, kind, 1020, gates, out)
    show("attention over " + kind.name, stored, out)
"""


def _results(**environment: str) -> str:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", _RESULTS]
    environment = {**os.environ, "PYTHONPATH": str(root), **environment}
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(platform.machine().lower() not in {"x86_64", "amd64"}, reason="names features of x86 processors")
@pytest.mark.parametrize("features", ["", pytest.param("+sse4.2,+avx,+fma", marks=pytest.mark.slow)])
def test_other_processors_give_the_same_bits(features: str) -> None:
    """Without fused multiply-add instructions, and with them in half as wide registers as AVX2 has for integers."""
    assert _results(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=features) == _results()
