"""What the program remembers between two starts, in one JSON file in the user's configuration folder.

Reading is tolerant: a missing or senseless field takes its default, an unknown one (of a newer version) is kept, a file
that is no JSON is set aside and not deleted. Writing makes a new file and renames it over the old one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, get_args

from app.theme import ThemeMode
from engine import DraftOptions, GenerateOptions, LoadOptions, OptionError, SamplingOptions

if TYPE_CHECKING:
    from engine import KvCache, Precision

MOST_RECENT = 10
_ODD_NAMES = "surrogatepass"
"""Names of files need not be UTF-8 on every system; Python keeps what is not as halves of characters."""
FILE_NAME = "settings.json"
SAMPLING_FIELDS = ("temperature", "top_k", "top_p", "min_p", "seed")
_FRACTIONS = ("temperature", "top_p", "min_p")
SMALLEST_FONT, LARGEST_FONT = 8, 24
_LANGUAGE = re.compile(r"[A-Za-z0-9_@-]{2,15}")
ALTERNATIVES = 5
"""Alternatives that the card of a token shows."""


@dataclass(frozen=True, slots=True)
class RecentModel:
    """A checkpoint that was opened, with the sidecar it was opened with ('' for none)."""

    path: str
    sidecar: str = ""


@dataclass(frozen=True, slots=True)
class ReplyChoices:
    """What the person wants of replies. `sampling` None takes what the model recommends."""

    sampling: SamplingOptions | None = None
    new_seed: bool = True
    """Draw another seed for every reply, so that Regenerate says something else when sampling."""
    max_new_tokens: int = 2048
    thinking: bool | None = None
    think_budget: int | None = None
    """Thinking tokens after which the thought is closed; None lets the model think as long as it likes."""
    draft: DraftOptions = field(default_factory=DraftOptions)
    search_chats: bool = False
    """Let lookup draft from the other conversations too."""

    @property
    def looks_elsewhere(self) -> bool:
        """Whether that comes to anything: the drafter has to look up at all."""
        return self.search_chats and self.draft.enabled and "ngram" in self.draft.drafter

    def options(self, recommended: SamplingOptions | None = None) -> GenerateOptions:
        """The engine's options for one reply."""
        sampling = self.sampling or recommended or SamplingOptions()
        if self.new_seed and not sampling.greedy:
            sampling = replace(sampling, seed=random.getrandbits(31))
        return GenerateOptions(
            sampling=sampling,
            draft=self.draft,
            max_new_tokens=self.max_new_tokens,
            thinking=self.thinking,
            think_budget=self.think_budget,
            top_alternatives=ALTERNATIVES,
        )


@dataclass(frozen=True, slots=True)
class LoadChoices:
    """How the next checkpoint is opened. None is what the program recommends."""

    threads: int | None = None
    context: int | None = None
    precision: Precision | None = None
    kv_cache: KvCache = "f32"

    def applied(self, options: LoadOptions) -> LoadOptions:
        """The same options with what was chosen here."""
        return replace(
            options,
            threads=self.threads,
            context=self.context,
            clip_context=True,
            precision=self.precision,
            kv_cache=self.kv_cache,
        )


@dataclass(frozen=True, slots=True)
class Preset:
    """Choices under a name."""

    name: str
    choices: ReplyChoices


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is remembered. `geometry` and `layout` are Qt's own bytes in base64."""

    theme: ThemeMode = "system"
    geometry: str = ""
    layout: str = ""
    recent: tuple[RecentModel, ...] = ()
    reply: ReplyChoices = field(default_factory=ReplyChoices)
    load: LoadChoices = field(default_factory=LoadChoices)
    font_size: float = 0.0
    """Points of ordinary text; 0 is the system's size."""
    language: str = "system"
    """What the window speaks: a code such as `de`, or as the system does."""
    presets: tuple[Preset, ...] = ()
    show_refused: bool = True
    reading_view: bool = False
    budgets: Mapping[str, int | None] = field(default_factory=dict)
    """Bytes for the weights of a checkpoint by its path; None keeps everything, no entry takes what is free."""
    towers: Mapping[str, str] = field(default_factory=dict)
    """The file with the vision tower of a checkpoint, by the checkpoint's path."""
    folders: tuple[str, ...] = ()
    """Watched for checkpoints."""
    forgotten: tuple[str, ...] = ()
    """Checkpoints in them that are left off the library."""
    download_folder: str = ""
    """Where downloads go; '' is beside the conversations."""
    downloads: tuple[str, ...] = ()
    """Folders of those that are not whole yet."""
    toured: bool = False
    """Whether the hints of the first start have been seen or skipped."""

    def with_recent(self, model: RecentModel) -> Settings:
        """The same with `model` as the latest."""
        others = tuple(r for r in self.recent if r.path != model.path)
        return replace(self, recent=(model, *others)[:MOST_RECENT])


