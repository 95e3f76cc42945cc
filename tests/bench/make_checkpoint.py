"""Writes checkpoints with random weights in the published layout: real shapes, any size, in little memory.

    python -m tests.bench.make_checkpoint 0.8B FOLDER
    python -m tests.bench.make_checkpoint moe FOLDER --layers 8 --experts 64

What such a model says is noise; what it costs is real.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from resources import demo_checkpoint

TOKENIZER = demo_checkpoint() / "tokenizer.json"
FULL_EVERY = 4
HEAD_DIM, LINEAR_DIM, TAPS = 256, 128, 4
BLOCK = 1 << 20
"""Numbers that are made and written at a time."""
SHARD = 4_000_000_000
"""Bytes after which another file begins."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """What decides the size of a model of this family."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    key_heads: int
    value_heads: int
    intermediate: int
    """Of one expert in a mixture of experts, and of its shared one."""
    vocabulary: int = 248_320
    tied: bool = False
    experts: int = 0
    per_token: int = 0
    context: int = 4096


PRESETS = {
    "0.8B": Shapes(1024, 24, 8, 2, 16, 16, 3584, tied=True),
    "4B": Shapes(2560, 32, 16, 4, 16, 32, 9216, tied=True),
    "9B": Shapes(4096, 32, 16, 4, 16, 32, 12288),
    "35B-A3B": Shapes(2048, 40, 16, 2, 16, 32, 512, experts=256, per_token=8),
    # The shapes of 35B-A3B with fewer layers and experts: 3.6 GB.
    "moe": Shapes(2048, 8, 16, 2, 16, 32, 512, vocabulary=32_768, experts=64, per_token=8),
}

Tensor = tuple[str, tuple[int, ...], str, float]
"""Name, shape, kind (`matrix`, `norm`, `decay` or `bias`), and spread of the values."""


