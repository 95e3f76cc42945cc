"""Every error that the engine raises on purpose.

A message is one sentence that says what is wrong, where (file, tensor, offset, setting) and what to do about it: it is
shown to the person as it is.
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of all errors of the engine; `str(error)` is the sentence for the person."""


class OptionError(EngineError, ValueError):
    """A setting is outside its range, or settings contradict each other."""


class CheckpointError(EngineError):
    """A model file is missing, damaged or inconsistent."""


class UnsupportedError(CheckpointError):
    """A model file is sound, but of a kind that Draftscope cannot run (architecture, tensor type, encoding)."""


class SidecarError(CheckpointError):
    """A sidecar file is damaged, or does not fit the checkpoint that it was given for."""


class TemplateError(EngineError):
    """The chat template cannot be compiled, or failed on these messages."""


class ContextFullError(EngineError):
    """The prompt, or prompt and reply together, need more positions than the context has."""


class NumericsError(EngineError):
    """The model produced NaN or infinite numbers."""


class ReadError(EngineError):
    """A read from a model file failed while the model was running."""


class WriteError(EngineError):
    """A file could not be written: the disk is full, or the folder is protected."""


class PictureError(EngineError):
    """A picture cannot be read, or the model cannot take it."""


class TraceError(EngineError):
    """A saved trace is damaged or of an unknown version."""


class Cancelled(EngineError):  # noqa: N818 - it is a request that was met, not a fault
    """The person asked to stop."""

    def __init__(self, message: str = "Stopped.") -> None:
        super().__init__(message)
