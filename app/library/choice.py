"""What a person may choose or drop: checkpoints, sidecars, and how recent ones are named. Pure functions of paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from app.language import tr, trn
from app.settings import RecentModel

if TYPE_CHECKING:
    from engine import ModelInfo

MODEL_SUFFIXES = (".safetensors", ".gguf")


class Load(Protocol):
    """Asks for a checkpoint to be loaded."""

    def __call__(self, path: Path, sidecar: Path | None = None, mmproj: Path | None = None) -> object: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """A checkpoint with what goes with it, companions alone, or a sentence about why nothing."""

    model: Path | None = None
    sidecar: Path | None = None
    mmproj: Path | None = None
    """A vision tower."""
    problem: str = ""


def classify(paths: Sequence[Path]) -> Choice:
    """Tell checkpoint, sidecar and vision tower apart among dropped files, by name and kind only: the engine looks
    inside."""
    kinds: dict[str, list[Path]] = {"model": [], "sidecar": [], "mmproj": []}
    for path in paths:
        if path.is_dir():
            kinds["model"].append(path)
        elif not is_weights(path):
            return Choice(
                problem=tr(
                    "{name} is no model: drop a checkpoint folder, a .safetensors or a .gguf file, "
                    "and a sidecar (mtp….safetensors) with it if you like.",
                    name=path.name,
                )
            )
        else:
            kinds["sidecar" if is_sidecar(path) else "mmproj" if is_tower(path) else "model"].append(path)
    if any(len(found) > 1 for found in kinds.values()):
        return Choice(
            problem=tr("Drop one checkpoint at a time, with one sidecar at most; for shards drop their folder.")
        )
    model, sidecar, mmproj = (next(iter(found), None) for found in kinds.values())
    return Choice(model, sidecar, mmproj)


def open_choice(choice: Choice, model: ModelInfo | None, load: Load) -> str:
    """Load what was chosen; companions alone go to the model in use. Returns why nothing was loaded, if so."""
    if choice.model is not None:
        load(choice.model, choice.sidecar, choice.mmproj)
    elif choice.problem or model is None:
        if choice.sidecar:
            alone = tr("A sidecar goes with a checkpoint: open the checkpoint first.")
        else:
            alone = tr("A vision tower goes with a checkpoint: open the checkpoint first.")
        return choice.problem or alone
    else:
        own = Path(model.sidecar) if model.sidecar else None
        load(Path(model.path), choice.sidecar or own, choice.mmproj)
    return ""


def is_weights(path: Path) -> bool:
    """Whether the name is that of a file with weights."""
    return path.suffix.lower() in MODEL_SUFFIXES


def is_sidecar(path: Path) -> bool:
    """Whether the name is that of a sidecar."""
    return path.stem.lower().startswith(("mtp", "fastmtp"))


def is_tower(path: Path) -> bool:
    """Whether the name is that of a vision tower."""
    return path.suffix.lower() == ".gguf" and "mmproj" in path.stem.lower()


def is_companion(path: Path) -> bool:
    """Whether the name is that of a sidecar or of a vision tower."""
    return is_weights(path) and (is_sidecar(path) or is_tower(path))


def recent_label(recent: RecentModel) -> str:
    """The menu line of a recent checkpoint: its name, its sidecar, and whether it is still there."""
    path = Path(recent.path)
    label = path.name or recent.path
    if recent.sidecar:
        label += f" + {Path(recent.sidecar).name}"
    return label if is_there(recent) else tr("{model} (missing)", model=label)


def is_there(recent: RecentModel) -> bool:
    """Whether the files can still be found."""
    return Path(recent.path).exists() and (not recent.sidecar or Path(recent.sidecar).exists())


def facts(info: ModelInfo) -> str:
    """A model in one line: kind, size, and where its drafts come from."""
    kind = tr("mixture of experts") if "moe" in info.architecture else tr("dense")
    drafts = {
        "checkpoint": tr("MTP layer in the checkpoint"),
        "sidecar": tr("MTP from {file}", file=Path(info.sidecar).name) if info.sidecar else tr("MTP from a sidecar"),
        "none": tr("no MTP layer"),
    }[info.mtp]
    layers = trn("{n} layer", "{n} layers", info.layers)
    told = [kind, layers, parameters_text(info.parameters), size_text(info.weight_bytes), drafts]
    if info.vision:
        told.append(tr("sees with {file}", file=Path(info.mmproj).name) if info.mmproj else tr("sees pictures"))
    return " · ".join(told)


def parameters_text(count: int) -> str:
    """A number of parameters in words."""
    for limit, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= limit:
            number = f"{count / limit:.1f} {unit}"
            return tr("{number} parameters", number=number)
    return trn("{n} parameter", "{n} parameters", count)


def size_text(size: int) -> str:
    """Bytes as a person reads them, in binary units."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return trn("{n} byte", "{n} bytes", size)
