"""The cost of each stage of a path, with ranges; the reciprocal of a cost is the stage's bandwidth.

The range is from a bootstrap: the samples are drawn again, with replacement, and the costs are fitted again. A
stage is not identified, because the samples do not determine its speed, if it accounts for little of every sample's
time, or if its cost varies by more than a factor of ten between draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.write_time.methods import Refit, methods
from vani.centre.write_time.samples import Floats, Samples
from vani.centre.write_time.stages import only_loads, stage_loads

if TYPE_CHECKING:
    from vani.centre.write_time.choice import Fitted

_DRAWINGS: Final = 100
_TAIL: Final = 0.05
_LEAST_SHARE: Final = 0.02
_MOST_WIDTH: Final = 10.0
_SEED: Final = 0
_SAME: Final = 1e-9


@dataclass(frozen=True)
class Stage:
    """A stage and its cost in seconds per unit of load; None if it is not identified.

    Parameters
    ----------
    low, high
        Range of nine out of ten draws.
    share
        Its largest share of a sample's measured time, 0..1.
    """

    stage: str
    cost: float | None
    low: float | None
    high: float | None
    share: float


@np.errstate(all="ignore")
def stage_costs(fitted: Fitted, samples: Samples, scale: Floats) -> list[Stage]:
    """The stages of a fitted method, the most important first; empty for a method without stages.

    Parameters
    ----------
    samples, scale
        The samples that it was fitted to, and their scales.
    """
    refit = methods()[fitted.method].refit
    if refit is None:
        return []
    loads = only_loads(stage_loads(samples, fitted.known))
    costs = refit(fitted.parameters, samples, scale, fitted.known)
    drawn = _drawn(refit, fitted, samples, scale, list(loads))
    together = _in_proportion(np.stack(list(loads.values()), axis=1))
    drawn = drawn @ together
    joint = np.array([costs.get(name, 0.0) for name in loads]) @ together
    stages = []
    for number, (name, load) in enumerate(loads.items()):
        if not together[number, number]:
            continue
        cost = max(float(joint[number]), 0.0)
        share = float(min(1.0, (load * cost / samples.seconds).max()))
        low, high = np.quantile(drawn[:, number], (_TAIL, 1 - _TAIL))
        if share >= _LEAST_SHARE and low > 0 and high <= low * _MOST_WIDTH:
            stages.append(Stage(name, cost, float(min(low, cost)), float(max(high, cost)), share))
        else:
            stages.append(Stage(name, None, None, None, share))
    return sorted(stages, key=lambda stage: (stage.cost is None, -stage.share))


def _in_proportion(loads: Floats) -> Floats:
    """Cost of another load (column) equal to a unit cost of each load (row), shape (stages, stages).

    Proportional loads, such as bytes and requests of one size, cannot be separated: their costs become a single
    cost, assigned to the first.
    """
    worth = np.zeros((loads.shape[1], loads.shape[1]))
    size = np.maximum(np.abs(loads).max(axis=0), 1e-300)
    scaled = loads / size
    for number in range(len(worth)):
        first = int(np.argmax(np.abs(scaled[:, : number + 1] - scaled[:, [number]]).max(axis=0) < _SAME))
        worth[number, first] = size[number] / size[first]
    return worth


def _drawn(refit: Refit, fitted: Fitted, samples: Samples, scale: Floats, names: list[str]) -> Floats:
    """Costs in each draw, shape (draws, stages)."""
    random = np.random.default_rng(_SEED)
    drawings = np.zeros((_DRAWINGS, len(names)))
    for row in drawings:
        chosen = random.integers(len(samples), size=len(samples))
        costs = refit(fitted.parameters, samples.only(chosen), scale[chosen], fitted.known)
        row[:] = [costs.get(name, 0.0) for name in names]
    return drawings
