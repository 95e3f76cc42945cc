"""Compile what products with certain weight formats need, before they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.kernels.context import ComputeContext
from engine.kernels.formats import FORMATS
from engine.kernels.matmul.activations import preparation_task
from engine.kernels.matmul.dequantise import row_decoder
from engine.kernels.matmul.dispatch import KERNELS
from engine.kernels.matmul.dots import activations_of, kernel_name, rows_for_panels
from engine.kernels.matmul.tasks import kernel_task, panel_task


def warm_up(context: ComputeContext, formats: Iterable[str]) -> Iterator[str]:
    """Compile, or load from the cache, the kernels that weights of these formats need; yields the name of each done.

    Raises ValueError for a format that is not known.
    """
    wanted = sorted(set(formats))
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown:
        raise ValueError(f"there are no weight formats {', '.join(unknown)}; known are {', '.join(FORMATS)}")
    return _compile(context, wanted)


def _compile(context: ComputeContext, formats: list[str]) -> Iterator[str]:
    for item in KERNELS:
        item.compile()
    yield "dispatch"
    for name in formats:
        kernel = kernel_name(name, context.float_activations)
        kernel_task(kernel).compile()
        yield f"linear {kernel}"
        if rows_for_panels(kernel):
            panel_task(kernel).compile()
            yield f"panels of {kernel}"
        preparation_task(activations_of(kernel)).compile()
        yield f"activations of {kernel}"
        row_decoder(name).compile()
        yield f"dequantise {name}"
