"""The demo checkpoint that ships with Draftscope, for someone who has no model yet."""

from __future__ import annotations

from pathlib import Path

import resources
from engine.errors import OptionError

DEMO = "demo"
"""What a person types instead of a path."""


def demo_path() -> Path:
    """The folder of the demo checkpoint."""
    return resources.demo_checkpoint()


def demo_sidecar_path() -> Path:
    """The demo checkpoint's sidecar, with a trimmed draft head."""
    return resources.demo_sidecar()


def resolve(path: str | Path) -> Path:
    """`path`, or the demo checkpoint if it is the word `demo` (and there is no such file).

    Raises:
        OptionError: it is empty, which would mean the folder in which the program was started.
    """
    if not str(path).strip():
        raise OptionError("MODEL is empty: name a folder, a .safetensors or .gguf file, or demo.")
    return demo_path() if str(path) == DEMO and not Path(DEMO).exists() else Path(path)
