"""The view: bounded work, marks that are there, hovering, selecting, keys, ghosts, themes."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QAccessibleAnnouncementEvent, QGuiApplication, QImage
from PySide6.QtWidgets import QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.chat.cells import Cell, CellKind
from app.chat.token_style import token_styles
from app.chat.transcript_model import TranscriptModel
from app.chat.transcript_view import TranscriptView
from app.theme import DARK, LIGHT, Theme
from engine import Round
from tests.app.chat import scripted_records as script
from tests.app.chat.conftest import Show, settle

At = tuple[int, int]


@pytest.fixture
def model() -> TranscriptModel:
    model = TranscriptModel()
    model.add_user(script.QUESTION)
    model.begin_reply()
    model.add_records(script.reply(thinking=script.THINKING))
    return model


def rounds_only(text: str, **more: object) -> list[Round]:
    return list(script.rounds(text, **more))  # type: ignore[arg-type]


def first_of(view: TranscriptView, kind: CellKind, *, minimum: int = 3, thinking: bool = False) -> At:
    """A visible cell of a kind, with some letters."""
    reply = view.model.replies[0]
    for cell in range(len(reply)):
        rect = view.rect_of(1, cell)
        inside = view.viewport().rect().contains(rect) and not rect.isEmpty()
        if (
            reply.thinking(cell) is thinking
            and reply.kind(cell) is kind
            and len(reply.texts[cell].strip()) >= minimum
            and inside
        ):
            return 1, cell
    raise AssertionError(f"no visible {kind.name}")


def picture(view: TranscriptView) -> QImage:
    return view.viewport().grab().toImage()


def on_screen(view: TranscriptView) -> QImage:
    """What has really been painted; `grab` would paint anew."""
    return view.screen().grabWindow(view.winId()).toImage()


def colours(image: QImage, rect: QRect) -> set[str]:
    part = image.copy(image.rect().intersected(rect)).convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(part.constBits(), np.uint32).reshape(part.height(), part.bytesPerLine() // 4)
    return {f"#{value & 0xFFFFFF:06x}" for value in np.unique(pixels[:, : part.width()]).tolist()}


# Painting


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("kind", "tint", "mark"),
    [
        (CellKind.MTP, "accepted_mtp", "accepted_mtp"),
        (CellKind.NGRAM, "accepted_ngram", "accepted_ngram"),
        (CellKind.CORRECTION, "correction", "correction"),
        (CellKind.REFUSED, "refused", "refused"),
    ],
)
def test_each_state_has_its_tint_and_its_mark(
    show: Show, model: TranscriptModel, theme: Theme, kind: CellKind, tint: str, mark: str
) -> None:
    view = show(model, theme, (800, 1500))
    seen = colours(picture(view), view.rect_of(*first_of(view, kind)))
    assert theme.tint(tint) in seen  # type: ignore[arg-type]
    assert getattr(theme, mark) in seen


def test_thinking_has_paler_grounds_and_the_same_marks(show: Show, model: TranscriptModel) -> None:
    view = show(model, LIGHT, (800, 1500))
    seen = colours(picture(view), view.rect_of(*first_of(view, CellKind.MTP, thinking=True)))
    pale = token_styles(LIGHT, dimmed=True)[CellKind.MTP].tint
    assert pale is not None
    assert pale.name() in seen
    assert LIGHT.tint("accepted_mtp") not in seen
    assert LIGHT.accepted_mtp in seen


def test_the_second_cues_differ_in_shape(show: Show, model: TranscriptModel) -> None:
    """Underline: an MTP draft's is one line, an n-gram draft's has gaps; no other state has either."""
    view = show(model, LIGHT, (800, 1500))
    image = picture(view)

    def underlined(kind: CellKind, colour: str) -> float:
        """Share of a token's bottom edge that has the mark's colour; descenders may cross it."""
        rect = view.rect_of(*first_of(view, kind))
        edge = [image.pixelColor(x, rect.bottom() - 1).name() for x in range(rect.left() + 3, rect.right() - 2)]
        return edge.count(colour) / len(edge)

    assert underlined(CellKind.MTP, LIGHT.accepted_mtp) > 0.8
    assert 0.3 < underlined(CellKind.NGRAM, LIGHT.accepted_ngram) < 0.6
    assert underlined(CellKind.CORRECTION, LIGHT.correction) == 0


def test_plain_and_bonus_tokens_have_no_ground(show: Show, model: TranscriptModel) -> None:
    view = show(model, LIGHT, (800, 1500))
    image = picture(view)
    rect = view.rect_of(*first_of(view, CellKind.BONUS))
    assert image.pixelColor(rect.center().x(), rect.top() + 1).name() == LIGHT.surface


def test_a_theme_switch_repaints_everything(show: Show, model: TranscriptModel) -> None:
    view = show(model)
    assert picture(view).pixelColor(2, 2).name() == LIGHT.surface
    view.apply_theme(DARK)
    assert picture(view).pixelColor(2, 2).name() == DARK.surface
    at = first_of(view, CellKind.MTP)
    assert DARK.accepted_mtp in colours(picture(view), view.rect_of(*at))


def test_scrolling_pixels_gives_the_same_picture_as_painting_anew(qtbot: QtBot, show: Show) -> None:
    """Append many times with partial updates, then compare with a full repaint."""
    model = TranscriptModel()
    view = show(model, LIGHT, (500, 300))
    model.begin_reply()
    for record in rounds_only(script.ANSWER):
        model.add_records([record])
        QGuiApplication.processEvents()
    shown = on_screen(view)
    view.viewport().update()
    QGuiApplication.processEvents()
    assert shown == on_screen(view)
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum() > 0


# Bounded work


def test_opening_a_very_long_reply_lays_out_only_what_is_visible(qtbot: QtBot) -> None:
    model = TranscriptModel()
    model.begin_reply()
    model.add_records(script.long_reply(300_000))
    view = TranscriptView(model, LIGHT)
    qtbot.addWidget(view)
    view.resize(900, 700)
    view.show()
    qtbot.waitExposed(view)
    view._slices.stop()
    laid = sum(b.last - b.first for b in view.document.blocks if b.layout is not None)
    assert len(model.replies[0]) > 300_000
    assert laid < 10_000
    painted = view.painter.pieces_painted
    view.viewport().repaint()
    assert view.painter.pieces_painted - painted < 1_500
    before = view.document.waiting
    view._lay_out_slice()
    view._slices.stop()
    done = before - view.document.waiting
    assert 1 <= done <= 4, "one slice is a few blocks"


@pytest.mark.parametrize("newline_every", [40, 0], ids=["paragraphs", "one line"])
def test_an_update_paints_a_few_rows_whatever_the_length(qtbot: QtBot, show: Show, newline_every: int) -> None:
    model = TranscriptModel()
    model.begin_reply()
    model.add_records(script.long_reply(12_000, newline_every=newline_every))
    view = show(model)
    more = rounds_only(script.ANSWER)
    view.viewport().repaint()
    for record in more[:10]:
        painted, laid = view.painter.pieces_painted, view.document.rows_laid
        model.add_records([record])
        QGuiApplication.processEvents()
        assert view.painter.pieces_painted - painted < 200
        assert view.document.rows_laid - laid <= 6


# Scrolling


def test_the_view_follows_the_end_until_the_person_scrolls_up(qtbot: QtBot, show: Show, model: TranscriptModel) -> None:
    view = show(model, LIGHT, (500, 300))
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    model.begin_reply()
    model.add_records(rounds_only(script.ANSWER))
    assert bar.value() == bar.maximum()
    bar.setValue(bar.maximum() - 200)
    assert not view.at_end
    kept = bar.value()
    model.add_records(rounds_only(script.ANSWER))
    assert bar.value() == kept
    view.scroll_to_end()
    model.add_records(rounds_only(script.ANSWER))
    settle(qtbot, view)
    assert bar.value() == bar.maximum()


def middle_cell(view: TranscriptView) -> At:
    """A reply's token in the upper part of the viewport that no ghost toggle removes."""
    anchor = view._anchor()
    assert anchor is not None
    return anchor[0], anchor[1]