class SettingsFile:
    """Reads and writes one settings file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._unknown: dict[str, Any] = {}

    def load(self) -> Settings:
        """What the file says, as far as it makes sense."""
        try:
            data = json.loads(self.path.read_text("utf-8", _ODD_NAMES))
        except OSError:
            return Settings()
        except (ValueError, RecursionError):
            with contextlib.suppress(OSError):
                self.path.replace(self.path.with_suffix(".damaged.json"))
            return Settings()
        if not isinstance(data, dict):
            return Settings()
        known = {f.name for f in fields(Settings)}
        self._unknown = {key: value for key, value in data.items() if key not in known}
        readers: dict[str, Callable[[Any], Any]] = {
            "theme": lambda v: v if v in get_args(ThemeMode) else None,
            "geometry": _text,
            "layout": _text,
            "recent": _recent,
            "reply": _reply,
            "presets": _presets,
            "load": _load,
            "font_size": _font_size,
            "language": _language,
            "show_refused": _flag,
            "reading_view": _flag,
            "budgets": _budgets,
            "towers": _towers,
            "folders": _texts,
            "forgotten": _texts,
            "download_folder": _text,
            "downloads": _texts,
            "toured": _flag,
        }
        read = {key: readers[key](data[key]) for key in known if key in data}
        return Settings(**{key: value for key, value in read.items() if value is not None})

    def save(self, settings: Settings) -> None:
        """Write the file; OSError if the folder cannot be written to."""
        data = {**self._unknown, **asdict(settings)}
        for choices in (data["reply"], *(preset["choices"] for preset in data["presets"])):
            sampling = choices["sampling"]
            choices["sampling"] = sampling and {name: sampling[name] for name in SAMPLING_FIELDS}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        with new.open("w", encoding="utf-8", errors=_ODD_NAMES) as file:
            json.dump(data, file, indent=1, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: Any) -> tuple[str, ...] | None:
    return tuple(entry for entry in value if isinstance(entry, str) and entry) if isinstance(value, list) else None


def _font_size(value: Any) -> float | None:
    sensible = isinstance(value, int | float) and (value == 0 or SMALLEST_FONT <= value <= LARGEST_FONT)
    return float(value) if sensible else None


def _language(value: Any) -> str | None:
    return value if isinstance(value, str) and _LANGUAGE.fullmatch(value) else None


def _load(value: Any) -> LoadChoices | None:
    """Field by field: one that the engine refuses does not take the others with it."""
    if not isinstance(value, dict):
        return None
    names = [f.name for f in fields(LoadChoices) if f.name in value]
    return LoadChoices(**{name: value[name] for name in names if _options(LoadOptions, value, (name,)) is not None})


def _recent(value: Any) -> tuple[RecentModel, ...] | None:
    if not isinstance(value, list):
        return None
    entries = (e for e in value if isinstance(e, dict) and isinstance(e.get("path"), str) and e["path"])
    return tuple(RecentModel(e["path"], _text(e.get("sidecar")) or "") for e in entries)[:MOST_RECENT]


def _budgets(value: Any) -> dict[str, int | None] | None:
    if not isinstance(value, dict):
        return None
    whole = {path: size for path, size in value.items() if isinstance(size, int) and not isinstance(size, bool)}
    sizes: dict[str, int | None] = {path: size for path, size in whole.items() if size > 0}
    return sizes | {path: None for path, size in value.items() if size is None}


def _towers(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    return {path: tower for path, tower in value.items() if isinstance(tower, str) and tower}


def _presets(value: Any) -> tuple[Preset, ...] | None:
    if not isinstance(value, list):
        return None
    entries = ((_text(e.get("name")), _reply(e.get("choices"))) for e in value if isinstance(e, dict))
    return tuple(Preset(name, choices) for name, choices in entries if name and choices is not None)


def _reply(value: Any) -> ReplyChoices | None:
    if not isinstance(value, dict):
        return None
    choices = ReplyChoices()
    limit, thinking, budget = (value.get(name) for name in ("max_new_tokens", "thinking", "think_budget"))
    if _countable(limit):
        choices = replace(choices, max_new_tokens=limit)
    if _countable(budget):
        choices = replace(choices, think_budget=budget)
    if isinstance(thinking, bool):
        choices = replace(choices, thinking=thinking)
    for name in ("new_seed", "search_chats"):
        if isinstance(value.get(name), bool):
            choices = replace(choices, **{name: value[name]})
    if isinstance(value.get("sampling"), dict):
        choices = replace(choices, sampling=_options(SamplingOptions, value["sampling"], SAMPLING_FIELDS))
    if isinstance(value.get("draft"), dict):
        draft = _options(DraftOptions, value["draft"], ("drafter", "tokens", "length"))
        choices = replace(choices, draft=draft or DraftOptions())
    return choices


def _countable(value: Any) -> TypeGuard[int]:
    """Whether it is a number of tokens that a field of the window can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 1 << 31


def _whole(value: Any, name: str) -> bool:
    """Whether it is no number, or of the kind and the size that the field of this name can have."""
    if name in _FRACTIONS or not isinstance(value, int | float):
        return True
    return isinstance(value, int) and abs(value) < 1 << (63 if name == "seed" else 31)


def _options(kind: Callable[..., Any], data: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Options of `kind` from the named fields, or None if the engine or a field of the window refuses them."""
    chosen = {name: data[name] for name in names if name in data}
    if any(isinstance(value, bool) or not _whole(value, name) for name, value in chosen.items()):
        return None
    try:
        return kind(**chosen)
    except (OptionError, TypeError, ValueError):
        return None
