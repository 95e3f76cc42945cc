"""What config.json and GGUF metadata say about the model, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CheckpointError, UnsupportedError
from engine.files.bounded import read_json_object
from engine.files.checkpoint import open_checkpoint
from engine.files.config_json import config_from_json
from tests.engine.files import build, build_gguf


def test_o01_the_published_layout(data: Path) -> None:
    config = config_from_json(read_json_object(data / "tiny-dense" / "config.json"))
    assert config.architecture == "qwen3_5"
    assert config.layers == ("linear", "linear", "linear", "full") * 2
    assert (config.hidden_size, config.intermediate_size, config.vocabulary, config.context) == (256, 256, 1024, 4096)
    assert (config.heads, config.kv_heads, config.head_dim, config.rotary_dim) == (4, 2, 64, 16)
    assert (config.linear_k_heads, config.linear_v_heads, config.linear_k_dim, config.linear_v_dim) == (2, 4, 64, 64)
    assert (config.rope_theta, config.mrope_sections, config.rms_eps) == (1e7, (3, 3, 2), 1e-6)
    assert (config.conv_kernel, config.tied, config.mtp_layers, config.image_token_id) == (4, True, 1, 952)
    assert (config.linear_k_size, config.linear_v_size, config.conv_channels) == (128, 256, 512)
    assert not config.moe


def test_a_mixture_of_experts(data: Path) -> None:
    config = config_from_json(read_json_object(data / "tiny-moe" / "config.json"))
    assert config.moe
    assert (config.experts, config.experts_per_token, config.expert_intermediate) == (8, 2, 64)
    assert (config.shared_intermediate, config.intermediate_size, config.tied) == (128, 0, False)


def test_a_flat_text_only_config_means_the_same() -> None:
    nested = build.config()
    flat = {**nested["text_config"], "tie_word_embeddings": True, "eos_token_id": [298, 299]}
    assert config_from_json(flat) == config_from_json(nested)


def test_older_rotary_keys() -> None:
    root = build.config(rope_parameters=None, rope_theta=5e6, partial_rotary_factor=0.5)
    config = config_from_json(root)
    assert (config.rope_theta, config.rotary_dim) == (5e6, 32)


def test_irregular_layer_types() -> None:
    kinds = ["full_attention", "full_attention", "linear_attention", "linear_attention"]
    assert config_from_json(build.config(layer_types=kinds)).layers == ("full", "full", "linear", "linear")


def test_layer_types_from_the_interval() -> None:
    config = config_from_json(build.config(layer_types=None, full_attention_interval=2))
    assert config.layers == ("linear", "full", "linear", "full")


def test_end_tokens_of_all_tables_each_once() -> None:
    root = build.config(eos_token_id=7) | {"eos_token_id": [298]}
    assert config_from_json(root, {"eos_token_id": [5, 7]}).eos_ids == (5, 7, 298)


def test_end_tokens_outside_the_vocabulary_are_left_out() -> None:
    assert config_from_json(build.config() | {"eos_token_id": [299, 300, -1, "x", True]}).eos_ids == (299,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"model_type": "llama", "text_config": None},
            "config.json has the architecture 'llama'; Draftscope runs qwen3_5 and qwen3_5_moe",
        ),
        (
            {"model_type": "qwen4exp", "text_config": None},
            "config.json has the architecture 'qwen4exp'; Draftscope runs qwen3_5",
        ),
        ({"model_type": "qwen3_next", "text_config": None}, "has the architecture 'qwen3_next'"),
        (
            {"quantization_config": {"quant_method": "awq", "bits": 4}},
            "the weights are quantised as awq, which Draftscope does not run",
        ),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised as gptq"),
        (
            {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}},
            r"quantised as modelopt \(NVFP4\)",
        ),
        (
            {"quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}},
            r"quantised as compressed-tensors \(nvfp4-pack-quantized\)",
        ),
        ({"quantization": {"group_size": 64, "bits": 4}}, "quantised as MLX"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [1, 128]}}, r"FP8 blocks are \[1, 128\]"),
    ],
)
def test_other_kinds_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    root = {key: value for key, value in (build.config() | change).items() if value is not None}
    with pytest.raises(UnsupportedError, match=message):
        config_from_json(root)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mtp_num_hidden_layers": 2}, "config.json asks for 2 MTP layers; Draftscope runs models with one or none"),
        ({"hidden_act": "gelu"}, "asks for the activation 'gelu'"),
        ({"attention_bias": True}, "asks for attention biases"),
        ({"attn_output_gate": False}, "asks for attention without output gate"),
        ({"mlp_only_layers": [0]}, "mixes dense and expert layers"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e7}}, "asks for rotary embedding of type 'yarn'"),
        ({"layer_types": ["sliding_attention"] * 4}, "has layers of type sliding_attention"),
    ],
)
def test_o01_unsupported_variants_are_refused(change: dict[str, Any], message: str) -> None:
    """More than one MTP layer among them, with the number."""
    with pytest.raises(UnsupportedError, match=message):
        config_from_json(build.config(**change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": None}, "config.json has no hidden_size, which must be a whole number"),
        ({"hidden_size": "256"}, "hidden_size is '256', it must be a whole number"),
        ({"hidden_size": True}, "hidden_size is 'True'"),
        ({"hidden_size": -1}, "hidden_size is -1, it must be from 1 to"),
        ({"hidden_size": 1 << 40}, "hidden_size is 1099511627776, it must be from 1 to"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps is 'small', it must be a number"),
        ({"rms_norm_eps": 0}, "RMS epsilon 0.0"),
        ({"rms_norm_eps": 1e999}, "rms_norm_eps is 'inf'"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
        ({"num_hidden_layers": 5}, "layer_types has 4 entries for 5 layers"),
        ({"layer_types": "all"}, "layer_types has no list entries for 4 layers"),
        ({"layer_types": [[], {}, 1, None]}, "has layers of type"),
        ({"layer_types": None, "full_attention_interval": 0}, "full_attention_interval is 0"),
        ({"num_key_value_heads": 3}, "4 attention heads by key/value heads (3) does not divide evenly"),
        ({"linear_num_key_heads": 3}, "4 linear value heads by linear key heads (3) does not divide evenly"),
        ({"num_key_value_heads": 0}, "kv_heads is 0"),
        ({"linear_conv_kernel_dim": 1}, "a convolution kernel of 1"),
        ({"rope_parameters": [1]}, "rope_parameters is not a table"),
        (
            {"rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.3}},
            "partial_rotary_factor gives 19.2 of 64",
        ),
        (
            {"rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 2.0}},
            "128 rotary dimensions in heads of 64",
        ),
        ({"rope_parameters": {"rope_theta": 1e7, "mrope_section": [1, 2]}}, "mrope_section is [1, 2]"),
        ({"vocab_size": 0}, "vocabulary is 0"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes', it must be true or false"),
    ],
)
def test_impossible_numbers_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=re.escape(message)):
        config_from_json(build.config(**change))


def test_more_experts_per_token_than_experts() -> None:
    with pytest.raises(CheckpointError, match="9 of 4 experts per token"):
        config_from_json(build.config(moe=True, num_experts_per_tok=9))


@pytest.mark.parametrize("text", ["[]", "{", '{"a":NaN}', '{"a":1,"a":2}', "[" * 100_000, "\ud800"])
def test_a_config_that_is_no_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(CheckpointError, match=r"config\.json is not|config\.json is nested"):
        open_checkpoint(tmp_path)


def test_a_config_larger_than_plausible(tmp_path: Path) -> None:
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CheckpointError, match=r"config\.json has 1,099,511,627,776 bytes"):
        open_checkpoint(tmp_path)


def test_gguf_metadata_gives_the_same_config_as_the_checkpoint_it_was_made_from(data: Path) -> None:
    for name in ("tiny-dense", "tiny-moe"):
        published = open_checkpoint(data / name).config
        converted = open_checkpoint(next((data / name / "gguf").glob("*.gguf"))).config
        for field in set(published.__dataclass_fields__) - {"rms_eps", "image_token_id"}:
            assert getattr(converted, field) == getattr(published, field), field
        assert converted.rms_eps == pytest.approx(published.rms_eps)


def test_gguf_layer_kinds_with_and_without_their_array(tmp_path: Path) -> None:
    without = open_checkpoint(build_gguf.dense(tmp_path / "a.gguf"))
    array = [True, True, True, False, False]
    with_array = open_checkpoint(build_gguf.dense(tmp_path / "b.gguf", attention__recurrent_layers=array))
    assert without.config.layers == with_array.config.layers == ("linear", "linear", "linear", "full")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"general__architecture": "llama"}, "x.gguf has the architecture 'llama'; Draftscope runs qwen3_5"),
        ({"general__architecture": "qwen4exp"}, "x.gguf has the architecture 'qwen4exp'"),
        ({"general__architecture": None}, "x.gguf names no architecture"),
        ({"embedding_length": None}, r"x.gguf has no qwen35.embedding_length in its metadata"),
        ({"embedding_length": "256"}, "qwen35.embedding_length is '256', it must be a whole number"),
        ({"nextn_predict_layers": 9}, "5 blocks, 9 of them for MTP"),
        ({"block_count": 1 << 31}, "2147483648 blocks"),
        ({"ssm__time_step_rank": 0}, "ssm.inner_size 128 does not divide into 0 heads"),
        ({"full_attention_interval": 0}, "full_attention_interval is 0"),
        ({"attention__recurrent_layers": [True]}, "recurrent_layers has 1 entries for 4 layers"),
        ({"rope__scaling__type": "yarn"}, "asks for rotary scaling of type 'yarn'"),
        ({"attention__head_count_kv": [2, 1]}, "attention.head_count_kv is '.2 1.', it must be a whole number"),
    ],
)
def test_gguf_metadata_that_cannot_be(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(build_gguf.dense(tmp_path / "x.gguf", **change))


def test_gguf_head_counts_per_layer(tmp_path: Path) -> None:
    path = build_gguf.dense(tmp_path / "x.gguf", attention__head_count_kv=[0, 0, 0, 2, 2])
    assert open_checkpoint(path).config.kv_heads == 2


def test_config_with_a_list_as_text_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3_5", "text_config": [1]}))
    with pytest.raises(CheckpointError, match="text_config is not a table"):
        open_checkpoint(tmp_path)
