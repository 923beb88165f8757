"""The range of an expected gain, when to give none, and how certain a machine's figures are.

Two rules apply to every gain from a model of the storage:

- *Anchor.* The model must explain the trace before it may predict the effect of a change. If the time that it
  expects with the present setting differs from the traced time by more than a factor `ANCHOR`, there is no gain.
- *Range.* The ratio of measured to expected speed-up is within a factor `SPREAD` of 1 in nine of ten cases. The
  factor comes from repetitions of one benchmark on four machines (Tianhe prototype, Edison, Mira, MareNostrum 4),
  whose speed-up should be 1 and is not. It is the median of the machines' factors. `python -m benchmarks.models`
  fits it without each machine in turn and prints how many of that machine's points it covers.

A generic machine has typical rates. The anchor keeps the model's total within a factor `ANCHOR`. All of that error
may be in the one stage that the setting changes, so the range is wider by the same factor (our choice).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.units import format_seconds

if TYPE_CHECKING:
    from vani.schema.system import System

ANCHOR: Final = 1.5
"""Greatest factor, either way, between modelled and traced time before a change for the model to be used."""

SPREAD: Final = 1.69
"""Factor between expected and measured speed-up that covers nine of ten single runs (benchmarks/models.py)."""


@dataclass(frozen=True)
class Anchored:
    """Seconds of the traced part with the new setting: expected, best and worst. The worst may exceed the present."""

    after_s: float
    best_s: float
    worst_s: float


def anchored(traced_s: float, before_s: float, after_s: float, *, generic: bool) -> Anchored | str:
    """Scale the traced seconds by what a model expects: `before_s` with the present setting, `after_s` with another.

    Return a phrase for a sentence if the model does not explain the trace.
    """
    if not math.isfinite(before_s) or not traced_s / ANCHOR <= before_s <= traced_s * ANCHOR:
        return (
            f"the model expects {_text(before_s)} as it is now where the trace has {format_seconds(traced_s)}"
        )
    after, spread = traced_s * after_s / before_s, spread_of(generic=generic)
    return Anchored(after, after / spread, after * spread)


def spread_of(*, generic: bool) -> float:
    """The factor, either way, that covers nine of ten measured speed-ups."""
    return SPREAD * ANCHOR if generic else SPREAD


def _text(value: float) -> str:
    return format_seconds(value) if math.isfinite(value) else "no end"


TYPICAL: Final = 0.6
"""Certainty of figures that are typical of a kind of machine (our choice)."""


def certainty(system: System) -> float:
    """Factor, 0..1, for the confidence in everything derived from the machine's description."""
    return TYPICAL if system.generic else 1.0
