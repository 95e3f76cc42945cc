"""Pictures from files to patches, as the published processor does it. Nothing in a picture file is trusted."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.errors import PictureError
from engine.files.vision import VisionConfig
from engine.model.vision_tower import merged_order

if TYPE_CHECKING:
    from PIL.Image import Image

FloatArray = npt.NDArray[np.float32]

MOST_PIXELS = 178_956_970
"""Pillow's own limit. A larger picture is refused before it is decoded: some files announce what no memory holds."""
_BAND_PIXELS = 1 << 20
"""What takes several times a picture's memory is done with so many pixels at a time."""
MOST_BYTES = 256 << 20
MOST_ASPECT = 200
SMALLER = (2048, 1536, 1024, 768, 512, 384, 256)
"""Longest sides, in pixels, that are offered for a picture that is larger."""
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")


@dataclass(frozen=True, slots=True)
class Patches:
    """A picture as the tower takes it."""

    values: FloatArray
    """[rows · columns, 3 · 2 · patch²] in token order; a patch is (channel, frame, y, x), both frames alike."""
    grid: tuple[int, int]
    """(rows, columns) of patches"""
    merge: int

    @property
    def tokens(self) -> tuple[int, int]:
        """(rows, columns) of soft tokens"""
        return self.grid[0] // self.merge, self.grid[1] // self.merge


@dataclass(frozen=True, slots=True)
class PictureSize:
    """A size at which a picture can be read."""

    longest: int | None
    """What its longest side is limited to; None as it is."""
    width: int
    height: int
    tokens: int
    """Soft tokens that it takes."""


def open_picture(data: bytes, name: str = "The picture") -> Image:
    """The first frame of a picture file as RGB, turned as its EXIF data says, transparency on white.

    Raises:
        PictureError: it is no picture, damaged, or too large.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    too_large = PictureError(f"{name} has more than {MOST_PIXELS // 10**6} million pixels; save it smaller.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own warning about size: the limit here is ours
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
            if picture.width * picture.height > MOST_PIXELS:
                raise too_large  # whoever uses Pillow, too, may have lifted its limit
            picture.load()
            ImageOps.exif_transpose(picture, in_place=True)
            return _on_white(picture)
    except PictureError:
        raise
    except Image.DecompressionBombError:
        raise too_large from None
    except UnidentifiedImageError:
        raise PictureError(
            f"{name} cannot be read as a picture: it is damaged, or none of {', '.join(FORMATS)}."
        ) from None
    except Exception as error:  # Pillow's decoders raise whatever a damaged file leads them to
        reason = str(error).rstrip(".") or type(error).__name__
        raise PictureError(f"{name} cannot be read as a picture: {reason}.") from None


def _on_white(picture: Image) -> Image:
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        return _by_bands(picture, _without_transparency)
    if picture.mode.startswith(("I;16", "I")) or picture.mode == "F":
        top = 65535.0 if picture.mode.startswith("I") else max(_brightest(picture), 1e-9)
        return _by_bands(picture, lambda band: _from_deep_grey(band, top))
    return picture if picture.mode == "RGB" else picture.convert("RGB")


def _by_bands(picture: Image, converted: Callable[[Image], Image]) -> Image:
    """`converted` of some rows at a time."""
    from PIL import Image

    whole = Image.new("RGB", picture.size)
    for box in _bands(picture):
        whole.paste(converted(picture.crop(box)), box[:2])
    return whole


def _bands(picture: Image) -> list[tuple[int, int, int, int]]:
    rows = max(1, _BAND_PIXELS // picture.width)
    return [(0, y, picture.width, min(picture.height, y + rows)) for y in range(0, picture.height, rows)]


def _without_transparency(picture: Image) -> Image:
    from PIL import Image

    clear = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")


def _brightest(picture: Image) -> float:
    return max(
        float(np.nan_to_num(np.asarray(picture.crop(box), np.float64)).max(initial=0)) for box in _bands(picture)
    )


def _from_deep_grey(picture: Image, top: float) -> Image:
    """16- and 32-bit grey, which Pillow's own conversion clips to white."""
    from PIL import Image

    values = np.nan_to_num(np.asarray(picture, np.float64))
    return Image.fromarray((values / top * 255).clip(0, 255).astype(np.uint8)).convert("RGB")


def smart_size(height: int, width: int, config: VisionConfig) -> tuple[int, int]:
    """(height, width) that a picture is scaled to: multiples of patch · merge, area within the processor's bounds.

    Rounding is half to even, as in the published processor.

    Raises:
        PictureError: one side is more than 200 times the other.
    """
    factor = config.patch * config.merge
    if height < 1 or width < 1 or max(height, width) > MOST_ASPECT * min(height, width):
        raise PictureError(f"A picture of {width} × {height} pixels is too narrow; at most {MOST_ASPECT} : 1 works.")
    rows, columns = round(height / factor) * factor, round(width / factor) * factor
    if rows * columns > config.max_pixels:
        shrink = math.sqrt(height * width / config.max_pixels)
        rows, columns = (max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width))
    elif rows * columns < config.min_pixels:
        grow = math.sqrt(config.min_pixels / (height * width))
        rows, columns = (math.ceil(side * grow / factor) * factor for side in (height, width))
    return rows, columns


def within(height: int, width: int, longest: int | None) -> tuple[int, int]:
    """(height, width) of a picture whose longest side is to have at most `longest` pixels."""
    if longest is None or max(height, width) <= longest:
        return height, width
    most = max(height, width)
    # Rounded up: a picture that is not too narrow does not become so.
    return -(-height * longest // most), -(-width * longest // most)


def token_count(height: int, width: int, config: VisionConfig) -> int:
    """Soft tokens that a picture of this size takes."""
    rows, columns = smart_size(height, width, config)
    return rows * columns // (config.patch * config.merge) ** 2


def picture_sizes(height: int, width: int, config: VisionConfig) -> tuple[PictureSize, ...]:
    """What a picture takes as it is, and then each smaller size that takes less than the one before.

    Raises:
        PictureError: it is too narrow.
    """
    sizes = [PictureSize(None, width, height, token_count(height, width, config))]
    for longest in SMALLER:
        smaller = within(height, width, longest)
        tokens = token_count(*smaller, config)
        if longest < max(height, width) and tokens < sizes[-1].tokens:
            sizes.append(PictureSize(longest, smaller[1], smaller[0], tokens))
    return tuple(sizes)


def patches(picture: Image, config: VisionConfig, longest: int | None = None) -> Patches:
    """Scale, normalise and cut a picture, as if its longest side had had at most `longest` pixels.

    Raises:
        PictureError: it is too narrow.
    """
    from PIL.Image import Resampling

    height, width = smart_size(*within(picture.height, picture.width, longest), config)
    # The published processor scales the width first and rounds in between; Pillow alone would choose the order itself.
    picture = picture.resize((width, picture.height), Resampling.BICUBIC)
    picture = picture.resize((width, height), Resampling.BICUBIC)
    pixels = np.asarray(picture, np.float32) / np.float32(255)
    normal = (pixels - np.asarray(config.mean, np.float32)) / np.asarray(config.std, np.float32)
    patch, grid = config.patch, (height // config.patch, width // config.patch)
    row, column = merged_order(grid, config.merge)
    tiles = normal.reshape(grid[0], patch, grid[1], patch, 3).transpose(0, 2, 4, 1, 3)[row, column]
    values = np.repeat(tiles[:, :, None], 2, 2).reshape(len(row), -1)
    return Patches(np.ascontiguousarray(values, np.float32), grid, config.merge)
