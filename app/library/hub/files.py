"""What a repository of the Hugging Face hub offers: its files, sorted into what can be opened together. No network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import unquote, urlsplit

from app.library.choice import is_companion, is_sidecar, is_weights

PartKind = Literal["model", "sidecar", "vision tower"]  # not translated: keys
USUAL = "Q4_K_M"
"""The format that is proposed where there is a choice: what most people run."""

_NAME = r"[A-Za-z0-9][\w.\-]*"
_REPO = re.compile(rf"({_NAME}/{_NAME})(?:@([\w.\-/]+))?")
_SPLIT = re.compile(r"-\d{5}-of-\d{5}$")
_FORMAT = re.compile(r"(?<![A-Za-z0-9])(I?Q\d(?:_[A-Z0-9]+)*|TQ\d_\d|MXFP4|BF16|F16|F32)(?![A-Za-z0-9])", re.IGNORECASE)
_BESIDE = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template"
    r"|preprocessor_config|processor_config|video_preprocessor_config|.*\.safetensors\.index)\.(json|jinja)"
    r"|merges\.txt|chat_template\.jinja"
)
"""Files that a checkpoint in the published layout is read with."""
_WEB = ("blob", "resolve", "tree", "raw")


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository. `sha256` or else `git` (git's own SHA-1 of a blob) is what its bytes have to hash to."""

    path: str
    size: int
    sha256: str = ""
    git: str = ""

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True)
class Listing:
    """A repository at one commit."""

    repo: str
    commit: str
    files: tuple[HubFile, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A repository that a search found."""

    repo: str
    downloads: int
    gated: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """A repository that somebody named, perhaps with a revision and one of its files or folders."""

    repo: str
    revision: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Files that are of use only together: one model in all its shards, a sidecar, a vision tower."""

    kind: PartKind
    name: str
    format: str
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def named(text: str) -> Wanted | None:
    """The repository that a text or a pasted address names; None if the text is rather something to search for."""
    text = text.strip()
    if text.startswith("hf://"):
        return _of_path(text.removeprefix("hf://").removeprefix("models/"))
    if re.match(r"(https?://|hf\.co/|huggingface\.co/)", text):
        path = unquote(urlsplit(text if "://" in text else f"https://{text}").path)
        return _of_path(path.strip("/"))
    match = _REPO.fullmatch(text)
    return Wanted(match[1], match[2] or "") if match else None


def _of_path(path: str) -> Wanted | None:
    names = path.split("/")
    if len(names) < 2 or (match := _REPO.fullmatch("/".join(names[:2]))) is None or names[0] in ("datasets", "spaces"):
        return None
    repo, revision = match.groups()
    rest = names[2:]
    if len(rest) >= 2 and rest[0] in _WEB:
        return Wanted(repo, rest[1], "/".join(rest[2:]))
    return Wanted(repo, revision or "", "/".join(rest))


def parts(listing: Listing) -> list[Part]:
    """What of a repository can be opened: models by size, then sidecars and vision towers."""
    folders: dict[str, list[HubFile]] = {}
    for file in listing.files:
        folders.setdefault(str(PurePosixPath(file.path).parent), []).append(file)
    found: list[Part] = []
    for folder, files in folders.items():
        found += _ggufs(files)
        found += _safetensors(listing.repo if folder == "." else folder, files)
    order = {"model": 0, "sidecar": 1, "vision tower": 2}  # not translated: keys
    return sorted(found, key=lambda part: (order[part.kind], part.size, part.name))


def proposed(found: Sequence[Part], path: str = "") -> Part | None:
    """The part to begin with: the one that was named, the only model, or the one in the usual format."""
    for part in found:
        if path and any(file.path == path or file.path.startswith(f"{path}/") for file in part.files):
            return part
    models = [part for part in found if part.kind == "model"]
    if len(models) == 1:
        return models[0]
    return next((part for part in models if part.format == USUAL), None)


def _ggufs(files: Iterable[HubFile]) -> list[Part]:
    groups: dict[str, list[HubFile]] = {}
    for file in files:
        path = PurePosixPath(file.path)
        if path.suffix.lower() == ".gguf":
            groups.setdefault(_SPLIT.sub("", path.stem), []).append(file)
    return [Part(_kind(stem), stem, format_of(stem), tuple(group)) for stem, group in groups.items()]


def _safetensors(name: str, files: Sequence[HubFile]) -> list[Part]:
    weights = [file for file in files if file.name.endswith(".safetensors") and _is_weights(file)]
    companions = [file for file in weights if _is_companion(file)]
    main = [file for file in weights if file not in companions]
    found = [Part(_kind(file.name), file.name, format_of(file.name), (file,)) for file in companions]
    if main and any(file.name == "config.json" for file in files):
        beside = [file for file in files if _BESIDE.fullmatch(file.name)]
        found.append(Part("model", name, format_of(name) or "safetensors", (*main, *beside)))
    return found


def _kind(stem: str) -> PartKind:
    path = Path(stem)
    if path.name.lower().startswith("mmproj"):
        return "vision tower"  # not translated: a key
    return "sidecar" if is_sidecar(path) else "model"


def _is_weights(file: HubFile) -> bool:
    return is_weights(Path(file.path))


def _is_companion(file: HubFile) -> bool:
    return is_companion(Path(file.path))


def format_of(name: str) -> str:
    """The format that a file's name tells; empty if it tells none."""
    found = _FORMAT.findall(name)
    return str(found[-1]).upper() if found else ""
