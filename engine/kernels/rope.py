"""Rotary position embedding: tables of angles."""

from __future__ import annotations

import numpy as np


def rope_tables(positions, rotary_dim, theta, sections=None):
    axes = np.broadcast_to(positions, (3, positions.shape[-1]))
    i = np.arange(rotary_dim // 2)
    frequency = (1.0 / theta ** (2 * i / rotary_dim)).astype(np.float32)
    axis = np.zeros_like(i)
    if sections is not None:
        axis[(i % 3 == 1) & (i < 3 * sections[1])] = 1
        axis[(i % 3 == 2) & (i < 3 * sections[2])] = 2
    angle = (axes[axis].T.astype(np.float32) * frequency).astype(np.float64)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
