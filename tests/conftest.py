"""What every test relies on: no display, no user folders, a kernel cache that lasts, and no thread left behind."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before anything imports Qt or Numba: both read these once.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
_HOME = tempfile.TemporaryDirectory(prefix="draftscope-tests-")
for _variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
    os.environ[_variable] = str(Path(_HOME.name) / _variable.lower())

from engine.kernels.cpu import configure_environment  # noqa: E402 - the folders above must be set first

configure_environment()  # compiled kernels are kept in the user's cache, keyed by the source: the next run starts warm

DATA = Path(__file__).parent / "data"
THREAD_GRACE_S = 3.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="also run the tests that take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--run-slow"):
        return
    skip = pytest.mark.skip(reason="slow; run with --run-slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of committed test data."""
    return DATA


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Fail a test that leaves a thread running: it would go on working under the tests that follow."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + THREAD_GRACE_S
    while (left := _new_threads(before)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left, f"threads left running: {', '.join(thread.name for thread in left)}"


def _new_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    # A dummy stands for a foreign thread (a Qt one) that once ran Python; it never ends and is no leak of ours.
    return [
        thread
        for thread in threading.enumerate()
        if thread not in before and thread.is_alive() and not isinstance(thread, threading._DummyThread)
    ]
