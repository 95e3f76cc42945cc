"""What each tensor of a checkpoint is to the weights: one table decides.

*Vectors* are small, converted to float32 once and always resident; *matrices* stay in the layout of the file and are
streamed; *experts* are the routed matrices of a mixture of experts, read on demand; *tables* are read row by row.
"""

from __future__ import annotations

import re
from enum import Enum

STORED_FORMS = (".q8", ".q4")
"""Suffixes of a quantised copy beside or instead of `X.weight`; a stored copy wins over the plain one."""


class Role(Enum):
    """How a tensor is kept, and for vectors what is done to its values."""

    MATRIX = "matrix"
    EXPERT = "expert"
    TABLE = "table"
    NORM = "norm"
    """A vector: RMSNorm scale, to which the file's norm offset is added."""
    DECAY = "decay"
    """A vector: A_log, or its negative rate."""
    CONV = "conv"
    """A vector: the depthwise convolution, as [channels, taps]."""
    PLAIN = "plain"
    """A vector that is used as it is."""
    SCALE = "scale"
    """A vector: block scales of an FP8 matrix."""
    IGNORED = "ignored"


_TABLE: tuple[tuple[str, Role], ...] = (
    (r"(mtp\.)?embed_tokens\.weight", Role.TABLE),
    (r".*_scale_inv", Role.SCALE),
    (r".*\.mlp\.experts\..+", Role.EXPERT),
    (r".*\.linear_attn\.norm\.weight", Role.PLAIN),
    (r".*\.linear_attn\.A_log", Role.DECAY),
    (r".*\.linear_attn\.conv1d\.weight", Role.CONV),
    (r".*\.mlp\.shared_expert_gate\.weight", Role.PLAIN),
    (r"(.*\.)?(norm|[a-z_]*layernorm|[qk]_norm|pre_fc_norm_[a-z]+)\.weight", Role.NORM),
    (r".*\.(dt_bias|bias)", Role.PLAIN),
    (r"mtp\.d2t|.*\.rotary_emb\..*", Role.IGNORED),
    (r".*\.weight", Role.MATRIX),
)
_COMPILED = tuple((re.compile(pattern), role) for pattern, role in _TABLE)

VECTOR_ROLES = frozenset({Role.NORM, Role.DECAY, Role.CONV, Role.PLAIN})


def plain_name(name: str) -> str:
    """The name without the suffix of a quantised copy."""
    return name[:-3] if name.endswith(STORED_FORMS) else name


def role_of(name: str) -> Role:
    """The role of the tensor with this canonical name (with or without the suffix of a quantised copy)."""
    plain = plain_name(name)
    return next((role for pattern, role in _COMPILED if pattern.fullmatch(plain)), Role.IGNORED)


_KEPT = re.compile(r"(.*\.)?(linear_attn\.in_proj_[ab]|mlp\.gate|(mtp\.)?fc)\.weight")


def keeps_precision(name: str) -> bool:
    """Is this a matrix (canonical name, with or without its unit's prefix) that is never quantised here? Gates of a few
    rows, routers, and what joins an MTP layer to its model: small, and all behind them suffers from their rounding."""
    return _KEPT.fullmatch(plain_name(name)) is not None
