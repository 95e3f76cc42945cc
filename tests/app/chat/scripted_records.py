"""A scripted engine: records of a realistic conversation, always the same, without a model."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from engine import (
    Alternative,
    CommittedToken,
    DraftedToken,
    Finished,
    PrefillProgress,
    Record,
    Round,
)
from engine.decoding.statistics import stats_of

QUESTION = "Why does speculative decoding give exactly the same text, only sooner? Please answer with a small example."

THINKING = (
    "The person wants the reason and an example. I should say what a draft is, that the model checks all drafts in "
    "one pass, and why the result cannot differ.\n"
)

ANSWER = """Because the drafts never decide anything. A small layer guesses the next few tokens, and the model then \
reads all of them in a single pass, just as it would read a prompt.

At every place the model has its own opinion. Where the guess agrees, the token is kept, and it cost almost nothing; \
where it does not, the guess is thrown away together with everything after it, and the model's own token stands there \
instead.

For example, after “The capital of France is” the drafts could be “ Paris”, “,” and “ which”:

1. “ Paris” is what the model would have said: accepted.
2. “,” is not; the model prefers a full stop: refused, and replaced.
3. “ which” was built upon the comma, so it is never tested.

def verify(drafts, model):
    for place, token in enumerate(drafts):
        if model[place] != token:
            return drafts[:place] + [model[place]]
    return drafts + [model[len(drafts)]]

