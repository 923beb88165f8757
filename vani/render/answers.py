"""Why, when and where a run does I/O, how much, and how the program behaves: a line for each.

`docs/rules/patterns.md` defines the patterns of behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.models.io_time import Costliest, costliest, io_time, library_part
from vani.schema.profile import LookUp, NamePattern, Phase, Profile
from vani.units import counted, format_bytes, format_count, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.advice import Advice, Observation, Recommendation

_NEARLY_ALL: Final = 0.99

# --- why --------------------------------------------------------------------------------------------

LIBRARIES = {"mpiio": "MPI-IO", "hdf5": "HDF5", "pnetcdf": "PnetCDF", "netcdf": "netCDF"}


def rank_words(rank: int | None) -> str:
    """The rank that takes longest; None for a tie."""
    return "every process" if rank is None else f"rank {rank}"


def library_words(profile: Profile) -> str:
    """How long the slowest process is inside I/O libraries, if that is much longer than in the file system."""
    times = profile.workflow.library_time_s
    if profile.workflow.runtime_s is None or not times:
        return ""
    time = io_time(profile)
    if not time.is_in_libraries or time.caller is None:
        return ""
    name = max(times, key=lambda layer: (times[layer].total, layer))
    outside = times[name].outside_file_system / times[name].total if times[name].total else 0.0
    part = "nearly all" if outside >= _NEARLY_ALL else format_share(outside)
    of = f" of {one_line(time.caller.app)}" if len(profile.apps) > 1 else ""
    who, library = f"{rank_words(time.caller.rank)}{of}", LIBRARIES.get(name, name)
    share = format_share(time.of_run(time.caller.time_s))
    if any(entry.kind == "mpiio_calls_missing" for entry in profile.unseen or ()):
        return f"{who} is inside {library} calls for at least {share} of the run: its data calls were not recorded."
    if not profile.workflow.io.ops.all:
        return f"{who} is inside {library} calls for {share} of the run: what these called was not recorded."
    what = library_part(profile, time)
    words = what.words if what is not None else "exchange and waiting between processes"
    return f"{who} is inside {library} calls for {share} of the run; {part} of that time is {words}, not storage."


# --- when -------------------------------------------------------------------------------------------

_MAX_PHASES = 2
_ENOUGH = 0.9
"""Share of the I/O time (or bytes) after which no further phase is named."""
_METADATA = {
    "open": "opening files",
    "close": "closing files",
    "stat": "querying files",
    "seek": "seeking",
    "directory": "directory operations",
    "remove": "removing or renaming files",
    "other": "metadata operations",
}


def when(profile: Profile) -> str:
    """Phases with the longest I/O time (or most bytes), in order of time; empty for a single phase."""
    phases = profile.phases or ()
    # Phases from heat maps have bytes but no times.
    timed = any(phase.io.time_s.total is not None for phase in phases)
    cost = _time if timed else _bytes
    rows = [phase for phase in phases if cost(phase)]
    whole = sum(map(cost, rows))
    if not whole or (len(rows) == 1 and rows[0].count == 1):
        return ""
    chosen: list[Phase] = []
    for phase in sorted(rows, key=lambda phase: -cost(phase)):
        enough = sum(map(cost, chosen)) >= _ENOUGH * whole
        if len(chosen) == _MAX_PHASES or (enough and len(rows) > _MAX_PHASES):
            break
        chosen.append(phase)
    several = len(profile.apps) > 1
    in_time = sorted(chosen, key=lambda phase: phase.start_s)
    text = "; ".join(_phase(phase, several=several) for phase in in_time)
    share = sum(map(cost, chosen)) / whole
    rest = sum(phase.count for phase in rows) - sum(phase.count for phase in chosen)
    if not rest:
        return text
    of = "I/O time" if timed else "bytes"
    return f"{text} ({format_share(share)} of the {of}; {counted(rest, 'more phase')})"


def _time(phase: Phase) -> float:
    return phase.io.time_s.total or 0.0


def _bytes(phase: Phase) -> float:
    return phase.io.bytes.total or 0


def _phase(phase: Phase, *, several: bool) -> str:
    text, mostly = _done(phase), _mostly(phase)
    if several:
        text += f" by {phase.app}"
    if phase.repeats is not None and phase.count > 1:
        period = phase.repeats.period_s
        apart = "" if period is None else f", {format_seconds(period)} apart"
        return f"{format_count(phase.count)} times {text}{apart}{mostly}"
    return f"{text} from {format_seconds(phase.start_s)} on, for {format_seconds(phase.runtime_s)}{mostly}"


def _done(phase: Phase) -> str:
    """The work of a phase, and its amount each time."""
    io = phase.io
    data = {"read": (io.bytes.read or 0) // phase.count, "written": (io.bytes.written or 0) // phase.count}
    if phase.kind == "metadata":
        return _of_metadata(phase)
    sides = {"read": ("read",), "write": ("written",)}.get(phase.kind, ("written", "read"))
    return " and ".join(f"{format_bytes(data[side])} {side}" for side in sides if data[side] or len(sides) == 1)


def _mostly(phase: Phase) -> str:
    """The costliest metadata operations of a phase that moves bytes, which do not show how the time was spent."""
    doing, share = costliest_metadata(phase)
    if phase.kind == "metadata" or phase.dominant is None or phase.dominant.kind != "metadata" or share is None:
        return ""
    verb = "take" if doing.endswith("operations") else "takes"
    return f" ({doing} {verb} {format_share(share)} of the phase's I/O time)"


def _of_metadata(phase: Phase) -> str:
    doing, share = costliest_metadata(phase)
    text = f"{doing} by {counted(phase.processes, 'process')}"
    if not phase.io.bytes.total or share is None:
        return text
    return f"{text} ({format_share(share)} of the phase's I/O time)"


def costliest_metadata(phase: Phase) -> tuple[str, float | None]:
    """The costliest kind of metadata operation, and its share of the I/O time."""
    kinds, whole = phase.io.metadata_kinds, phase.io.time_s.total
    if kinds is None:
        return "metadata operations", phase.dominant.share if phase.dominant is not None else None
    costs = {name: getattr(kinds, name) for name in _METADATA}
    most = max(costs, key=lambda name: (costs[name].time_s or 0.0, costs[name].count))
    # Concurrent calls of several threads add up to more than the elapsed time.
    return _METADATA[most], min(1.0, (costs[most].time_s or 0.0) / whole) if whole else None


# --- where ------------------------------------------------------------------------------------------


def files_line(profile: Profile, room: int) -> str:
    """The files with the longest I/O time (most bytes if times are unknown), counted over all files of the run.

    Parameters
    ----------
    room
        Maximum length of the line; in a longer one, the path is shortened in the middle.
    """
    files = costliest(profile)
    if files is None:
        return ""
    head = f"{_how_many(profile, files)}: "
    name = one_line(files.name)
    if len(head) + len(name) <= room:
        return head + name
    # The path gets a line of its own rather than being shortened.
    return f"{head.rstrip()}\n{shortened(name, room)}"


def _how_many(profile: Profile, files: Costliest) -> str:
    total = profile.workflow.files.total
    if isinstance(files.group, LookUp):
        row = files.group
        folders = f" in {format_count(row.folders)} folders" if row.folders > 1 else ""
        part = f", {format_share(files.share)} of the I/O time" if files.share is not None else ""
        return f"{format_count(row.calls)} look-ups of {counted(row.names, 'name')}{folders}{part}"
    used = _used(profile, files.group) if isinstance(files.group, NamePattern) else ""
    others = total != files.files
    number = format_count(files.files)
    if total is not None and total > files.files:
        number += f" of {format_count(total)}"
    elif not others and files.files > 1 and not used.startswith(", all "):
        number = f"all {number}"
    part = ""
    if others and files.share:
        share = "nearly all" if files.share >= _NEARLY_ALL else format_share(files.share)
        part = f", {share} of the I/O time"
    return f"{number} {'file' if number == '1' else 'files'}{used}{part}"


def _used(profile: Profile, pattern: NamePattern) -> str:
    """The processes that use the files; empty for a program with a single process, or if unknown."""
    several = pattern.files > 1
    processes = profile.workflow.processes
    if processes == 1:
        return ""
    # If all processes open a file and one writes it, that one may be an aggregator of collective calls.
    collective = any(row.layer == "mpiio" and row.collective_share for row in profile.interfaces or ())
    wrote_more = (pattern.bytes.written or 0) > (pattern.bytes.read or 0)
    if pattern.writer is not None and not collective and (not pattern.shared or wrote_more):
        who = f"rank {pattern.writer}" if len(profile.traces) == 1 else "one process"
        return f", {'all ' if several else ''}written by {who}"
    if pattern.processes == 1:
        return f", {'all ' if several else ''}of one process"
    if not pattern.shared:
        return ", each of one process" if several else ", of one process"
    if pattern.shared < pattern.files:
        return ", some shared"
    if pattern.processes is None:
        return ", all shared" if several else ", shared"
    if not several:
        return f", shared by {format_count(pattern.processes)} processes"
    return ", each shared by several processes"


def shortened(path: str, width: int) -> str:
    """Shorten a path in the middle, whole folders first, to at most `width` characters."""
    path = one_line(path)
    if len(path) <= width:
        return path
    parts = path.split("/")
    # The root of an absolute path is the empty first part.
    head, tail = ([parts[0] + "/" + parts[1]], parts[2:]) if path.startswith("/") else ([parts[0]], parts[1:])
    for first in range(1, len(tail)):
        short = "/".join([*head, "…", *tail[first:]])
        if len(short) <= width:
            return short
    name = "…/" + parts[-1] if len(parts) > 1 else path
    if len(name) <= width:
        return name
    # The end of a name, with numbers and suffixes, distinguishes files more often than its beginning.
    front = max(0, (width - 1) // 3)
    return name[:front] + "…" + name[len(name) - (width - 1 - front) :] if width > 1 else "…"


# --- how much ---------------------------------------------------------------------------------------

MAX_APPS = 3
"""Number of apps that fit into a line; the profile has them all."""


def by_app(profile: Profile) -> str:
    """The apps that take the I/O time, if there are several."""
    times = [(app.io.time_s.total or 0.0, one_line(app.name)) for app in profile.apps]
    whole = sum(time for time, _ in times)
    if len(times) < 2 or not whole:
        return ""
    most = sorted(times, key=lambda pair: (-pair[0], pair[1]))[:MAX_APPS]
    return f"{', '.join(f'{name} {format_share(time / whole)}' for time, name in most)} of the I/O time"


def moved(profile: Profile) -> str:
    """Bytes written and read, with the number of calls and the rate."""
    io = profile.workflow.io
    parts = []
    for done, amount, count, rate, side in (
        ("written", io.bytes.written, io.ops.write, io.bandwidth.write, "write"),
        ("read", io.bytes.read, io.ops.read, io.bandwidth.read, "read"),
    ):
        if not count:
            continue
        text = f"{format_bytes(amount)} {done} by {counted(count, 'call')}"
        if f"io.bandwidth.{side}" in profile.provenance and rate is None:
            text += " (at an impossible rate: see below)"
        elif rate:
            text += f" at {_rate(profile, side, amount, rate)}"
        parts.append(text)
    return "; ".join(parts)


def _rate(profile: Profile, side: str, amount: int | None, rate: float) -> str:
    """A rate, or its range."""
    low, high = profile.bounds.get(f"workflow.io.busy_s.{side}", (0.0, 0.0))
    if not high or not amount:
        return format_rate(rate)
    least = format_rate(amount / high)
    most = format_rate(amount / low) if low else ""
    return f"{least} or more" if not most else least if least == most else f"{least} to {most}"


# --- behaviour of the program -----------------------------------------------------------------------

PROGRAM: Final = "The program (summed over processes):"
MAX_LINES: Final = 8


def pattern_words(pattern: str) -> str:
    """The name of a pattern in words."""
    return one_line(pattern).replace("_io", " I/O").replace("_", " ")


def acts_on(patterns: Sequence[str]) -> str:
    """A sentence with the patterns on which a recommendation acts."""
    return f"Acts on: {', '.join(map(pattern_words, patterns))}."


def place(observation: Observation) -> str:
    """Place of an observation as the trace names it, not yet safe to print; empty for the whole job."""
    target = observation.target
    return target.path or target.app or ("" if target.kind == "job" else target.kind)


def _places(observation: Observation) -> int:
    """Number of places among the figures: the share is of all places, and the numbers are of the costliest one."""
    name = re.compile(r"(files|patterns)\[\d+\]\.(path|pattern)")
    return sum(name.fullmatch(item.attribute) is not None for item in observation.evidence)


def advised_rules(advice: Advice) -> frozenset[str]:
    """Rules that recommend something."""
    return frozenset(entry.rule for entry in advice.recommendations)


def kept_end(text: str, width: int) -> str:
    """A text that does not fit into `width` columns without its beginning, since the end of a path says most."""
    return f"\u2026{text[1 - width :]}" if len(text) > width > 1 else text


_SIZES: Final = ("bytes", "footprint", "p50", "past_end", "asked")
_NUMBERS: Final = {
    "io.ops.read": "read", "io.ops.write": "write", "io.ops.sync": "flush", "ops.sync": "flush", "opens": "open",
    "files": "file", "calls": "call", "names": "name", "processes": "process", "io.ops.metadata": "metadata call",
    "io.metadata_kinds.stat.count": "stat", "io.metadata_kinds.open.count": "open",
    "io.transfer_size.read.p50": "in a usual read", "io.transfer_size.write.p50": "in a usual write",
    "io.bytes.read": "read", "io.bytes.written": "written", "io.bytes.total": "moved", "bytes.total": "moved",
    "io.footprint.read": "distinct", "io.footprint.written": "distinct", "io.past_end.read": "past the end",
    "asked.total": "requested", "balance.busiest_bytes": "by the busiest process", "balance.mean_bytes": "in the mean",
}  # fmt: skip


def numbers_of(observation: Observation | Recommendation) -> list[str]:
    """The figures of an observation's costliest place, or of the first place of a recommendation, in words."""
    texts, place = [], ""
    for item in observation.evidence:
        place = place or re.split(r"(?<=\])\.|(?<=workflow)\.", item.attribute)[0]
        name = item.attribute.removeprefix(f"{place}.")
        if name in _NUMBERS and isinstance(item.value, int | float) and item.value:
            number, word = round(item.value), _NUMBERS[name]
            is_size = any(part in name for part in _SIZES)
            texts.append(f"{format_bytes(number)} {word}" if is_size else counted(number, word))
    if texts and observation.target.kind == "dataset" and place.startswith("files["):
        texts[-1] += " in one file"
    return texts


