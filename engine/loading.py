"""From a path to a model that can chat: opens the files, reads the weights, prepares the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.cancel import CancelToken
from engine.chat import ChatSession
from engine.decoding.records import LoadProgress
from engine.demo import resolve
from engine.errors import CheckpointError, OptionError, SidecarError
from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.files.sidecar import Sidecar, open_sidecar
from engine.files.vision import VisionSource, open_vision
from engine.kernels.context import ComputeContext
from engine.kernels.cpu import physical_cores
from engine.kernels.warm_up import warm_up
from engine.model.mtp import MtpLayer, MtpSession
from engine.model.target import TargetSession
from engine.model.trunk import Trunk
from engine.model.vision_tower import VisionTower
from engine.options import LoadOptions, SamplingOptions
from engine.text.chat_template import ChatTemplate
from engine.text.thinking import ThinkTokens, find_think_tokens
from engine.text.tokenizer import Tokenizer, open_tokenizer
from engine.weights.store import WeightStore, open_weights

Progress = Callable[[LoadProgress], None]


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
        self._weights = weights
        self._trunk = trunk
        self._mtp = mtp

    def new_session(self) -> ChatSession:
        """A conversation with caches of its own."""
        return ChatSession(self)

    def new_target(self) -> TargetSession:
        """The trunk with empty caches."""
        return TargetSession(self._trunk, self.info.vocabulary, self.info.context)

    def new_mtp(self) -> MtpSession | None:
        """The MTP layer with an empty cache; None if there is none."""
        return None if self._mtp is None else MtpSession(self._mtp, self.info.vocabulary, self.info.context)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def logits(
        self,
        tokens: Sequence[int],
        *,
        rows_per_pass: int | None = None,
        mtp: bool = False,
        cancel: CancelToken | None = None,
    ) -> dict[str, npt.NDArray[np.float32]]:
        """`logits` [T, V] and `hidden` [T, H] of a token sequence, read `rows_per_pass` at a time; with `mtp` also
        `mtp_logits` [T, n]: row i pairs hidden state i with token i + 1, the last row with the greedy next token.

        Raises:
            OptionError: no tokens, ids outside the vocabulary, more tokens than the context, or no MTP layer.
        """
        self._check_tokens(tokens)
        step = rows_per_pass or 128
        target = self.new_target()
        hidden = np.concatenate([target.forward(tokens[i : i + step], cancel) for i in range(0, len(tokens), step)])
        logits = np.concatenate([target.logits(hidden[i : i + step]) for i in range(0, len(tokens), step)])
        arrays = {"logits": logits, "hidden": hidden}
        if mtp:
            draft = self.new_mtp()
            if draft is None:
                raise OptionError(f"{self.info.name} has no MTP layer: {self.info.draft_note}")
            following = [*tokens[1:], int(logits[-1].argmax())]
            parts = [
                draft.logits(draft.forward(hidden[i : i + step], following[i : i + step]))
                for i in range(0, len(tokens), step)
            ]
            arrays["mtp_logits"] = np.concatenate(parts)
        return arrays

    def _check_tokens(self, tokens: Sequence[int]) -> None:
        if not tokens:
            raise OptionError("There are no tokens: give at least one id.")
        if len(tokens) > self.info.context:
            raise OptionError(f"{len(tokens)} tokens do not fit into the context of {self.info.context}.")
        wrong = next((t for t in tokens if not 0 <= t < self.info.vocabulary), None)
        if wrong is not None:
            raise OptionError(f"Token {wrong} is outside the vocabulary of {self.info.vocabulary} ids.")

    def reads(self) -> tuple[int, float]:
        """Bytes read from disk since the model was loaded, and seconds that computing waited for them."""
        counters = self._weights.statistics()
        return counters.bytes_read, counters.wait_s

    def close(self) -> None:
        """Give the weights' memory and files back. The model must not be used afterwards."""
        self._weights.close()


def load_model(
    path: str | Path,
    *,
    sidecar: str | Path | None = None,
    mmproj: str | Path | None = None,
    options: LoadOptions | None = None,
    progress: Progress | None = None,
    cancel: CancelToken | None = None,
) -> Model:
    """Open a checkpoint and make it ready to chat. `sidecar` brings other drafts, `mmproj` a vision tower (folders in
    the published layout have their own inside).

    Raises:
        CheckpointError, UnsupportedError, SidecarError: a file is missing, damaged, of another kind, or does not fit.
        TemplateError: the chat template cannot be compiled.
        OptionError: a setting does not fit the checkpoint.
        Cancelled: `cancel` was set; nothing stays loaded.
    """
    options, report, cancel = options or LoadOptions(), progress or (lambda _: None), cancel or CancelToken()
    path = resolve(path)
    report(LoadProgress("files", f"reading the headers of {path.name}"))
    checkpoint = open_checkpoint(path)
    extra = None if sidecar is None else open_sidecar(sidecar, checkpoint.config)
    vision, vision_note = _vision(checkpoint, mmproj)
    tokenizer = open_tokenizer(checkpoint.tokenizer)
    template = ChatTemplate(checkpoint.chat_template)
    cancel.check()
    context = ComputeContext(options.threads or physical_cores())
    _prepare_kernels(context, checkpoint, extra, report, cancel)
    weights = open_weights(
        checkpoint,
        extra,
        budget=options.memory_budget,
        progress=lambda done, total: report(LoadProgress("weights", "reading weights", done, total, "bytes")),
        cancel=cancel,
    )
    try:
        model = _assemble(checkpoint, extra, (vision, vision_note), weights, context, tokenizer, template, options)
    except BaseException:
        weights.close()
        raise
    report(LoadProgress("ready", f"{model.info.name} is ready"))
    return model


