"""The icons: every size is there, and is what the script draws."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from app import APP_ID
from tests.packaging.scripts import PACKAGING, load

HICOLOR = PACKAGING / "icons" / "hicolor"
SIZES = (16, 22, 24, 32, 48, 64, 96, 128, 256, 512)


@pytest.mark.parametrize("size", SIZES)
def test_each_size_is_what_the_script_draws(size: int, qapp: object) -> None:
    """Compared by colours and not by bytes: the compressor may be another."""
    drawn = Image.open(io.BytesIO(load("icons/make_icons.py").png(size)))
    kept = Image.open(HICOLOR / f"{size}x{size}" / "apps" / f"{APP_ID}.png")
    assert kept.size == drawn.size == (size, size)
    difference = [abs(a - b) for a, b in zip(kept.tobytes(), drawn.tobytes(), strict=True)]
    assert max(difference) <= 8


def test_at_16_pixels_the_three_bars_are_apart() -> None:
    """White, blue, hollow orange, with the ground between them: as colours of a row of pixels."""
    image = Image.open(HICOLOR / "16x16" / "apps" / f"{APP_ID}.png").convert("RGB")
    row = [image.getpixel((x, 7)) for x in range(16)]
    ground = row[0]
    assert row[2:5] == [(253, 252, 249)] * 3
    assert row[6:9] == [(127, 196, 239)] * 3
    assert row[10] == row[13] == (240, 163, 111)
    assert [row[x] for x in (1, 5, 9, 11, 12, 14, 15)] == [ground] * 7


def test_windows_and_macos_icons_hold_all_sizes() -> None:
    windows = Image.open(PACKAGING / "icons" / "draftscope.ico")
    assert windows.info["sizes"] == {(n, n) for n in (16, 24, 32, 48, 64, 128, 256)}
    apple = Image.open(PACKAGING / "icons" / "draftscope.icns")
    assert {width * scale for width, _, scale in apple.info["sizes"]} >= {16, 32, 64, 128, 256, 512, 1024}


def test_the_scalable_icon_is_the_programs_own() -> None:
    drawing = Path(PACKAGING.parent / "resources" / "icons" / "draftscope.svg").read_bytes()
    assert (HICOLOR / "scalable" / "apps" / f"{APP_ID}.svg").read_bytes() == drawing