_LEAST_PLACE: Final = 16
"""Columns that numbers leave for a place."""
LEAST_SHARE = 0.01
"""Patterns with less of the I/O time stay in the advice alone."""


def worth_showing(observations: Sequence[Observation]) -> Sequence[Observation]:
    """Those with at least `LEAST_SHARE` of the I/O time or no known share; all if there are no others."""
    return [seen for seen in observations if seen.share is None or seen.share >= LEAST_SHARE] or observations


def observation_lines(observations: Sequence[Observation], width: int, advised: Collection[str] = ()) -> list[str]:
    """A printable line for each of the first `MAX_LINES`: pattern, share, seconds, `advised` rules, numbers, place.

    A place that does not fit into `width` columns keeps its end; numbers that leave no room for it are left out.
    """
    lines, observations = [], worth_showing(observations)
    for observation in observations[:MAX_LINES]:
        line = pattern_words(observation.pattern)
        if observation.share is not None:
            line += f", {format_share(observation.share)} of the I/O time"
        if observation.time_s:
            line += f", {format_seconds(observation.time_s)}"
        rules = [one_line(rule) for rule in observation.rules if rule in advised]
        line += f" ({', '.join(rules)})" if rules else ""
        where, others = one_line(place(observation)), " and others" if _places(observation) > 1 else ""
        numbers = numbers_of(observation)
        while numbers and len(line) + len(", ".join(numbers)) + min(len(where), _LEAST_PLACE) + len(others) + 4 > width:
            numbers.pop()
        line += f": {', '.join(numbers)}" if numbers else ""
        line += f": {kept_end(where, width - len(line) - 2 - len(others))}{others}" if where else ""
        lines.append(line)
    if len(observations) > MAX_LINES:
        lines.append(f"and {len(observations) - MAX_LINES} more, which `vani advise` writes")
    return lines
