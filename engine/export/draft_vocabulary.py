"""Which tokens a trimmed draft head keeps: those that a person's texts use most, and those no text can do without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.decoding.trace import read_trace
from engine.errors import OptionError
from engine.text.tokenizer import Tokenizer

IntArray = npt.NDArray[np.int64]

_PIECE = 4096  # characters that are tokenised together
_TRACED = 64  # tokens of a trace that count as one piece
_HELD_OUT = 8  # one piece of so many is not counted but tested


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each token occurs [V]: in the texts that were counted, and in what was held out to test the choice."""

    counted: IntArray
    held_out: IntArray


@dataclass(frozen=True, slots=True)
class DraftVocabulary:
    """The chosen tokens, ascending, and how well they do."""

    ids: IntArray
    always: int
    """How many of them are kept whatever the texts say."""
    counted: int
    """Tokens of the texts."""
    held_out: int
    """Tokens that the choice was tested on."""
    coverage: float | None
    """Share of the held-out tokens that a choice without them contains; None where there is too little text."""


def choose_vocabulary(counts: Counts, tokenizer: Tokenizer, size: int) -> DraftVocabulary:
    """`size` tokens: control tokens, single bytes and digits first, then by frequency; where the texts have no more, by
    id, for merges that were learnt early are frequent anywhere.

    Raises:
        OptionError: the size is below what is always kept, or above the number of tokens.
    """
    known = min(len(counts.counted), tokenizer.vocabulary)
    always = [token for token in range(known) if _indispensable(tokenizer, token)]
    usable = sum(1 for token in range(known) if tokenizer.token_bytes(token))
    if not len(always) <= size <= usable:
        raise OptionError(
            f"A draft head of {size:,} tokens is not possible here: choose from {len(always):,}, which are always kept,"
            f" to {usable:,}, which are all."
        )
    tested = _most_frequent(counts.counted, always, tokenizer, size)
    total = int(counts.held_out.sum())
    return DraftVocabulary(
        _most_frequent(counts.counted + counts.held_out, always, tokenizer, size),
        len(always),
        int(counts.counted.sum()) + total,
        total,
        float(counts.held_out[tested].sum() / total) if total else None,
    )


def _indispensable(tokenizer: Tokenizer, token: int) -> bool:
    spelling = tokenizer.token_bytes(token)
    return tokenizer.is_special(token) or len(spelling) == 1 or spelling.isdigit()


def _most_frequent(counts: IntArray, always: Sequence[int], tokenizer: Tokenizer, size: int) -> IntArray:
    chosen = set(always)
    for token in np.argsort(-counts, kind="stable").tolist():
        if len(chosen) == size:
            break
        if token < tokenizer.vocabulary and tokenizer.token_bytes(token):
            chosen.add(token)
    return np.array(sorted(chosen), np.int64)


def count_tokens(
    texts: Iterable[Path], traces: Iterable[Path], tokenizer: Tokenizer, vocabulary: int, cancel: CancelToken
) -> Counts:
    """Count the tokens of text files (UTF-8) and saved traces in a vocabulary of `vocabulary` ids.

    Raises:
        OptionError: a file cannot be read, or a trace is of another model.
        TraceError: a trace is damaged.
        Cancelled.
    """
    tables = np.zeros((2, vocabulary), np.int64)
    pieces = [*(_text_pieces(path, tokenizer) for path in texts), *(_trace_pieces(path, vocabulary) for path in traces)]
    number = 0
    for source in pieces:
        for tokens in source:
            cancel.check()
            np.add.at(tables[1 if number % _HELD_OUT == _HELD_OUT - 1 else 0], tokens, 1)
            number += 1
    return Counts(tables[0], tables[1])


def _text_pieces(path: Path, tokenizer: Tokenizer) -> Iterator[IntArray]:
    """Token ids of some lines at a time: a file of any size in little memory."""
    try:
        with path.open(encoding="utf-8") as file:
            while lines := file.readlines(_PIECE):
                yield np.array(tokenizer.encode("".join(lines)), np.int64)
    except OSError as error:
        raise OptionError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path} is not UTF-8 text.") from None


def _trace_pieces(path: Path, vocabulary: int) -> Iterator[IntArray]:
    trace = read_trace(path)
    reply = [token.token for record in trace.rounds for token in record.committed]
    tokens = np.array([*trace.header.prompt_tokens, *reply], np.int64)
    if len(tokens) and not 0 <= tokens.min() <= tokens.max() < vocabulary:
        raise OptionError(
            f"{path} is a trace of another model: it has tokens outside the vocabulary of {vocabulary:,}."
        )
    for begin in range(0, len(tokens), _TRACED):
        yield tokens[begin : begin + _TRACED]
