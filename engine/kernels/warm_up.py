"""Compile what a model needs."""

from __future__ import annotations


def warm_up(context, formats, progress=None, cancel=None):
    return None
