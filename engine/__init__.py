"""Draftscope's engine: reads Qwen3.5-family checkpoints, runs them, drafts and verifies, and yields records.

Everything that a program needs is exported here. Names are resolved when first used, so `import engine` is cheap: no
kernel is compiled, and numba is not even imported. Call `configure_environment()` before the first use of a model.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.cancel import CancelToken as CancelToken
    from engine.chat import ChatSession as ChatSession
    from engine.decoding.records import Alternative as Alternative
    from engine.decoding.records import CommittedToken as CommittedToken
    from engine.decoding.records import DraftedToken as DraftedToken
    from engine.decoding.records import Failed as Failed
    from engine.decoding.records import Finished as Finished
    from engine.decoding.records import LoadProgress as LoadProgress
    from engine.decoding.records import PositionCount as PositionCount
    from engine.decoding.records import PrefillProgress as PrefillProgress
    from engine.decoding.records import Record as Record
    from engine.decoding.records import Round as Round
    from engine.decoding.records import Stats as Stats
    from engine.decoding.records import record_from_json as record_from_json
    from engine.decoding.records import to_json as to_json
    from engine.decoding.statistics import wilson_interval as wilson_interval
    from engine.decoding.trace import Trace as Trace
    from engine.decoding.trace import TraceHeader as TraceHeader
    from engine.decoding.trace import TraceWriter as TraceWriter
    from engine.decoding.trace import read_trace as read_trace
    from engine.demo import demo_path as demo_path
    from engine.demo import demo_sidecar_path as demo_sidecar_path
    from engine.errors import Cancelled as Cancelled
    from engine.errors import CheckpointError as CheckpointError
    from engine.errors import ContextFullError as ContextFullError
    from engine.errors import EngineError as EngineError
    from engine.errors import NumericsError as NumericsError
    from engine.errors import OptionError as OptionError
    from engine.errors import PictureError as PictureError
    from engine.errors import ReadError as ReadError
    from engine.errors import SidecarError as SidecarError
    from engine.errors import TemplateError as TemplateError
    from engine.errors import TraceError as TraceError
    from engine.errors import UnsupportedError as UnsupportedError
    from engine.kernels.cpu import configure_environment as configure_environment
    from engine.loading import Model as Model
    from engine.loading import ModelInfo as ModelInfo
    from engine.loading import load_model as load_model
    from engine.options import MAX_DRAFT_TOKENS as MAX_DRAFT_TOKENS
    from engine.options import DraftOptions as DraftOptions
    from engine.options import GenerateOptions as GenerateOptions
    from engine.options import LoadOptions as LoadOptions
    from engine.options import SamplingOptions as SamplingOptions
    from engine.prompt import Message as Message
    from engine.prompt import Picture as Picture
    from engine.version import __version__ as __version__

_HOMES = {
    "engine.cancel": ("CancelToken",),
    "engine.chat": ("ChatSession",),
    "engine.decoding.records": (
        "Alternative", "CommittedToken", "DraftedToken", "Failed", "Finished", "LoadProgress", "PositionCount",
        "PrefillProgress", "Record", "Round", "Stats", "record_from_json", "to_json",
    ),
    "engine.decoding.statistics": ("wilson_interval",),
    "engine.decoding.trace": ("Trace", "TraceHeader", "TraceWriter", "read_trace"),
    "engine.demo": ("demo_path", "demo_sidecar_path"),
    "engine.errors": (
        "Cancelled", "CheckpointError", "ContextFullError", "EngineError", "NumericsError", "OptionError",
        "PictureError", "ReadError", "SidecarError", "TemplateError", "TraceError", "UnsupportedError",
    ),
    "engine.kernels.cpu": ("configure_environment",),
    "engine.loading": ("Model", "ModelInfo", "load_model"),
    "engine.options": ("MAX_DRAFT_TOKENS", "DraftOptions", "GenerateOptions", "LoadOptions", "SamplingOptions"),
    "engine.prompt": ("Message", "Picture"),
    "engine.version": ("__version__",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - one table serves both


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
