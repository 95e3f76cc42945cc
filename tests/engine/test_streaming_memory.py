"""A whole model stays within its budget: a process of its own chats, and /proc tells the most memory it ever held."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import engine
from tests.bench.make_checkpoint import PRESETS, make_checkpoint

MARGIN = 300 * 1000 * 1000
"""Bytes beside weights and conversation: work space of a pass, logits, allocators."""
CONTEXT = 512

_CHAT = """
import json, sys
from engine import DraftOptions, Finished, GenerateOptions, LoadOptions, configure_environment, load_model

configure_environment()

def memory(field):
    line = next(line for line in open("/proc/self/status") if line.startswith(field))
    return int(line.split()[1]) * 1024

def chat(path, budget):
    model = load_model(path, options=LoadOptions(memory_budget=budget, context=512, threads=2))
    options = GenerateOptions(draft=DraftOptions("mtp", 3), max_new_tokens=6, ignore_eos=True)
    last = list(model.new_session().complete(list(range(2, 200)), options))[-1]
    assert isinstance(last, Finished), last
    peak = model.statistics().memory_bytes
    model.close()
    return last, peak

chat("demo", None)  # compiled code and libraries are no weights
before = memory("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
last, weights = chat(sys.argv[1], int(sys.argv[2]))
print(json.dumps({
    "peak": memory("VmHWM") - before, "weights": weights, "tokens": last.tokens, "read": last.stats.bytes_read
}))
"""


@pytest.fixture(scope="module", params=["0.8B", "moe"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shapes of the smallest published model, and a mixture of experts of 4.5 GB."""
    folder = tmp_path_factory.mktemp("checkpoint") / request.param
    return make_checkpoint(folder, replace(PRESETS[request.param], context=4096))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads /proc")
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_peak_memory_of_a_chat(checkpoint: Path, share: float) -> None:
    planner = engine.open_planner(checkpoint)
    budget = planner.minimum + int(share * (planner.everything - planner.minimum))
    session = planner.plan(budget, CONTEXT).session_bytes
    command = [sys.executable, "-c", _CHAT, str(checkpoint), str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout.splitlines()[-1])
    assert measured["read"] > 0
    assert len(measured["tokens"]) == 6
    assert measured["weights"] <= budget
    assert measured["peak"] <= budget + session + MARGIN < planner.everything + session + 2 * MARGIN
