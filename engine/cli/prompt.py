"""What `generate` answers: a prompt, a conversation from a file, or token ids as they are."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.cli.arguments import read_text_file, token_ids
from engine.errors import OptionError

if TYPE_CHECKING:
    from engine import ChatSession, Message, Picture
    from engine.cancel import CancelToken
    from engine.decoding.records import Record
    from engine.loaded_model import Model
    from engine.options import GenerateOptions

ROLES = ("system", "user", "assistant")


def add_prompt(parser: argparse.ArgumentParser) -> None:
    """The options that say what is answered."""
    group = parser.add_argument_group("prompt")
    choice = group.add_mutually_exclusive_group(required=True)
    choice.add_argument("--prompt", metavar="TEXT", help="what the user says (- reads it from standard input)")
    choice.add_argument("--messages", metavar="FILE", help='a conversation: [{"role": "user", "content": "…"}, …]')
    choice.add_argument("--tokens", type=token_ids, metavar="IDS", help="token ids as they are, e.g. 1,2,3")
    group.add_argument("--image", action="append", default=[], metavar="FILE", help="a picture; may be repeated")
    group.add_argument("--system", metavar="TEXT", help="a system message before the prompt")
    group.add_argument("--raw", action="store_true", help="take --prompt as it is, without the chat template")
    group.add_argument("--thinking", choices=("on", "off"), help="think first or not (default: as the template does)")


@dataclass(frozen=True)
class Prompt:
    """What is answered: messages, or else raw text or token ids, which no template touches."""

    messages: tuple[Message, ...] = ()
    raw: str | None = None
    ids: tuple[int, ...] | None = None
    images: tuple[Picture, ...] = ()
    """For raw text and ids; a message holds its own."""

    @property
    def text(self) -> str:
        """For a person to read in a trace."""
        if self.raw is not None:
            return self.raw
        if len(self.messages) == 1:
            return self.messages[0].content
        return "\n\n".join(f"{message.role}: {message.content}" for message in self.messages)

    def tokens(self, model: Model, session: ChatSession, options: GenerateOptions) -> list[int]:
        """The ids that the model will read."""
        if self.ids is not None:
            return list(self.ids)
        if self.raw is not None:
            return model.tokenizer.encode(self.raw, special=True)
        return session.prompt_tokens(self.messages, options)

    def answer(
        self, model: Model, session: ChatSession, options: GenerateOptions, cancel: CancelToken
    ) -> Iterator[Record]:
        """The reply's records."""
        if self.messages:
            return session.reply(self.messages, options, cancel)
        return session.complete(self.tokens(model, session, options), options, cancel, self.images)


def read_prompt(arguments: argparse.Namespace) -> Prompt:
    """The prompt that the arguments give; EngineError if they give none, or contradict each other."""
    if arguments.tokens is not None:
        if arguments.system is not None or arguments.raw:
            raise OptionError("--tokens are taken as they are: leave --system and --raw out.")
        if not arguments.tokens:
            raise OptionError("The prompt is empty: write something first.")
        return Prompt(ids=tuple(arguments.tokens), images=images_of(arguments))
    if arguments.messages is not None:
        if arguments.raw:
            raise OptionError("--raw goes with --prompt, not with --messages.")
        messages = parse_messages(read_text_file(arguments.messages), arguments.messages)
        return Prompt(complete(messages, arguments))
    text = read_text_file("-") if arguments.prompt == "-" else arguments.prompt
    if not text.strip():
        raise OptionError("The prompt is empty: write something first.")
    if not arguments.raw:
        from engine import Message

        return Prompt(complete((Message("user", text),), arguments))
    if arguments.system is not None:
        raise OptionError("--raw takes the prompt as it is: leave --system out.")
    return Prompt(raw=text, images=images_of(arguments))


def complete(messages: tuple[Message, ...], arguments: argparse.Namespace) -> tuple[Message, ...]:
    """The system message before, the pictures in the last one."""
    from engine import Message

    if arguments.image:
        *earlier, last = messages
        messages = (*earlier, dataclasses.replace(last, images=images_of(arguments)))
    system = getattr(arguments, "system", None)
    return messages if system is None else (Message("system", system), *messages)


def images_of(arguments: argparse.Namespace) -> tuple[Picture, ...]:
    """The pictures that the arguments name; PictureError if one cannot be read."""
    if not arguments.image:
        return ()
    from engine import Picture

    return tuple(Picture.from_file(path) for path in arguments.image)


def parse_messages(text: str, where: str) -> tuple[Message, ...]:
    """A conversation from JSON: a list of messages, or an object with such a list under `messages`."""
    from engine import Message

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{where} is not JSON: {error}.") from None
    listed = data.get("messages") if isinstance(data, dict) else data
    if not isinstance(listed, list) or not listed:
        raise OptionError(f"{where} holds no messages: a list of objects with role and content is expected.")
    for number, item in enumerate(listed, 1):
        if not isinstance(item, dict) or item.get("role") not in ROLES or not isinstance(item.get("content"), str):
            raise OptionError(
                f"{where}, message {number}: a role (system, user or assistant) and a content (text) are needed."
            )
    return tuple(Message(item["role"], item["content"]) for item in listed)