Two tokens for the price of one pass. Reading weights from memory takes the time, not the arithmetic, and a pass over \
four tokens reads them exactly once.
"""

_PIECES = re.compile(r"\n+|[^\S\n]+(?=\s)|[^\S\n]?[A-Za-z]+|[^\S\n]?[^\sA-Za-z]|\s")
_WRONG = [" that", " which", ",", " and", " the", " is", " of", " small", "ing", " however", ".", " token"]


def pieces(text: str) -> list[str]:
    """Text cut roughly as a tokenizer cuts it: words with their space, long ones in two."""
    result: list[str] = []
    for part in _PIECES.findall(text):
        if len(part) > 9 and part.strip().isalpha():
            result += [part[:6], part[6:]]
        else:
            result.append(part)
    return result


def rounds(
    text: str, *, seed: int = 1, phase: str = "answer", position: int = 48, index: int = 0, drafts: int = 3
) -> Iterator[Round]:
    """Rounds from `index` on whose committed tokens spell `text`, with drafts of both kinds accepted and refused."""
    generator = random.Random(seed)
    tokens = pieces(text)
    at = 0
    if index == 0 and tokens:  # the prompt's own token comes without a pass
        token = _committed(generator, tokens[0], "model", "model", phase)
        yield Round(0, position, phase, (), (token,), 0.0, 0.0)
        at = index = 1
    while at < len(tokens):
        source = "ngram" if generator.random() < 0.22 else "mtp"
        wanted = 0 if generator.random() < 0.06 else drafts + (2 if source == "ngram" else 0)
        record = _round(
            generator, tokens[at:], source=source, wanted=wanted, phase=phase, position=position + at, index=index
        )
        yield record
        at += len(record.committed)
        index += 1


def _round(
    generator: random.Random, ahead: list[str], *, source: str, wanted: int, phase: str, position: int, index: int
) -> Round:
    right = 0
    while right < wanted and right < len(ahead) - 1 and generator.random() < 0.84 - 0.09 * right:
        right += 1
    drafted, committed = [], []
    for place in range(wanted):
        verdict = "accepted" if place < right else "rejected" if place == right else "unused"
        text = ahead[place] if place < right else generator.choice(_WRONG)
        drafted.append(_draft(generator, text, source, verdict, ahead[right] if place == right else None))
        if verdict == "accepted":
            committed.append(_committed(generator, text, "accepted", source, phase))
    origin = "model" if not wanted else "bonus" if right == wanted else "correction"
    committed.append(_committed(generator, ahead[right], origin, "model", phase))
    verify = 0.021 + 0.0016 * wanted + 0.004 * generator.random() ** 3
    wait = 0.012 * generator.random() if generator.random() < 0.25 else 0.0
    return Round(
        index=index,
        position=position,
        phase=phase,
        drafts=tuple(drafted),
        committed=tuple(committed),
        draft_s=0.0021 * wanted if source == "mtp" else 0.0003,
        verify_s=verify + wait,
        disk_wait_s=wait,
        bytes_read=int(3e8 * wait),
        draft_length=wanted,
        next_draft_length=wanted,
    )


def token_id(text: str) -> int:
    """A stable id for a piece of text."""
    return sum((i + 1) * ord(c) for i, c in enumerate(text)) * 37 % 151_000


def _draft(generator: random.Random, text: str, source: str, verdict: str, replacement: str | None) -> DraftedToken:
    own = min(0.99, 0.35 + 0.6 * generator.random()) if verdict == "accepted" else 0.2 + 0.4 * generator.random()
    others = generator.sample(_WRONG, 3)
    share = generator.random()
    model = {"accepted": 0.4 + 0.58 * share, "rejected": 0.08 * share, "unused": None}[verdict]
    return DraftedToken(
        token=token_id(text),
        text=text,
        source=source,
        draft_probability=own if source == "mtp" else None,
        model_probability=model,
        verdict=verdict,
        replacement=token_id(replacement) if replacement is not None else None,
        uniform=generator.random() if verdict != "unused" else None,
        alternatives=(
            Alternative(token_id(text), text, own),
            *(Alternative(token_id(o), o, (1 - own) / (2 + i)) for i, o in enumerate(others)),
        )
        if source == "mtp"
        else (),
    )


def _committed(generator: random.Random, text: str, origin: str, source: str, phase: str) -> CommittedToken:
    own = 0.45 + 0.5 * generator.random()
    others = generator.sample(_WRONG, 3)
    return CommittedToken(
        token=token_id(text),
        text=text,
        origin=origin,
        source=source,
        model_probability=own,
        phase=phase,
        alternatives=(
            Alternative(token_id(text), text, own),
            *(Alternative(token_id(o), o, (1 - own) / (2 + i)) for i, o in enumerate(others)),
        ),
    )


def reply(
    text: str = ANSWER, thinking: str = "", *, seed: int = 1, stop_reason: str = "end", notes: tuple[str, ...] = ()
) -> list[Record]:
    """All records of one reply: prefill, rounds, Finished."""
    done: list[Round] = []
    if thinking:
        done += rounds(thinking, seed=seed, phase="think")
    done += rounds(text, seed=seed + 1, position=48 + sum(len(r.committed) for r in done), index=len(done))
    tokens = tuple(t.token for r in done for t in r.committed)
    finished = Finished(tokens=tokens, text=text, stats=stats_of(done, stop_reason), notes=notes)
    return [PrefillProgress(48, 48, 0, 0.1), *done, finished]


def long_reply(tokens: int, *, newline_every: int = 40, seed: int = 3) -> list[Round]:
    """Rounds of about `tokens` tokens of plain words; `newline_every` 0 makes one endless line.

    The first few hundred rounds come again and again, so that 300,000 tokens take no time to make.
    """
    generator = random.Random(seed)
    words = [" time", " layer", " of", " the", " reads", " drafts", " model", " in", " a", " memory", " round", ","]
    pool: list[Round] = []
    position = 0
    for index in range(400):
        ahead = [generator.choice(words) for _ in range(6)]
        if newline_every and position // newline_every != (position + 6) // newline_every:
            ahead[0] = ".\n"
        record = _round(generator, ahead, source="mtp", wanted=3, phase="answer", position=position, index=index + 1)
        pool.append(record)
        position += len(record.committed)
    rounds_needed = -(-tokens * len(pool) // position)
    return [pool[i % len(pool)] for i in range(rounds_needed)]


def plain_token(text: str) -> CommittedToken:
    """A token of the model's own, without a draft."""
    return CommittedToken(token_id(text), text, "model", "model", 0.5)
