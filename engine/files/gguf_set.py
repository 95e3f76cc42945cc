"""One GGUF file, or all parts of a split one (`-00001-of-0000N`), as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import CheckpointError, UnsupportedError
from engine.files.findings import Findings, listed
from engine.files.folder import SHARD, SHARD_LIMIT
from engine.files.gguf import GgufFile, read_gguf
from engine.files.gguf_cursor import Value
from engine.files.gguf_names import block_index, mtp_blocks
from engine.files.tensor_spec import TensorSpec

Kind = Literal["model", "MTP layer", "vision tower", "adapter"]


@dataclass(frozen=True, slots=True)
class GgufSet:
    """Metadata of the first part, tensors of all, by their names in the files."""

    files: tuple[GgufFile, ...]
    tensors: Mapping[str, TensorSpec]
    complete: bool

    @property
    def metadata(self) -> Mapping[str, Value]:
        return self.files[0].metadata

    def text(self, key: str) -> str:
        """A metadata string, or an empty one."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    @property
    def kind(self) -> Kind:
        """What the file is for."""
        if self.text("general.architecture") == "clip" or self.text("general.type") == "mmproj":
            return "vision tower"
        if self.text("general.type") == "adapter":
            return "adapter"
        blocks = {block_index(name) for name in self.tensors} - {None}
        mtp = mtp_blocks(self.tensors)
        return "MTP layer" if mtp and blocks <= set(mtp) else "model"


def read_gguf_set(path: Path, findings: Findings) -> GgufSet:
    """Read the headers of a file and of the parts that belong to it. Any part may be given."""
    match = SHARD.search(path.name)
    if match is None:
        file = read_gguf(path, findings)
        _refuse_lone_part(file)
        _check_types([file], findings)
        return GgufSet((file,), file.tensors, True)
    count = int(match[2])
    if not 1 <= count <= SHARD_LIMIT:
        raise CheckpointError(f"{path.name} claims to be one of {count:,} parts, which is not plausible.")
    stem = path.name[: match.start()]
    paths = [path.with_name(f"{stem}-{number:05d}-of-{match[2]}.gguf") for number in range(1, count + 1)]
    absent = [part.name for part in paths if not part.is_file()]
    if absent:
        findings.add(f"{len(absent)} of {count} parts of {stem} are missing: {listed(absent)}; get them too.")
        if paths[0].name in absent:
            findings.raise_if_any()
    files = [read_gguf(part, findings) for part in paths if part.name not in absent]
    tensors = _together(files, paths, findings)
    _check_types(files, findings)
    return GgufSet(tuple(files), tensors, not absent)


def _refuse_lone_part(file: GgufFile) -> None:
    parts = file.metadata.get("split.count", 0)
    if isinstance(parts, int) and parts > 1:
        raise CheckpointError(
            f"{file.path.name} is one of {parts} parts, which are only found by their names: "
            f"call it …-00001-of-{parts:05d}.gguf as it was."
        )


def _together(files: list[GgufFile], paths: list[Path], findings: Findings) -> dict[str, TensorSpec]:
    tensors: dict[str, TensorSpec] = {}
    for file in files:
        number = file.metadata.get("split.no", paths.index(file.path))
        if number != paths.index(file.path):
            findings.add(
                f"{file.path.name} says that it is part {number}, counted from 0; it was renamed: get it again."
            )
        for name, spec in file.tensors.items():
            if name in tensors:
                findings.add(f"{spec.where} stands in {tensors[name].file.name} too; get the parts again.")
            tensors[name] = spec
    total = files[0].metadata.get("split.tensors.count")
    if len(files) == len(paths) and isinstance(total, int) and total != len(tensors):
        findings.add(f"The {len(paths)} parts hold {len(tensors)} tensors, {total} are announced; get the parts again.")
    return tensors


def _check_types(files: list[GgufFile], findings: Findings) -> None:
    """All tensors of unknown types in one sentence."""
    unknown: dict[str, list[str]] = {}
    for file in files:
        for name, tensors in file.unknown_types.items():
            unknown.setdefault(name, []).extend(tensors)
    if unknown:
        each = "; ".join(f"type {kind[5:]}: {listed(names, 3)}" for kind, names in sorted(unknown.items()))
        findings.add(
            UnsupportedError(
                f"{files[0].path.name} has tensors of types that Draftscope does not know ({each}); "
                "choose another quantisation."
            )
        )
