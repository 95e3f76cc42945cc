"""Puts a theme on: fills in the style sheet, sets the palette and the type sizes, and follows the system live."""

from __future__ import annotations

from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from string import Template

from PySide6.QtCore import QDir, QObject, QTemporaryDir, Signal, Slot
from PySide6.QtWidgets import QApplication

from app.icons import inked
from app.theme import LIGHT, Theme, ThemeMode, current_theme, mix, palette_of, set_mode

SMALLEST_BODY = 10.0
"""Points. The system's size is kept where it is larger."""


class Stylist(QObject):
    """Keeps the program in the theme that the person or the system wants; `changed` tells the widgets that draw."""

    changed = Signal(object)  # Theme

    def __init__(self, app: QApplication, mode: ThemeMode = "system") -> None:
        super().__init__(app)
        self._app = app
        self._icons = QTemporaryDir(f"{QDir.tempPath()}/draftscope-XXXXXX")
        app.setStyle("fusion")
        font = app.font()
        font.setPointSizeF(max(font.pointSizeF(), SMALLEST_BODY))
        app.setFont(font)
        self._usual = self._body = font.pointSizeF()
        self.mode: ThemeMode = mode
        self.theme = LIGHT
        self.set_mode(mode)
        app.styleHints().colorSchemeChanged.connect(self._follow)

    def release(self) -> None:
        """Remove what was written for style sheets; nothing is drawn after this, whatever the system wants."""
        self._app.styleHints().colorSchemeChanged.disconnect(self._follow)
        self._icons.remove()

    def set_mode(self, mode: ThemeMode) -> None:
        """Choose light or dark, or follow the system."""
        self.mode = mode
        set_mode(self._app, mode)
        self._put_on(current_theme(self._app))

    def set_font_size(self, points: float) -> None:
        """Set the size of ordinary text; 0 is the system's. The other sizes are shares of it."""
        body = points or self._usual
        if body != self._body:
            self._body = body
            font = self._app.font()
            font.setPointSizeF(body)
            self._app.setFont(font)
            self._put_on(self.theme)

    @Slot()
    def _follow(self) -> None:
        if (theme := current_theme(self._app)) != self.theme:
            self._put_on(theme)

    def _put_on(self, theme: Theme) -> None:
        self.theme = theme
        if (sheet := self._sheet(theme)) != self._app.styleSheet():
            self._app.setPalette(palette_of(theme))
            self._app.setStyleSheet(sheet)
        self.changed.emit(theme)

    def _sheet(self, theme: Theme) -> str:
        names = {f.name: str(getattr(theme, f.name)) for f in fields(theme)}
        names["accent_hover"] = mix(theme.accent, theme.text, 0.82)
        names["scroll"] = mix(theme.border_strong, theme.surface, 0.45)
        for size, share in {"hero": 1.9, "title": 1.3, "lead": 1.1, "body": 1.0, "caption": 0.9}.items():
            names[size] = f"{self._body * share:.1f}pt"
        for key, (name, colour) in {
            "check": ("check", theme.accent),
            "check_on": ("check", theme.on_accent),
            "chevron": ("chevron", theme.muted),
            "chevron_up": ("chevron-up", theme.muted),
            "chevron_faint": ("chevron", theme.border),
            "chevron_up_faint": ("chevron-up", theme.border),
        }.items():
            names[key] = self._icon_file(key, name, colour)
        return Template(files("resources").joinpath("styles", "draftscope.qss").read_text("utf-8")).substitute(names)

    def _icon_file(self, key: str, name: str, colour: str) -> str:
        """Style sheets take images from files only, so the few inked ones they need are written to a folder."""
        path = Path(self._icons.path()) / f"{key}-{colour[1:]}.svg"
        if not path.exists():
            path.write_bytes(inked(name, colour))
        return path.as_posix()