def test_toggling_ghosts_keeps_the_top_token_in_its_place(qtbot: QtBot, show: Show) -> None:
    model = TranscriptModel()
    model.begin_reply()
    model.add_records(script.long_reply(20_000))
    view = show(model)
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 2)
    at = middle_cell(view)
    y = view.rect_of(*at).top()
    for on in (False, True, False, True):
        view.show_refused = on
        assert abs(view.rect_of(*at).top() - y) <= 1
        settle(qtbot, view)
        assert abs(view.rect_of(*at).top() - y) <= 1, "also when everything above is laid out"
    view.verticalScrollBar().setValue(view.verticalScrollBar().value() + 3_000)
    at = middle_cell(view)
    y = view.rect_of(*at).top()
    view.show_refused = False
    assert abs(view.rect_of(*at).top() - y) <= 1, "after scrolling, what is in view now counts"


def test_resizing_keeps_the_top_token_in_view(qtbot: QtBot, show: Show) -> None:
    model = TranscriptModel()
    model.begin_reply()
    model.add_records(script.long_reply(20_000))
    view = show(model)
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 2)
    at = middle_cell(view)
    y = view.rect_of(*at).top()
    view.resize(420, 600)
    settle(qtbot, view)
    assert abs(view.rect_of(*at).top() - y) <= 1


