"""A loaded model: what is known about it, and the sessions that run on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.chat import ChatSession
from engine.errors import OptionError, PictureError
from engine.kernels.kv_types import KV_TYPES
from engine.model.mtp import MtpLayer, MtpSession
from engine.model.target import TargetSession
from engine.model.trunk import Trunk
from engine.model.vision_tower import VisionTower
from engine.options import KvCache, MemoryBudget, SamplingOptions
from engine.prompt import token_prompt
from engine.weights.plan import automatic_budget
from engine.weights.units import USUAL_DRAFTS

if TYPE_CHECKING:
    from engine.files.checkpoint import Checkpoint
    from engine.model.positions import VisionSpan
    from engine.pictures import PictureSize
    from engine.prompt import Picture, PlacedPicture
    from engine.text.chat_template import ChatTemplate
    from engine.text.thinking import ThinkTokens
    from engine.text.tokenizer import Tokenizer
    from engine.weights.statistics import WeightStatistics
    from engine.weights.store import WeightStore


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a person wants to know about the loaded model."""

    name: str
    path: str
    sidecar: str | None
    architecture: str
    parameters: int
    weight_bytes: int
    layers: int
    hidden_size: int
    vocabulary: int
    context: int
    mtp: str
    """Where drafts come from: `checkpoint`, `sidecar` or `none`."""
    draft_note: str
    """Why there are no MTP drafts, or an empty string."""
    draft_head_rows: int
    """Rows of the head that drafts use."""
    threads: int
    formats: tuple[str, ...]
    recommended: SamplingOptions
    thinking: bool
    """Does the chat template know `enable_thinking`?"""
    vision: bool = False
    """Can it see pictures?"""
    vision_note: str = ""
    """Why not, if not."""
    notes: tuple[str, ...] = ()
    """Sentences for the person about what is unusual in the files."""
    mmproj: str | None = None
    """The file that the vision tower came from, if it was given."""
    precision: str | None = None
    """`q8` or `q4` if float matrices were quantised while they were loaded."""
    kv_cache: KvCache = "f32"
    """What keys and values of its sessions are stored as."""
    position_bytes: int = 0
    """Memory of one position's keys and values, the MTP layer's included."""


