"""The look: two palettes and the rules between their colours.

The chrome (bars, buttons, panels) is paper, ink and one petrol accent; every other hue belongs to the data. So a blue,
sky, vermilion or yellow in the window always says something about a token. The four state hues stay apart under
protanopia, deuteranopia and tritanopia (the best four of Okabe and Ito's palette), and each state has a second cue
besides its colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette

ThemeMode = Literal["system", "light", "dark"]
StateName = Literal["accepted_mtp", "accepted_ngram", "refused", "correction"]

LEAST_CONTRAST = 4.5
"""Of text to its ground."""

GRID = 8
"""Pixels of one step of the layout grid; margins and gaps are multiples or halves of it."""

_MODE_PROPERTY = "draftscope_theme_mode"


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours as '#rrggbb'. Text colours reach 4.5:1 on every ground here, lines and state hues 3:1 on `surface`."""

    dark: bool
    background: str
    """The window behind everything."""
    surface: str
    """What is read or written on: transcript, fields, cards."""
    sunken: str
    """A quiet ground for bars and groups."""
    text: str
    muted: str
    """Second-rank text: captions, hints, units."""
    faint: str
    """Text of controls that cannot be used now."""
    accent: str
    """Default buttons, focus rings, what is selected."""
    on_accent: str
    accent_soft: str
    """The accent as a ground: hovered or chosen rows."""
    border: str
    """Hairlines."""
    border_strong: str
    """Outlines of controls."""
    error: str
    error_soft: str
    warning: str
    warning_soft: str
    accepted_mtp: str
    accepted_ngram: str
    refused: str
    correction: str
    """State hues for lines, bars and underlines."""
    bonus: str
    plain: str
    draft: str
    verify: str
    disk: str
    """Parts of a round's time in the plots."""
    tints: tuple[tuple[StateName, str], ...]
    """Opaque grounds behind tokens of each state, on `surface`."""

    def tint(self, state: StateName) -> str:
        """The ground behind tokens of this state."""
        return dict(self.tints)[state]


def mix(over: str, under: str, share: float) -> str:
    """`over` laid on `under` with opacity `share`, as an opaque colour."""
    a, b = _channels(over), _channels(under)
    return "#" + "".join(f"{round(255 * (share * x + (1 - share) * y)):02x}" for x, y in zip(a, b, strict=True))


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio, 1…21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def readable(colour: str, theme: Theme) -> str:
    """The colour as ink: as near to it as text on the page, in a table's rows and in a chosen row can be."""
    shares = (share / 20 for share in range(20, -1, -1))
    inks = (mix(colour, theme.text, share) for share in shares)
    grounds = (theme.surface, theme.background, theme.accent_soft)
    return next(ink for ink in inks if all(contrast(ink, ground) >= LEAST_CONTRAST for ground in grounds))


def _channels(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _luminance(colour: str) -> float:
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour))
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


LIGHT = Theme(
    dark=False,
    background="#f3f1ec",
    surface="#fdfcf9",
    sunken="#eae7e0",
    text="#1d2427",
    muted="#566064",
    faint="#8b9194",
    accent="#1c5162",
    on_accent="#ffffff",
    accent_soft="#dbe7e9",
    border="#d9d5cb",
    border_strong="#868b8b",
    error="#98301f",
    error_soft="#f7e2dc",
    warning="#6a5200",
    warning_soft="#f4ebcf",
    accepted_mtp="#0072b2",
    accepted_ngram="#3a93c9",
    refused="#c95800",
    correction="#9a8500",
    bonus="#566064",
    plain="#8b9194",
    draft="#0072b2",
    verify="#7d8689",
    disk="#c95800",
    tints=(
        ("accepted_mtp", mix("#0072b2", "#fdfcf9", 0.25)),
        ("accepted_ngram", mix("#56b4e9", "#fdfcf9", 0.35)),
        ("refused", mix("#d55e00", "#fdfcf9", 0.20)),
        ("correction", mix("#f0e442", "#fdfcf9", 0.45)),
    ),
)

DARK = Theme(
    dark=True,
    background="#15191b",
    surface="#1c2123",
    sunken="#111415",
    text="#e7e4de",
    muted="#a3abad",
    faint="#6f777a",
    accent="#9accd8",
    on_accent="#0d2128",
    accent_soft="#24373d",
    border="#2f3639",
    border_strong="#717a7d",
    error="#f3a595",
    error_soft="#3b2420",
    warning="#e6cf7a",
    warning_soft="#37301a",
    accepted_mtp="#3d9bd9",
    accepted_ngram="#8fd3fb",
    refused="#f0803c",
    correction="#e8dc4a",
    bonus="#a3abad",
    plain="#6f777a",
    draft="#3d9bd9",
    verify="#8d9699",
    disk="#f0803c",
    tints=(
        ("accepted_mtp", mix("#0072b2", "#1c2123", 0.48)),
        ("accepted_ngram", mix("#56b4e9", "#1c2123", 0.38)),
        ("refused", mix("#d55e00", "#1c2123", 0.38)),
        ("correction", mix("#f0e442", "#1c2123", 0.30)),
    ),
)


def current_theme(app: QCoreApplication | None = None) -> Theme:
    """The palette that the person chose with `set_mode`, else the one that fits what the system wants now."""
    app = app or QGuiApplication.instance()
    if not isinstance(app, QGuiApplication):
        return LIGHT
    mode = app.property(_MODE_PROPERTY)
    if mode in ("light", "dark"):
        return DARK if mode == "dark" else LIGHT
    return DARK if app.styleHints().colorScheme() is Qt.ColorScheme.Dark else LIGHT


def set_mode(app: QGuiApplication, mode: ThemeMode) -> None:
    """Fix light or dark, or follow the system again.

    Not every platform honours a colour scheme asked for by the program, so the choice is kept with the application;
    the platform is told all the same, for the frame of the window.
    """
    app.setProperty(_MODE_PROPERTY, mode)
    schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark, "system": Qt.ColorScheme.Unknown}
    app.styleHints().setColorScheme(schemes[mode])


def palette_of(theme: Theme) -> QPalette:
    """The Qt palette of a theme, for what the style sheet does not reach."""
    palette = QPalette()
    roles = QPalette.ColorRole
    for role, colour in {
        roles.Window: theme.background,
        roles.WindowText: theme.text,
        roles.Base: theme.surface,
        roles.AlternateBase: theme.sunken,
        roles.Text: theme.text,
        roles.PlaceholderText: theme.muted,
        roles.Button: theme.surface,
        roles.ButtonText: theme.text,
        roles.BrightText: theme.error,
        roles.ToolTipBase: theme.surface,
        roles.ToolTipText: theme.text,
        roles.Highlight: theme.accent,
        roles.HighlightedText: theme.on_accent,
        roles.Accent: theme.accent,
        roles.Link: theme.accent,
        roles.LinkVisited: theme.accent,
        roles.Light: theme.surface,
        roles.Midlight: theme.border,
        roles.Mid: theme.border_strong,
        roles.Dark: theme.border_strong,
        roles.Shadow: theme.border_strong,
    }.items():
        palette.setColor(role, QColor(colour))
    for role in (roles.WindowText, roles.Text, roles.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.faint))
    return palette
