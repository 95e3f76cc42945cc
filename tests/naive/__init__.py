"""Slow and obvious versions of every kernel, in NumPy and float64 where it helps: the oracles of the tests."""
