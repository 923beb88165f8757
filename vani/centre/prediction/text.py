"""Predictions as text for people and for other programs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from vani.centre.write_time.predict import profile_write_time
from vani.centre.write_time.text import column_value
from vani.errors import one_line
from vani.render.formats import Formats
from vani.render.table import table
from vani.schema.settings import PathLike
from vani.units import counted, format_bytes, format_number, format_seconds, format_share

if TYPE_CHECKING:
    from vani.centre.prediction import schema
    from vani.schema.profile import Profile

FORMATS: Final[Formats[str]] = Formats(
    {"text": "vani.centre.prediction.text:to_text", "yaml": None, "json": None},
    {"text": (".txt",), "yaml": (".yaml", ".yml")},
)


def to_text(prediction: schema.Prediction) -> str:
    """Write the prediction; the first line states whether it is outside its model."""
    first = f"Outside of the model: {'; '.join(prediction.outside)}." if prediction.outside else None
    return "\n".join(
        [
            *([one_line(first), ""] if first else []),
            *_BODIES[prediction.kind](prediction),
            *(line for note in prediction.notes for line in ("", f"Note: {one_line(note)}.")),
            "",
        ]
    )


def _behaviour(prediction: schema.BehaviourPrediction) -> list[str]:
    """Likely behaviours as a table, the run closest to the most likely one, and predictions of the last runs."""
    if not prediction.behaviours:
        return [f"{category_text(prediction)}: not known."]
    likeliest = prediction.behaviours[0].resembles
    paths = f": {one_line(likeliest.paths[0])}" if likeliest.paths else ""
    head = ("behaviour", "probability", "read", "written", "metadata", "reads, writes", "files", "run time", "runs")
    rows = [*map(_behaviour_row, prediction.behaviours), ("another", format_share(prediction.other), *[""] * 7)]
    return [
        f"{category_text(prediction)}: {counted(prediction.runs, 'run')} known.",
        "",
        *table(head, rows),
        "",
        f"Behaviour {prediction.behaviours[0].behaviour}: like the run of {when(likeliest.submitted)}{paths}",
        past_text(prediction),
    ]


def category_text(prediction: schema.BehaviourPrediction) -> str:
    """Category of a run: its user, application and number of processes."""
    whose = f" by {one_line(prediction.user)}" if prediction.user is not None else ""
    on = f" on {counted(prediction.processes, 'process')}" if prediction.processes is not None else ""
    return f"Next run of {one_line(prediction.application)}{whose}{on}"


def past_text(prediction: schema.BehaviourPrediction) -> str:
    """How many of the last runs were predicted correctly."""
    predicted = [run for run in prediction.past if run.expected is not None]
    if not predicted:
        return "No predictions to check: only one behaviour is known."
    right = sum(run.expected == run.behaviour for run in predicted)
    return f"{right:,} of the last {counted(len(predicted), 'run')} matched the prediction."


def when(moment: float) -> str:
    """A point in time, in UTC."""
    is_time = 0 <= moment < 1 << 33
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC" if is_time else f"{moment:g}"


def _behaviour_row(behaviour: schema.LikelyBehaviour) -> tuple[str, ...]:
    """A behaviour with its probability, and the median and range (nine in ten) of its figures."""
    moved = [_figure_range(size, format_bytes) for size in (behaviour.bytes_read, behaviour.bytes_written)]
    numbers = [_figure_range(of, _count) for of in (behaviour.metadata, behaviour.operations, behaviour.files)]
    runtime = _figure_range(behaviour.runtime_s, format_seconds)
    return (
        str(behaviour.behaviour), format_share(behaviour.probability), *moved, *numbers, runtime,
        f"{behaviour.runs:,}",
    )  # fmt: skip


def _figure_range(bounds: schema.ExpectedRange | None, show: Callable[[float], str]) -> str:
    if bounds is None:
        return ""
    low, median, high = show(bounds.low), show(bounds.median), show(bounds.high)
    return median if low == high else f"{median} ({low} to {high})"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else format_number(value)


_SHOWN: Final = 12


def _creations(prediction: schema.CreationsPrediction) -> list[str]:
    """Expected files, the reason, and the success of each method on files it had not seen."""
    rows = prediction.creations
    lines = [
        f"{one_line(prediction.application)} by {one_line(prediction.user)}, "
        f"{counted(prediction.processes, 'process')}: {_expected(prediction)}.",
        f"By {prediction.method}{f' ({prediction.law})' if prediction.law else ''}, "
        f"from {counted(prediction.runs, 'run')}.",
    ]
    if rows:
        head = ("file", "rank", "size", "nine of ten", "probability")
        lines += ["", *table(head, [*map(_file_row, rows[:_SHOWN])])]
    if len(rows) > _SHOWN:
        lines.append(f"and {len(rows) - _SHOWN:,} more")
    if prediction.judged:
        best = [f"{name} {100 * share:.0f} %" for name, share in prediction.judged.items()]
        part = " of runs" if prediction.task == "rest_of_run" else ""
        where = f"{counted(prediction.held_out, 'part' if part else 'run')}{part} held out"
        lines += ["", f"Within 1 % of {where}: {', '.join(best)}."]
    return lines


def _expected(prediction: schema.CreationsPrediction) -> str:
    rows = prediction.creations
    known = [file.size for file in rows if file.size is not None]
    text = f"the next run creates {counted(len(rows), 'file')}"
    if prediction.task == "rest_of_run":
        text = f"after {counted(prediction.begun, 'file')}, {counted(len(rows), 'file')} more"
    if not rows:
        return text
    if not known:
        return f"{text}, of unknown size"
    rest = "" if len(known) == len(rows) else f"; {len(rows) - len(known):,} of unknown size"
    return f"{text}, {format_bytes(sum(known))}{rest}"


def _file_row(file: schema.PredictedCreation) -> tuple[str, ...]:
    known = file.low is not None and file.high is not None
    return (
        "not known" if file.path is None else _short(file.path),
        "" if file.rank is None else str(file.rank),
        "not known" if file.size is None else format_bytes(file.size),
        f"{format_bytes(file.low)} to {format_bytes(file.high)}" if known else "",
        "" if file.probability is None else f"{file.probability:.2f}",
    )


def _short(path: str) -> str:
    shown = one_line(path)
    return shown if len(shown) <= 60 else f"...{shown[-57:]}"


def _write_time(prediction: schema.WriteTimePrediction) -> list[str]:
    """The range, and for a published model the node placements and every term."""
    first, ends = f"{_request(prediction)}: {_time_range(prediction)} ({prediction.model}).", prediction.ends
    if not ends:
        return [first]
    rows = [
        (terms[0].feature, f"{terms[0].coefficient:.4g}", *(f"{term.seconds:,.3f}" for term in terms))
        for terms in zip_longest(*(end.terms for end in ends))
    ]
    rows.append(("sum", "", *(f"{end.seconds:,.3f}" for end in ends)))
    head = ("term", "coefficient", *(f"s {end.placement}" for end in ends))
    return [first, "", *map(_placement, ends), "", *table(head, rows)]


def _request(prediction: schema.WriteTimePrediction) -> str:
    write = prediction.write
    if write is None:
        return one_line(", ".join(column_value(*pair) for pair in prediction.asked.items()))
    text = (
        f"{counted(write.nodes, 'node')} x {counted(write.processes_per_node, 'process')} "
        f"x {format_bytes(write.bytes_per_process)}"
    )
    if write.stripe_count is not None:
        text += f", {counted(write.stripe_count, 'stripe')} per file"
    return text


def _time_range(prediction: schema.WriteTimePrediction) -> str:
    if prediction.low is None or prediction.high is None:
        return "no estimate"
    ends = f"{format_seconds(prediction.low)} to {format_seconds(prediction.high)}"
    return ends if prediction.seconds is None else f"{format_seconds(prediction.seconds)} ({ends})"


def _placement(end: schema.WriteEnd) -> str:
    groups = end.groups.items()
    parts = [f"{counted(used, name)}, at most {counted(largest, 'node')} each" for name, (largest, used) in groups]
    return f"{end.placement}: {'; '.join(parts)}: {format_seconds(max(0.0, end.seconds))}"


def write_time_fact(profile: Profile, model: PathLike) -> tuple[str, str]:
    """The measured time of a run's writes and the one that a model predicts, for its report, and a note.

    Raises
    ------
    InputError
        The model cannot be read.
    """
    return measured_and_predicted(profile, profile_write_time(profile, model))


def measured_and_predicted(profile: Profile, prediction: schema.WriteTimePrediction) -> tuple[str, str]:
    """The time of the slowest process, and the model's prediction of it."""
    slowest = [app.balance.slowest_io_time_s for app in profile.apps if app.balance is not None]
    measured = max((time_s for time_s in slowest if time_s is not None), default=None)
    if prediction.seconds is None or prediction.low is None or prediction.high is None:
        why = one_line(f"outside it: {'; '.join(prediction.outside)}")
        return f"{format_seconds(measured)}; outside the model's range", why
    low, high = format_seconds(prediction.low), format_seconds(prediction.high)
    value = f"{format_seconds(measured)}; {low} to {high} predicted"
    if measured is None:
        return value, f"{prediction.model}"
    where = (
        "faster than nine of ten" if measured < prediction.low
        else "slower than nine of ten" if measured > prediction.high
        else "as expected"
    )  # fmt: skip
    return value, f"{where}; most probable {format_seconds(prediction.seconds)}, by {prediction.model}"


_BODIES: Final[dict[str, Any]] = {"behaviour": _behaviour, "creations": _creations, "write_time": _write_time}
"""The lines of each kind of prediction."""
