"""The range of an expected gain, the cases in which none is promised, and the certainty of a machine's figures.

Two rules apply to every gain from a model of the storage:

- *Anchor.* The model has to explain the trace before it may predict the effect of a change: where the seconds
  that it expects of the present setting are not within a factor `ANCHOR` of those in the trace, there is no gain.
- *Range.* Measured over expected speed-up is within a factor `SPREAD` either way in nine of ten cases. That factor
  comes from single runs on four machines, among them pairs of settings (stripe counts on the Tianhe prototype) and
  repetitions of one benchmark (Edison, Mira, MareNostrum 4), whose speed-up should be 1 and is not. It is the
  median of the machines' factors. `python -m benchmarks.models --coverage` fits it without each
  machine in turn and prints how many of that machine's points it covers.

The rates of a generic machine are typical ones. The anchor keeps the model's total within a factor `ANCHOR`; all of
that can be in the one stage that the setting changes, hence the range is wider by as much (ours).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.units import format_seconds

if TYPE_CHECKING:
    from vani.schema.system import System

__all__ = ["ANCHOR", "SPREAD", "TYPICAL", "Anchored", "anchored", "certainty", "spread_of"]

ANCHOR: Final = 1.5
"""How far a model may be from the trace before a change, either way, and still speak of what comes after it."""

SPREAD: Final = 1.61
"""Factor between expected and measured speed-up that nine of ten single runs keep within: benchmarks/coverage.py."""


@dataclass(frozen=True)
class Anchored:
    """Seconds of the traced part with the other setting: expected, at best and at worst (which may be slower)."""

    after_s: float
    best_s: float
    worst_s: float


def anchored(traced_s: float, before_s: float, after_s: float, *, generic: bool) -> Anchored | str:
    """The rest of `traced_s` when a model expects `before_s` of the present setting and `after_s` of another.

    A phrase where the model does not explain the trace.
    """
    if not math.isfinite(before_s) or not traced_s / ANCHOR <= before_s <= traced_s * ANCHOR:
        return (
            f"the model expects {_text(before_s)} as it is now where the trace has {format_seconds(traced_s)}"
        )
    after, spread = traced_s * after_s / before_s, spread_of(generic=generic)
    return Anchored(after, after / spread, after * spread)


def spread_of(*, generic: bool) -> float:
    """The factor either way that nine of ten measured speed-ups keep within."""
    return SPREAD * ANCHOR if generic else SPREAD


def _text(value: float) -> str:
    return format_seconds(value) if math.isfinite(value) else "no end"


TYPICAL: Final = 0.6
"""For figures that are typical of a kind of machine (ours)."""


def certainty(system: System) -> float:
    """The factor, 0..1, for the confidence in everything that rests on the description."""
    return TYPICAL if system.generic else 1.0
