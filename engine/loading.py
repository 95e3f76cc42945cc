"""From a path to a model that can chat: opens the files, reads the weights, prepares the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.cancel import CancelToken
from engine.decoding.records import LoadProgress
from engine.demo import resolve
from engine.errors import CheckpointError, OptionError, SidecarError
from engine.files.checkpoint import Checkpoint, open_checkpoint
from engine.files.sidecar import Sidecar, open_sidecar
from engine.files.vision import VisionSource, open_vision
from engine.kernels.context import ComputeContext
from engine.kernels.cpu import physical_cores
from engine.kernels.kv_types import KV_TYPES, KvType
from engine.kernels.warm_up import warm_up
from engine.kv_cache import kv_type_for
from engine.loaded_model import Model, ModelInfo
from engine.model.mtp import MtpLayer
from engine.model.trunk import Trunk
from engine.model.vision_tower import VisionTower
from engine.options import LoadOptions, SamplingOptions
from engine.text.chat_template import ChatTemplate, open_chat_template
from engine.text.thinking import find_think_tokens
from engine.text.tokenizer import Tokenizer, open_tokenizer
from engine.weights.file_layer import DiskFiles
from engine.weights.plan import automatic_budget, position_bytes
from engine.weights.precision import formats_in_memory
from engine.weights.reader import Stall
from engine.weights.store import ReadOptions, WeightStore, open_weights
from engine.weights.units import tensors_in_use

Progress = Callable[[LoadProgress], None]


def load_model(
    path: str | Path,
    *,
    sidecar: str | Path | None = None,
    mmproj: str | Path | None = None,
    options: LoadOptions | None = None,
    progress: Progress | None = None,
    stalled: Callable[[Stall], None] | None = None,
    cancel: CancelToken | None = None,
) -> Model:
    """Open a checkpoint and make it ready to chat. `sidecar` brings other drafts, `mmproj` a vision tower (folders in
    the published layout have their own inside). `stalled` is called about once a second, from the computing thread,
    while the disk delivers nothing; it must return at once.

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
    kv = kv_type_for(checkpoint, options.kv_cache)
    extra = None if sidecar is None else open_sidecar(sidecar, checkpoint.config)
    vision, vision_note = _vision(checkpoint, mmproj)
    tokenizer = open_tokenizer(checkpoint.tokenizer)
    template = open_chat_template(checkpoint)
    cancel.check()
    context = ComputeContext(options.threads or physical_cores())
    formats = formats_in_memory(tensors_in_use(checkpoint, extra), options.precision)
    _prepare_kernels(context, formats, checkpoint.config.experts > 0, report, cancel)
    weights = open_weights(
        checkpoint,
        extra,
        budget=_budget(options, checkpoint, kv),
        split_heads=True,
        reading=ReadOptions(DiskFiles(), on_stall=stalled),
        precision=options.precision,
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
    context: ComputeContext, formats: set[str], experts: bool, report: Progress, cancel: CancelToken
) -> None:
    def tell(done: int, total: int, _name: str) -> None:
        report(LoadProgress("kernels", f"preparing kernels for this CPU: {done} of {total}", done, total, "kernels"))

    warm_up(context, formats, tell, cancel, experts)


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
        context=_context(config.context, options),
        mtp="none" if mtp is None else "checkpoint" if sidecar is None else "sidecar",
        draft_note="" if mtp is not None else "the checkpoint has no MTP layer (a sidecar file can bring one)",
        draft_head_rows=0 if mtp is None else len(mtp.draft_ids) if mtp.draft_ids is not None else vocabulary,
        threads=context.threads,
        formats=tuple(sorted(formats_in_memory(tensors_in_use(checkpoint, None), options.precision))),
        recommended=recommended_sampling(checkpoint.generation_config),
        thinking=template.knows_thinking,
        vision=vision is not None,
        vision_note=vision_note,
        notes=(*checkpoint.notes, *tokenizer.notes, *([sidecar.note] if sidecar is not None and sidecar.note else [])),
        mmproj=str(vision.path) if vision is not None and vision.path != checkpoint.path else None,
        precision=options.precision,
        kv_cache=options.kv_cache,
        position_bytes=position_bytes(config, with_mtp=mtp is not None, kv=KV_TYPES[options.kv_cache]),
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
    draft_ids = checkpoint.draft_ids if sidecar is None else sidecar.draft_ids
    return MtpLayer(checkpoint.config, weights, context, draft_ids=draft_ids, step_bytes=weights.draft_step_bytes)


def _budget(options: LoadOptions, checkpoint: Checkpoint, kv: KvType) -> int | None:
    """Bytes for weights; None for all of them."""
    asked = options.memory_budget
    return automatic_budget(checkpoint.config, options.context, kv=kv) if asked == "auto" else asked


def _context(own: int, options: LoadOptions) -> int:
    asked = options.context
    if asked is not None and asked > own and not options.clip_context:
        raise OptionError(f"The context of {asked} is more than the {own} positions of the checkpoint.")
    return min(asked or own, own)


def recommended_sampling(generation_config: Mapping[str, Any]) -> SamplingOptions:
    """The sampling that the checkpoint's makers recommend; greedy if they say nothing usable."""

    def number(key: str, default: float, low: float, high: float) -> float:
        value = generation_config.get(key)
        usable = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        return float(value) if usable and value is not None else default

    said = {"temperature", "top_k", "top_p", "min_p"} & generation_config.keys()
    if generation_config.get("do_sample") is False or not said:
        return SamplingOptions()
    return SamplingOptions(
        temperature=number("temperature", 1.0, 0, 100),
        top_k=int(number("top_k", 0, 0, 1 << 30)),
        top_p=number("top_p", 1.0, 1e-6, 1),
        min_p=number("min_p", 0.0, 0, 0.999),
        presence_penalty=number("presence_penalty", 0.0, -10, 10),
        repetition_penalty=number("repetition_penalty", 1.0, 1e-6, 100),
    )
