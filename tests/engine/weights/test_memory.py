"""The budget is real memory: a process of its own streams a larger checkpoint, and /proc tells its peak."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

MARGIN = 24 * 1024 * 1024
"""Bytes that allocators, threads and the odd Python object may add."""
HIDDEN, LAYERS, VOCABULARY = 1024, 6, 8192

_STREAM = """
import json, sys
import numpy as np
from engine.files.checkpoint import open_checkpoint
from engine.kernels.matmul import dequantise_rows
from engine.kernels.matrix import Matrix
from engine.weights.plan import make_plan
from engine.weights.store import open_weights

def memory(field):
    line = next(line for line in open("/proc/self/status") if line.startswith(field))
    return int(line.split()[1]) * 1024

checkpoint = open_checkpoint(sys.argv[1])
row = np.zeros((1, 4), np.float32)  # compiled code is no weight
dequantise_rows(Matrix("BF16", 1, 4, np.zeros(8, np.uint8)), np.zeros(1, np.int64), row)
plan = make_plan(checkpoint)
budget = int(plan.minimum + float(sys.argv[2]) * (plan.everything - plan.minimum))
before = memory("VmHWM")
store = open_weights(checkpoint, budget=budget)
for turn in range(3):
    store.embedding(np.arange(64) * 100, np.empty((64, checkpoint.config.hidden_size), np.float32))
    for unit in store.units:
        for matrix in store.acquire(unit.name).values():
            matrix.data[::4096].sum()
        store.release(unit.name)
peak = memory("VmHWM") - before
del matrix
store.close()
print(json.dumps({"budget": budget, "peak": peak, "everything": plan.everything, "after": memory("VmRSS") - before}))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights: 6 layers of some 28 MB and an embedding table of 16 MB."""
    folder = tmp_path_factory.mktemp("large")
    config = {
        "model_type": "qwen3_5", "tie_word_embeddings": True,
        "text_config": {
            "model_type": "qwen3_5_text", "hidden_size": HIDDEN, "intermediate_size": 2 * HIDDEN,
            "num_hidden_layers": LAYERS, "layer_types": ["full_attention"] * LAYERS, "vocab_size": VOCABULARY,
            "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 4096,
            "linear_num_key_heads": 4, "linear_num_value_heads": 4, "linear_key_head_dim": 64,
            "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4, "rms_norm_eps": 1e-6,
            "mtp_num_hidden_layers": 0, "tie_word_embeddings": True, "eos_token_id": 0,
            "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.25, "rope_type": "default"},
        },
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": {}, "merges": []}}))
    _write_random(folder / "model.safetensors", _shapes())
    return folder


def _shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (VOCABULARY, HIDDEN),
        "model.norm.weight": (HIDDEN,),
    }
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        shapes |= {
            f"{p}input_layernorm.weight": (HIDDEN,),
            f"{p}post_attention_layernorm.weight": (HIDDEN,),
            f"{p}self_attn.q_proj.weight": (4096, HIDDEN),
            f"{p}self_attn.k_proj.weight": (512, HIDDEN),
            f"{p}self_attn.v_proj.weight": (512, HIDDEN),
            f"{p}self_attn.o_proj.weight": (HIDDEN, 2048),
            f"{p}self_attn.q_norm.weight": (256,),
            f"{p}self_attn.k_norm.weight": (256,),
            f"{p}mlp.gate_proj.weight": (2 * HIDDEN, HIDDEN),
            f"{p}mlp.up_proj.weight": (2 * HIDDEN, HIDDEN),
            f"{p}mlp.down_proj.weight": (HIDDEN, 2 * HIDDEN),
        }
    return shapes


def _write_random(path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    header, offset = {}, 0
    for name, shape in shapes.items():
        end = offset + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.write(np.random.default_rng(6).bytes(offset))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_peak_memory_stays_within_the_budget(large: Path, share: float) -> None:
    command = [sys.executable, "-c", _STREAM, str(large), str(share)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["peak"] <= measured["budget"] + MARGIN < measured["everything"]
    assert measured["after"] <= MARGIN
