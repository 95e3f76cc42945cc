"""Sidecars: an MTP layer in a file of its own, with or without its own embedding and a trimmed draft head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.errors import CheckpointError, SidecarError
from engine.files.bounded import named_path
from engine.files.checkpoint import is_gguf
from engine.files.config import ModelConfig
from engine.files.conventions import GGUF, Conventions, export_conventions
from engine.files.draft_ids import IntArray, read_draft_ids
from engine.files.expected import MTP_HEAD, check_tensors, expected_mtp
from engine.files.experts import ExpertLayout, expert_layout
from engine.files.findings import Findings, listed
from engine.files.folder import folder_files, gather
from engine.files.gguf_sidecar import OWN, gguf_sidecar
from engine.files.safetensors_names import SCALE_SUFFIX
from engine.files.tensor_spec import TensorSpec

DRAFT_IDS = "mtp.d2t"
_BARE = ("fc.", "layers.0.", "norm.", "pre_fc_norm_")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """An MTP layer that fits the checkpoint it was opened for. Its files are never written."""

    path: Path
    tensors: Mapping[str, TensorSpec]
    """`mtp.*`; `mtp.embed_tokens.weight` [V, H] and `mtp.lm_head.weight` [n, H] if it brings its own."""
    conventions: Conventions
    draft_ids: IntArray | None
    """Token id of each row of the own head [n]; None if it has no head of its own."""
    files: tuple[Path, ...]
    config: ModelConfig
    note: str = ""
    """What a person should know, or empty."""

    def has(self, name: str) -> bool:
        return name in self.tensors

    def spec(self, name: str) -> TensorSpec:
        """The tensor of this canonical name; SidecarError if there is none."""
        spec = self.tensors.get(name)
        if spec is None:
            raise SidecarError(f"Tensor {name} is missing from {self.path.name}.")
        return spec

    def scale(self, name: str) -> TensorSpec | None:
        """As `Checkpoint.scale`."""
        return self.tensors.get(name + SCALE_SUFFIX)

    def experts(self, unit: str) -> ExpertLayout:
        """As `Checkpoint.experts`."""
        return expert_layout(self.tensors, f"{unit}.mlp.experts", self.config.experts)


def open_sidecar(path: str | Path, config: ModelConfig) -> Sidecar:
    """Open an MTP layer for the model of `config`: a .safetensors or .gguf file, or a folder with one.

    Raises SidecarError if it is damaged or made for another model.
    """
    try:
        return _open(named_path(path), config)
    except SidecarError:
        raise
    except CheckpointError as error:
        raise SidecarError(str(error)) from error
    except OSError as error:
        raise SidecarError(f"{path} cannot be opened: {error.strerror or error}.") from error


def _open(path: Path, config: ModelConfig) -> Sidecar:
    findings = Findings()
    tensors, conventions, files = _gather(path, config, findings)
    _check_fits(path, tensors, config)
    _check_shapes(path, tensors, config, findings)
    findings.raise_if_any(SidecarError)
    draft_ids = _draft_ids(tensors, config, offsets_allowed=conventions != GGUF)
    return Sidecar(path, tensors, conventions, draft_ids, files, config, _note(tensors, config))


def _gather(
    path: Path, config: ModelConfig, findings: Findings
) -> tuple[dict[str, TensorSpec], Conventions, tuple[Path, ...]]:
    if not path.exists():
        raise SidecarError(f"There is no sidecar {path}.")
    if not path.is_dir() and not path.is_file():
        raise SidecarError(f"{path} is neither a file nor a folder.")
    if path.is_file() and is_gguf(path):
        found, sources = gguf_sidecar(path, findings)
        return found, GGUF, sources
    if path.is_file() and path.suffix != ".safetensors":
        raise SidecarError(f"{path.name} is no sidecar: choose a .safetensors or .gguf file with an MTP layer.")
    paths, table = folder_files(path, findings) if path.is_dir() else ([path], {})
    gathered = gather(paths, table, findings)
    tensors = _mtp_only(gathered.tensors)
    used = {spec.file for spec in tensors.values()}
    _, conventions = export_conventions(gathered.files, gathered.tensors, config.conv_kernel)
    return tensors, conventions, tuple(file.path for file in gathered.files if file.path in used)


def _mtp_only(tensors: Mapping[str, TensorSpec]) -> dict[str, TensorSpec]:
    """The MTP layer's tensors, by canonical name. Embedding and head count as its own only where there is no trunk: in
    a whole checkpoint they are the model's."""
    if "fc.weight" in tensors and "mtp.fc.weight" not in tensors:
        tensors = {("mtp." + name if name.startswith(_BARE) else name): spec for name, spec in tensors.items()}
    whole = any(name.startswith("layers.") for name in tensors)
    found = {}
    for name, spec in tensors.items():
        own = name if name.startswith("mtp.") else OWN.get(name) if not whole else None
        if own is not None:
            found[own] = replace(spec, name=own)
    return found


