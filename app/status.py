"""The line at the foot: the model, how drafting goes, speed, acceptance, and how full the context is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QWidget

from app.language import mark, tr, trn
from app.library.choice import size_text
from app.theme import GRID
from app.widgets import label
from engine import DraftOptions, Failed, Finished, PrefillProgress, Record, Round, Stats

if TYPE_CHECKING:
    from engine import ModelInfo


@dataclass(frozen=True, slots=True)
class Tally:
    """A running reply in numbers."""

    prefill: tuple[int, int] | None = None
    """Prompt tokens read, of how many; None once the reply has begun."""
    rounds: int = 0
    """Passes of the model; the prompt's own round, index 0, is none."""
    emitted: int = 0
    """Tokens that those passes brought."""
    tested: int = 0
    accepted: int = 0
    seconds: float = 0.0
    """Time in rounds."""
    position: int = 0
    """Context positions in use."""
    stage: str = ""
    """What else is being done before the reply, as a phrase: looking at a picture."""
    note: str = ""
    """Why there were no drafts in the last round, if some were wanted."""

    def add(self, record: Record) -> Tally:
        """The numbers after one more record."""
        if isinstance(record, PrefillProgress):
            return replace(self, prefill=(record.done, record.total), position=record.done, stage=record.stage)
        if isinstance(record, Round):
            end = record.position + len(record.committed)
            if record.index == 0:
                return replace(self, prefill=None, position=end, note=record.note)
            verdicts = [draft.verdict for draft in record.drafts]
            accepted = verdicts.count("accepted")
            return Tally(
                rounds=self.rounds + 1,
                emitted=self.emitted + len(record.committed),
                tested=self.tested + accepted + verdicts.count("rejected"),
                accepted=self.accepted + accepted,
                seconds=self.seconds + record.draft_s + record.verify_s,
                position=end,
                note=record.note,
            )
        if isinstance(record, Finished | Failed) and record.stats.rounds:
            return self._settle(record.stats)
        return replace(self, prefill=None)

    def _settle(self, stats: Stats) -> Tally:
        emitted = round(stats.tokens_per_round * stats.rounds)
        seconds = emitted / stats.tokens_per_s if stats.tokens_per_s > 0 else self.seconds
        return replace(
            self,
            prefill=None,
            rounds=stats.rounds,
            emitted=emitted,
            tested=stats.tested,
            accepted=stats.accepted,
            seconds=seconds,
        )

    @property
    def activity(self) -> str:
        """What a running reply is busy with."""
        if self.prefill is None:
            return tr("Writing")
        if self.stage:
            return sentence_case(self.stage)
        done, total = self.prefill
        return trn(
            "Reading the prompt: {done:,} of {n:,} token",
            "Reading the prompt: {done:,} of {n:,} tokens",
            total,
            done=done,
        )

    @property
    def pass_name(self) -> str:
        """What the pass under way is for."""
        if self.prefill is not None:
            done, total = self.prefill
            return tr("Reading the prompt from token {token:,} of {total:,}", token=done + 1, total=total)
        return tr("Round {number:,}", number=self.rounds + 1)

    @property
    def tokens_per_second(self) -> float | None:
        return self.emitted / self.seconds if self.seconds > 0 else None

    @property
    def acceptance(self) -> float | None:
        return self.accepted / self.tested if self.tested else None

    @property
    def tokens_per_round(self) -> float | None:
        return self.emitted / self.rounds if self.rounds else None


def sentence_case(phrase: str) -> str:
    """A phrase of the engine as a line of its own."""
    return phrase[:1].upper() + phrase[1:]


def drafting_text(model: ModelInfo | None, draft: DraftOptions, note: str = "") -> tuple[str, str]:
    """Whether drafting is on, in two words, and why or how in a sentence."""
    if model is None:
        return "–", tr("No model is loaded.")
    if not draft.enabled:
        return tr("off"), tr("Drafting is switched off in the settings.")
    wants_layer = draft.drafter in ("mtp", "mtp+ngram")
    if wants_layer and model.mtp == "none":
        why = model.draft_note or tr("This checkpoint has no MTP layer; add a sidecar or draft by lookup in the text.")
        return (tr("off"), why) if draft.drafter == "mtp" else (tr("lookup only"), why)
    name = {"mtp": "MTP", "ngram": tr("lookup"), "mtp+ngram": tr("MTP + lookup")}[draft.drafter]
    return f"{name}, {draft.tokens}", note or _how_many(name, draft)


