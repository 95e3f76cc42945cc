"""What is wrong with a file: all of it, not only the first fault."""

from __future__ import annotations

from engine.errors import CheckpointError, UnsupportedError


class Findings:
    """Collects faults while a file is surveyed, and raises them as one error at the end."""

    def __init__(self) -> None:
        self.errors: list[CheckpointError] = []

    def add(self, error: CheckpointError | str) -> None:
        """Note a fault once; a string becomes a `CheckpointError`."""
        if isinstance(error, str):
            error = CheckpointError(error)
        if str(error) not in self.sentences:
            self.errors.append(error)

    @property
    def sentences(self) -> list[str]:
        return [str(error) for error in self.errors]

    def raise_if_any(self, kind: type[CheckpointError] | None = None) -> None:
        """Raise the only fault as it is; several as one error that tells the first and how many more there are.

        `kind` is the class to raise; without it the faults decide.
        """
        if not self.errors:
            return
        first, more = self.errors[0], len(self.errors) - 1
        if kind is None:
            unsupported = all(isinstance(error, UnsupportedError) for error in self.errors)
            kind = UnsupportedError if unsupported else CheckpointError
        tail = f" (and {more} more problem{'s' if more > 1 else ''}: `inspect` lists all)" if more else ""
        raise kind(f"{first}{tail}") from first


def listed(names: list[str], limit: int = 6) -> str:
    """`a, b, c and 12 more`: a list that stays readable."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
