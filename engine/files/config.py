"""What kind of model it is: the numbers that shape every tensor, whatever file they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.errors import CheckpointError, UnsupportedError

LayerKind = Literal["linear", "full"]

SUPPORTED = "qwen3_5 and qwen3_5_moe (in GGUF files qwen35 and qwen35moe)"
"""The architectures that run, for messages."""

_LIMITS = {
    "hidden_size": 1 << 17,
    "intermediate_size": 1 << 20,
    "vocabulary": 1 << 24,
    "heads": 1 << 12,
    "kv_heads": 1 << 12,
    "head_dim": 1 << 12,
    "rotary_dim": 1 << 12,
    "linear_k_heads": 1 << 12,
    "linear_v_heads": 1 << 12,
    "linear_k_dim": 1 << 12,
    "linear_v_dim": 1 << 12,
    "context": 1 << 28,
    "experts": 1 << 14,
    "experts_per_token": 1 << 14,
    "expert_intermediate": 1 << 20,
    "shared_intermediate": 1 << 20,
}
LAYER_LIMIT = 4096
_MOE_ONLY = ("experts", "experts_per_token", "expert_intermediate", "shared_intermediate")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The text model of a checkpoint. Sizes are counts of elements; what is handed out has passed `check`."""

    architecture: Literal["qwen3_5", "qwen3_5_moe"]
    hidden_size: int
    intermediate_size: int
    """Of the dense feed-forward; 0 in a mixture of experts."""
    vocabulary: int
    """Rows of the embedding table; the tokenizer may have fewer ids."""
    layers: tuple[LayerKind, ...]
    heads: int
    kv_heads: int
    head_dim: int
    rotary_dim: int
    rope_theta: float
    mrope_sections: tuple[int, ...] | None
    rms_eps: float
    linear_k_heads: int
    linear_v_heads: int
    linear_k_dim: int
    linear_v_dim: int
    conv_kernel: int
    context: int
    """Most positions that the model was made for."""
    tied: bool
    """The head is the embedding table."""
    mtp_layers: int
    """1 if there is an MTP layer that runs, else 0 (`Checkpoint.notes` say why)."""
    mtp_dedicated_embeddings: bool = False
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    shared_intermediate: int = 0
    eos_ids: tuple[int, ...] = ()
    """Ids that end a reply, of config and generation settings together."""
    image_token_id: int | None = None
    quantization: str = ""
    """`fp8` for block-wise FP8 checkpoints, else empty."""

    @property
    def moe(self) -> bool:
        return self.architecture == "qwen3_5_moe"

    @property
    def linear_k_size(self) -> int:
        """Width of all DeltaNet keys (and of all queries)."""
        return self.linear_k_heads * self.linear_k_dim

    @property
    def linear_v_size(self) -> int:
        """Width of all DeltaNet values."""
        return self.linear_v_heads * self.linear_v_dim

    @property
    def conv_channels(self) -> int:
        """Channels of the DeltaNet convolution: queries, keys, values."""
        return 2 * self.linear_k_size + self.linear_v_size

    def check(self, where: str) -> None:
        """Raise CheckpointError, naming `where` the numbers stand, if they are impossible or contradict each other."""
        for field, limit in _LIMITS.items():
            value = getattr(self, field)
            unused = field == "intermediate_size" if self.moe else field in _MOE_ONLY
            if not (0 if unused else 1) <= value <= limit:
                raise CheckpointError(f"{where} is damaged: {field} is {value}, it must be from 1 to {limit}.")
        if not 1 <= len(self.layers) <= LAYER_LIMIT:
            raise CheckpointError(f"{where} is damaged: {len(self.layers)} layers, it must be from 1 to {LAYER_LIMIT}.")
        if not 2 <= self.conv_kernel <= 64:
            raise CheckpointError(
                f"{where} is damaged: a convolution kernel of {self.conv_kernel}, it must be from 2 to 64."
            )
        for whole, part, what in (
            (self.heads, self.kv_heads, "attention heads by key/value heads"),
            (self.linear_v_heads, self.linear_k_heads, "linear value heads by linear key heads"),
            (self.rotary_dim, 2, "rotary dimensions by 2"),
        ):
            if whole % part:
                raise CheckpointError(f"{where} is damaged: {whole} {what} ({part}) does not divide evenly.")
        if self.rotary_dim > self.head_dim:
            raise CheckpointError(
                f"{where} is damaged: {self.rotary_dim} rotary dimensions in heads of {self.head_dim}."
            )
        if self.experts_per_token > self.experts:
            raise CheckpointError(f"{where} is damaged: {self.experts_per_token} of {self.experts} experts per token.")
        if not 0 < self.rms_eps < 1 or not 1 <= self.rope_theta < 1e15:
            raise CheckpointError(f"{where} is damaged: RMS epsilon {self.rms_eps}, rotary base {self.rope_theta}.")
        if self.mtp_layers > 1:
            raise UnsupportedError(
                f"{where} asks for {self.mtp_layers} MTP layers; Draftscope runs models with one or none."
            )


def kinds_by_interval(layers: int, interval: int) -> tuple[LayerKind, ...]:
    """Every `interval`-th layer is full attention, the others are linear."""
    return tuple("full" if (index + 1) % interval == 0 else "linear" for index in range(layers))


def unsupported_architecture(name: str, where: str) -> UnsupportedError:
    return UnsupportedError(f"{where} has the architecture {name[:80]!r}; Draftscope runs {SUPPORTED}.")
