"""The legend: all states, also in a narrow window, in the transcript's own shapes."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.chat.cells import CellKind
from app.chat.legend import Legend
from app.chat.token_style import CUES, SHORT_WORDS, WORDS, token_styles
from app.theme import DARK, LIGHT, contrast


def test_every_state_has_words_and_a_shape_of_its_own() -> None:
    assert set(WORDS) == set(SHORT_WORDS) == set(CUES) == set(CellKind)
    assert len(set(WORDS.values())) == len(set(CUES.values())) == len(CellKind)


def test_text_can_be_read_on_every_ground_in_both_themes() -> None:
    for theme in (LIGHT, DARK):
        for style in [*token_styles(theme).values(), *token_styles(theme, dimmed=True).values()]:
            ground = style.tint.name() if style.tint else theme.surface
            assert contrast(style.text.name(), ground) >= 4.5


def test_thinking_is_dimmer_than_the_answer() -> None:
    for theme in (LIGHT, DARK):
        plain, dimmed = token_styles(theme), token_styles(theme, dimmed=True)
        for kind in (CellKind.PLAIN, CellKind.BONUS):
            assert contrast(dimmed[kind].text.name(), theme.surface) < contrast(plain[kind].text.name(), theme.surface)


def test_it_wraps_instead_of_cutting(qtbot: QtBot) -> None:
    legend = Legend(LIGHT)
    qtbot.addWidget(legend)
    wide, narrow = legend.heightForWidth(2000), legend.heightForWidth(250)
    assert narrow > 2 * wide
    legend.resize(250, 10)
    legend.show()
    assert legend.height() >= narrow


def test_it_shows_the_hues_and_follows_the_theme(qtbot: QtBot) -> None:
    legend = Legend(LIGHT)
    qtbot.addWidget(legend)
    legend.resize(1200, 40)
    legend.show()
    for theme in (LIGHT, DARK):
        legend.apply_theme(theme)
        image = legend.grab().toImage()
        seen = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
        assert {theme.tint(state) for state in ("accepted_mtp", "accepted_ngram", "refused", "correction")} <= seen
        assert {theme.accepted_mtp, theme.accepted_ngram, theme.correction, theme.refused} <= seen


def test_it_can_be_read_aloud(qtbot: QtBot) -> None:
    legend = Legend(LIGHT)
    qtbot.addWidget(legend)
    assert legend.accessibleName() == "Legend"
    for words in WORDS.values():
        assert words in legend.accessibleDescription()
