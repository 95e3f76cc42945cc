"""Icons: one-colour SVG drawings from `resources/icons`, inked in the theme's colours."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from PySide6.QtCore import QByteArray, QObject, QSize, Qt
from PySide6.QtGui import QAction, QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton

from app.theme import Theme

SIZE = 20
_NAME, _ROLE, _THEME = "draftscope_icon", "draftscope_icon_role", "draftscope_icon_theme"


@cache
def svg(name: str) -> str:
    """The drawing as it is in the file; `currentColor` stands for its ink."""
    return files("resources").joinpath("icons", f"{name}.svg").read_text("utf-8")


def inked(name: str, colour: str) -> bytes:
    """The drawing with its ink filled in."""
    return svg(name).replace("currentColor", colour).encode()


def pixmap(name: str, colour: str, size: int = SIZE, ratio: float = 1.0) -> QPixmap:
    """The drawing at `size` logical pixels for a screen of this device pixel ratio."""
    image = QPixmap(QSize(size, size) * ratio)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(inked(name, colour))).render(painter)
    painter.end()
    image.setDevicePixelRatio(ratio)
    return image


def icon(name: str, colour: str, disabled: str) -> QIcon:
    """An icon sharp on the screens that are there; others get it scaled until icons are inked again."""
    made = QIcon()
    for ratio in ratios():
        made.addPixmap(pixmap(name, colour, ratio=ratio), QIcon.Mode.Normal)
        made.addPixmap(pixmap(name, disabled, ratio=ratio), QIcon.Mode.Disabled)
    return made


def ratios() -> list[float]:
    """Device pixels a point, of each kind of screen that is connected."""
    return sorted({1.0, *(screen.devicePixelRatio() for screen in QGuiApplication.screens())})


def program_drawing(size: int) -> str:
    """The drawing of the program's mark for this many pixels: small ones have their edges on pixels."""
    return "draftscope-16" if size <= 16 else "draftscope-24" if size <= 24 else "draftscope"


def program_icon() -> QIcon:
    """The program's mark."""
    made = QIcon()
    for size in (16, 24, 32, 48, 64, 128, 256):
        made.addPixmap(pixmap(program_drawing(size), "#000000", size))
    return made


def put_icon(target: QAction | QAbstractButton, name: str, role: str = "text") -> None:
    """Give `target` an icon in the theme's colour `role`; `ink_icons` draws it, now and after each change of theme."""
    target.setProperty(_NAME, name)
    target.setProperty(_ROLE, role)
    if isinstance(theme := target.property(_THEME), Theme):
        _ink(target, theme)


def ink_icons(root: QObject, theme: Theme) -> None:
    """Draw the icons of everything below `root`, each drawing once."""
    targets: list[QAction | QAbstractButton] = [*root.findChildren(QAction), *root.findChildren(QAbstractButton)]
    drawn: dict[tuple[str, str], QIcon] = {}
    for target in targets:
        if name := target.property(_NAME):
            target.setProperty(_THEME, theme)
            kind = name, target.property(_ROLE)
            if kind not in drawn:
                drawn[kind] = _icon_of(target, theme)
            target.setIcon(drawn[kind])


def _ink(target: QAction | QAbstractButton, theme: Theme) -> None:
    target.setIcon(_icon_of(target, theme))


def _icon_of(target: QAction | QAbstractButton, theme: Theme) -> QIcon:
    return icon(target.property(_NAME), getattr(theme, target.property(_ROLE)), theme.faint)
