"""Plots of files: their I/O time, access patterns and sizes; related files (`out_00000`, ...) are one dataset."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from vani.render.plots import encoding
from vani.render.plots.drawing import Drawing, plot
from vani.render.report.file_tables import PATTERNS, FileGroup, file_groups
from vani.schema.profile import IOStats, Profile
from vani.schema.saved_profile import IOSummary
from vani.units import counted, format_bytes, format_seconds, format_share

_MAX_FILES = 15
_MAX_TABLE_ROWS = 200


@plot(
    "files",
    "I/O time by file",
    "seconds in reads, writes, flushes and metadata calls of each file or dataset",
    position=90,
)
def files(profile: Profile) -> Drawing | str:
    """I/O time by file or dataset."""
    if not profile.files:
        return "the profile lists no file"
    if all(f.io.time_s.total is None for f in profile.files):
        return encoding.NO_TIMES
    costs = [(g, by_kind) for g in file_groups(profile.files) if any(by_kind := _seconds(g))]
    if not costs:
        return "no time was spent in I/O on files"
    rows = [(_label(g), by_kind) for g, by_kind in costs[:_MAX_FILES]]
    if rest := costs[_MAX_FILES:]:
        many = sum(len(g.files) for g, _ in rest)
        sums = [sum(column) for column in zip(*(by_kind for _, by_kind in rest), strict=True)]
        rows.append((f"all other listed files ({many:,})", sums))
    values = encoding.stacked(seconds for _, seconds in rows)
    sums = [sum(seconds) for _, seconds in rows]
    ends: list[dict[str, Any]] = [
        {"row": i, "to": encoding.number(end), "text": format_seconds(end)} for i, end in enumerate(sums)
    ]
    x = {
        "type": "quantitative",
        "scale": encoding.up_to(max(e["to"] for e in ends), 60),
        "axis": encoding.seconds_axis("seconds in calls, summed over processes"),
    }
    tooltip = [encoding.category("name"), encoding.category("kind"), encoding.quantity("seconds", format=",.6~g")]
    totals = [encoding.text(ends, {"y": _rows(rows), "x": {**x, "field": "to"}}, "text", dx=5, dy=8)]
    listed, all_files = len(profile.files), profile.dataset.files
    cut = ""
    if all_files is not None and listed < all_files:
        cut = f" The profile lists {listed:,} of {all_files:,} files, those with most I/O time."
    total = sum(sum(by_kind) for _, by_kind in costs)
    first, of_first = costs[0]
    return Drawing(
        caption="Seconds in calls on each file, summed over processes; files that differ only in numbers are one row "
        f"with their number behind. A few long bars mean that only these files are worth tuning.{cut}",
        description=f"{counted(len(profile.files), 'file')} in {counted(len(costs), 'group')}. Most time, "
        f"{format_seconds(sum(of_first))} or {format_share(sum(of_first) / total)} of that on all of them, goes to "
        f"{_label(first)}, which moves {format_bytes(_bytes(first))}.",
        spec=_named_bars(values, 36, [label for label, _ in rows], x, {"band": 0.38}, tooltip, ends, totals),
        table=(
            ("files", "number of files", *(f"{kind} (s)" for kind in encoding.CALL_KINDS), "bytes"),
            tuple(
                (encoding.name(g.name, 80), len(g.files), *map(encoding.number, by_kind), _bytes(g))
                for g, by_kind in costs[:_MAX_TABLE_ROWS]
            ),
        ),
    )


def _rows(rows: Sequence[object]) -> dict[str, Any]:
    return encoding.ordered("row", scale={"domain": list(range(len(rows)))}, axis=None)


def _named_bars(
    values: Sequence[dict[str, Any]],
    row_px: int,
    names: Sequence[str],
    x: dict[str, Any],
    height: dict[str, float],
    tooltip: Sequence[dict[str, Any]],
    rows: Sequence[dict[str, Any]],
    texts: Sequence[dict[str, Any]] = (),
    color: dict[str, Any] | None = None,
    **mark: Any,
) -> dict[str, Any]:
    """Stacked bars with names above them, since next to them they would leave no room on a narrow page."""
    y = _rows(names)
    bars = encoding.bars(values, y, x, *tooltip, height=height, yOffset=8, **mark)
    bars["transform"] = [encoding.ROW_NAME]
    if color is not None:
        bars["encoding"]["color"] = color
    at = {"y": y, "x": {**x, "datum": 0}}
    above = encoding.text(rows, at, "name", transform=[encoding.ROW_NAME], dx=2, dy=-8, limit=300)
    return encoding.chart(
        values,
        row_px * len(names) + 10,
        params=[{"name": "row_name", "value": list(names)}],
        layer=[bars, *texts, above],
    )


def _label(group: FileGroup) -> str:
    return encoding.tail(group.name, 40) + (f" ({len(group.files):,} files)" if len(group.files) > 1 else "")


def _seconds(group: FileGroup) -> list[float]:
    times = [file.io.time_s for file in group.files]
    return [sum(seconds for seconds in map(attrgetter(kind), times) if seconds) for kind in encoding.CALL_KINDS]


def _bytes(group: FileGroup) -> int:
    return sum((f.io.bytes.read or 0) + (f.io.bytes.written or 0) for f in group.files)


# --- access patterns (paper, tables V and VII) -------------------------------------------------------

_MEANINGS = {
    "consecutive": "each begins where the one before ended, by process and file",
    "sequential": "each begins further on than the one before ended, by process and file",
    "strided": "each begins at a steady distance from the one before, by process and file",
    "random": "they go back and forth, by process and file",
}
_ALL = 0.9995
"""Shares above this are shown as all."""
_MAX_APPS, _MAX_GROUPS = 10, 8


@dataclass(frozen=True)
class _Accesses:
    """Reads and writes of some entities, and the share of each pattern."""

    label: str
    operations: int
    shares: dict[str, float]


@plot(
    "access-patterns",
    "Access patterns",
    "share of consecutive, sequential, strided and random accesses",
    position=110,
)
def access_patterns(profile: Profile) -> Drawing | str:
    """Where reads and writes start relative to the end of the previous one."""
    rows = [row for row in _accesses(profile) if row.operations]
    if not rows:
        io = profile.workflow.io
        why = profile.provenance.get("io.access_pattern", "the profile does not say where accesses begin")
        return why if io.ops.read + io.ops.write else "no data was read or written"
    only = [pattern for pattern in PATTERNS if all(row.shares[pattern] >= _ALL for row in rows)]
    shares = [[row.shares[pattern] for pattern in PATTERNS] for row in rows]
    values = encoding.stacked(shares, PATTERNS, "share", kind="pattern")
    for value in values:
        value["operations"] = rows[value["row"]].operations
    x = {
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": encoding.share_axis("share of reads and writes"),
    }
    legend = {"title": None, "symbolType": "square"}
    tooltip = [
        encoding.category("name"),
        encoding.category("pattern"),
        encoding.quantity("share", format=".3~%"),
        encoding.quantity("operations", format=",", title="reads and writes"),
    ]
    spec = _named_bars(
        values,
        34,
        [row.label for row in rows],
        x,
        {"band": 0.42},
        tooltip,
        [{"row": i} for i in range(len(rows))],
        color=encoding.ordered("pattern", sort=list(PATTERNS), scale={"domain": list(PATTERNS)}, legend=legend),
        style="outlined-thin",
    )
    said = "; ".join(
        f"{row.label}: " + ", ".join(f"{format_share(row.shares[p])} {p}" for p in PATTERNS if row.shares[p])
        for row in rows[:10]
    )
    return Drawing(
        caption="Where reads and writes begin, by process and file: where the one before ended (consecutive), further "
        "on (sequential), at steady distances (strided) or anywhere (random). File systems read ahead and join "
        "requests only while accesses move forward.",
        description=f"{said}.",
        spec=spec,
        table=(
            ("entity", *PATTERNS, "reads and writes"),
            tuple((row.label, *(encoding.number(row.shares[p]) for p in PATTERNS), row.operations) for row in rows),
        ),
        sentence=f"All {rows[0].operations:,} reads and writes are {only[0]}: {_MEANINGS[only[0]]}." if only else "",
    )


def _accesses(profile: Profile) -> Iterator[_Accesses]:
    """The workload, its apps, and the files (or datasets of many files) with most reads and writes."""
    yield _together("workload", [profile.workflow.io])
    apps = [_together(f"app {encoding.name(app.name, 24)}", [app.io]) for app in profile.apps]
    groups = [_together(_label(group), [file.io for file in group.files]) for group in file_groups(profile.files)]
    for some, most in ((apps if len(apps) > 1 else [], _MAX_APPS), (groups, _MAX_GROUPS)):
        yield from sorted(some, key=lambda row: (-row.operations, row.label))[:most]


def _together(label: str, stats: Sequence[IOStats | IOSummary]) -> _Accesses:
    """Shares of several entities combined, weighted by their reads and writes."""
    known = [(io.access_pattern, io.ops.read + io.ops.write) for io in stats if io.access_pattern is not None]
    operations = sum(weight for _, weight in known)
    sums = {p: sum((getattr(pattern, p) * weight for pattern, weight in known), 0.0) for p in PATTERNS}
    return _Accesses(label, operations, {p: s / operations for p, s in sums.items()} if operations else sums)


# --- sizes (paper, table X: "file size distribution") ------------------------------------------------


@plot("file-sizes", "Sizes of files", "number of files by size", position=100)
def file_sizes(profile: Profile) -> Drawing | str:
    """Sizes of the data set's files."""
    sizes = profile.dataset.size_distribution
    if sizes is None or not sizes.known:
        return "no file's size is known: `vani collect` inside the job writes them into job.yaml"
    bins = encoding.by_size(sizes.histogram)
    values = [{"size": b, "files": sizes.histogram.get(b, 0)} for b in bins]
    axis = {"title": "files", "tickMinStep": 1, "tickCount": 5, "format": ",d"}
    channels = {
        "x": encoding.ordered("size", sort=bins, axis={"title": "file size (bytes)", **encoding.size_labels(bins)}),
        "y": encoding.quantity("files", axis=axis),
    }
    bars = {
        "mark": {"type": "bar", "width": {"band": 0.75}},
        "encoding": {**channels, "tooltip": [encoding.ordered("size"), encoding.quantity("files", format=",")]},
    }
    counts = {
        "transform": [{"filter": "datum.files > 0"}],
        "mark": {"type": "text", "style": "ink", "dy": -7},
        "encoding": {**channels, "text": {"field": "files", "format": ","}},
    }
    unknown = (profile.dataset.files or 0) - sizes.known
    spread = format_bytes(sizes.max)
    if sizes.min != sizes.max:
        spread = f"from {format_bytes(sizes.min)} to {spread}, half of them up to {format_bytes(sizes.p50)}"
    left_out = f" The size of {counted(unknown, 'further file')} is not known: most such files were only read."
    return Drawing(
        caption="How many files of the data set are how large. Many small files cost opens and closes rather than "
        "bandwidth; they can be packed together." + (left_out if unknown > 0 else ""),
        description=f"{counted(sizes.known, 'file')} of known size, {spread}: "
        + ", ".join(f"{v['size']}: {v['files']:,}" for v in values if v["files"])
        + ".",
        spec=encoding.chart(values, 200, layer=[bars, counts]),
        table=(("size (bytes)", "files"), tuple((v["size"], v["files"]) for v in values)),
        sentence=_one_size(sizes.known, sizes.min, sizes.max) if len(values) == 1 else "",
    )


