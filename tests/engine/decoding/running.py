"""Run a reply of scripted models, and what plain decoding gives for the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.cancel import CancelToken
from engine.decoding.decoder import Decoder
from engine.decoding.protocols import Drafter
from engine.decoding.records import Round
from engine.decoding.sampler import Sampler
from engine.options import DraftOptions, GenerateOptions
from tests.engine.decoding.scripted import Language, ScriptedDetokeniser, ScriptedTarget, pieces

PLAIN = DraftOptions("none", 0)


@dataclass
class Run:
    decoder: Decoder
    target: ScriptedTarget
    rounds: list[Round]

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.decoder.tokens


def make(
    language: Language,
    prompt: list[int],
    options: GenerateOptions,
    drafter: Drafter | None = None,
    end: frozenset[int] = frozenset(),
    target: ScriptedTarget | None = None,
    chunk: int = 512,
    **keywords: object,
) -> tuple[Decoder, ScriptedTarget, object]:
    """A decoder whose target and drafter have read `prompt`, and the logits after it."""
    target = target or ScriptedTarget(language)
    hidden = None
    for start in range(0, len(prompt), chunk):
        part = prompt[start : start + chunk]
        hidden = target.forward(part)
        if drafter:
            drafter.extend(part, hidden)
    sampler = Sampler(options.sampling, prompt, options.top_alternatives)
    detokeniser = ScriptedDetokeniser(pieces(language.vocabulary))
    decoder = Decoder(target, drafter, sampler, options, end, detokeniser, **keywords)  # type: ignore[arg-type]
    return decoder, target, target.logits(hidden[-1:])[0]


def reply(*arguments: object, cancel: CancelToken | None = None, **keywords: object) -> Run:
    decoder, target, logits = make(*arguments, **keywords)  # type: ignore[arg-type]
    return Run(decoder, target, list(decoder.run(logits, cancel)))


def plain(language: Language, prompt: list[int], options: GenerateOptions, **keywords: object) -> Run:
    return reply(language, prompt, replace(options, draft=PLAIN), None, **keywords)