class Model:
    """A loaded checkpoint. Sessions share its weights; one computes at a time."""

    def __init__(
        self,
        info: ModelInfo,
        checkpoint: Checkpoint,
        weights: WeightStore,
        trunk: Trunk,
        mtp: MtpLayer | None,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        think: ThinkTokens | None,
        vision: VisionTower | None,
        soft_drafts: bool,
    ) -> None:
        self.info = info
        self.vision = vision
        """The vision tower; None if the model cannot see."""
        self.image_token = checkpoint.config.image_token_id or tokenizer.id_of("<|image_pad|>")
        self.soft_drafts = soft_drafts
        self.tokenizer = tokenizer
        self.template = template
        self.think = think
        self.end_tokens = frozenset(checkpoint.config.eos_ids)
        self._config = checkpoint.config
        self._head_rows = checkpoint.config.vocabulary
        self._weights = weights
        self._trunk = trunk
        self._mtp = mtp
        self._kv = KV_TYPES[info.kv_cache]

    def new_session(self) -> ChatSession:
        """A conversation with caches of its own."""
        return ChatSession(self)

    def new_target(self) -> TargetSession:
        """The trunk with empty caches."""
        return self._new_target(self.info.vocabulary)

    def new_mtp(self) -> MtpSession | None:
        """The MTP layer with an empty cache; None if there is none."""
        return None if self._mtp is None else self._new_mtp(self._mtp, self.info.vocabulary)

    def _new_target(self, vocabulary: int) -> TargetSession:
        return TargetSession(self._trunk, vocabulary, self.info.context, self._kv)

    def _new_mtp(self, layer: MtpLayer, vocabulary: int) -> MtpSession:
        return MtpSession(layer, vocabulary, self.info.context, self._kv)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def logits(
        self,
        tokens: Sequence[int],
        *,
        images: Sequence[Picture] = (),
        rows_per_pass: int | None = None,
        mtp: bool = False,
        cancel: CancelToken | None = None,
    ) -> dict[str, npt.NDArray[np.float32]]:
        """`logits` [T, V] and `hidden` [T, H] of a token sequence, read `rows_per_pass` at a time; with `mtp` also
        `mtp_logits` [T, n]: row i pairs hidden state i with token i + 1, the last row with the greedy next token.
        `images` fill the runs of placeholder ids in order.

        V are all rows of the head, also those that pad it and stand for no token: a reply never has these.

        Raises:
            OptionError: no tokens, ids outside the vocabulary, more tokens than the context, or no MTP layer.
            PictureError: a picture cannot be read or does not fit its placeholders, or the model cannot see.
        """
        self._check_tokens(tokens)
        step = rows_per_pass or 128
        target = self._new_target(self._head_rows)
        soft = self._place(token_prompt(tokens, images, self).pictures, target, cancel)
        hidden = np.concatenate([target.forward(tokens[i : i + step], cancel) for i in range(0, len(tokens), step)])
        logits = np.concatenate([target.logits(hidden[i : i + step]) for i in range(0, len(tokens), step)])
        arrays = {"logits": logits, "hidden": hidden}
        if mtp:
            if self._mtp is None:
                raise OptionError(f"{self.info.name} has no MTP layer: {self.info.draft_note}")
            draft = self._new_mtp(self._mtp, self._head_rows)
            draft.spans, draft.soft_tokens = list(soft), soft if self.soft_drafts else {}
            following = [*tokens[1:], int(logits[-1, : self.info.vocabulary].argmax())]
            parts = [
                draft.logits(draft.forward(hidden[i : i + step], following[i : i + step]))
                for i in range(0, len(tokens), step)
            ]
            arrays["mtp_logits"] = np.concatenate(parts)
        return arrays

    def _place(
        self, pictures: Sequence[PlacedPicture], target: TargetSession, cancel: CancelToken | None
    ) -> dict[VisionSpan, npt.NDArray[np.float32]]:
        """Put the embeddings of pictures in their places, and return them."""
        soft = {}
        for picture in pictures:
            assert self.vision is not None
            soft[picture.span] = self.vision.encode(picture.patches.values, picture.patches.grid, cancel)
            target.place_picture(picture.span, soft[picture.span])
        return soft

    def _check_tokens(self, tokens: Sequence[int]) -> None:
        if not tokens:
            raise OptionError("There are no tokens: give at least one id.")
        if len(tokens) > self.info.context:
            raise OptionError(f"{len(tokens)} tokens do not fit into the context of {self.info.context}.")
        wrong = next((t for t in tokens if not 0 <= t < self.info.vocabulary), None)
        if wrong is not None:
            raise OptionError(f"Token {wrong} is outside the vocabulary of {self.info.vocabulary} ids.")

    def picture_sizes(self, picture: Picture) -> tuple[PictureSize, ...]:
        """Tokens that a picture takes as it is, and then at each smaller size that is worth offering.

        Raises:
            PictureError: it cannot be read, or the model cannot see.
        """
        from engine.pictures import open_picture, picture_sizes

        if self.vision is None:
            raise PictureError(f"{self.info.name} cannot see pictures: {self.info.vision_note}.")
        opened = open_picture(picture.data, picture.name)
        return picture_sizes(opened.height, opened.width, self.vision.config)

    def reads(self) -> tuple[int, float]:
        """Bytes read from disk since the model was loaded, and seconds that computing waited for them."""
        counters = self._weights.statistics()
        return counters.bytes_read, counters.wait_s

    def statistics(self) -> WeightStatistics:
        """Everything that is counted about the weights: bytes, waits, hits, memory."""
        return self._weights.statistics()

    def residency(self) -> dict[str, str]:
        """Where each unit of the weights is now, in execution order: `resident`, `ring`, `reading` or `disk`."""
        return self._weights.residency()

    def set_budget(
        self,
        budget: MemoryBudget,
        progress: Callable[[int, int], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        """Give the weights another number of bytes (None: all they want, "auto": what is free, their own included)
        while no reply runs; conversations go on.

        Raises:
            OptionError: the budget is too small; nothing changes.
            ReadError, Cancelled: the model is closed and must be loaded again.
        """
        if budget == "auto":
            held = self._weights.statistics().memory_bytes
            budget = automatic_budget(self._config, self.info.context, held, self._kv)
        self._weights.set_budget(budget, progress, cancel)

    def expect_drafts(self, wanted: bool, cancel: CancelToken | None = None) -> None:
        """Share the memory budget out for replies that draft with the MTP layer, or for such that do not, while none
        runs.

        Raises:
            ReadError, Cancelled: the weights could not be read; the next call tries again.
        """
        self._weights.expect_drafts(USUAL_DRAFTS if wanted else 0, cancel)

    def would_move_weights(self, wanted: bool) -> bool:
        """Whether `expect_drafts` would take its time."""
        return self._weights.would_move(USUAL_DRAFTS if wanted else 0)

    def activity(self) -> tuple[int, int]:
        """(layers done, layers in all) of the pass under way, to be asked from any thread: a long pass can show that it
        moves."""
        return self._trunk.layers_done, self.info.layers

    def close(self) -> None:
        """Give the weights' memory and files back. The model must not be used afterwards."""
        self._weights.close()
