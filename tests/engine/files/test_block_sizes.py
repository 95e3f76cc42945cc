"""Headers and kernels hold tables of block sizes of their own, since neither may import the other: they must agree."""

from __future__ import annotations

from engine.files.tensor_spec import BLOCKS
from engine.kernels.formats import FORMATS


def test_files_and_kernels_agree_on_every_block() -> None:
    shared = FORMATS.keys() & BLOCKS.keys()
    assert {name: BLOCKS[name] for name in shared} == {
        name: (FORMATS[name].block_elements, FORMATS[name].block_bytes) for name in shared
    }
    assert FORMATS.keys() - BLOCKS.keys() == {"NVFP4"}, "files refuse it by name, kernels know it already"
