"""The causal depthwise convolution."""

from __future__ import annotations

import numpy as np


def causal_conv_silu(inputs, weight, out):
    taps, rows = weight.shape[1], len(out)
    out[:] = inputs[:rows] * weight[:, 0]
    for j in range(1, taps):
        out += inputs[j : j + rows] * weight[:, j]
    out[:] = out / (1 + np.exp(-out))
