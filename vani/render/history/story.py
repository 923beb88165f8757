"""The story of an application as text for a terminal, and as a letter to its user."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.history.rows import hours, saved_text
from vani.render.history.text import columns
from vani.units import counted, format_bytes, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.history import Behaviour, Spread, Story

__all__ = ["letter", "story"]

_LITTLE: Final = 0.01
_SHOWN: Final = 10
_PLACE: Final = ("The path is that of an earlier run: put the folder of your next output there.",)
_FIGURES: Final = {"bytes": "bytes moved", "in_io_s": "time in I/O", "waiting_s": "waiting"}


def story(told: Story) -> str:
    """Write all that is known."""
    whose = f" by {one_line(told.user)}" if told.user is not None else ""
    lines = [
        f"{one_line(told.application)}{whose}: {counted(told.runs, 'run')}, {hours(told.core_s)} core-hours; "
        f"in I/O {hours(told.in_io_s)}, waiting {hours(told.waiting_s)}",
        "",
        *columns(
            ("month", "runs", "in I/O", "waiting", "waiting of all time"),
            [
                (
                    one.month,
                    f"{one.runs:,}",
                    hours(one.in_io_s),
                    hours(one.waiting_s),
                    _share(one.waiting_s, one.core_s),
                )
                for one in told.months
            ],
            left=1,
        ),
        "",
        *columns(
            ("", "user", "processes", "runs", "in I/O a run: least, median, most", "waiting a run"),
            [
                (
                    "",
                    one_line(one.user),
                    f"{one.processes:,}",
                    f"{one.runs:,}",
                    _spread(one.in_io_s),
                    _spread(one.waiting_s),
                )
                for one in told.categories[:_SHOWN]
            ],
            left=2,
        ),
    ]
    if len(told.categories) > _SHOWN:
        lines.append(f"  and {counted(len(told.categories) - _SHOWN, 'more category')}")
    lines += (
        ["", *(_change(one) for one in told.changes)] if told.changes else ["", "No change of behaviour."]
    )
    return "\n".join([*lines, *_worst(told), "", *_advice(told)]) + "\n"


def letter(told: Story) -> str:
    """Write to the user what to change, or that nothing is to be changed; ready for mail, without colours."""
    lines = [
        f"Subject: I/O of {one_line(told.application)}",
        "",
        f"Dear {one_line(told.user or 'user')},",
        "",
        f"{counted(told.runs, 'run')} of {one_line(told.application)} took {hours(told.core_s)} core-hours"
        f"{_time(told)}. In {hours(told.waiting_s)} of these ({_share(told.waiting_s, told.core_s)}), processes waited "
        "for I/O.",
        "",
    ]
    saved = told.saved
    if saved is None:
        lines += ["None of these runs was judged, so that we cannot tell yet what could be saved."]
    elif not saved.rule or saved.expected_s <= _LITTLE * told.waiting_s:
        lines += ["We looked for a setting that would make it faster and found none: there is nothing to do."]
    else:
        lines += [
            f"{one_line(saved.why)}",
            f"About {hours(saved.expected_s)} core-hours could be saved "
            f"({hours(saved.low_s)} to {hours(saved.high_s)}), as a model expects:",
            "",
            *(f"    {one_line(line)}" for line in told.lines or [saved.setting]),
            "",
            *(_PLACE if any("/" in line and not line.startswith("#") for line in told.lines) else ()),
            "Why this helps:",
            "",
            f"    vani explain {saved.rule}",
        ]
    return "\n".join([*lines, "", "We are glad to help.", ""])


def _time(told: Story) -> str:
    if not told.months:
        return ""
    first, last = told.months[0].month, told.months[-1].month
    return f" in {first}" if first == last else f" from {first} to {last}"


def _share(part: float, whole: float) -> str:
    return format_share(part / whole) if whole else "unknown"


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "unknown"
    return ", ".join(format_seconds(one) for one in (spread.least, spread.median, spread.most))


def _change(one: Behaviour) -> str:
    write = format_bytes if one.figure == "bytes" else format_seconds
    day = datetime.fromtimestamp(one.at, UTC)
    return (
        f"Since {day:%Y-%m-%d}, {counted(one.processes, 'process')} of {one_line(one.user)}: {_FIGURES[one.figure]} of "
        f"a run {write(one.after)}, {write(one.before)} before (medians)"
    )


def _worst(told: Story) -> list[str]:
    worst = told.worst
    if worst is None:
        return []
    day = (
        ""
        if worst.submitted is None
        else f" on {datetime.fromtimestamp(worst.submitted, UTC):%Y-%m-%d %H:%M} UTC"
    )
    lines = [
        "",
        f"Worst run{day}: {counted(worst.processes, 'process')}, {format_seconds(worst.runtime_s)}; in I/O "
        f"{format_seconds(worst.in_io_s)}, waiting {format_seconds(worst.waiting_s)}; "
        f"{format_bytes(worst.bytes_written)} written, {format_bytes(worst.bytes_read)} read",
    ]
    return [*lines, *(f"  {one_line(path)}" for path in worst.paths[:2])]


def _advice(told: Story) -> list[str]:
    if told.saved is None:
        return [
            "No run was judged: `vani history add` with a larger --judge does it while the logs are there."
        ]
    text = saved_text(told.saved, told.waiting_s)
    if not told.saved.rule or told.saved.expected_s <= _LITTLE * told.waiting_s:
        return [f"Could be saved: {text} core-hours. Nothing to do."]
    return [
        f"Could be saved: {text} core-hours. {one_line(told.saved.why)}",
        *(f"  {one_line(line)}" for line in told.lines),
        f"  (vani explain {told.saved.rule})",
    ]
