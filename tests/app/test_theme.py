"""The palettes keep their promises: readable text, visible states."""

from __future__ import annotations

import pytest

from app.theme import DARK, LIGHT, Theme, contrast, mix, readable

GROUNDS = ("background", "surface", "sunken", "accent_soft", "error_soft", "warning_soft")


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("ink", ["text", "muted", "accent"])
def test_text_is_readable_on_every_ground(theme: Theme, ground: str, ink: str) -> None:
    assert contrast(getattr(theme, ink), getattr(theme, ground)) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_messages_and_default_buttons_are_readable(theme: Theme) -> None:
    assert contrast(theme.error, theme.error_soft) >= 4.5
    assert contrast(theme.warning, theme.warning_soft) >= 4.5
    assert contrast(theme.on_accent, theme.accent) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("state", ["accepted_mtp", "accepted_ngram", "refused", "correction"])
def test_token_text_is_readable_on_its_tint_and_the_hue_shows_on_the_surface(theme: Theme, state: str) -> None:
    assert contrast(theme.text, theme.tint(state)) >= 4.5  # type: ignore[arg-type]
    assert contrast(getattr(theme, state), theme.surface) >= 3
    assert contrast(theme.border_strong, theme.surface) >= 3


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_no_two_states_share_a_tint_and_none_is_the_plain_ground(theme: Theme) -> None:
    assert len({tint for _, tint in theme.tints} | {theme.surface}) == 5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("hue", ["accepted_mtp", "accepted_ngram", "refused", "correction", "text"])
def test_a_hue_as_ink_can_be_read_in_every_row_and_keeps_what_it_can(theme: Theme, hue: str) -> None:
    colour = getattr(theme, hue)
    ink = readable(colour, theme)
    for ground in (theme.surface, theme.background, theme.accent_soft):
        assert contrast(ink, ground) >= 4.5
    assert ink != theme.text or hue == "text"
    if all(contrast(colour, ground) >= 4.5 for ground in (theme.surface, theme.background, theme.accent_soft)):
        assert ink == colour


def test_known_contrasts() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert contrast("#0072b2", "#ffffff") == contrast("#ffffff", "#0072b2") == pytest.approx(5.19, abs=0.01)


def test_mixing_goes_from_the_ground_to_the_colour() -> None:
    assert mix("#ff0000", "#0000ff", 0) == "#0000ff"
    assert mix("#ff0000", "#0000ff", 1) == "#ff0000"
    assert mix("#ffffff", "#000000", 0.5) == "#808080"
