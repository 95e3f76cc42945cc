"""What keys and values of a checkpoint's sessions are stored as."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import OptionError
from engine.kernels.kv_types import KV_TYPES, KvType

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint
    from engine.options import KvCache


def kv_type_for(checkpoint: Checkpoint, name: KvCache) -> KvType:
    """What keys and values are stored as; OptionError if the checkpoint's heads do not allow it."""
    kind = KV_TYPES[name]
    if not kind.fits(checkpoint.config.head_dim):
        raise OptionError(
            f"The KV cache cannot be {name}, because the heads of {checkpoint.name} have"
            f" {checkpoint.config.head_dim} numbers, which is no multiple of 32; choose bf16."
        )
    return kind
