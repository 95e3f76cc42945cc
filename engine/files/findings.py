"""What is wrong with a file: all of it, not only the first fault."""

from __future__ import annotations

from engine.errors import CheckpointError, UnsupportedError

LIMIT = 100
"""Faults that are kept; a damaged header can have one per tensor, and there may be millions of those."""


class Findings:
    """Collects faults while a file is surveyed, and raises them as one error at the end."""

    def __init__(self) -> None:
        self._errors: dict[str, CheckpointError] = {}
        self._dropped = 0

    def add(self, error: CheckpointError | str) -> None:
        """Note a fault once; a string becomes a `CheckpointError`."""
        sentence = str(error)
        if sentence in self._errors:
            return
        if len(self._errors) == LIMIT:
            self._dropped += 1
            return
        self._errors[sentence] = CheckpointError(error) if isinstance(error, str) else error

    @property
    def sentences(self) -> list[str]:
        """One for each fault, up to `LIMIT`, and how many more there are."""
        more = [f"There are {self._dropped:,} more problems of this kind."] if self._dropped else []
        return [*self._errors, *more]

    def raise_if_any(self, kind: type[CheckpointError] | None = None) -> None:
        """Raise the only fault as it is; several as one error that tells the first and how many more there are.

        `kind` is the class to raise; without it the faults decide.
        """
        errors = list(self._errors.values())
        if not errors:
            return
        more = len(errors) - 1 + self._dropped
        if kind is None:
            unsupported = all(isinstance(error, UnsupportedError) for error in errors)
            kind = UnsupportedError if unsupported else CheckpointError
        tail = f" (and {more:,} more problem{'s' if more > 1 else ''}: `inspect` lists all)" if more else ""
        raise kind(f"{errors[0]}{tail}") from errors[0]


def listed(names: list[str], limit: int = 6) -> str:
    """`a, b, c and 12 more`: a list that stays readable."""
    shown = ", ".join(name[:200] for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"
