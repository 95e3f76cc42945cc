"""A checkpoint as the rest of the engine sees it: tensors by canonical name, whatever files they are in.

Only headers are read. Nothing that they say is used before it was checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from engine.errors import CheckpointError
from engine.files.bounded import named_path
from engine.files.config import ModelConfig
from engine.files.conventions import Conventions
from engine.files.experts import ExpertLayout, expert_layout
from engine.files.findings import Findings
from engine.files.safetensors_names import SCALE_SUFFIX
from engine.files.tensor_spec import TensorSpec, distinct
from engine.files.tokenizer_source import TokenizerSource


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on disk. `tensors` holds all that text needs, and nothing else."""

    path: Path
    kind: Literal["safetensors", "gguf"]
    name: str
    config: ModelConfig
    conventions: Conventions
    mtp_conventions: Conventions
    """Those of the MTP layer, which may come from another export than the trunk."""
    tensors: Mapping[str, TensorSpec]
    files: tuple[Path, ...]
    tokenizer: TokenizerSource
    chat_template: str | None = None
    generation_config: Mapping[str, Any] = field(default_factory=dict)
    """Recommended sampling as in generation_config.json: `temperature`, `top_k`, `top_p`, …"""
    notes: tuple[str, ...] = ()
    """What a person should know though it is no fault, such as why there is no MTP layer."""

    def has(self, name: str) -> bool:
        """Is there a tensor with this canonical name?"""
        return name in self.tensors

    def spec(self, name: str) -> TensorSpec:
        """The tensor of this canonical name; CheckpointError if there is none."""
        spec = self.tensors.get(name)
        if spec is None:
            raise CheckpointError(f"Tensor {name} is missing from {self.path.name}.")
        return spec

    def scale(self, name: str) -> TensorSpec | None:
        """The scales of an FP8 matrix, [ceil(rows / 128), ceil(columns / 128)]; None for other formats."""
        return self.tensors.get(name + SCALE_SUFFIX)

    def experts(self, unit: str) -> ExpertLayout:
        """Where the routed experts of `layers.N` or `mtp.layers.0` are."""
        return expert_layout(self.tensors, f"{unit}.mlp.experts", self.config.experts)

    @property
    def draft_ids(self) -> npt.NDArray[np.int64] | None:
        """As `Sidecar.draft_ids`: the ids 0, 1, 2 … if the MTP layer has a head of its own, else None."""
        return np.arange(self.config.vocabulary) if self.has("mtp.lm_head.weight") else None

    @property
    def parameters(self) -> int:
        """Weights of text model and MTP layer; a tensor that serves twice counts once."""
        return sum(spec.elements for spec in distinct(self.tensors.values()) if not spec.name.endswith(SCALE_SUFFIX))

    @property
    def weight_bytes(self) -> int:
        """Bytes of all tensors in the files."""
        return sum(spec.nbytes for spec in distinct(self.tensors.values()))


def open_checkpoint(path: str | Path, problems: list[str] | None = None) -> Checkpoint:
    """Open a folder in the published layout, a .safetensors file beside its config.json, or a .gguf file.

    Headers only: all lengths, and the shape and type of every tensor, are checked first.
    Raises CheckpointError or UnsupportedError. With a list of `problems`, faults are appended to it as sentences, and
    only those that leave nothing to describe are raised.
    """
    findings = Findings()
    try:
        checkpoint = _survey(named_path(path), findings)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be opened: {error.strerror or error}.") from error
    if problems is None:
        findings.raise_if_any()
    else:
        problems += findings.sentences
    return checkpoint


def _survey(path: Path, findings: Findings) -> Checkpoint:
    # The openers build Checkpoints, so they are imported here.
    from engine.files.folder_checkpoint import open_folder, open_single
    from engine.files.gguf_checkpoint import open_gguf

    if path.name in ("config.json", "model.safetensors.index.json") and path.is_file():
        path = path.parent
    if path.is_dir():
        return open_folder(path, findings)
    if not path.exists():
        raise CheckpointError(f"There is no file or folder {path}.")
    if not path.is_file():
        raise CheckpointError(f"{path} is neither a file nor a folder.")
    if is_gguf(path):
        return open_gguf(path, findings)
    if path.suffix == ".safetensors":
        return open_single(path, findings)
    raise CheckpointError(
        f"{path.name} is no model: choose a folder with a config.json, a .safetensors or a .gguf file."
    )


def is_gguf(path: Path) -> bool:
    """Does the file begin as GGUF (or is it named so)?"""
    if path.suffix == ".gguf":
        return True
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"
