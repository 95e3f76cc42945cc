"""What a person should know about a model file before loading it: facts from headers, and everything that is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import psutil

from engine.errors import CheckpointError, EngineError
from engine.files.bounded import named_path
from engine.files.checkpoint import Checkpoint, is_gguf, open_checkpoint
from engine.files.config import ModelConfig
from engine.files.findings import Findings
from engine.files.folder import gather
from engine.files.gguf_set import read_gguf_set
from engine.files.safetensors_names import SCALE_SUFFIX
from engine.files.sidecar import open_sidecar
from engine.files.tensor_spec import TensorSpec, distinct
from engine.files.vision import open_vision

Kind = Literal["model", "sidecar", "vision tower", "unusable"]

_EXPERTS = ".mlp.experts."
_GIB = 1 << 30
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class FormatUse:
    """Tensors of one type."""

    format: str
    tensors: int
    parameters: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class UnitSize:
    """What is read together: `embedding`, `layers.N`, `head`, `mtp`. Routed experts are counted apart."""

    name: str
    nbytes: int
    """Without routed experts."""
    expert_bytes: int
    """Of all routed experts."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of `describe`. Fields that are not known (the file is damaged, or no model) are empty or 0."""

    path: str
    kind: Kind
    name: str
    container: str = ""
    """`safetensors` or `gguf`."""
    architecture: str = ""
    parameters: int = 0
    weight_bytes: int = 0
    files: tuple[str, ...] = ()
    hidden_size: int = 0
    vocabulary: int = 0
    context: int = 0
    linear_layers: int = 0
    full_layers: int = 0
    head_dim: int = 0
    position_vectors: int = 0
    """Keys and values of one position in all attention layers, the MTP layer's included: vectors of `head_dim`."""
    experts: int = 0
    experts_per_token: int = 0
    tied: bool = False
    mtp: str = ""
    """`inside`, the name of the file that it is in, or `none`."""
    vision: str = ""
    """`inside`, or why the tower inside cannot be used; empty if there is none."""
    tokenizer: str = ""
    chat_template: bool = False
    formats: tuple[FormatUse, ...] = ()
    units: tuple[UnitSize, ...] = ()
    memory_total: int = 0
    """Bytes of this machine."""
    memory_available: int = 0
    memory: str = ""
    """Whether the weights fit, as a sentence."""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """A model that can be loaded, or a sidecar that can be given to one."""
        return self.kind in ("model", "sidecar") and not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"usable": self.usable}


def describe(path: str | Path) -> Report:
    """Facts about a checkpoint or sidecar, from its headers alone. Never raises for what is in the files."""
    path = named_path(path)
    problems: list[str] = []
    try:
        checkpoint = open_checkpoint(path, problems)
    except CheckpointError as error:
        return _other(path, str(error))
    return _of_checkpoint(checkpoint, problems)


def companion_problem(path: str | Path, companion: Report) -> str:
    """Why a sidecar or vision tower does not go with the checkpoint at `path`, from headers alone; empty if it does."""
    try:
        config = open_checkpoint(named_path(path)).config
        if companion.kind == "vision tower":
            open_vision(Path(companion.path), config.hidden_size)
        else:
            open_sidecar(companion.path, config)
    except EngineError as error:
        return str(error)
    return ""


def _of_checkpoint(checkpoint: Checkpoint, problems: list[str]) -> Report:
    config, memory = checkpoint.config, psutil.virtual_memory()
    return Report(
        path=str(checkpoint.path),
        kind="model",
        name=checkpoint.name,
        container=checkpoint.kind,
        architecture=config.architecture,
        parameters=checkpoint.parameters,
        weight_bytes=checkpoint.weight_bytes,
        files=tuple(file.name for file in checkpoint.files),
        hidden_size=config.hidden_size,
        vocabulary=config.vocabulary,
        context=config.context,
        linear_layers=config.layers.count("linear"),
        full_layers=config.layers.count("full"),
        head_dim=config.head_dim,
        position_vectors=2 * config.kv_heads * (config.layers.count("full") + (1 if config.mtp_layers else 0)),
        experts=config.experts,
        experts_per_token=config.experts_per_token,
        tied=config.tied,
        mtp=_mtp_place(checkpoint),
        vision=_vision(checkpoint),
        tokenizer=_tokenizer(checkpoint),
        chat_template=checkpoint.chat_template is not None,
        formats=format_use(checkpoint.tensors.values()),
        units=unit_sizes(checkpoint.tensors.values(), config),
        memory_total=memory.total,
        memory_available=memory.available,
        memory=_memory(checkpoint.weight_bytes, memory.available),
        problems=tuple(problems),
        notes=checkpoint.notes,
    )