def _one_size(files: int, least: int | None, most: int | None) -> str:
    """Text about one bar."""
    if files == 1:
        return f"The one file of known size has {format_bytes(most)}."
    both = "" if least == most else f"{format_bytes(least)} to "
    return f"All {counted(files, 'file')} of known size have {both}{format_bytes(most)}."


# --- storage targets ---------------------------------------------------------------------------------


@plot("targets", "Time per storage target", "time in reads and writes of the files on each Lustre target", position=105)
def targets(profile: Profile) -> Drawing | str:
    """The slowest storage targets, by the time of a process in the files that are on each."""
    known = [(mount, target) for mount in profile.storage.mounts or () for target in mount.slowest_targets or ()]
    if not known:
        return "the source does not record which storage targets files are on: a Darshan log of a run on Lustre does"
    names = [f"OST {target.target} ({counted(target.files, 'file')})" for _, target in known]
    values = encoding.stacked(((target.read_s, target.write_s) for _, target in known), ("read", "write"))
    params, y = encoding.numbered("row", names)
    x = encoding.quantity("from", axis=encoding.seconds_axis("time of a process in a file, mean over the files"))
    typical = [(mount.median_read_s or 0) + (mount.median_write_s or 0) for mount, _ in known]
    bars = encoding.bars(values, y, x, encoding.category("kind"), encoding.quantity("seconds", format=",.4~g"))
    line = encoding.mean_line({"seconds": encoding.number(typical[0])}, {"x": {**x, "field": "seconds"}})
    slowest = known[0][1]
    return Drawing(
        caption="Time of a process in reads and writes of a file on each Lustre target, slowest first; the dashed line "
        "is the median target. A target far to the right of it slows every file that is on it.",
        description=f"{names[0]} takes {format_seconds(slowest.read_s + slowest.write_s)} per file; the median target "
        f"takes {format_seconds(typical[0])}.",
        spec=encoding.chart(values, 26 * len(known) + 10, params=params, layer=[bars, line]),
        table=(
            ("mount", "target", "files", "bytes", "read (s)", "write (s)"),
            tuple((m.dir, t.target, t.files, t.bytes, t.read_s, t.write_s) for m, t in known),
        ),
    )
