"""A one-line summary of each folded section of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vani.schema.profile import Profile
from vani.units import counted, format_bytes, format_count, format_number, format_seconds, format_share

if TYPE_CHECKING:
    from vani.render.report.items import Item, Silent
    from vani.render.report.report_model import Gap

_KINDS: Final = {"read": "reading", "write": "writing", "sync": "flushing", "metadata": "metadata"}


def gists(
    profile: Profile, advice: Sequence[Item], silent: Sequence[Silent], gaps: Sequence[Gap], terms: int
) -> Mapping[str, str]:
    """A few words by the anchor of a section; empty if there is nothing to state."""
    workflow = profile.workflow
    return {
        "cost": _cost(profile),
        "time": _time(profile),
        "balance": _balance(profile),
        "apps": f"{counted(workflow.apps, 'app')}, {counted(workflow.processes, 'process')}",
        "files": _files(profile),
        "advice": f"{counted(len(advice), 'remark')}; "
        f"{counted(len(silent), 'rule')} with nothing to recommend",
        "unknown": counted(sum(len(gap.attributes) for gap in gaps), "attribute"),
        "about": counted(len(profile.traces), "trace"),
        "terms": f"{format_count(terms)} terms",
    }


def _cost(profile: Profile) -> str:
    times = profile.workflow.io.time_s
    seconds = {word: getattr(times, kind) or 0.0 for kind, word in _KINDS.items()}
    whole = sum(seconds.values())
    if not whole:
        return ""
    most = max(seconds, key=lambda word: seconds[word])
    share = format_share(seconds[most] / whole)
    return f"{format_seconds(whole)} in calls, summed over processes; {share} of it {most}"


def _time(profile: Profile) -> str:
    runtime = format_seconds(profile.workflow.runtime_s)
    if profile.phases is None:
        return f"a run of {runtime}"
    return f"{counted(sum(phase.count for phase in profile.phases), 'phase')} of I/O in a run of {runtime}"


def _balance(profile: Profile) -> str:
    ratios = [
        balance.slowest_io_time_s / balance.mean_io_time_s
        for app in profile.apps
        if (balance := app.balance) is not None and balance.slowest_io_time_s and balance.mean_io_time_s
    ]
    return f"the slowest has {format_number(max(ratios))} times the mean I/O time" if ratios else ""


def _files(profile: Profile) -> str:
    files, moved = profile.workflow.files, profile.workflow.io.bytes
    if files.total is None:
        return ""
    return (
        f"{counted(files.total, 'file')}, {format_count(files.shared)} shared; {format_bytes(moved.read)} read, "
        f"{format_bytes(moved.written)} written"
    )