def _mtp_place(checkpoint: Checkpoint) -> str:
    fc = checkpoint.tensors.get("mtp.fc.weight")
    if fc is None:
        return "none"
    alone = all(name.startswith("mtp.") for name, spec in checkpoint.tensors.items() if spec.file is fc.file)
    return fc.file.name if alone else "inside"


def _vision(checkpoint: Checkpoint) -> str:
    if not checkpoint.path.is_dir():
        return ""
    try:
        return "" if open_vision(checkpoint.path, checkpoint.config.hidden_size) is None else "inside"
    except EngineError as error:
        return str(error)


def _tokenizer(checkpoint: Checkpoint) -> str:
    source = checkpoint.tokenizer
    if source.missing:
        return ""
    if source.json_path is not None:
        return source.json_path.name
    return f"{source.pre or source.model} in the metadata, {len(source.tokens):,} tokens"


def _memory(nbytes: int, available: int) -> str:
    sizes = f"{_size(nbytes)} of weights, {_size(available)} of memory free"
    if nbytes <= 0.9 * available:
        return f"Fits in memory: {sizes}."
    return f"Larger than the free memory ({sizes}): weights are streamed from disk."


def _size(nbytes: int) -> str:
    return f"{nbytes / _GIB:.1f} GiB" if nbytes >= _GIB else f"{nbytes / _MIB:.1f} MiB"


def unit_sizes(tensors: Iterable[TensorSpec], config: ModelConfig) -> tuple[UnitSize, ...]:
    """Bytes per unit, in the order of execution. The last norm belongs to the head; a tied head reads
    the whole embedding."""
    plain: dict[str, int] = {}
    routed: dict[str, int] = {}
    for spec in tensors:
        unit = _unit(spec.name)
        table = routed if _EXPERTS in spec.name else plain
        table[unit] = table.get(unit, 0) + spec.nbytes
    if config.tied:
        plain["head"] = plain.get("head", 0) + plain.get("embedding", 0)
    order = ["embedding", *(f"layers.{index}" for index in range(len(config.layers))), "head", "mtp"]
    return tuple(
        UnitSize(unit, plain.get(unit, 0), routed.get(unit, 0)) for unit in order if unit in plain or unit in routed
    )


def _unit(name: str) -> str:
    if name.startswith("mtp."):
        return "mtp"
    if name.startswith("layers."):
        return name[: name.index(".", 7)] if "." in name[7:] else name
    return "embedding" if name.startswith("embed_tokens.") else "head"


def format_use(tensors: Iterable[TensorSpec]) -> tuple[FormatUse, ...]:
    """Tensors, parameters and bytes per type, the most bytes first."""
    found: dict[str, list[TensorSpec]] = {}
    for spec in distinct(tensors):
        found.setdefault(spec.format, []).append(spec)
    uses = [
        FormatUse(
            name,
            len(specs),
            sum(spec.elements for spec in specs if not spec.name.endswith(SCALE_SUFFIX)),
            sum(spec.nbytes for spec in specs),
        )
        for name, specs in found.items()
    ]
    return tuple(sorted(uses, key=lambda use: -use.nbytes))


def _other(path: Path, problem: str) -> Report:
    """A file that is no model: perhaps a sidecar or a vision tower, otherwise `problem` says why it is unusable."""
    report = Report(str(path), "unusable", path.name, problems=(problem,))
    try:
        if not path.is_file():
            return report
        findings = Findings()
        if is_gguf(path):
            whole = read_gguf_set(path, findings)
            tensors, container = list(whole.tensors.values()), "gguf"
            kind, name = whole.kind, whole.text("general.name") or path.stem
            files = tuple(file.path.name for file in whole.files)
        elif path.suffix == ".safetensors":
            gathered = gather([path], {}, findings)
            tensors, container = list(gathered.tensors.values()), "safetensors"
            kind = "MTP layer" if "mtp.fc.weight" in gathered.tensors else "model"
            name, files = path.stem, (path.name,)
        else:
            return report
    except EngineError:
        return report
    known: dict[str, Kind] = {"MTP layer": "sidecar", "vision tower": "vision tower"}
    return replace(
        report,
        kind=known.get(kind, "unusable"),
        name=name,
        container=container,
        files=files,
        parameters=sum(spec.elements for spec in tensors),
        weight_bytes=sum(spec.nbytes for spec in tensors),
        mtp="inside" if kind == "MTP layer" else "",
        formats=format_use(tensors),
        problems=tuple(findings.sentences if kind == "MTP layer" else dict.fromkeys((problem, *findings.sentences))),
    )
