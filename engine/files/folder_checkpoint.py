"""Opens checkpoints in the published layout: config.json and safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError, UnsupportedError
from engine.files.bounded import read_json_object
from engine.files.checkpoint import Checkpoint
from engine.files.config import ModelConfig
from engine.files.config_json import config_from_json, tie_flags
from engine.files.conventions import PUBLISHED, export_conventions
from engine.files.expected import check_model
from engine.files.findings import Findings, listed
from engine.files.folder import INDEX, SHARD, Gathered, folder_files, gather
from engine.files.notes import ANNOUNCED_MTP, MTP_ALONE, NO_MTP, OTHER_VERSION
from engine.files.tensor_spec import TensorSpec
from engine.files.tokenizer_source import folder_template, folder_tokenizer, generation_settings

_QUANTISED = (
    ({"qweight", "qzeros"}, "AWQ or GPTQ"),
    ({"weight_packed"}, "compressed-tensors"),
    ({"weight_scale_2"}, "NVFP4"),
    ({"scales", "biases"}, "MLX"),
)


def open_folder(folder: Path, findings: Findings) -> Checkpoint:
    """A folder with a config.json, and safetensors with or without an index."""
    root = _config(folder)
    config = config_from_json(root, generation_settings(folder, Findings()))
    paths, table = folder_files(folder, findings)
    return _assemble(folder, root, config, gather(paths, table, findings), findings)


def open_single(path: Path, findings: Findings) -> Checkpoint:
    """One .safetensors file with the config.json beside it; for a file of a folder's index, the whole folder."""
    indexed = (path.parent / INDEX).is_file() and path in folder_files(path.parent, Findings())[0]
    if SHARD.search(path.name) or indexed:
        return open_folder(path.parent, findings)
    gathered = gather([path], {}, findings)
    if not gathered.complete:
        findings.raise_if_any()
    if "mtp.fc.weight" in gathered.tensors and "embed_tokens.weight" not in gathered.tensors:
        raise CheckpointError(f"{path.name} {MTP_ALONE}")
    root = _config(path.parent)
    config = config_from_json(root, generation_settings(path.parent, Findings()))
    return _assemble(path, root, config, gathered, findings)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if path.is_file():
        return read_json_object(path, 16 << 20)
    ggufs = sorted(item.name for item in folder.glob("*.gguf"))
    if ggufs:
        raise CheckpointError(
            f"{folder.name} has no config.json, but GGUF files ({listed(ggufs)}); choose one of them."
        )
    raise CheckpointError(f"{folder.name} has no config.json; choose the folder of a model.")


def _assemble(
    path: Path, root: Mapping[str, Any], config: ModelConfig, gathered: Gathered, findings: Findings
) -> Checkpoint:
    folder = path if path.is_dir() else path.parent
    tensors = gathered.tensors
    notes: list[str] = []
    config = replace(config, tied=_tied(root, config, "lm_head.weight" in tensors, notes))
    if config.tied:
        tensors.pop("lm_head.weight", None)
    config = replace(config, mtp_layers=_mtp_layers(config, tensors, notes))
    conventions, mtp_conventions = PUBLISHED, PUBLISHED
    try:
        conventions, mtp_conventions = export_conventions(gathered.files, tensors, config.conv_kernel)
    except CheckpointError as error:
        findings.add(error)
    if gathered.complete and not _refuse_quantised(tensors, path.name, findings):
        check_model(config, tensors, findings, path.name)
    tokenizer = folder_tokenizer(folder, findings)
    return Checkpoint(
        path=path,
        kind="safetensors",
        name=_name(folder) if path.is_dir() else path.stem,
        config=config,
        conventions=conventions,
        mtp_conventions=mtp_conventions,
        tensors=tensors,
        files=tuple(file.path for file in gathered.files),
        tokenizer=tokenizer,
        chat_template=folder_template(folder, tokenizer.settings, findings),
        generation_config=generation_settings(folder, findings),
        notes=tuple(notes),
    )


def _name(folder: Path) -> str:
    """The folder's name; in a Hugging Face cache (models--OWNER--NAME/snapshots/HASH) the model's."""
    if folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--"):
        return folder.parent.parent.name.rpartition("--")[2]
    return folder.name


def _tied(root: Mapping[str, Any], config: ModelConfig, has_head: bool, notes: list[str]) -> bool:
    """Is the embedding the head? If the root and text_config disagree, the file decides."""
    if len(tie_flags(root)) == 2:
        return not has_head
    if config.tied and has_head:
        notes.append("config.json ties the head to the embedding: lm_head.weight in the file is not used.")
    return config.tied


def _mtp_layers(config: ModelConfig, tensors: dict[str, TensorSpec], notes: list[str]) -> int:
    if any(name.startswith("mtp.") for name in tensors):
        return 1
    notes.append(ANNOUNCED_MTP + NO_MTP if config.mtp_layers else NO_MTP)
    return 0


def _refuse_quantised(tensors: Mapping[str, TensorSpec], of: str, findings: Findings) -> bool:
    """Packed weights of other programs, told by the names of their parts when the settings do not say it."""
    endings = {name.rpartition(".")[2] for name in tensors}
    kind = next((kind for parts, kind in _QUANTISED if parts <= endings), "")
    if kind:
        findings.add(UnsupportedError(f"{of} is quantised as {kind}, which Draftscope does not run: {OTHER_VERSION}."))
    return bool(kind)