def test_without_ghosts_nothing_struck_is_painted(show: Show, model: TranscriptModel) -> None:
    view = show(model, LIGHT, (800, 1500))
    assert LIGHT.tint("refused") in colours(picture(view), view.viewport().rect())
    view.show_refused = False
    assert LIGHT.tint("refused") not in colours(picture(view), view.viewport().rect())


# Hovering and the card


def test_hovering_a_token_tells_and_shows_its_card(qtbot: QtBot, show: Show, model: TranscriptModel) -> None:
    view = show(model, LIGHT, (800, 1500))
    at = first_of(view, CellKind.MTP)
    with qtbot.waitSignal(view.token_hovered) as caught:
        qtbot.mouseMove(view.viewport(), view.rect_of(*at).center())
    cell = caught.args[0]
    assert isinstance(cell, Cell)
    assert (cell.index, cell.kind) == (at[1], CellKind.MTP)
    qtbot.waitUntil(view.card.isVisible)
    assert view.card.cell == cell
    with qtbot.waitSignal(view.token_hovered) as caught:
        qtbot.mouseMove(view.viewport(), QPoint(2, 2))
    assert caught.args[0] is None
    assert view.card.isHidden()


def test_a_persons_own_words_have_no_card(qtbot: QtBot, show: Show, model: TranscriptModel) -> None:
    view = show(model, LIGHT, (800, 1500))
    view.verticalScrollBar().setValue(0)
    qtbot.mouseMove(view.viewport(), view.rect_of(0, 0).center())
    assert view.cell(view.cell_at(QPointF(view.rect_of(0, 0).center()))) is None


