"""A fitted model of write times for people: how it was chosen, and the cost of each stage of the path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.centre.write_time.evaluation_text import column_value
from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_rate, format_seconds

if TYPE_CHECKING:
    from vani.centre.write_time.schema import StageCost, WriteModel

_MEGABYTE = 1e6
_BYTES_OF_PAPER = ("K", "s_oss", "s_ost")


def model_text(model: WriteModel) -> str:
    """The method, the samples on which it was tested, and the bandwidth of each stage with its range."""
    scale = column_value(model.scale, model.columns[model.scale].high)
    lines = [
        f"{model.method}, fitted to {counted(model.samples, 'write')}, {scale} at most"
        + (f"; {model.unconverged:,} left out that had not converged" if model.unconverged else "")
        + ".",
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
    return "\n".join(
        [*map(one_line, lines), *table(("load", "bandwidth", "range", "share at most"), rows), ""]
    )


def _cost(stage: StageCost, *, paper: bool) -> tuple[str, str]:
    if stage.cost is None or stage.low is None or stage.high is None:
        return "not identified", ""
    load = stage.stage.split(" [")[0]
    is_bytes = load.startswith("bytes") or (paper and (load in _BYTES_OF_PAPER or load.endswith("*K")))
    if load == "1":
        return format_seconds(stage.cost), f"{format_seconds(stage.low)} to {format_seconds(stage.high)}"
    if is_bytes:
        unit = _MEGABYTE if paper else 1.0
        return format_rate(
            unit / stage.cost
        ), f"{format_rate(unit / stage.high)} to {format_rate(unit / stage.low)}"
    return f"{1 / stage.cost:,.4g} /s", f"{1 / stage.high:,.4g} to {1 / stage.low:,.4g} /s"
