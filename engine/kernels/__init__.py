"""Numerical kernels over NumPy arrays and raw weight bytes; knows nothing else of the engine."""

from engine.kernels.cpu import configure_environment

configure_environment()  # whatever is imported from here on may import Numba, which reads its settings once