def test_arrows_move_enter_pins_escape_closes(qtbot: QtBot, show: Show, model: TranscriptModel) -> None:
    view = show(model)
    reply = model.replies[0]
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert view.cursor_cell == (1, len(reply) - 1)
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert view.cursor_cell == (1, len(reply) - 2)
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert view.card.isVisible()
    assert view.card.pinned
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert view.card.cell is not None
    assert view.card.cell.index == len(reply) - 1
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert view.card.isHidden()
    qtbot.keyClick(view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    assert view.cursor_cell == (1, 0)
    assert view.viewport().rect().intersects(view.rect_of(1, 0))


def test_up_and_down_go_to_the_neighbouring_rows(qtbot: QtBot, show: Show, model: TranscriptModel) -> None:
    view = show(model)
    qtbot.keyClick(view, Qt.Key.Key_Left)
    for _ in range(10):
        before = view.rect_of(*view.cursor_cell)  # type: ignore[misc]
        qtbot.keyClick(view, Qt.Key.Key_Up)
        after = view.rect_of(*view.cursor_cell)  # type: ignore[misc]
        assert after.top() <= before.top() or view.verticalScrollBar().value() >= 0
    up = view.cursor_cell
    qtbot.keyClick(view, Qt.Key.Key_Up)
    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert up is not None
    assert view.cursor_cell is not None
    assert abs(view.rect_of(*up).top() - view.rect_of(*view.cursor_cell).top()) <= 1


def test_the_cursor_skips_hidden_ghosts(qtbot: QtBot, show: Show, model: TranscriptModel) -> None:
    view = show(model)
    view.show_refused = False
    for _ in range(60):
        qtbot.keyClick(view, Qt.Key.Key_Left)
        cell = view.cell(view.cursor_cell)
        assert cell is not None
        assert not cell.kind.ghost


def test_escape_is_left_to_the_window_when_no_card_is_open(qtbot: QtBot, show: Show, model: TranscriptModel) -> None:
    from PySide6.QtGui import QKeyEvent

    view = show(model)
    event = QKeyEvent(QKeyEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    view.keyPressEvent(event)
    assert not event.isAccepted()


# Selecting


def drag(qtbot: QtBot, view: TranscriptView, start: QPoint, end: QPoint) -> None:
    port = view.viewport()
    qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(port, end)
    qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=end)


def test_dragging_selects_text_without_ghosts_and_ctrl_c_copies_it(
    qtbot: QtBot, show: Show, model: TranscriptModel
) -> None:
    view = show(model, LIGHT, (800, 1500))
    reply = model.replies[0]
    answer = next(i for i in range(len(reply)) if not reply.thinking(i) and not reply.ghost(i))
    start, end = view.rect_of(1, answer), view.rect_of(1, len(reply) - 1)
    drag(qtbot, view, QPoint(start.left() - 3, start.center().y()), QPoint(end.right() + 60, end.center().y()))
    assert view.selected_text().strip() == script.ANSWER.strip()
    view.copy()
    assert QGuiApplication.clipboard().text() == view.selected_text()


def test_a_drag_inside_a_token_selects_characters(qtbot: QtBot, show: Show) -> None:
    model = TranscriptModel()
    model.add_user("wwwwwwwwww")
    view = show(model)
    rect = view.rect_of(0, 0)
    step = rect.width() / 10
    y = rect.center().y()
    drag(qtbot, view, QPoint(round(rect.left() + 2 * step), y), QPoint(round(rect.left() + 5 * step), y))
    assert view.selected_text() == "www"


def test_double_click_selects_the_word_across_tokens(qtbot: QtBot, show: Show) -> None:
    model = TranscriptModel()
    model.begin_reply()
    model.add_records(
        [
            Round(i, i, "answer", (), (script.plain_token(t),), 0.0, 0.1)
            for i, t in enumerate([" un", "break", "able", "."])
        ]
    )
    view = show(model)
    centre = view.rect_of(0, 1).center()
    qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=centre)
    assert view.selected_text() == "unbreakable"


def test_select_all_and_the_text_with_marks(show: Show, model: TranscriptModel) -> None:
    view = show(model)
    view.select_all()
    assert script.ANSWER in view.selected_text()
    marked = view.text_with_marks()
    for mark in ("[m]", "[n]", "[c]", "[b]", "[x]"):
        assert mark in marked
    view.copy_marked()
    assert QGuiApplication.clipboard().text() == marked


def test_a_selection_is_seen(show: Show, model: TranscriptModel) -> None:
    view = show(model)
    before = picture(view)
    view.select_all()
    assert picture(view) != before


# Accessibility


def test_the_text_form_opens_in_a_window_of_its_own(qtbot: QtBot, show: Show, model: TranscriptModel) -> None:
    view = show(model)
    dialog = view.view_as_text()
    text = dialog.findChild(QPlainTextEdit)
    assert text.toPlainText() == view.text_with_marks()
    assert text.isReadOnly()
    assert text.accessibleName()
    dialog.close()


def test_name_and_description_tell_what_is_there(qtbot: QtBot, show: Show, model: TranscriptModel) -> None:
    view = show(model)
    assert view.accessibleName() == "Transcript"
    assert f"{model.replies[0].tokens} tokens" in view.accessibleDescription()
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert "draft" in view.accessibleDescription() or "model" in view.accessibleDescription()


def test_the_end_of_a_reply_is_announced_once(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(
        "app.chat.transcript_view.QAccessible.updateAccessibility",
        lambda event: said.append(event.message()) if isinstance(event, QAccessibleAnnouncementEvent) else None,
    )
    model = TranscriptModel()
    view = show(model)
    model.begin_reply()
    for record in script.reply("One two three."):
        model.add_records([record])
    model.end_reply()
    assert view.model is model
    assert said == [f"Reply finished: {model.replies[0].tokens} tokens."]
