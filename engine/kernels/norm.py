"""Root-mean-square norms over rows."""

from __future__ import annotations

import numpy as np


def rms_norm(x, scale, eps, out):
    out[:] = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * scale


def add_rms_norm(residual, y, scale, eps, out):
    residual += y
    rms_norm(residual, scale, eps, out)
