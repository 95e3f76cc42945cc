"""Which tokens a reply has seen, and what penalties make of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.decoding.protocols import FloatArray, IntArray
from engine.options import SamplingOptions


class History:
    """The distinct tokens of prompt and reply, with how often the reply used each.

    As in the field's serving engines, the repetition penalty looks at prompt and reply, presence and frequency
    penalties at the reply alone.
    """

    def __init__(self, prompt: Sequence[int] = ()) -> None:
        ids = np.unique(np.asarray(prompt, np.int64))
        self._size = len(ids)
        self._slots: dict[int, int] = {token: slot for slot, token in enumerate(ids.tolist())}
        self._ids: IntArray = ids  # [capacity], the first _size are used
        self._counts: IntArray = np.zeros(len(ids), np.int64)  # [capacity], uses in the reply
        self._prompted = len(ids)  # slots below this one are tokens of the prompt

    def push(self, tokens: Iterable[int]) -> None:
        """The reply goes on with `tokens`."""
        for token in tokens:
            slot = self._slots.get(token)
            if slot is None:
                slot = self._add(token)
            self._counts[slot] += 1

    def pop(self, tokens: Iterable[int]) -> None:
        """Undo a `push` of the same tokens."""
        for token in tokens:
            self._counts[self._slots[token]] -= 1

    def penalise(self, logits: FloatArray, options: SamplingOptions) -> None:
        """Apply repetition, presence and frequency penalties in place to logits [V], indexed by token id.

        Repetition divides positive logits and multiplies negative ones (Keskar et al., "CTRL", 2019); presence and
        frequency subtract, once and once per use (OpenAI's API reference).
        """
        ids, counts = self._ids[: self._size], self._counts[: self._size]
        seen = counts > 0
        seen[: self._prompted] = True
        known = seen & (ids < len(logits))
        ids, counts = ids[known], counts[known]
        values = logits[ids]
        if options.repetition_penalty != 1.0:
            penalty = np.float32(options.repetition_penalty)
            values = np.where(values > 0, values / penalty, values * penalty)
        values -= np.float32(options.frequency_penalty) * counts.astype(np.float32)
        values -= np.float32(options.presence_penalty) * (counts > 0)
        logits[ids] = values

    def _add(self, token: int) -> int:
        if self._size == len(self._ids):
            capacity = max(64, 2 * self._size)
            self._ids = np.resize(self._ids, capacity)
            self._counts = np.resize(self._counts, capacity)
        slot = self._size
        self._ids[slot], self._counts[slot] = token, 0
        self._slots[token] = slot
        self._size += 1
        return slot
