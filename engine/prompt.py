"""From messages to what the model reads: tokens, the pictures among them, and where turns end."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engine.errors import OptionError, PictureError
from engine.model.positions import VisionSpan

if TYPE_CHECKING:
    from engine.loaded_model import Model
    from engine.pictures import Patches


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture file as it came, in a message."""

    data: bytes = field(repr=False)
    name: str = "picture"
    longest: int | None = None
    """Pixels to which its longest side is scaled down before it is read; None reads it as it is."""

    @classmethod
    def from_file(cls, path: str | Path) -> Picture:
        """Read a picture file.

        Raises:
            PictureError: there is no such file, or it cannot be read.
        """
        from engine.pictures import MOST_BYTES  # brings the tower with it

        try:
            with open(path, "rb", opener=_without_waiting) as file:
                data = file.read(MOST_BYTES + 1)  # a device or a pipe need not have an end
        except OSError as error:
            raise PictureError(f"The picture {path} cannot be read: {error.strerror or error}.") from None
        if len(data) > MOST_BYTES:
            raise PictureError(f"The picture {path} is larger than {MOST_BYTES >> 20} MiB; save it smaller.")
        if not data:
            raise PictureError(f"The picture {path} is empty.")
        return cls(data, Path(path).name)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a named pipe that nobody writes into is empty, and is not waited for."""
    if not hasattr(os, "O_NONBLOCK"):
        return os.open(path, flags)
    opened = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(opened, True)
    return opened


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A picture, preprocessed, and the span of placeholder tokens that it fills."""

    span: VisionSpan
    patches: Patches
    name: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a reply answers."""

    tokens: list[int]
    keys: list[int]
    """Equal where tokens mean the same: a token's id, and for a placeholder a number that names the picture, too."""
    boundaries: tuple[int, ...] = ()
    """Where earlier turns end: the places to which later prompts are likely to return."""
    pictures: tuple[PlacedPicture, ...] = ()


def token_prompt(tokens: Sequence[int], images: Sequence[Picture], model: Model) -> Prompt:
    """A prompt of ready-made ids; pictures fill its runs of placeholder ids in order."""
    tokens = list(tokens)
    if not images:
        return Prompt(tokens, list(tokens))
    holder = _placeholder(model)
    runs = [i for i, t in enumerate(tokens) if t == holder and (i == 0 or tokens[i - 1] != holder)]
    if len(runs) != len(images):
        raise PictureError(f"The tokens have {len(runs)} runs of the placeholder {holder} for {len(images)} pictures.")
    placed = []
    for start, image in zip(runs, images, strict=True):
        picture = _place(image, start, model)
        length = next((i for i in range(start, len(tokens)) if tokens[i] != holder), len(tokens)) - start
        if length != picture.span.tokens:
            raise PictureError(f"{image.name} takes {picture.span.tokens} tokens, but has {length} placeholders.")
        placed.append(picture)
    return Prompt(tokens, _keys(tokens, placed, images), (), tuple(placed))


def chat_prompt(messages: Sequence[Message], thinking: bool | None, model: Model) -> Prompt:
    """A conversation through the chat template, up to where the reply begins.

    Raises:
        OptionError: there is nothing to answer.
        TemplateError: the chat template failed on these messages.
        PictureError: a picture cannot be read, or the model cannot see.
    """
    if not messages or not (messages[-1].content.strip() or messages[-1].images):
        raise OptionError("The prompt is empty: write something first.")
    template, encode = model.template, model.tokenizer.encode
    # Control tokens that a person spells out are characters: they cannot end a turn or begin another one.
    plain = [_as_dict(m, model.tokenizer.shield(m.content)) for m in messages]
    tokens = encode(template.render(plain, enable_thinking=thinking), special=True)
    history = encode(template.render(plain, add_generation_prompt=False, enable_thinking=thinking), special=True)
    # Later prompts repeat the history, but not always the generation prompt (its think block is often taken out).
    boundary = len(history) if tokens[: len(history)] == history else 0
    images = [image for message in messages for image in message.images]
    if not images:
        return Prompt(tokens, list(tokens), (boundary,))
    expanded, placed = _expand(tokens, images, model)
    boundary += len(expanded) - len(tokens)
    return Prompt(expanded, _keys(expanded, placed, images), (boundary,), tuple(placed))


def _as_dict(message: Message, text: str) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": text}
    parts: list[dict[str, str]] = [{"type": "image"} for _ in message.images]
    return {"role": message.role, "content": [*parts, {"type": "text", "text": text}]}


def _expand(tokens: list[int], images: Sequence[Picture], model: Model) -> tuple[list[int], list[PlacedPicture]]:
    """Put as many placeholders as a picture takes where the template put one."""
    holder = _placeholder(model)
    if tokens.count(holder) != len(images):
        raise PictureError(
            f"The chat template of {model.info.name} made {tokens.count(holder)} places for {len(images)} pictures:"
            " it was not written for pictures."
        )
    waiting, expanded, placed = iter(images), [], []
    for token in tokens:
        if token != holder:
            expanded.append(token)
            continue
        placed.append(_place(next(waiting), len(expanded), model))
        expanded += [holder] * placed[-1].span.tokens
    return expanded, placed


def _place(image: Picture, start: int, model: Model) -> PlacedPicture:
    from engine.pictures import open_picture, patches

    assert model.vision is not None
    cut = patches(open_picture(image.data, image.name), model.vision.config, image.longest)
    return PlacedPicture(VisionSpan(start, *cut.tokens), cut, image.name)


def _placeholder(model: Model) -> int:
    if model.vision is None or model.image_token is None:
        raise PictureError(
            f"{model.info.name} cannot see pictures: {model.info.vision_note or 'its vocabulary has no placeholder'}."
        )
    return model.image_token


def _keys(tokens: list[int], placed: Sequence[PlacedPicture], images: Sequence[Picture]) -> list[int]:
    """Ids, but below zero and different for each picture where pictures stand."""
    keys = list(tokens)
    for picture, image in zip(placed, images, strict=True):
        digest = hashlib.blake2b(image.data, digest_size=7, salt=str(image.longest or "").encode()).digest()
        keys[picture.span.start : picture.span.end] = [-1 - int.from_bytes(digest)] * picture.span.tokens
    return keys
