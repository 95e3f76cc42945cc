"""What looks wrong only once a model runs: a sidecar of another checkpoint, a head that says nothing."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.decoding.records import Round

_ENOUGH = 24
"""Tested drafts from which acceptance says something."""
_NEAR_ZERO = 0.03
"""A layer that belongs to its model has a third accepted even on hard text; a foreign one has next to none."""
_FLAT = 0.98
"""Share of the largest possible entropy; even untrained weights stay below it."""


def flatness_note(logits: npt.NDArray[np.float32]) -> str:
    """A sentence if the logits [V] after a prompt make nearly all tokens equally likely, else an empty string."""
    weights = np.exp(logits.astype(np.float64) - logits.max())
    probabilities = weights / weights.sum()
    entropy = -float(probabilities @ np.log(np.maximum(probabilities, 1e-300)))
    if not entropy >= _FLAT * np.log(len(logits)):
        return ""
    return (
        "The model finds nearly all tokens equally likely: the head in its file is probably empty or not its own; get"
        " the file again."
    )


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
