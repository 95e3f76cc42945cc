"""How long the window takes to start on the demo: `python -m tests.bench.start_up`.

Starts the program some times in processes of their own and tells for each milestone the fastest and the median start.
CPU time is that of the window's thread, which says more than the clock on a machine that does other things too. The
first start in a row compiles Python's own files, and the engine's kernels if they never were; it is not counted.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

LINE = re.compile(r"^(\S.*?) +(\d+) ms +(\d+) ms CPU$", re.MULTILINE)


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description="Measure the start of the window.")
    parser.add_argument("--starts", type=int, default=5, help="starts that count (default: 5)")
    arguments = parser.parse_args()
    runs = [start() for _ in range(arguments.starts + 1)][1:]
    print(f"{arguments.starts} starts; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for name in runs[0]:
        walls, cpus = ([run[name][part] for run in runs] for part in (0, 1))
        print(
            f"{name:<18} fastest {min(walls):5d} ms, median {statistics.median(walls):5.0f} ms;"
            f" CPU fastest {min(cpus):5d} ms, median {statistics.median(cpus):5.0f} ms"
        )


def start() -> dict[str, tuple[int, int]]:
    """One start: milliseconds of the clock and of the window's thread, by milestone."""
    environment = {**os.environ, "QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "app", "--model", "demo", "--quit-when-done", "--timing"]
        command += ["--settings-dir", folder]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr
    return {name: (int(wall), int(cpu)) for name, wall, cpu in LINE.findall(said)}


if __name__ == "__main__":
    main()
