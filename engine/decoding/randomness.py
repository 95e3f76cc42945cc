"""Random numbers that depend on what they are for, and on nothing else.

A generator with a state would tie a draw to the number of draws before it. Here each number is a hash of (seed, tokens
committed so far, drafts ahead of them, purpose): the same run gives the same numbers whatever the threads and times. A
round commits at least one token, so no key comes twice in a reply, and a draft that is thrown away takes its numbers
with it. (Were drafts keyed by position alone, a choice that looked at an unused draft would bias its redraw.)

The hash is the output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014, after Stafford's variant 13), applied once per word of the key.
"""

from __future__ import annotations

from enum import IntEnum

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_GOLDEN_GAMMA = 0x9E37_79B9_7F4A_7C15


class Purpose(IntEnum):
    """What a random number decides."""

    DRAFT = 1
    """Which token the drafter proposes."""
    ACCEPT = 2
    """Whether a proposal is accepted."""
    TARGET = 3
    """Which token the model says itself: a replacement, a bonus, or with no draft at all."""


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
    return z ^ (z >> 31)


def uniform(seed: int, committed: int, ahead: int, purpose: Purpose) -> float:
    """A number in [0, 1), a multiple of 2^-53."""
    state = _mix((seed + _GOLDEN_GAMMA) & _MASK)
    for word in (committed, ahead, int(purpose)):
        state = _mix(((state ^ word) + _GOLDEN_GAMMA) & _MASK)
    return float((state >> 11) * 2.0**-53)