def _vision(checkpoint: Checkpoint, mmproj: str | Path | None) -> tuple[VisionSource | None, str]:
    """The vision tower, or why there is none. A tower that was asked for must fit; a broken one inside the checkpoint
    does not keep a person from chatting."""
    hidden, folder = checkpoint.config.hidden_size, checkpoint.path
    if mmproj is not None:
        return open_vision(Path(mmproj), hidden), ""
    if not folder.is_dir():
        return None, "it has no vision tower; a GGUF model's is in its mmproj file"
    try:
        source = open_vision(folder, hidden)
    except CheckpointError as error:
        return None, str(error)
    return source, "" if source is not None else "it has no vision tower"


def _prepare_kernels(
    context: ComputeContext, checkpoint: Checkpoint, sidecar: Sidecar | None, report: Progress, cancel: CancelToken
) -> None:
    formats = {spec.format for spec in checkpoint.tensors.values()}
    if sidecar is not None:
        formats |= {spec.format for spec in sidecar.tensors.values()}

    def tell(done: int, total: int, _name: str) -> None:
        report(LoadProgress("kernels", f"preparing kernels for this CPU: {done} of {total}", done, total, "kernels"))

    warm_up(context, formats, tell, cancel)


def _assemble(
    checkpoint: Checkpoint,
    sidecar: Sidecar | None,
    sight: tuple[VisionSource | None, str],
    weights: WeightStore,
    context: ComputeContext,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    options: LoadOptions,
) -> Model:
    config, (vision, vision_note) = checkpoint.config, sight
    trunk = Trunk(config, weights, context, v_heads_tiled=checkpoint.conventions.v_heads == "tiled")
    mtp = _mtp_layer(checkpoint, sidecar, weights, context)
    vocabulary = min(config.vocabulary, tokenizer.vocabulary)
    info = ModelInfo(
        name=checkpoint.name,
        path=str(checkpoint.path),
        sidecar=None if sidecar is None else str(sidecar.path),
        architecture=config.architecture,
        parameters=checkpoint.parameters,
        weight_bytes=checkpoint.weight_bytes,
        layers=len(config.layers),
        hidden_size=config.hidden_size,
        vocabulary=vocabulary,
        context=_context(config.context, options.context),
        mtp="none" if mtp is None else "checkpoint" if sidecar is None else "sidecar",
        draft_note="" if mtp is not None else "the checkpoint has no MTP layer (a sidecar file can bring one)",
        draft_head_rows=0 if mtp is None else len(mtp.draft_ids) if mtp.draft_ids is not None else vocabulary,
        threads=context.threads,
        formats=tuple(sorted({spec.format for spec in checkpoint.tensors.values()})),
        recommended=recommended_sampling(checkpoint.generation_config),
        thinking=template.knows_thinking,
        vision=vision is not None,
        vision_note=vision_note,
    )
    tower = None if vision is None else VisionTower(vision, context)
    return Model(
        info, checkpoint, weights, trunk, mtp, tokenizer, template, find_think_tokens(tokenizer), tower,
        options.soft_picture_drafts,
    )  # fmt: skip


def _mtp_layer(
    checkpoint: Checkpoint, sidecar: Sidecar | None, weights: WeightStore, context: ComputeContext
) -> MtpLayer | None:
    if not weights.has("mtp.fc.weight"):
        if sidecar is not None:
            raise SidecarError(f"{sidecar.path.name} has no MTP layer: the tensor mtp.fc.weight is missing.")
        return None
    draft_ids = None if sidecar is None else sidecar.draft_ids
    names = ["mtp", "draft_head" if draft_ids is not None else "head"]
    step_bytes = sum(unit.nbytes for unit in weights.units if unit.name in names)
    return MtpLayer(checkpoint.config, weights, context, draft_ids=draft_ids, step_bytes=step_bytes)


def _context(own: int, asked: int | None) -> int:
    if asked is not None and asked > own:
        raise OptionError(f"The context of {asked} is more than the {own} positions of the checkpoint.")
    return asked or own


def recommended_sampling(generation_config: Mapping[str, Any]) -> SamplingOptions:
    """The sampling that the checkpoint's makers recommend; greedy if they say nothing usable."""

    def number(key: str, default: float, low: float, high: float) -> float:
        value = generation_config.get(key)
        usable = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        return float(value) if usable and value is not None else default

    if generation_config.get("do_sample") is not True:
        return SamplingOptions()
    return SamplingOptions(
        temperature=number("temperature", 1.0, 0, 100),
        top_k=int(number("top_k", 0, 0, 1 << 30)),
        top_p=number("top_p", 1.0, 1e-6, 1),
        min_p=number("min_p", 0.0, 0, 0.999),
        presence_penalty=number("presence_penalty", 0.0, -10, 10),
        repetition_penalty=number("repetition_penalty", 1.0, 1e-6, 100),
    )
