"""Scripted models: a language model made of hashes, exact and strict about its contract.

Its state after a text is a hash of the last tokens, kept in the hidden state to the bit. `ScriptedMtp` can follow the
state from (h_i, x_{i+1}) to h_{i+1}, so that it predicts perfectly if, and only if, it is given the right pairs.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

import numpy as np

from engine.cancel import CancelToken
from engine.decoding.protocols import Draft
from engine.decoding.sampler import Sampler
from engine.errors import Cancelled

MASK = 2**64 - 1
WIDTH = 4  # a 64-bit state in four float32, 16 bits each


def mix(value: int) -> int:
    value = ((value ^ (value >> 33)) * 0xFF51AFD7ED558CCD) & MASK
    value = ((value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53) & MASK
    return value ^ (value >> 33)


def to_hidden(state: int) -> np.ndarray:
    return np.array([(state >> (16 * i)) & 0xFFFF for i in range(WIDTH)], np.float32)


def to_state(hidden: np.ndarray) -> int:
    return sum(int(part) << (16 * i) for i, part in enumerate(hidden))


class Language:
    """Next-token scores from the last `order` tokens, kept as 16-bit codes in the state."""

    def __init__(self, vocabulary: int = 24, seed: int = 0, order: int = 2, sharpness: float = 3.0) -> None:
        assert order <= 4
        self.vocabulary, self.seed, self.order, self.sharpness = vocabulary, seed, order, sharpness
        self._rows: dict[int, np.ndarray] = {}

    def step(self, state: int, token: int) -> int:
        return ((state << 16) | (token + 1)) & ((1 << (16 * self.order)) - 1)

    def state(self, tokens: Sequence[int]) -> int:
        state = 0
        for token in tokens:
            state = self.step(state, token)
        return state

    def logits(self, state: int, salt: int = 0) -> np.ndarray:
        key = mix(state ^ mix(self.seed + 1) ^ mix(salt + 7))
        if key not in self._rows:
            codes = np.array([mix(key + i) >> 40 for i in range(self.vocabulary)], np.float64)
            self._rows[key] = (self.sharpness * (codes / 2**24 - 0.5) * 2).astype(np.float32)
        return self._rows[key].copy()


class ScriptedTarget:
    """A `TargetModel` that fails the test when its contract is broken."""

    def __init__(self, language: Language, context: int = 1 << 20) -> None:
        self.language, self._context = language, context
        self.tokens: list[int] = []
        self._states: list[int] = []  # after each token
        self._span = 0  # where the last forward began
        self.passes = 0
        self.fail_at: dict[int, Exception] = {}  # pass number → error
        self.poison: dict[int, float] = {}  # position of the row's input token → value put in its logits

    @property
    def position(self) -> int:
        return len(self.tokens)

    @property
    def vocabulary(self) -> int:
        return self.language.vocabulary

    @property
    def context(self) -> int:
        return self._context

    def forward(self, tokens: Sequence[int], cancel: CancelToken | None = None) -> np.ndarray:
        assert len(tokens) >= 1
        assert all(0 <= token < self.vocabulary for token in tokens)
        assert len(self.tokens) + len(tokens) <= self._context, "read past the context"
        self.passes += 1
        if self.passes in self.fail_at:
            raise self.fail_at.pop(self.passes)
        if cancel and cancel.cancelled:
            raise Cancelled
        self._span = len(self.tokens)
        rows = []
        for token in tokens:
            self.tokens.append(token)
            self._states.append(self.language.step(self._states[-1] if self._states else 0, token))
            rows.append(to_hidden(self._states[-1]))
        self._read = list(range(self._span, len(self.tokens)))
        return np.stack(rows)

    def logits(self, hidden: np.ndarray) -> np.ndarray:
        rows = np.stack([self.language.logits(to_state(row)) for row in hidden])
        for row, position in zip(rows, self._read, strict=False):
            if position in self.poison:
                row[3] = self.poison[position]
        return rows

    def rollback(self, position: int) -> None:
        assert self._span <= position <= len(self.tokens), "rolled back outside the last pass"
        del self.tokens[position:], self._states[position:]


class ScriptedMtp:
    """An `MtpModel` over the same language. `salt_every` n: wrong in every n-th state."""

    def __init__(self, language: Language, salt_every: int = 0, draft_ids: np.ndarray | None = None) -> None:
        self.language, self.salt_every, self._draft_ids = language, salt_every, draft_ids
        self.entries: list[tuple[int, int]] = []  # (state, token) pairs: the KV cache
        self.passes = 0
        self.fail_at: dict[int, Exception] = {}
        self.poison = False

    @property
    def position(self) -> int:
        return len(self.entries)

    @property
    def draft_ids(self) -> np.ndarray | None:
        return self._draft_ids

    @property
    def draft_step_bytes(self) -> int:
        return 4096

    def forward(self, hidden: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        assert len(hidden) == len(tokens) >= 1
        self.passes += 1
        if self.passes in self.fail_at:
            raise self.fail_at.pop(self.passes)
        states = [to_state(row) for row in hidden]
        self.entries += list(zip(states, (int(t) for t in tokens), strict=True))
        return np.stack([to_hidden(self.language.step(s, int(t))) for s, t in zip(states, tokens, strict=True)])

    def logits(self, output: np.ndarray) -> np.ndarray:
        rows = []
        for row in output:
            state = to_state(row)
            wrong = self.salt_every and mix(state) % self.salt_every == 0
            rows.append(self.language.logits(state, salt=99 if wrong else 0))
        result = np.stack(rows)
        if self.poison:
            result[:, 0] = np.nan
        return result if self._draft_ids is None else result[:, self._draft_ids]

    def truncate(self, length: int) -> None:
        assert 0 <= length <= len(self.entries)
        del self.entries[length:]


class RandomDrafter:
    """A `Drafter` that is right with a given chance, and checks that it sees every token once and in order."""

    def __init__(self, language: Language, seed: int = 0, right: float = 0.6, fewer: bool = False) -> None:
        self.language, self.right, self.fewer = language, right, fewer
        self.random = np.random.default_rng(seed)
        self.tokens: list[int] = []
        self.observed: list[tuple[int, int]] = []

    @property
    def draft_step_bytes(self) -> int:
        return 0

    def extend(self, tokens: Sequence[int], hidden: np.ndarray) -> None:
        assert len(tokens) == len(hidden)
        for token, row in zip(tokens, hidden, strict=True):
            self.tokens.append(int(token))
            assert to_state(row) == self.language.state(self.tokens[-4:]), "hidden states do not belong to the tokens"

    def propose(self, next_token: int, limit: int, sampler: Sampler, cancel: CancelToken | None = None) -> Draft:
        text = [*self.tokens, next_token]
        draft: list[int] = []
        if self.fewer:
            limit = int(self.random.integers(0, limit + 1))
        for _ in range(limit):
            best = int(np.argmax(self.language.logits(self.language.state(text[-4:]))))
            token = best if self.random.random() < self.right else int(self.random.integers(self.language.vocabulary))
            draft.append(token)
            text.append(token)
        return Draft(tuple(draft), ("mtp",) * len(draft), (None,) * len(draft))

    def observe(self, tested: int, accepted: int) -> None:
        self.observed.append((tested, accepted))

    def truncate(self, position: int, hidden: np.ndarray | None = None) -> None:
        del self.tokens[position:]


class ScriptedDetokeniser:
    """Token i is the bytes `pieces[i]`, which may be parts of a character."""

    def __init__(self, pieces: Sequence[bytes], state: tuple[bytes, int] = (b"", 0)) -> None:
        self.pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder.setstate(state)

    def push(self, token_id: int) -> str:
        return self._decoder.decode(self.pieces[token_id])

    def flush(self) -> str:
        return self._decoder.decode(b"", True)

    def clone(self) -> ScriptedDetokeniser:
        return ScriptedDetokeniser(self.pieces, self._decoder.getstate())


def pieces(vocabulary: int) -> list[bytes]:
    """Words, and the four bytes of an emoji as the last four tokens."""
    return [f"w{i} ".encode() for i in range(vocabulary - 4)] + [bytes([b]) for b in "🙂".encode()]
