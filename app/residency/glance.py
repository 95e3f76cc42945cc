"""The weights of the loaded model at one moment, and what may be said of a pass that takes long. No widgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.language import mark, tr, trn

if TYPE_CHECKING:
    from engine import Stall

STATES = ("resident", "ring", "reading", "disk")
"""As the engine calls them, from the nearest to the farthest."""
WORDS = {
    "resident": mark("in memory"),
    "ring": mark("passing through"),
    "reading": mark("being read"),
    "disk": mark("on disk"),
}
"""For one unit, or as a heading; marked for translation."""
_COUNTED = {
    "resident": mark("{count} in memory"),
    "ring": mark("{count} passing through"),
    "reading": mark("{count} being read"),
    "disk": mark("{count} on disk"),
}


@dataclass(frozen=True, slots=True)
class Glance:
    """What can be seen of the weights without disturbing the computation."""

    units: Mapping[str, str] = field(default_factory=dict)
    """Unit → state, in execution order."""
    layer: int = 0
    """Layers of the pass under way that are complete."""
    layers: int = 0
    bytes_read: int = 0
    """Since the model was loaded."""
    wait_s: float = 0.0
    memory_bytes: int = 0
    """Of weights, at this moment."""
    stall: Stall | None = None
    """The disk has delivered nothing for a while."""
    at: float = 0.0
    """Seconds on a clock that only goes forward."""

    @property
    def streams(self) -> bool:
        """Not everything is kept in memory."""
        return any(state != "resident" for state in self.units.values())

    def counts(self) -> dict[str, int]:
        """Units by state; every state is there."""
        found = Counter(self.units.values())
        return {state: found[state] for state in STATES}

    def current(self) -> str:
        """The layer that is being computed; empty between passes."""
        name = f"layers.{self.layer}"
        return name if self.layer and name in self.units else ""


def read_speed(before: Glance | None, now: Glance) -> float:
    """Bytes per second from disk between two glances at the same model; 0 if that cannot be said."""
    if before is None or now.at <= before.at or now.bytes_read < before.bytes_read:
        return 0.0
    return (now.bytes_read - before.bytes_read) / (now.at - before.at)


def long_pass(doing: str, glance: Glance, speed: float) -> str:
    """What a pass that takes long is doing: "Round 12: layer 14 of 32, 1.2 GB/s from disk"."""
    if glance.stall is not None:
        stall = glance.stall
        return tr(
            "{doing}: the disk has delivered nothing for {seconds:.0f} s ({file} at byte {offset:,}); Esc stops",
            doing=doing,
            seconds=stall.seconds,
            file=stall.file,
            offset=stall.offset,
        )
    place = {"doing": doing, "layer": min(glance.layer + 1, glance.layers), "layers": glance.layers}
    if speed > 0:
        return tr("{doing}: layer {layer} of {layers}, {speed} from disk", speed=speed_text(speed), **place)
    return tr("{doing}: layer {layer} of {layers}", **place)


def speed_text(bytes_per_s: float) -> str:
    """A speed in the unit that fits."""
    return f"{bytes_per_s / 1e9:.1f} GB/s" if bytes_per_s >= 1e9 else f"{bytes_per_s / 1e6:.0f} MB/s"


def summary(glance: Glance) -> str:
    """Where the units are, as a sentence."""
    if not glance.units:
        return tr("No model is loaded.")
    total = len(glance.units)
    if not glance.streams:
        return trn(
            "All {n} units are in memory; nothing is read from disk.",
            "All {n} units are in memory; nothing is read from disk.",
            total,
        )
    parts = ", ".join(counted(state, count) for state, count in glance.counts().items() if count)
    return trn("Of {n} unit, {parts}.", "Of {n} units, {parts}.", total, parts=parts)


def counted(state: str, count: int) -> str:
    """How many units are in a state."""
    return tr(_COUNTED[state], count=count)
