"""Predictions of kind `creations`: the number of files, the method, and the first files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_bytes

if TYPE_CHECKING:
    from vani.centre.prediction.schema import CreationsPrediction, PredictedCreation

_SHOWN: Final = 12


def body(prediction: CreationsPrediction) -> list[str]:
    """Expected files, the reason, and the success of each method on files it had not seen."""
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
    known = [file.size for file in rows if file.size is not None]
    of = (
        "the next run creates"
        if prediction.task == "next_run"
        else f"after {counted(prediction.begun, 'file')},"
    )
    text = f"{of} {counted(len(rows), 'file')}"
    if prediction.task == "rest_of_run":
        text += " more"
    if not rows:
        return text
    if not known:
        return f"{text}, of unknown size"
    rest = "" if len(known) == len(rows) else f"; {len(rows) - len(known):,} of unknown size"
    return f"{text}, {format_bytes(sum(known))}{rest}"


def _row(file: PredictedCreation) -> tuple[str, ...]:
    size = "not known" if file.size is None else format_bytes(file.size)
    bounds = (
        ""
        if file.low is None or file.high is None
        else f"{format_bytes(file.low)} to {format_bytes(file.high)}"
    )
    return (
        "not known" if file.path is None else _short(file.path),
        "" if file.rank is None else str(file.rank),
        size,
        bounds,
        "" if file.probability is None else f"{file.probability:.2f}",
    )


def _short(path: str) -> str:
    shown = one_line(path)
    return shown if len(shown) <= 60 else f"...{shown[-57:]}"
