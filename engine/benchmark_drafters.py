"""Measurements for `bench --drafters`: what each drafter is worth on talk, on copying and on prose."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from engine.decoding.records import Finished, PositionCount, Stats
from engine.decoding.statistics import acceptance_by_position
from engine.errors import EngineError
from engine.options import DrafterName, DraftOptions, GenerateOptions
from engine.prompt import Message

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.loaded_model import Model

TASKS: dict[str, tuple[str, ...]] = {
    "chat": ("What is the capital of France?", "Count from 1 to 20.", "Name three fruits."),
    "copy": (
        "Copy this text: zebra 41 apple apple kiwi 7 stone lamp 19 river cloud 3 zebra 41 apple",
        "Repeat this text: The quick brown fox jumps over the lazy dog, and then it sleeps under the old oak tree.",
        "Replace cat by tiger: The cat saw the small boat. My sister liked the cat in the garden.",
    ),
    "prose": (
        "Tell me a story about a fox and a lamp.",
        "Tell me a short story about a fox.",
        "Tell me a story about a river and a stone.",
    ),
}
DRAFTERS: tuple[DrafterName, ...] = ("none", "mtp", "ngram", "mtp+ngram")
DRAFT_TOKENS = 4
MOST_TOKENS = 160


def measure_drafters(
    model: Model, repeats: int, cancel: CancelToken, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """By task and drafter: counts of passes, which are the same every time, acceptance by position, and tokens per
    second (medians over `repeats` runs) with the speed-up over plain decoding.

    Drafters that the model does not have are left out.
    """
    names = [name for name in DRAFTERS if model.info.mtp != "none" or "mtp" not in name]
    tasks: dict[str, Any] = {}
    for task, prompts in TASKS.items():
        say(f"drafting: {task}")
        figures = {name: _figures(_runs(model, prompts, name, repeats, cancel)) for name in names}
        plain = figures["none"]["tok_s"]
        tasks[task] = {name: {**own, "speed_up": round(own["tok_s"] / plain, 3)} for name, own in figures.items()}
    return {"draft_tokens": DRAFT_TOKENS, "drafters": tasks}


def _runs(
    model: Model, prompts: Sequence[str], drafter: DrafterName, repeats: int, cancel: CancelToken
) -> list[list[Stats]]:
    """The statistics of each prompt's reply, `repeats` times."""
    return [[_reply(model, prompt, drafter, cancel) for prompt in prompts] for _ in range(repeats)]


def _reply(model: Model, prompt: str, drafter: DrafterName, cancel: CancelToken) -> Stats:
    options = GenerateOptions(
        draft=DraftOptions(drafter, DRAFT_TOKENS if drafter != "none" else 0), max_new_tokens=MOST_TOKENS
    )
    *_, end = model.new_session().reply([Message("user", prompt)], options, cancel)
    cancel.check()
    if not isinstance(end, Finished):
        raise EngineError(f"The benchmark's reply failed: {getattr(end, 'message', end)}")
    return end.stats


def _figures(runs: Sequence[Sequence[Stats]]) -> dict[str, Any]:
    """All replies of a task together."""
    first = runs[0]
    rounds = sum(stats.rounds for stats in first)
    said = sum(stats.emitted - 1 for stats in first)  # the first token of a reply comes with its prompt
    speeds = [said / sum(stats.draft_s + stats.verify_s for stats in run) for run in runs]
    return {
        "tokens": said,
        "rounds": rounds,
        "draft_passes": sum(stats.draft_passes for stats in first),
        "tokens_per_round": round(said / rounds, 3),
        "acceptance": [round(place.share, 3) for place in acceptance_by_position(_by_position(first))],
        "tok_s": round(statistics.median(speeds), 1),
    }


def _by_position(replies: Sequence[Stats]) -> list[PositionCount]:
    longest = max(len(stats.per_position) for stats in replies)
    places = [[stats.per_position[i] for stats in replies if i < len(stats.per_position)] for i in range(longest)]
    return [PositionCount(sum(c.tried for c in place), sum(c.accepted for c in place)) for place in places]