def _how_many(name: str, draft: DraftOptions) -> str:
    """How many tokens a drafter called `name` proposes."""
    if draft.length == "fixed":
        one, many = (
            mark("{name} proposes always {n} token a round."),
            mark("{name} proposes always {n} tokens a round."),
        )
    elif draft.length == "adaptive":
        one = mark("{name} proposes about, adapting to what is accepted, {n} token a round.")
        many = mark("{name} proposes about, adapting to what is accepted, {n} tokens a round.")
    else:
        one = mark("{name} proposes as many as pay, from {n} token a round.")
        many = mark("{name} proposes as many as pay, from {n} tokens a round.")
    return trn(one, many, draft.tokens, name=name)


def context_text(position: int, model: ModelInfo) -> str:
    """What the positions in use take, and what all of them would."""
    used, whole = (size_text(count * model.position_bytes) for count in (position, model.context))
    return tr(
        "Keys and values, stored as {kv_cache}, take {used} now and {whole} when the context is full.",
        kv_cache=model.kv_cache,
        used=used,
        whole=whole,
    )


class StatusLine(QWidget):
    """Captioned numbers; a dash where there is none yet."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(2 * GRID, GRID // 2, 2 * GRID, GRID // 2)
        self._row.setSpacing(GRID // 2)
        self.activity = self._value(tr("Activity"))
        self._row.addStretch(1)
        self.drafting = self._cell(tr("Drafting"))
        self.speed = self._cell(tr("Tokens/s"), tr("Tokens of the reply per second of drafting and verifying."))
        self.acceptance = self._cell(tr("Accepted"), tr("Accepted drafts of those the model tested."))
        self.per_round = self._cell(
            tr("Per round"), tr("Tokens that one pass of the model brings, its own one included.")
        )
        self.context = self._cell(tr("Context"), tr("Positions in use, of those the model can look back on."))
        self._meter = QProgressBar(textVisible=False, maximum=1000)
        self._meter.setFixedWidth(8 * GRID)
        self._meter.setAccessibleName(tr("Context used"))
        self._row.addSpacing(GRID // 2)
        self._row.addWidget(self._meter)

    def _value(self, name: str) -> QLabel:
        value = label("", "caption")
        value.setAccessibleName(name)
        self._row.addWidget(value)
        return value

    def _cell(self, caption: str, help_text: str = "") -> QLabel:
        value = label("–", "value", tip=help_text)
        value.setAccessibleName(caption)
        self._row.addSpacing(2 * GRID)
        self._row.addWidget(label(caption, "caption", tip=help_text))
        self._row.addWidget(value)
        return value

    def show_drafting(self, model: ModelInfo | None, draft: DraftOptions, note: str = "") -> None:
        """Say whether drafting is on; the tooltip says why or how."""
        short, why = drafting_text(model, draft, note)
        if model is not None and draft.enabled and draft.drafter == "mtp" and model.mtp == "none":
            short = tr("off: {why}", why=why if len(why) <= 60 else why[:57] + "…")
        self.drafting.setText(short)
        self.drafting.setToolTip(why)
        self.drafting.setAccessibleDescription(why)

    def show_tally(self, tally: Tally, model: ModelInfo | None) -> None:
        """Show the numbers of a reply, and how full the model's context is."""
        speed, acceptance, per_round = tally.tokens_per_second, tally.acceptance, tally.tokens_per_round
        self.speed.setText("–" if speed is None else f"{speed:.1f}")
        self.acceptance.setText("–" if acceptance is None else f"{acceptance:.0%}".replace("%", " %"))
        self.per_round.setText("–" if per_round is None else f"{per_round:.2f}")
        if model is not None:
            self.context.setText(tr("{used:,} of {all:,}", used=tally.position, all=model.context))
            self._meter.setValue(min(1000, round(1000 * tally.position / model.context)))
            self._meter.setToolTip(context_text(tally.position, model))
        else:
            self.context.setText("–")
            self._meter.setValue(0)
