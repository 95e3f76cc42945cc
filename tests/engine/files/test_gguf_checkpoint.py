"""GGUF models: with and without MTP layer, split files, what their metadata gives, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.errors import CheckpointError, UnsupportedError
from engine.files.checkpoint import open_checkpoint
from engine.files.conventions import GGUF
from tests.engine.files import build, build_gguf
from tests.engine.files.build_gguf import F32, Q4_K, Q8_0, dense, metadata, mtp, trunk, write_gguf


def test_o14_the_same_tensors_as_the_checkpoint_it_was_made_from(data: Path) -> None:
    published = open_checkpoint(data / "tiny-dense")
    for path in sorted((data / "tiny-dense" / "gguf").glob("*.gguf")):
        converted = open_checkpoint(path)
        assert converted.kind == "gguf"
        assert set(converted.tensors) == set(published.tensors)
        for name, spec in converted.tensors.items():
            assert [size for size in spec.shape if size > 1] == [
                size for size in published.spec(name).shape if size > 1
            ]


def test_conventions_of_the_conversion(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(dense(tmp_path / "x.gguf"))
    assert checkpoint.conventions == checkpoint.mtp_conventions == GGUF
    assert (GGUF.norm_offset, GGUF.decay, GGUF.v_heads, GGUF.conv) == (0.0, "negative_rate", "tiled", "CK")


def test_a_mixture_of_experts(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_gguf(tmp_path / "x.gguf", metadata(moe=True), trunk(True) | mtp(True)))
    assert checkpoint.config.experts == build.EXPERTS
    assert checkpoint.spec("layers.0.mlp.experts.up_proj").shape == (4, 256, 256)
    assert not checkpoint.config.tied


class TestMtpBlock:
    def test_the_block_after_the_layers_is_the_mtp_layer(self, tmp_path: Path) -> None:
        """mudler/LocalAI#9893: by its number, also where the interval would make it a DeltaNet layer."""
        checkpoint = open_checkpoint(dense(tmp_path / "x.gguf"))
        assert len(checkpoint.config.layers) == 4
        assert checkpoint.config.mtp_layers == 1
        assert checkpoint.spec("mtp.layers.0.self_attn.q_proj.weight").file_name == "blk.4.attn_q.weight"
        assert not checkpoint.has("layers.4.self_attn.q_proj.weight")

    def test_without(self, tmp_path: Path) -> None:
        table = metadata(block_count=4, nextn_predict_layers=None)
        checkpoint = open_checkpoint(write_gguf(tmp_path / "x.gguf", table, trunk()))
        assert (len(checkpoint.config.layers), checkpoint.config.mtp_layers) == (4, 0)
        assert "a sidecar can provide one" in checkpoint.notes[0]

    def test_announced_but_absent(self, tmp_path: Path) -> None:
        """llama.cpp#26916"""
        checkpoint = open_checkpoint(write_gguf(tmp_path / "x.gguf", metadata(), trunk()))
        assert (len(checkpoint.config.layers), checkpoint.config.mtp_layers) == (4, 0)
        assert checkpoint.notes[0].startswith("The settings of the checkpoint announce an MTP layer")

    def test_removed_but_still_announced_costs_no_layer(self, tmp_path: Path) -> None:
        checkpoint = open_checkpoint(write_gguf(tmp_path / "x.gguf", metadata(block_count=4), trunk()))
        assert (len(checkpoint.config.layers), checkpoint.config.mtp_layers) == (4, 0)

    def test_present_but_not_announced(self, tmp_path: Path) -> None:
        checkpoint = open_checkpoint(dense(tmp_path / "x.gguf", nextn_predict_layers=None))
        assert (len(checkpoint.config.layers), checkpoint.config.mtp_layers) == (4, 1)

    def test_two_are_refused_with_their_number(self, tmp_path: Path) -> None:
        second = {name.replace("blk.4.", "blk.5."): item for name, item in mtp().items()}
        table = metadata(block_count=6, nextn_predict_layers=2)
        with pytest.raises(UnsupportedError, match=r"x\.gguf asks for 2 MTP layers"):
            open_checkpoint(write_gguf(tmp_path / "x.gguf", table, trunk() | mtp() | second))

    def test_without_its_own_norm_the_model_s_is_used(self, tmp_path: Path) -> None:
        tensors = trunk() | mtp()
        del tensors["blk.4.nextn.shared_head_norm.weight"]
        checkpoint = open_checkpoint(write_gguf(tmp_path / "x.gguf", metadata(), tensors))
        assert checkpoint.spec("mtp.norm.weight").file_name == "output_norm.weight"
        whole = open_checkpoint(dense(tmp_path / "y.gguf"))
        assert checkpoint.parameters == whole.parameters - build.HIDDEN

    def test_its_own_head_and_embedding(self, tmp_path: Path) -> None:
        own: build_gguf.Tensors = {
            "blk.4.nextn.shared_head_head.weight": (F32, (build.VOCABULARY, build.HIDDEN)),
            "blk.4.nextn.embed_tokens.weight": (F32, (build.VOCABULARY, build.HIDDEN)),
        }
        checkpoint = open_checkpoint(write_gguf(tmp_path / "x.gguf", metadata(), trunk() | mtp() | own))
        assert checkpoint.has("mtp.lm_head.weight")
        assert checkpoint.has("mtp.embed_tokens.weight")
        assert checkpoint.draft_ids is not None
        assert checkpoint.draft_ids.tolist() == list(range(build.VOCABULARY))
        assert open_checkpoint(dense(tmp_path / "y.gguf")).draft_ids is None

    def test_each_missing_tensor_is_an_error(self, tmp_path: Path) -> None:
        for missing in set(mtp()) - {"blk.4.nextn.eh_proj.weight", "blk.4.nextn.shared_head_norm.weight"}:
            tensors = trunk() | mtp()
            del tensors[missing]
            with pytest.raises(CheckpointError, match=r"Tensor mtp\..* is missing from x\.gguf"):
                open_checkpoint(write_gguf(tmp_path / "x.gguf", metadata(), tensors))