def _check_fits(path: Path, tensors: Mapping[str, TensorSpec], config: ModelConfig) -> None:
    """Is there an MTP layer, and is it one of this model? Says so before a list of wrong shapes would."""
    fc = tensors.get("mtp.fc.weight")
    if fc is None:
        raise SidecarError(f"{path.name} is no sidecar: it has no MTP layer (mtp.fc.weight is missing).")
    if len(fc.shape) != 2 or fc.shape[1] != 2 * fc.shape[0]:
        raise SidecarError(
            f"Tensor {fc.file_name} in {path.name} has shape {list(fc.shape)}; "
            f"{[config.hidden_size, 2 * config.hidden_size]} was expected."
        )
    if fc.shape[0] != config.hidden_size:
        raise SidecarError(
            f"{path.name} belongs to another model: the sidecar's hidden size is {fc.shape[0]}, "
            f"the model's {config.hidden_size}."
        )


def _check_shapes(path: Path, tensors: Mapping[str, TensorSpec], config: ModelConfig, findings: Findings) -> None:
    layers = {name.split(".")[2] for name in tensors if name.startswith("mtp.layers.")}
    if len(layers) > 1:
        raise SidecarError(f"{path.name} has {len(layers)} MTP layers; Draftscope runs one.")
    head = tensors.get(MTP_HEAD)
    if head is not None:
        _check_head(path, head, DRAFT_IDS in tensors, config)
    elif DRAFT_IDS in tensors:
        raise SidecarError(f"{path.name} has token ids for a trimmed head (d2t), but no head (lm_head.weight).")
    own_config = replace(config, mtp_dedicated_embeddings=False)
    expected = expected_mtp(own_config, tensors, head.shape[0] if head is not None else None)
    placed = check_tensors(expected, tensors, findings, path.name) | {DRAFT_IDS}
    surplus = [spec.file_name for name, spec in tensors.items() if name not in placed]
    if surplus:
        findings.add(f"{path.name} has {len(surplus)} tensors that an MTP layer does not have: {listed(surplus)}.")


def _check_head(path: Path, head: TensorSpec, has_ids: bool, config: ModelConfig) -> None:
    if len(head.shape) != 2 or head.shape[1] != config.hidden_size or not 1 <= head.shape[0] <= config.vocabulary:
        raise SidecarError(
            f"Tensor {head.file_name} in {path.name} has shape {list(head.shape)}; "
            f"[n, {config.hidden_size}] with n up to {config.vocabulary} was expected."
        )
    if head.shape[0] < config.vocabulary and not has_ids:
        raise SidecarError(
            f"{path.name} has a head of {head.shape[0]:,} rows for a vocabulary of {config.vocabulary:,}, "
            "but no d2t that says which tokens they are."
        )


def _draft_ids(tensors: dict[str, TensorSpec], config: ModelConfig, *, offsets_allowed: bool) -> IntArray | None:
    head, ids = tensors.get(MTP_HEAD), tensors.pop(DRAFT_IDS, None)
    if head is None:
        return None
    if ids is None:
        return np.arange(config.vocabulary)
    return read_draft_ids(ids, head.shape[0], config.vocabulary, offsets_allowed=offsets_allowed)


def _note(tensors: Mapping[str, TensorSpec], config: ModelConfig) -> str:
    head = tensors.get(MTP_HEAD)
    if head is None or head.shape[0] == config.vocabulary:
        return ""
    return f"Drafts come from a trimmed head of {head.shape[0]:,} of {config.vocabulary:,} tokens."
