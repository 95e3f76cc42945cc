"""Draws the program's icon in every size that desktops ask for: hicolor PNGs, draftscope.ico and draftscope.icns.

    python packaging/icons/make_icons.py [--out packaging/icons]

The drawings are in resources/icons. Below 32 pixels the large one turns to mud, so two more have their edges on pixels.
"""

from __future__ import annotations

import argparse
import io
import struct
from pathlib import Path

from PIL import Image
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from app import APP_ID
from app.icons import program_drawing, svg

HERE = Path(__file__).resolve().parent
SIZES = (16, 22, 24, 32, 48, 64, 96, 128, 256, 512)
ICO_SIZES = (16, 24, 32, 48, 64, 128, 256)
ICNS_TYPES = {b"icp4": 16, b"icp5": 32, b"icp6": 64, b"ic07": 128, b"ic08": 256, b"ic09": 512, b"ic10": 1024}
"""Apple's code of an entry, and its pixels; each entry is a PNG."""

NARROWER = ('<rect width="24" height="24"', '<rect x="1" y="1" width="22" height="22"')
"""The ground of the drawing for 24 pixels, and what it becomes for 22."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw the program's icon in every size.")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write into (default: this one)")
    out = parser.parse_args().out
    for size in SIZES:
        write(out / "hicolor" / f"{size}x{size}" / "apps" / f"{APP_ID}.png", png(size))
    write(out / "hicolor" / "scalable" / "apps" / f"{APP_ID}.svg", svg("draftscope").encode())
    write(out / "draftscope.ico", ico({size: png(size) for size in ICO_SIZES}))
    write(out / "draftscope.icns", icns({code: png(size) for code, size in ICNS_TYPES.items()}))
    print(f"{len(SIZES)} sizes, draftscope.ico and draftscope.icns are in {out}.")
    return 0


def png(size: int) -> bytes:
    """The icon of this many pixels. Written by Pillow: Qt's encoder notes resolutions that differ by platform."""
    image = QImage(size, size, QImage.Format.Format_RGBA8888)
    image.fill(0)
    painter = QPainter(image)
    renderer = QSvgRenderer(QByteArray(svg(program_drawing(size)).encode()))
    if size == 22:  # the middle of the drawing for 24: scaled, its edges would leave the pixels
        renderer = QSvgRenderer(QByteArray(svg(program_drawing(size)).replace(*NARROWER).encode()))
        renderer.setViewBox(QRectF(1, 1, 22, 22))
    renderer.render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    file = io.BytesIO()
    Image.open(io.BytesIO(bytes(buffer.data().data()))).convert("RGBA").save(file, "PNG", optimize=True)
    return file.getvalue()


def ico(images: dict[int, bytes]) -> bytes:
    """A Windows icon whose entries are PNGs, which Windows reads since Vista."""
    place = 6 + 16 * len(images)
    entries, data = [], []
    for size, image in images.items():
        side = size % 256  # 256 is written as 0
        entries.append(struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(image), place))
        data.append(image)
        place += len(image)
    return struct.pack("<HHH", 0, 1, len(images)) + b"".join(entries) + b"".join(data)


def icns(images: dict[bytes, bytes]) -> bytes:
    """An Apple icon: entries of a code, a length that counts its own head, and a PNG."""
    entries = b"".join(code + struct.pack(">I", len(image) + 8) + image for code, image in images.items())
    return b"icns" + struct.pack(">I", len(entries) + 8) + entries


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    raise SystemExit(main())