def test_mixed_types_in_one_file(tmp_path: Path) -> None:
    tensors = trunk() | mtp()
    tensors["blk.0.ffn_up.weight"] = (Q8_0, tensors["blk.0.ffn_up.weight"][1])
    tensors["blk.1.ffn_up.weight"] = (Q4_K, tensors["blk.1.ffn_up.weight"][1])
    checkpoint = open_checkpoint(write_gguf(tmp_path / "x.gguf", metadata(), tensors))
    assert checkpoint.spec("layers.0.mlp.up_proj.weight").format == "Q8_0"
    assert checkpoint.spec("layers.1.mlp.up_proj.weight").nbytes == 512 * 144


def test_all_unknown_types_are_named_together(tmp_path: Path) -> None:
    """llama.cpp#11975"""
    tensors = trunk() | mtp()
    for name, kind in (("blk.0.ffn_up.weight", 40), ("blk.1.ffn_up.weight", 40), ("blk.2.ffn_up.weight", 155)):
        tensors[name] = (kind, tensors[name][1])
    path = write_gguf(tmp_path / "x.gguf", metadata(), tensors)
    problems: list[str] = []
    checkpoint = open_checkpoint(path, problems)
    assert checkpoint.has("layers.0.mlp.up_proj.weight")
    assert problems == [
        "x.gguf has tensors of types that Draftscope does not know (type 155: blk.2.ffn_up.weight; "
        "type 40: blk.0.ffn_up.weight, blk.1.ffn_up.weight); choose another quantisation."
    ]
    with pytest.raises(UnsupportedError, match=r"type 155: blk.2.ffn_up.weight; type 40"):
        open_checkpoint(path)


def test_a_quantised_norm_is_refused(tmp_path: Path) -> None:
    tensors = trunk() | mtp() | {"output_norm.weight": (Q8_0, (build.HIDDEN,))}
    with pytest.raises(UnsupportedError, match=r"cannot use there: output_norm.weight \(Q8_0\)"):
        open_checkpoint(write_gguf(tmp_path / "x.gguf", metadata(), tensors))


@pytest.mark.parametrize(
    "name", ["blk.0.attn_q.bias", "blk.9.attn_q.weight", "blk.00.attn_q.weight", "rope_freqs.weight"]
)
def test_tensors_that_are_not_understood_are_not_ignored(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match=f"1 tensors that its architecture does not know: {name}"):
        open_checkpoint(write_gguf(tmp_path / "x.gguf", metadata(), trunk() | mtp() | {name: (F32, (8,))}))


