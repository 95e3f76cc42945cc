"""How long the window takes to start: when it reached what, told on request (`--timing`)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Milestones:
    """What was reached when. Marking costs next to nothing, so it is always done."""

    reached: list[tuple[str, float, float]] = field(default_factory=list)
    """Name, time of the clock, CPU time of the window's thread."""

    def reach(self, name: str) -> None:
        """This is reached now; only the first time counts."""
        if name not in self.names:
            self.reached.append((name, time.time(), time.thread_time()))

    @property
    def names(self) -> list[str]:
        """What was reached so far, in order."""
        return [name for name, _, _ in self.reached]

    def report(self) -> str:
        """A line for each: milliseconds since the process began, and those that the window's thread computed."""
        begun = process_began()
        lines = (
            f"{name:<18}{1e3 * (at - begun):7.0f} ms{1e3 * cpu:7.0f} ms CPU"  # not translated: for measurements
            for name, at, cpu in self.reached
        )
        return "\n".join(lines) + "\n"


def process_began() -> float:
    """When this process began, on the clock of `time.time`."""
    if hasattr(time, "CLOCK_BOOTTIME"):  # Linux; psutil knows the start of such a system to the second only
        ticks = int(Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()[19])
        return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    import psutil

    return float(psutil.Process().create_time())
