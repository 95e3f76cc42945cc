"""The experts of one pass over a layer, as the model sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.cancel import CancelToken
from engine.kernels.matrix import Matrix
from engine.weights.expert_cache import ExpertCache
from engine.weights.reader import Priority, Reader

_AHEAD = 8
"""Experts that are read before the one in use is done with."""


class ExpertView(Mapping[int, Mapping[str, Matrix]]):
    """Streamed experts in the order in which they will be asked for.

    `view[e]` waits for expert e while the following ones are read. Its matrices are valid until another expert is asked
    for, or the unit is released.
    """

    def __init__(
        self, cache: ExpertCache, reader: Reader, unit: str, experts: Sequence[int], cancel: CancelToken | None
    ) -> None:
        self._cache = cache
        self._reader = reader
        self._unit = unit
        self._experts = tuple(experts)
        self._place = {expert: index for index, expert in enumerate(self._experts)}
        self._cancel = cancel
        self._current: int | None = None
        self._matrices: Mapping[str, Matrix] = {}
        with reader.lock:
            cache.begin_pass(unit, self._experts)
            self._read_ahead(0)

    def __getitem__(self, expert: int) -> Mapping[str, Matrix]:
        place = self._place[expert]
        if expert == self._current:
            return self._matrices
        with self._reader.lock:
            self._let_go()
            self._matrices = self._cache.pin((self._unit, expert), self._cancel)
            self._current = expert
            self._read_ahead(place + 1)
        return self._matrices

    def __iter__(self) -> Iterator[int]:
        return iter(self._experts)

    def __len__(self) -> int:
        return len(self._experts)

    def close(self) -> None:
        """The pass is over: nothing that was handed out is used any more."""
        with self._reader.lock:
            self._let_go()
            self._cache.end_pass(self._unit)

    def _let_go(self) -> None:
        if self._current is not None:
            self._cache.unpin((self._unit, self._current))
            self._current, self._matrices = None, {}

    def _read_ahead(self, place: int) -> None:
        for expert in self._experts[place : place + _AHEAD]:
            if not self._cache.start((self._unit, expert), Priority.AHEAD):
                break