@pytest.mark.parametrize(
    ("table", "tensors", "message"),
    [
        ({"general.architecture": "clip"}, {}, r"x\.gguf is a vision tower \(mmproj\), not a language model"),
        (metadata(general__type="adapter"), {}, r"x\.gguf is an adapter, not a model"),
        (metadata(), mtp(), r"x\.gguf holds an MTP layer alone: choose a model, and this file as its sidecar"),
    ],
)
def test_files_that_are_no_model_are_recognised(
    tmp_path: Path, table: dict[str, Any], tensors: dict, message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(write_gguf(tmp_path / "x.gguf", table, tensors))


def test_recognised_by_content_not_by_name(tmp_path: Path) -> None:
    assert open_checkpoint(dense(tmp_path / "model.bin")).kind == "gguf"
    (tmp_path / "x.gguf").write_bytes(b"PK" + b"\0" * 100)
    with pytest.raises(CheckpointError, match=r"x\.gguf is not a GGUF file"):
        open_checkpoint(tmp_path / "x.gguf")


class TestSplit:
    def write(self, folder: Path, parts: int = 3, **changed: Any) -> list[Path]:
        tensors = trunk() | mtp()
        names, paths = list(tensors), []
        for number in range(parts):
            split = {"split__no": number, "split__count": parts, "split__tensors__count": len(tensors)} | changed
            table = {key.replace("__", "."): item for key, item in split.items()}
            table = metadata(**split) if number == 0 else table
            path = folder / f"big-{number + 1:05d}-of-{parts:05d}.gguf"
            paths.append(write_gguf(path, table, {name: tensors[name] for name in names[number::parts]}))
        return paths

    def test_any_part_stands_for_all(self, tmp_path: Path) -> None:
        paths = self.write(tmp_path)
        checkpoints = [open_checkpoint(path) for path in paths]
        assert checkpoints[0].tensors == checkpoints[1].tensors == checkpoints[2].tensors
        assert checkpoints[0].files == tuple(paths)
        assert set(checkpoints[0].tensors) == set(open_checkpoint(dense(tmp_path / "whole.gguf")).tensors)

    @pytest.mark.parametrize("missing", [0, 1, 2])
    def test_missing_parts_are_named(self, tmp_path: Path, missing: int) -> None:
        paths = self.write(tmp_path)
        paths[missing].unlink()
        with pytest.raises(
            CheckpointError, match=f"1 of 3 parts of big are missing: big-0000{missing + 1}-of-00003.gguf"
        ):
            open_checkpoint(next(path for path in paths if path.exists()))

    def test_a_truncated_part_is_named(self, tmp_path: Path) -> None:
        paths = self.write(tmp_path)
        with paths[1].open("r+b") as file:
            file.truncate(paths[1].stat().st_size - 64)
        with pytest.raises(CheckpointError, match=r"big-00002-of-00003.gguf is truncated: \d+ bytes are missing"):
            open_checkpoint(paths[0])

    def test_exchanged_parts(self, tmp_path: Path) -> None:
        paths = self.write(tmp_path)
        paths[1].rename(tmp_path / "x")
        paths[2].rename(paths[1])
        (tmp_path / "x").rename(paths[2])
        with pytest.raises(CheckpointError, match=r"big-00002-of-00003.gguf says that it is part 2, counted from 0"):
            open_checkpoint(paths[0])

    def test_another_number_of_tensors(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match=r"The 3 parts hold \d+ tensors, 7 are announced"):
            open_checkpoint(self.write(tmp_path, split__tensors__count=7)[0])

    def test_a_part_that_lost_its_name(self, tmp_path: Path) -> None:
        renamed = self.write(tmp_path)[0].rename(tmp_path / "big.gguf")
        with pytest.raises(CheckpointError, match=r"big\.gguf is one of 3 parts, which are only found by their names"):
            open_checkpoint(renamed)

    def test_an_absurd_number_of_parts(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match="claims to be one of 99,999 parts"):
            open_checkpoint(dense(tmp_path / "x-00001-of-99999.gguf"))


class TestMetadata:
    def test_tokenizer(self, tmp_path: Path) -> None:
        source = open_checkpoint(dense(tmp_path / "x.gguf")).tokenizer
        assert (source.model, source.pre, source.add_bos, source.missing) == ("gpt2", "qwen35", False, "")
        assert source.tokens[296:] == ["<think>", "</think>", "<|im_end|>", "<|endoftext|>"]
        assert list(source.token_types[294:]) == [1, 1, 4, 4, 3, 3]
        assert list(source.merges) == ["t 1", "t 2"]
        assert source.special_ids == {"eos": 298}

    def test_end_tokens_include_both_of_the_family(self, tmp_path: Path) -> None:
        assert open_checkpoint(dense(tmp_path / "x.gguf")).config.eos_ids == (298, 299)

    def test_no_tokenizer(self, tmp_path: Path) -> None:
        source = open_checkpoint(dense(tmp_path / "x.gguf", tokenizer__ggml__tokens=None)).tokenizer
        assert source.missing == "x.gguf has no tokenizer in its metadata."

    def test_more_tokens_than_rows(self, tmp_path: Path) -> None:
        many = {"tokenizer__ggml__tokens": ["t"] * 301, "tokenizer__ggml__token_type": [1] * 301}
        with pytest.raises(CheckpointError, match=r"x\.gguf is damaged: 301 tokens for an embedding of 300 rows"):
            open_checkpoint(dense(tmp_path / "x.gguf", **many))

    def test_types_that_do_not_match_the_tokens(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match="token_type does not give a type for each of 300 tokens"):
            open_checkpoint(dense(tmp_path / "x.gguf", tokenizer__ggml__token_type=[1, 2]))

    def test_recommended_sampling_and_template(self, tmp_path: Path) -> None:
        changed = {"general__sampling__temp": 0.5, "general__sampling__top_k": 7, "tokenizer__chat_template": "T"}
        checkpoint = open_checkpoint(dense(tmp_path / "x.gguf", **changed))
        assert checkpoint.generation_config == {"temperature": 0.5, "top_k": 7, "eos_token_id": [298, 299]}
        assert checkpoint.chat_template == "T"
        assert checkpoint.name == "small"
