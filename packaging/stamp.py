"""Builds what is not there yet, or was made of something else than what is here now.

A digest of everything that a build is made of is kept in build/stamps: the tracked files, this Python and the packages
in it, the time that is built in, and what the build itself was asked for.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path

from dist import ROOT, source_date, tree_files

STAMPS = ROOT / "build" / "stamps"


def refresh(product: Path, build: Callable[[], object], *choices: str) -> None:
    """Call `build` unless the product is there and was made of this. One whose build fails is not taken for made."""
    stamp, digest = STAMPS / product.name, inputs(str(product.resolve()), *choices)
    if read(product) == f"{digest} {state(product)}":
        print(f"{product} is up to date")
        return
    stamp.unlink(missing_ok=True)
    build()
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(f"{digest} {state(product)}")


def read(product: Path) -> str:
    """What is known of the product's last build; "" if nothing is."""
    stamp = STAMPS / product.name
    return stamp.read_text() if stamp.exists() else ""


def state(product: Path) -> str:
    """What changes when somebody else writes to its place."""
    if not product.exists():
        return "gone"
    found = product.stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def inputs(*choices: str) -> str:
    """The digest of what is here now; `choices` are a build's own, such as how hard it compresses."""
    digest = hashlib.sha256(f"{sys.version}\n{source_date()}\n{choices}\n".encode())
    installed = {f"{found.metadata['Name']} {found.version}" for found in distributions()}
    digest.update("\n".join(sorted(installed)).encode())
    for name in tree_files():
        content, executable = (ROOT / name).read_bytes(), os.access(ROOT / name, os.X_OK)
        digest.update(f"\n{name} {len(content)} {executable}\n".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return digest.hexdigest()
