"""What Python costs in decoding: CPU time of the calling thread outside compiled kernels, for one token.

python -m tests.bench.python_share MODEL [--threads N]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from engine import LoadOptions, configure_environment, load_model
from engine.kernels import compiled

STEPS = 30


class Stopwatch:
    """CPU seconds and calls inside kernels since `restart`."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Count from nothing."""
        self.seconds, self.calls = 0.0, 0

    def around(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """The same kernel, timed."""

        def timed(*arguments: Any) -> Any:
            start = time.thread_time()
            result = kernel(*arguments)
            self.seconds += time.thread_time() - start
            self.calls += 1
            return result

        return timed


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Measure what Python costs for one token.")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    configure_environment()
    target = load_model(arguments.model, options=LoadOptions(threads=arguments.threads)).new_target()
    target.logits(target.forward(list(range(32))))
    token = 0
    for _ in range(3):
        token = int(target.logits(target.forward([token]))[0].argmax())
    watch = Stopwatch()
    for kernel in compiled._registered:
        if isinstance(kernel, compiled.Kernel):
            kernel._entry = watch.around(kernel._entry)
    whole, outside = [], []
    for _ in range(STEPS):
        watch.restart()
        start = time.thread_time()
        token = int(target.logits(target.forward([token]))[0].argmax())
        whole.append(time.thread_time() - start)
        outside.append(whole[-1] - watch.seconds)
    share = statistics.median(o / w for o, w in zip(outside, whole, strict=True))
    print(
        f"{1e3 * statistics.median(whole):.1f} ms of CPU a token, "
        f"{1e3 * statistics.median(outside):.2f} ms outside kernels ({100 * share:.1f} %), "
        f"{watch.calls} calls of kernels"
    )


if __name__ == "__main__":
    main()
