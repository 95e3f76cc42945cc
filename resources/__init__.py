"""Files that Draftscope ships with, found wherever the package is installed.

Everything is read through `importlib.resources`; nothing here writes.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

_ROOT = Path(str(files(__name__)))


def resource_path(*parts: str) -> Path:
    """The path of a shipped file or folder, such as `resource_path("demo", "config.json")`.

    Raises:
        FileNotFoundError: nothing of that name is shipped.
    """
    path = _ROOT.joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(f"{'/'.join(parts)} is missing from this installation of Draftscope; install it again.")
    return path


def demo_checkpoint() -> Path:
    """The folder of the demo checkpoint (7 million parameters, published layout, its own MTP layer)."""
    return resource_path("demo")


def demo_sidecar() -> Path:
    """The demo checkpoint's sidecar: the MTP layer again, with a trimmed draft head of 1,536 rows."""
    return resource_path("demo", "mtp-sidecar.safetensors")
