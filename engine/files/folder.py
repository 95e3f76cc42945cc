"""Which files of a folder make up a checkpoint, and all their tensors under canonical names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import CheckpointError
from engine.files.bounded import read_json_object
from engine.files.findings import Findings, listed
from engine.files.safetensors import SafetensorsFile, read_safetensors
from engine.files.safetensors_names import canonical_spec
from engine.files.tensor_spec import TensorSpec

INDEX = "model.safetensors.index.json"
MTP_FILES = ("mtp.safetensors", "mtp/weights.safetensors", "model-mtp.safetensors")
"""Where exports put the MTP layer apart, not always in the index."""
SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.(safetensors|gguf)$")
SHARD_LIMIT = 10_000


@dataclass
class Gathered:
    """The tensors of some safetensors files together, by canonical name."""

    files: list[SafetensorsFile] = field(default_factory=list)
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    complete: bool = True
    """False if a header could not be read: what is missing then is no fault of its own."""


def folder_files(folder: Path, findings: Findings) -> tuple[list[Path], dict[str, str]]:
    """The safetensors files of a folder's checkpoint, and the index's table tensor → file name (empty without one).

    Files that are missing go to `findings`. Raises CheckpointError if there are none, or it is not clear which.
    """
    index = folder / INDEX
    if not index.is_file():
        others = sorted(folder.glob("*.safetensors.index.json"))
        index = others[0] if len(others) == 1 else index
    if index.is_file():
        table = _weight_map(index)
        names = list(dict.fromkeys(table.values()))
        found = [folder / name for name in names]
    else:
        table, found = {}, _files_without_index(folder, findings)
    found += [path for name in MTP_FILES if (path := folder / name) not in found and path.is_file()]
    missing = [path for path in found if not path.is_file()]
    for path in missing:
        findings.add(f"{path.name}, which {index.name} names, is missing from {folder.name}; get it again.")
    return [path for path in found if path not in missing], table


def _weight_map(index: Path) -> dict[str, str]:
    """The index's table; file names that leave the folder are refused."""
    table = read_json_object(index).get("weight_map")
    if not isinstance(table, dict) or not table:
        raise CheckpointError(f"{index.name} has no weight_map; get it again.")
    names = {name if isinstance(name, str) else str(type(name)) for name in table.values()}
    for name in names:
        if not _stays_inside(name):
            raise CheckpointError(f"{index.name} points to {name[:100]!r}, which is no file of its folder.")
    if len(names) > SHARD_LIMIT:
        raise CheckpointError(f"{index.name} names more than {SHARD_LIMIT:,} files, which is not plausible.")
    return table


def _stays_inside(name: str) -> bool:
    parts = re.split(r"[/\\]", name)
    safe = all(part not in ("", ".", "..") and ":" not in part and "\0" not in part for part in parts)
    return safe and len(name) < 256 and name.endswith(".safetensors")


def _files_without_index(folder: Path, findings: Findings) -> list[Path]:
    single = folder / "model.safetensors"
    if single.is_file():
        return [single]
    candidates = [path for path in sorted(folder.glob("*.safetensors")) if path.name not in MTP_FILES]
    shards = [path for path in candidates if SHARD.search(path.name)]
    if shards:
        return _complete_set(shards, findings)
    if len(candidates) == 1:
        return candidates
    if candidates:
        names = listed([path.name for path in candidates])
        raise CheckpointError(
            f"{folder.name} has no {INDEX} that says which of its files to use ({names}); choose one of them."
        )
    raise CheckpointError(f"{folder.name} has a config.json but no .safetensors file; get the weights.")


def _complete_set(shards: list[Path], findings: Findings) -> list[Path]:
    """All shards of the one set they belong to; missing ones go to `findings`."""
    sets = {(SHARD.sub("", path.name), SHARD.search(path.name)[2]) for path in shards}  # type: ignore[index]
    if len(sets) > 1:
        raise CheckpointError(
            f"{shards[0].parent.name} holds {len(sets)} sets of shards and no {INDEX}; keep one set in it."
        )
    ((stem, count),) = sets
    if int(count) > SHARD_LIMIT:
        raise CheckpointError(f"{shards[0].name} claims {int(count):,} shards, which is not plausible.")
    names = [f"{stem}-{number:05d}-of-{count}.safetensors" for number in range(1, int(count) + 1)]
    absent = [name for name in names if not (shards[0].parent / name).is_file()]
    if absent:
        findings.add(
            f"{len(absent)} of {int(count)} shards are missing from {shards[0].parent.name}: {listed(absent)}."
        )
    return [shards[0].parent / name for name in names if name not in absent]


def gather(paths: list[Path], table: Mapping[str, str], findings: Findings) -> Gathered:
    """Read the headers of `paths` and bring their tensors together; `table` (of the index) settles doubles."""
    gathered = Gathered()
    for path in paths:
        try:
            file = read_safetensors(path, findings)
        except CheckpointError as error:
            findings.add(error)
            gathered.complete = False
            continue
        gathered.files.append(file)
        for spec in file.tensors.values():
            _place(spec, gathered.tensors, table, findings)
    if gathered.complete:
        known = {name for file in gathered.files for name in file.tensors}
        lost = [name for name in table if name not in known]
        if lost:
            findings.add(f"The index names {len(lost)} tensors that no shard holds: {listed(lost)}.")
    return gathered


def _place(spec: TensorSpec, tensors: dict[str, TensorSpec], table: Mapping[str, str], findings: Findings) -> None:
    try:
        placed = canonical_spec(spec)
    except CheckpointError as error:
        findings.add(error)
        return
    if placed is None:
        return
    before = tensors.get(placed.name)
    if before is None or _preferred(placed, before, table):
        tensors[placed.name] = placed
    elif not _preferred(before, placed, table):
        findings.add(f"{before.where} and {placed.where} are the same tensor; keep one.")


def _preferred(one: TensorSpec, other: TensorSpec, table: Mapping[str, str]) -> bool:
    """Of two tensors for one place: the pre-quantised one (q8 before q4), else the one whose file the index names."""
    ranks = {".q8": 2, ".q4": 1}
    rank, against = ranks.get(one.file_name[-3:], 0), ranks.get(other.file_name[-3:], 0)
    if rank != against:
        return rank > against
    named = table.get(one.file_name)
    return one.file_name == other.file_name and named == one.file.name != other.file.name
