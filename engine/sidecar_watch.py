"""Notices a sidecar that was made for another checkpoint: its shapes fit, but its drafts are next to never right."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

from engine.decoding.records import Round

_ENOUGH = 24
"""Tested drafts from which acceptance says something."""
_NEAR_ZERO = 0.03
"""A layer that belongs to its model has a third accepted even on hard text; a foreign one has next to none."""


class SidecarWatch:
    """Counts the MTP drafts of a session, and speaks up once. `sidecar`: the file's path, None where there is none."""

    def __init__(self, sidecar: str | None) -> None:
        self._sidecar = None if sidecar is None else Path(sidecar).name
        self._tested = self._accepted = 0

    def over(self, records: Iterator[Round]) -> Iterator[Round]:
        """The same rounds, seen. Closing this closes `records`."""
        try:
            for record in records:
                verdicts = [draft.verdict for draft in record.drafts if draft.source == "mtp"]
                self._accepted += verdicts.count("accepted")
                self._tested += len(verdicts) - verdicts.count("unused")
                yield record
        finally:
            if isinstance(records, Generator):
                records.close()

    def notes(self) -> tuple[str, ...]:
        """What the person should be told now: a sentence, or nothing."""
        if self._sidecar is None or self._tested < _ENOUGH or self._accepted >= _NEAR_ZERO * self._tested:
            return ()
        name, self._sidecar = self._sidecar, None
        return (
            f"This sidecar does not seem to belong to this checkpoint: {self._accepted} of {self._tested} drafts were"
            f" accepted ({name}). Load the model with another sidecar or without one.",
        )
