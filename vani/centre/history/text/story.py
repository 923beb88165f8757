"""The story of an application as text for a terminal, and as a letter to its user."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from vani.centre.history.text.rows import hours, judged_by, saved_text
from vani.centre.history.text.text import columns
from vani.errors import one_line
from vani.render.wording import MATTERS
from vani.units import counted, format_bytes, format_seconds, format_share

if TYPE_CHECKING:
    from vani.centre.history.schema import Behaviour, Saved, Spread, Story

_SHOWN: Final = 10
_PLACE: Final = ("The path is from an earlier run: replace it by your next output folder.",)
_FIGURES: Final = {"bytes": "bytes moved", "in_io_s": "time in I/O", "waiting_s": "waiting"}


def story(history: Story) -> str:
    """Write everything that is known."""
    whose = f" by {one_line(history.user)}" if history.user is not None else ""
    lines = [
        f"{one_line(history.application)}{whose}: {counted(history.runs, 'run')}, {hours(history.core_s)} core-hours; "
        f"in I/O {hours(history.in_io_s)}, waiting {hours(history.waiting_s)}",
        "",
        *columns(
            ("month", "runs", "in I/O", "waiting", "waiting share"),
            [
                (
                    month.month,
                    f"{month.runs:,}",
                    hours(month.in_io_s),
                    hours(month.waiting_s),
                    _share(month.waiting_s, month.core_s),
                )
                for month in history.months
            ],
            left=1,
        ),
        "",
        *columns(
            ("", "user", "processes", "runs", "in I/O per run: min, median, max", "waiting per run"),
            [
                (
                    "",
                    one_line(category.user),
                    f"{category.processes:,}",
                    f"{category.runs:,}",
                    _of_runs(category.in_io_s),
                    _of_runs(category.waiting_s),
                )
                for category in history.categories[:_SHOWN]
            ],
            left=2,
        ),
    ]
    if len(history.categories) > _SHOWN:
        lines.append(f"  and {counted(len(history.categories) - _SHOWN, 'more category')}")
    lines += (
        ["", *(change_sentence(change) for change in history.changes[-_SHOWN:])]
        if history.changes
        else ["", "No change of behaviour."]
    )
    if len(history.changes) > _SHOWN:
        lines.append(f"and {counted(len(history.changes) - _SHOWN, 'earlier change')}")
    return "\n".join([*lines, *_worst(history), "", *_advice(history)]) + "\n"


def letter(history: Story) -> str:
    """Write to the user what to change, or that nothing needs to change; ready for mail, without colours."""
    lines = [
        f"Subject: I/O of {one_line(history.application)}",
        "",
        f"Dear {one_line(history.user or 'user')},",
        "",
        f"{counted(history.runs, 'run')} of {one_line(history.application)} took {hours(history.core_s)} core-hours"
        f"{_time(history)}. In {hours(history.waiting_s)} of these ({_share(history.waiting_s, history.core_s)}), "
        "processes waited for I/O.",
        "",
    ]
    saved = history.saved
    if saved is None:
        lines += ["None of these runs was judged, so the possible saving is not known yet."]
    elif saved.state == "nothing_found":
        lines += [
            f"We checked {counted(saved.judged_runs, 'run')} for settings that would make it faster and found none: "
            f"nothing needs to be changed{_typical(saved)}."
        ]
    else:
        lines += [
            f"{one_line(saved.why)}",
            "The possible saving is not known until a run shows more of its I/O. Trace a run with:"
            if saved.rule == MATTERS
            else f"The possible saving is not known{_typical(saved)}: measure a run with this change."
            if saved.state == "gain_unknown"
            else f"About {hours(saved.expected_s)} core-hours could be saved ({hours(saved.low_s)} to "
            f"{hours(saved.high_s)}), estimated by a model for {judged_by(saved)}:",
            "",
            *(f"    {one_line(line)}" for line in history.lines or [saved.setting]),
            "",
            *(_PLACE if any("/" in line and not line.startswith("#") for line in history.lines) else ()),
            "Why this helps:",
            "",
            f"    vani explain {saved.rule}",
        ]
    return "\n".join([*lines, "", "We are glad to help.", ""])


def _typical(saved: Saved) -> str:
    """The source of figures for advice without a number, as the end of a sentence; empty for this machine's."""
    return ", with figures of a typical machine" if saved.typical_machine else ""


def _time(history: Story) -> str:
    if not history.months:
        return ""
    first, last = history.months[0].month, history.months[-1].month
    return f" in {first}" if first == last else f" from {first} to {last}"


def _share(part: float, whole: float) -> str:
    return format_share(part / whole) if whole else "unknown"


def _of_runs(values: Spread | None) -> str:
    return "unknown" if values is None else ", ".join(spread(values))


def spread(values: Spread | None) -> tuple[str, str, str]:
    """Minimum, median and maximum of seconds, as text."""
    if values is None:
        return ("unknown",) * 3
    least, median, most = map(format_seconds, (values.least, values.median, values.most))
    return least, median, most


def change_sentence(change: Behaviour) -> str:
    """A sentence on which figure changed, and since when."""
    write = format_bytes if change.figure == "bytes" else format_seconds
    day = datetime.fromtimestamp(change.at, UTC)
    return (
        f"Since {day:%Y-%m-%d}, {counted(change.processes, 'process')} of {one_line(change.user)}: "
        f"{_FIGURES[change.figure]} of a run {write(change.after)}, {write(change.before)} before (medians)"
    )


def _worst(history: Story) -> list[str]:
    worst = history.worst
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


def _advice(history: Story) -> list[str]:
    if history.saved is None:
        return [
            "No run was judged: `vani history add` with a larger --judge judges it while the logs exist."
        ]
    saved = history.saved
    if saved.state == "nothing_found":
        return [f"Checked {judged_by(saved)} for settings that would save time, and found none{_typical(saved)}."]
    could = f"Could be saved: {saved_text(saved)} core-hours"
    how_much = "Recommended, gain not known" if saved.state == "gain_unknown" else could
    figures = _typical(saved) if saved.state == "gain_unknown" else ""
    return [
        f"{how_much} ({judged_by(saved)}{figures}). {one_line(saved.why)}",
        *(f"  {one_line(line)}" for line in history.lines),
        f"  (vani explain {saved.rule})",
    ]