def make_checkpoint(folder: Path, shapes: Shapes, seed: int = 0, tokenizer: Path = TOKENIZER) -> Path:
    """Write config.json, shards, their index and a tokenizer into `folder`; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    pool = random.standard_normal(4 * BLOCK, dtype=np.float32)
    shards = _shards(tensors(shapes))
    homes: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        homes |= dict.fromkeys((tensor[0] for tensor in shard), name)
        with (folder / name).open("wb") as file:
            _write_shard(file, shard, random, pool)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": homes}))
    shutil.copy(tokenizer, folder / "tokenizer.json")
    (folder / "config.json").write_text(json.dumps(config(shapes), indent=1))
    return folder


def config(shapes: Shapes) -> dict[str, object]:
    """The published config.json for these shapes."""
    kind = "qwen3_5_moe" if shapes.experts else "qwen3_5"
    types = ["linear_attention" if (i + 1) % FULL_EVERY else "full_attention" for i in range(shapes.layers)]
    text: dict[str, object] = {
        "model_type": f"{kind}_text", "hidden_size": shapes.hidden, "num_hidden_layers": shapes.layers,
        "layer_types": types, "vocab_size": shapes.vocabulary, "num_attention_heads": shapes.heads,
        "num_key_value_heads": shapes.kv_heads, "head_dim": HEAD_DIM, "max_position_embeddings": shapes.context,
        "linear_num_key_heads": shapes.key_heads, "linear_num_value_heads": shapes.value_heads,
        "linear_key_head_dim": LINEAR_DIM, "linear_value_head_dim": LINEAR_DIM, "linear_conv_kernel_dim": TAPS,
        "rms_norm_eps": 1e-6, "mtp_num_hidden_layers": 1, "tie_word_embeddings": shapes.tied, "eos_token_id": 0,
        "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.25, "rope_type": "default"},
    }  # fmt: skip
    if shapes.experts:
        text |= {
            "num_experts": shapes.experts, "num_experts_per_tok": shapes.per_token,
            "moe_intermediate_size": shapes.intermediate, "shared_expert_intermediate_size": shapes.intermediate,
        }  # fmt: skip
    else:
        text["intermediate_size"] = shapes.intermediate
    return {"model_type": kind, "text_config": text, "tie_word_embeddings": shapes.tied}


def tensors(shapes: Shapes) -> Iterator[Tensor]:
    """Every tensor of the model, in the order of the file."""
    hidden, text = shapes.hidden, "model.language_model."
    yield f"{text}embed_tokens.weight", (shapes.vocabulary, hidden), "matrix", 0.02
    for index in range(shapes.layers):
        layer = f"{text}layers.{index}."
        yield from _norms(layer, hidden)
        yield from _attention(layer, shapes) if (index + 1) % FULL_EVERY == 0 else _linear(layer, shapes)
        yield from _feed_forward(f"{layer}mlp.", shapes)
    yield f"{text}norm.weight", (hidden,), "norm", 0.1
    if not shapes.tied:
        yield _matrix("lm_head.weight", shapes.vocabulary, hidden)
    yield _matrix("mtp.fc.weight", hidden, 2 * hidden)
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        yield f"mtp.{name}.weight", (hidden,), "norm", 0.1
    yield from _norms("mtp.layers.0.", hidden)
    yield from _attention("mtp.layers.0.", shapes)
    yield from _feed_forward("mtp.layers.0.mlp.", shapes)


def _matrix(name: str, *shape: int) -> Tensor:
    return name, shape, "matrix", 1 / math.sqrt(shape[-1])


def _norms(layer: str, hidden: int) -> Iterator[Tensor]:
    for name in ("input_layernorm", "post_attention_layernorm"):
        yield f"{layer}{name}.weight", (hidden,), "norm", 0.1


def _attention(layer: str, shapes: Shapes) -> Iterator[Tensor]:
    own, width = f"{layer}self_attn.", shapes.heads * HEAD_DIM
    yield _matrix(f"{own}q_proj.weight", 2 * width, shapes.hidden)  # queries, and the gate of the output
    yield _matrix(f"{own}k_proj.weight", shapes.kv_heads * HEAD_DIM, shapes.hidden)
    yield _matrix(f"{own}v_proj.weight", shapes.kv_heads * HEAD_DIM, shapes.hidden)
    yield _matrix(f"{own}o_proj.weight", shapes.hidden, width)
    yield f"{own}q_norm.weight", (HEAD_DIM,), "norm", 0.1
    yield f"{own}k_norm.weight", (HEAD_DIM,), "norm", 0.1


def _linear(layer: str, shapes: Shapes) -> Iterator[Tensor]:
    own = f"{layer}linear_attn."
    keys, values = shapes.key_heads * LINEAR_DIM, shapes.value_heads * LINEAR_DIM
    yield _matrix(f"{own}in_proj_qkv.weight", 2 * keys + values, shapes.hidden)
    yield _matrix(f"{own}in_proj_z.weight", values, shapes.hidden)
    yield _matrix(f"{own}in_proj_b.weight", shapes.value_heads, shapes.hidden)
    yield _matrix(f"{own}in_proj_a.weight", shapes.value_heads, shapes.hidden)
    yield f"{own}conv1d.weight", (2 * keys + values, 1, TAPS), "matrix", 0.4
    yield f"{own}A_log", (shapes.value_heads,), "decay", 1.0
    yield f"{own}dt_bias", (shapes.value_heads,), "bias", 1.0
    yield f"{own}norm.weight", (LINEAR_DIM,), "scale", 0.1
    yield _matrix(f"{own}out_proj.weight", shapes.hidden, values)


def _feed_forward(own: str, shapes: Shapes) -> Iterator[Tensor]:
    prefix, hidden, width = own, shapes.hidden, shapes.intermediate
    if shapes.experts:
        yield _matrix(f"{own}gate.weight", shapes.experts, hidden)
        yield _matrix(f"{own}experts.gate_up_proj", shapes.experts, 2 * width, hidden)
        yield _matrix(f"{own}experts.down_proj", shapes.experts, hidden, width)
        yield _matrix(f"{own}shared_expert_gate.weight", 1, hidden)
        prefix = f"{own}shared_expert."
    yield _matrix(f"{prefix}gate_proj.weight", width, hidden)
    yield _matrix(f"{prefix}up_proj.weight", width, hidden)
    yield _matrix(f"{prefix}down_proj.weight", hidden, width)


def _shards(every: Iterator[Tensor]) -> list[list[Tensor]]:
    shards: list[list[Tensor]] = [[]]
    nbytes = 0
    for tensor in every:
        size = 2 * math.prod(tensor[1])
        if shards[-1] and nbytes + size > SHARD:
            shards.append([])
            nbytes = 0
        shards[-1].append(tensor)
        nbytes += size
    return shards


def _write_shard(
    file: BinaryIO, shard: list[Tensor], random: np.random.Generator, pool: npt.NDArray[np.float32]
) -> None:
    header: dict[str, object] = {}
    offset = 0
    for name, shape, _, _ in shard:
        end = offset + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for _, shape, kind, spread in shard:
        left = math.prod(shape)
        while left:
            count = min(left, BLOCK)
            begin = int(random.integers(0, len(pool) - count + 1))
            file.write(_bfloat16(_values(pool[begin : begin + count], kind, spread)).tobytes())
            left -= count


def _values(normal: npt.NDArray[np.float32], kind: str, spread: float) -> npt.NDArray[np.float32]:
    """Values as training leaves them: decay rates of 1…16, time steps of 0.001…0.1, all else around its rest."""
    if kind == "decay":
        return np.clip(1.4 + 0.7 * normal, 0, 2.77).astype(np.float32)
    if kind == "bias":
        return np.clip(-4.6 + normal, -6.9, -2.3).astype(np.float32)
    return normal * np.float32(spread) + np.float32(1.0 if kind == "scale" else 0.0)


def _bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Write a checkpoint with random weights and real shapes.")
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tokenizer", type=Path, default=TOKENIZER, help="tokenizer.json to copy (default: the demo's)"
    )
    for name in ("layers", "experts", "vocabulary", "context"):
        parser.add_argument(f"--{name}", type=int, help="instead of the preset's")
    arguments = parser.parse_args()
    changes = {n: getattr(arguments, n) for n in ("layers", "experts", "vocabulary", "context")}
    shapes = replace(PRESETS[arguments.preset], **{n: v for n, v in changes.items() if v is not None})
    make_checkpoint(arguments.folder, shapes, arguments.seed, arguments.tokenizer)


if __name__ == "__main__":
    main()
