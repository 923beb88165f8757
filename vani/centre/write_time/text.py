"""Fitted models, and methods side by side, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vani.centre.write_time.choice import FEW, CrossValidation, MethodScore
from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_bytes, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.centre.write_time.schema import StageCost, WriteModel

# Methods side by side on scales to which they were not fitted, as in table VI of Xie et al.

def column_value(name: str, value: float | str) -> str:
    """A sample column's name and range: `nodes 32`, `bytes 17.2 GB`, `layout shared`."""
    if isinstance(value, str):
        return f"{name} {value}"
    return f"{name} {format_bytes(value) if name in ('bytes', 'bytes_per_process', 'request') else f'{value:,g}'}"


def evaluation_text(validation: CrossValidation) -> str:
    """A table of scales and methods: the share of predictions off by at most 20 and 30 %, and their number."""
    scales = list(validation.by_scale)
    unsure = {score.method: score for score in validation.unconverged}
    last = ("unconverged",) if unsure else ()
    head = ("method", *(column_value(validation.scale, scale) for scale in scales), "all", *last)
    rows = []
    for number, score in enumerate(validation.by_scale[scales[0]]):
        of_scale = [validation.by_scale[scale][number] for scale in scales]
        counts = [len(score.ratios) for score in of_scale]
        cells = [_shares(score) for score in of_scale]
        whole = [float(np.average([score.within(share) for score in of_scale], weights=counts)) for share in (0.2, 0.3)]
        apart = (_shares(unsure[score.method]),) if unsure else ()
        rows.append((score.method, *cells, f"{100 * whole[0]:.0f} / {100 * whole[1]:.0f} %", *apart))
    sizes = [len(validation.by_scale[scale][0].ratios) for scale in scales]
    apart = (f"{len(validation.unconverged[0].ratios):,}",) if unsure else ()
    rows.append(("writes", *(f"{size:,}" for size in sizes), f"{sum(sizes):,}", *apart))
    left_out = f" ({validation.left_out:,} more had not converged)" if validation.left_out else ""
    return "\n".join(
        [
            f"Off by at most 20 % / 30 %, fitted to {counted(validation.trained_on, 'write')} of smaller scales"
            f"{left_out}:",
            "",
            *table(head, rows),
            "",
            f"Chosen without these: {validation.chosen}; its interval (median {validation.low:.2f} to "
            f"{validation.high:.2f} times the prediction) contains "
            f"{format_share(validation.covered)} of them (90 % wanted).",
            "",
        ]
    )


def _shares(score: MethodScore) -> str:
    return f"{100 * score.within(0.2):.0f} / {100 * score.within(0.3):.0f} %"


# A fitted model of write times for people: how it was chosen, and the cost of each stage of the path.

_MEGABYTE = 1e6
_BYTES_OF_PAPER = ("K", "s_oss", "s_ost")


def few_text(model: WriteModel) -> list[str]:
    """A sentence if the samples are too few to choose a method with certainty."""
    if model.samples >= FEW:
        return []
    return [
        f"{counted(model.samples, 'sample')} of {FEW} or more: too few to choose a method by them. `vani model design` "
        "plans more."
    ]


def model_text(model: WriteModel) -> str:
    """The method, the samples on which it was tested, and the bandwidth of each stage with its range."""
    scale = column_value(model.scale, model.columns[model.scale].high)
    lines = [
        f"{model.method}, fitted to {counted(model.samples, 'write')}, {scale} at most"
        + (f"; {model.unconverged:,} left out that had not converged" if model.unconverged else "")
        + ".",
        *few_text(model),
        f"Nine of ten writes take {model.low:.2f} to {model.high:.2f} times its prediction, by "
        f"{model.held_out:,} that were held out.",
        "",
    ]
    if not model.stages:
        return "\n".join([*map(one_line, lines), f"Method {model.method} does not separate stages.", ""])
    rows = [
        (one_line(stage.stage), *_cost(stage, paper=model.system is not None), f"{100 * stage.share:.0f} %")
        for stage in model.stages
    ]
    return "\n".join([*map(one_line, lines), *table(("load", "bandwidth", "range", "share at most"), rows), ""])


def _cost(stage: StageCost, *, paper: bool) -> tuple[str, str]:
    if stage.cost is None or stage.low is None or stage.high is None:
        return "not identified", ""
    load = stage.stage.split(" [")[0]
    is_bytes = load.startswith("bytes") or (paper and (load in _BYTES_OF_PAPER or load.endswith("*K")))
    if load == "1":
        return format_seconds(stage.cost), f"{format_seconds(stage.low)} to {format_seconds(stage.high)}"
    if is_bytes:
        unit = _MEGABYTE if paper else 1.0
        return format_rate(unit / stage.cost), f"{format_rate(unit / stage.high)} to {format_rate(unit / stage.low)}"
    return f"{1 / stage.cost:,.4g} /s", f"{1 / stage.high:,.4g} to {1 / stage.low:,.4g} /s"
