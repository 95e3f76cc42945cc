"""Every tensor that the architecture has, with its shape; and what a file has instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from engine.errors import UnsupportedError
from engine.files.config import ModelConfig
from engine.files.experts import ExpertLayout, expert_layout
from engine.files.findings import Findings, listed
from engine.files.safetensors_names import SCALE_SUFFIX
from engine.files.tensor_spec import FLOAT_FORMATS, MATRIX_FORMATS, TensorSpec

Shape = tuple[int, ...]
FP8_BLOCK = 128
MTP_EMBEDDING = "mtp.embed_tokens.weight"
MTP_HEAD = "mtp.lm_head.weight"


class Expected(NamedTuple):
    """A tensor that must be there. `shapes` are the ways to write it; the first is the usual one."""

    name: str
    shapes: tuple[Shape, ...]
    matrix: bool = True
    """Matrices may be quantised; the others (norms, biases, convolutions) are plain floats."""


def expected_trunk(config: ModelConfig, tensors: Mapping[str, TensorSpec]) -> Iterator[Expected]:
    """All tensors of the model without its MTP layer; `tensors` tells only how experts are arranged."""
    hidden = config.hidden_size
    yield Expected("embed_tokens.weight", ((config.vocabulary, hidden),))
    for index, kind in enumerate(config.layers):
        prefix = f"layers.{index}."
        yield from _norms(prefix, hidden)
        yield from _attention(prefix, config) if kind == "full" else _linear_attention(prefix, config)
        yield from _feed_forward(prefix, config, tensors)
    yield Expected("norm.weight", ((hidden,),), matrix=False)
    if not config.tied:
        yield Expected("lm_head.weight", ((config.vocabulary, hidden),))


def expected_mtp(
    config: ModelConfig, tensors: Mapping[str, TensorSpec], head_rows: int | None = None
) -> Iterator[Expected]:
    """All tensors of the MTP layer, and of an embedding and a head of its own if there are any; a trimmed head has
    `head_rows` rows."""
    hidden = config.hidden_size
    yield Expected("mtp.fc.weight", ((hidden, 2 * hidden),))
    for name in ("mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.norm.weight"):
        yield Expected(name, ((hidden,),), matrix=False)
    prefix = "mtp.layers.0."
    yield from _norms(prefix, hidden)
    yield from _attention(prefix, config)
    yield from _feed_forward(prefix, config, tensors)
    if config.mtp_dedicated_embeddings or MTP_EMBEDDING in tensors:
        yield Expected(MTP_EMBEDDING, ((config.vocabulary, hidden),))
    if MTP_HEAD in tensors:
        yield Expected(MTP_HEAD, ((head_rows or config.vocabulary, hidden),))


def _norms(prefix: str, hidden: int) -> Iterator[Expected]:
    yield Expected(prefix + "input_layernorm.weight", ((hidden,),), matrix=False)
    yield Expected(prefix + "post_attention_layernorm.weight", ((hidden,),), matrix=False)


def _attention(prefix: str, config: ModelConfig) -> Iterator[Expected]:
    at, hidden, size = prefix + "self_attn.", config.hidden_size, config.head_dim
    # Per head the rows of the query, then those of the output gate.
    yield Expected(at + "q_proj.weight", ((2 * config.heads * size, hidden),))
    yield Expected(at + "k_proj.weight", ((config.kv_heads * size, hidden),))
    yield Expected(at + "v_proj.weight", ((config.kv_heads * size, hidden),))
    yield Expected(at + "o_proj.weight", ((hidden, config.heads * size),))
    yield Expected(at + "q_norm.weight", ((size,),), matrix=False)
    yield Expected(at + "k_norm.weight", ((size,),), matrix=False)


def _linear_attention(prefix: str, config: ModelConfig) -> Iterator[Expected]:
    at, hidden = prefix + "linear_attn.", config.hidden_size
    channels, kernel, heads = config.conv_channels, config.conv_kernel, config.linear_v_heads
    yield Expected(at + "in_proj_qkv.weight", ((channels, hidden),))
    yield Expected(at + "in_proj_z.weight", ((config.linear_v_size, hidden),))
    yield Expected(at + "in_proj_b.weight", ((heads, hidden),))
    yield Expected(at + "in_proj_a.weight", ((heads, hidden),))
    yield Expected(at + "out_proj.weight", ((hidden, config.linear_v_size),))
    conv = ((channels, 1, kernel), (channels, kernel, 1), (channels, kernel))
    yield Expected(at + "conv1d.weight", conv, matrix=False)
    yield Expected(at + "A_log", ((heads,),), matrix=False)
    yield Expected(at + "dt_bias", ((heads,),), matrix=False)
    yield Expected(at + "norm.weight", ((config.linear_v_dim,),), matrix=False)


def _feed_forward(prefix: str, config: ModelConfig, tensors: Mapping[str, TensorSpec]) -> Iterator[Expected]:
    at, hidden = prefix + "mlp.", config.hidden_size
    if not config.moe:
        yield from _swiglu(at, config.intermediate_size, hidden)
        return
    yield Expected(at + "gate.weight", ((config.experts, hidden),))
    yield from _swiglu(at + "shared_expert.", config.shared_intermediate, hidden)
    yield Expected(at + "shared_expert_gate.weight", ((1, hidden), (hidden,)))
    yield from _experts(expert_layout(tensors, at + "experts", config.experts), config)


def _swiglu(at: str, inner: int, hidden: int) -> Iterator[Expected]:
    yield Expected(at + "gate_proj.weight", ((inner, hidden),))
    yield Expected(at + "up_proj.weight", ((inner, hidden),))
    yield Expected(at + "down_proj.weight", ((hidden, inner),))


def _experts(layout: ExpertLayout, config: ModelConfig) -> Iterator[Expected]:
    inner, hidden = config.expert_intermediate, config.hidden_size
    shapes = {"gate_up_proj": (2 * inner, hidden), "gate_proj": (inner, hidden), "up_proj": (inner, hidden)}
    for part in layout.parts:
        shape = shapes.get(part, (hidden, inner))
        if layout.packed:
            yield Expected(f"{layout.prefix}.{part}", ((layout.count, *shape),))
        else:
            for index in range(layout.count):
                yield Expected(f"{layout.prefix}.{index}.{part}.weight", (shape,))


def check_model(config: ModelConfig, tensors: Mapping[str, TensorSpec], findings: Findings, of: str) -> None:
    """Every tensor of the architecture must be there in its shape, and no other: nothing is silently ignored.

    Faults go to `findings`; `of` names the whole ("model.safetensors").
    """
    placed = check_tensors(expected_trunk(config, tensors), tensors, findings, of)
    if config.mtp_layers:
        placed |= check_tensors(expected_mtp(config, tensors), tensors, findings, of)
    surplus = [spec.file_name for name, spec in tensors.items() if name not in placed]
    if surplus:
        findings.add(f"{of} has {len(surplus)} tensors that its architecture does not know: {listed(surplus)}.")


def check_tensors(
    expected: Iterable[Expected], tensors: Mapping[str, TensorSpec], findings: Findings, of: str
) -> set[str]:
    """Hold `tensors` against `expected`; as `check_model`.

    Returns the names of the tensors that have their place, scales included.
    """
    missing, unsupported, placed = [], [], set()
    for item in expected:
        spec = tensors.get(item.name)
        if spec is None:
            missing.append(item.name)
            continue
        placed.add(item.name)
        if spec.shape not in item.shapes:
            findings.add(_wrong_shape(spec, item.shapes[0]))
        elif spec.format.startswith("GGML_"):
            continue  # its reader has named all unknown types
        elif spec.format not in (MATRIX_FORMATS if item.matrix else FLOAT_FORMATS):
            unsupported.append(f"{spec.file_name} ({spec.format})")
        elif spec.format == "F8_E4M3":
            placed.add(item.name + SCALE_SUFFIX)
            _check_scale(spec, tensors.get(item.name + SCALE_SUFFIX), findings)
    if len(missing) == 1:
        findings.add(f"Tensor {missing[0]} is missing from {of}.")
    elif missing:
        findings.add(f"{len(missing)} tensors are missing from {of}: {listed(missing)}.")
    if unsupported:
        findings.add(
            UnsupportedError(f"{of} has tensors in types that Draftscope cannot use there: {listed(unsupported)}.")
        )
    return placed


def _wrong_shape(spec: TensorSpec, shape: Shape) -> str:
    return f"Tensor {spec.file_name} in {spec.file.name} has shape {list(spec.shape)}; {list(shape)} was expected."


def _check_scale(weight: TensorSpec, scale: TensorSpec | None, findings: Findings) -> None:
    """FP8 needs a factor per 128 × 128 block: without it weights would be far too large."""
    if scale is None:
        findings.add(
            f"Tensor {weight.file_name} in {weight.file.name} is FP8 without its scales "
            f"({weight.file_name}{SCALE_SUFFIX}); get a complete version."
        )
        return
    *packed, rows, columns = weight.shape
    grid = (*packed, -(-rows // FP8_BLOCK), -(-columns // FP8_BLOCK))
    if scale.shape != grid:
        findings.add(_wrong_shape(scale, grid))
    elif scale.format not in FLOAT_FORMATS:
        findings.add(UnsupportedError(f"Tensor {scale.file_name} in {scale.file.name} has scales in {scale.format}."))
