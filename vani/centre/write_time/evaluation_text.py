"""Methods side by side on scales to which they were not fitted, as in table VI of Xie et al."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vani.render.table import table
from vani.units import counted, format_bytes, format_share

if TYPE_CHECKING:
    from vani.centre.write_time.models.cross_validation import CrossValidation, MethodScore

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
        whole = [
            float(np.average([score.within(share) for score in of_scale], weights=counts))
            for share in (0.2, 0.3)
        ]
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
