"""Predictions of kind `creations`: how many files, by which method, and the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_bytes

if TYPE_CHECKING:
    from vani.schema.prediction import CreationsPrediction, PredictedCreation

__all__ = ["body"]

_SHOWN: Final = 12


def body(prediction: CreationsPrediction) -> list[str]:
    """Expected files, the reason, and the methods' success on files that they had not seen."""
    rows = prediction.creations
    lines = [
        f"{one_line(prediction.application)} by {one_line(prediction.user)}, "
        f"{counted(prediction.processes, 'process')}: {_expected(prediction)}.",
        f"By {prediction.method}{f' ({prediction.law})' if prediction.law else ''}, "
        f"from {counted(prediction.runs, 'run')}.",
    ]
    if rows:
        lines += [
            "",
            *table(("file", "rank", "size", "nine of ten", "probability"), list(map(_row, rows[:_SHOWN]))),
        ]
    if len(rows) > _SHOWN:
        lines.append(f"and {len(rows) - _SHOWN:,} more")
    if prediction.judged:
        best = [f"{name} {100 * share:.0f} %" for name, share in prediction.judged.items()]
        where = f"{counted(prediction.held_out, 'run')} held out"
        if prediction.task == "rest_of_run":
            where = f"{counted(prediction.held_out, 'part')} of runs held out"
        lines += ["", f"Within 1 % of {where}: {', '.join(best)}."]
    return lines


def _expected(prediction: CreationsPrediction) -> str:
    rows = prediction.creations
    known = [one.size for one in rows if one.size is not None]
    of = (
        "the next run creates"
        if prediction.task == "next_run"
        else f"after {counted(prediction.begun, 'file')},"
    )
    told = f"{of} {counted(len(rows), 'file')}"
    if prediction.task == "rest_of_run":
        told += " more"
    if not rows:
        return told
    if not known:
        return f"{told}, of sizes that are not known"
    rest = "" if len(known) == len(rows) else f"; of {len(rows) - len(known):,} the size is not known"
    return f"{told}, {format_bytes(sum(known))}{rest}"


def _row(one: PredictedCreation) -> tuple[str, ...]:
    size = "not known" if one.size is None else format_bytes(one.size)
    bounds = (
        "" if one.low is None or one.high is None else f"{format_bytes(one.low)} to {format_bytes(one.high)}"
    )
    return (
        "not known" if one.path is None else _short(one.path),
        "" if one.rank is None else str(one.rank),
        size,
        bounds,
        "" if one.probability is None else f"{one.probability:.2f}",
    )


def _short(path: str) -> str:
    shown = one_line(path)
    return shown if len(shown) <= 60 else f"...{shown[-57:]}"
