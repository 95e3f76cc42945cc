"""Draftscope's engine: reads Qwen3.5-family checkpoints, runs them, drafts and verifies, and yields records.

Everything that a program needs is exported here. Names are resolved when first used, so `import engine` is cheap: no
kernel is compiled, and numba is not even imported. Call `configure_environment()` before the first use of a model.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.cancel import AnswerNow as AnswerNow
    from engine.cancel import CancelToken as CancelToken
    from engine.chat import ChatSession as ChatSession
    from engine.decoding.records import Alternative as Alternative
    from engine.decoding.records import CommittedToken as CommittedToken
    from engine.decoding.records import DiskUse as DiskUse
    from engine.decoding.records import DraftedToken as DraftedToken
    from engine.decoding.records import Failed as Failed
    from engine.decoding.records import Finished as Finished
    from engine.decoding.records import LoadProgress as LoadProgress
    from engine.decoding.records import PositionCount as PositionCount
    from engine.decoding.records import PrefillProgress as PrefillProgress
    from engine.decoding.records import Record as Record
    from engine.decoding.records import Round as Round
    from engine.decoding.records import Stats as Stats
    from engine.decoding.records import ToolCall as ToolCall
    from engine.decoding.records import record_from_json as record_from_json
    from engine.decoding.records import to_json as to_json
    from engine.decoding.selfcheck import SelfCheck as SelfCheck
    from engine.decoding.statistics import wilson_interval as wilson_interval
    from engine.decoding.trace import Trace as Trace
    from engine.decoding.trace import TraceHeader as TraceHeader
    from engine.decoding.trace import TraceWriter as TraceWriter
    from engine.decoding.trace import read_trace as read_trace
    from engine.decoding.trace_tables import compare as compare
    from engine.decoding.trace_tables import round_rows as round_rows
    from engine.decoding.trace_tables import to_csv as to_csv
    from engine.decoding.trace_tables import token_rows as token_rows
    from engine.demo import demo_path as demo_path
    from engine.demo import demo_sidecar_path as demo_sidecar_path
    from engine.doctor import Finding as Finding
    from engine.doctor import diagnose as diagnose
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
    from engine.errors import WriteError as WriteError
    from engine.files.report import Report as Report
    from engine.files.report import companion_problem as companion_problem
    from engine.files.report import describe as describe
    from engine.kernels.cpu import configure_environment as configure_environment
    from engine.loaded_model import Model as Model
    from engine.loaded_model import ModelInfo as ModelInfo
    from engine.loading import load_model as load_model
    from engine.options import MAX_DRAFT_TOKENS as MAX_DRAFT_TOKENS
    from engine.options import DraftOptions as DraftOptions
    from engine.options import GenerateOptions as GenerateOptions
    from engine.options import KvCache as KvCache
    from engine.options import LoadOptions as LoadOptions
    from engine.options import MemoryBudget as MemoryBudget
    from engine.options import Precision as Precision
    from engine.options import SamplingOptions as SamplingOptions
    from engine.pictures import PictureSize as PictureSize
    from engine.planning import BudgetRange as BudgetRange
    from engine.planning import measure_machine as measure_machine
    from engine.planning import open_planner as open_planner
    from engine.planning import plan_for as plan_for
    from engine.planning import plan_range as plan_range
    from engine.prompt import Message as Message
    from engine.prompt import Picture as Picture
    from engine.run_identity import describe_run as describe_run
    from engine.text.tool_calls import find_tool_calls as find_tool_calls
    from engine.text.tool_calls import split_tool_calls as split_tool_calls
    from engine.version import __version__ as __version__
    from engine.weights.plan import Plan as Plan
    from engine.weights.plan import PlannedUnit as PlannedUnit
    from engine.weights.prediction import Machine as Machine
    from engine.weights.prediction import Prediction as Prediction
    from engine.weights.reader import Stall as Stall
    from engine.weights.statistics import WeightStatistics as WeightStatistics

_HOMES = {
    "engine.cancel": ("AnswerNow", "CancelToken"),
    "engine.chat": ("ChatSession",),
    "engine.decoding.records": (
        "Alternative", "CommittedToken", "DiskUse", "DraftedToken", "Failed", "Finished", "LoadProgress",
        "PositionCount", "PrefillProgress", "Record", "Round", "Stats", "ToolCall", "record_from_json", "to_json",
    ),
    "engine.decoding.selfcheck": ("SelfCheck",),
    "engine.decoding.statistics": ("wilson_interval",),
    "engine.decoding.trace": ("Trace", "TraceHeader", "TraceWriter", "read_trace"),
    "engine.decoding.trace_tables": ("compare", "round_rows", "to_csv", "token_rows"),
    "engine.demo": ("demo_path", "demo_sidecar_path"),
    "engine.doctor": ("Finding", "diagnose"),
    "engine.errors": (
        "Cancelled", "CheckpointError", "ContextFullError", "EngineError", "NumericsError", "OptionError",
        "PictureError", "ReadError", "SidecarError", "TemplateError", "TraceError", "UnsupportedError", "WriteError",
    ),
    "engine.files.report": ("Report", "companion_problem", "describe"),
    "engine.kernels.cpu": ("configure_environment",),
    "engine.loaded_model": ("Model", "ModelInfo"),
    "engine.loading": ("load_model",),
    "engine.options": (
        "MAX_DRAFT_TOKENS", "DraftOptions", "GenerateOptions", "KvCache", "LoadOptions", "MemoryBudget", "Precision",
        "SamplingOptions",
    ),
    "engine.pictures": ("PictureSize",),
    "engine.planning": ("BudgetRange", "measure_machine", "open_planner", "plan_for", "plan_range"),
    "engine.prompt": ("Message", "Picture"),
    "engine.run_identity": ("describe_run",),
    "engine.text.tool_calls": ("find_tool_calls", "split_tool_calls"),
    "engine.version": ("__version__",),
    "engine.weights.plan": ("Plan", "PlannedUnit"),
    "engine.weights.prediction": ("Machine", "Prediction"),
    "engine.weights.reader": ("Stall",),
    "engine.weights.statistics": ("WeightStatistics",),
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
