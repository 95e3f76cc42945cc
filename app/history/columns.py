"""A reply's cells as stored columns, and a reply that is shown from them while its rounds stay in the database."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import overload

from app.chat.cells import Reply
from engine import Round

PAGE = 128
"""Rounds fetched together."""
PAGES = 32
"""Pages kept; the oldest goes first."""

Fetch = Callable[[int, int], list[Round]]
"""Rounds from the first number up to, not including, the second."""


class StoredRounds(Sequence[Round]):
    """The rounds of a reply, read from the database when somebody asks for them."""

    def __init__(self, count: int, fetch: Fetch) -> None:
        self._count = count
        self._fetch = fetch
        self._pages: dict[int, list[Round]] = {}
        self._held: dict[int, Round] = {}

    def hold(self, first: int, last: int) -> list[Round]:
        """Rounds first…last-1; from now on these very objects are given out for them."""
        if any(number not in self._held for number in range(first, last)):
            for number, record in enumerate(self._fetch(first, last), first):
                self._held.setdefault(number, record)
        return [self._held[number] for number in range(first, last)]

    def number_of(self, record: Round) -> int:
        """The number of a round that was given out and is still known, by its identity; -1 for any other."""
        pages = ((page * PAGE + i, one) for page, some in self._pages.items() for i, one in enumerate(some))
        return next((number for number, known in chain(self._held.items(), pages) if known is record), -1)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Round: ...
    @overload
    def __getitem__(self, index: slice) -> list[Round]: ...
    def __getitem__(self, index: int | slice) -> Round | list[Round]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._count)
            return self._fetch(start, stop) if step == 1 else [self[i] for i in range(start, stop, step)]
        at = index + self._count if index < 0 else index
        if not 0 <= at < self._count:
            raise IndexError(index)
        if at in self._held:
            return self._held[at]
        page = at // PAGE
        if page not in self._pages:
            if len(self._pages) >= PAGES:
                del self._pages[next(iter(self._pages))]
            first = page * PAGE
            self._pages[page] = self._fetch(first, min(first + PAGE, self._count))
        return self._pages[page][at % PAGE]

    def __iter__(self) -> Iterator[Round]:
        for first in range(0, self._count, PAGE):
            yield from self._fetch(first, min(first + PAGE, self._count))


class StoredReply(Reply):
    """A reply of the history. It looks and grows like any other."""

    def __init__(self, texts: str, columns: bytes, rounds: int, fetch: Fetch) -> None:
        """Raises ValueError or struct.error if the columns do not fit together."""
        super().__init__()
        self.active = False
        self.texts = [str(text) for text in json.loads(texts)]
        count = len(self.texts)
        (stated,) = struct.unpack_from("<I", columns)
        if stated != count or len(columns) != 4 + count * 8:
            raise ValueError("the columns of a reply have different lengths")  # not translated: not shown
        at = 4
        self._kinds = bytearray(columns[at : at + count])
        self._thinking = bytearray(columns[at + count : at + 2 * count])
        self._place = array("H", columns[at + 2 * count : at + 4 * count])
        self._round_of = array("L", array("I", columns[at + 4 * count :]))
        self._stored: Sequence[Round] = StoredRounds(rounds, fetch)
        if count and max(self._round_of) >= rounds:
            raise ValueError("the columns of a reply name rounds that it does not have")  # not translated: not shown

    @property  # type: ignore[override]
    def rounds(self) -> Sequence[Round]:
        """All rounds, oldest first."""
        return self._stored

    @rounds.setter
    def rounds(self, rounds: Sequence[Round]) -> None:
        self._stored = rounds

    def add_round(self, record: Round) -> None:
        if isinstance(self._stored, StoredRounds):  # it is being continued
            self._stored = [self._stored._held.get(at, record) for at, record in enumerate(self._stored)]
        super().add_round(record)

    def hold(self, first: int, last: int) -> list[Round]:
        """Rounds first…last-1, the same objects whenever they are asked for."""
        stored = self._stored
        return stored.hold(first, last) if isinstance(stored, StoredRounds) else list(stored[first:last])

    def number_of(self, record: Round) -> int:
        stored = self._stored
        return stored.number_of(record) if isinstance(stored, StoredRounds) else super().number_of(record)


def columns_of(reply: Reply) -> tuple[str, bytes]:
    """A reply's texts as JSON and its other columns as bytes, little-endian as on every machine that is supported."""
    texts = json.dumps(reply.texts, ensure_ascii=False, separators=(",", ":"))
    parts = (bytes(reply._kinds), bytes(reply._thinking), reply._place.tobytes(), array("I", reply._round_of).tobytes())
    return texts, struct.pack("<I", len(reply)) + b"".join(parts)
