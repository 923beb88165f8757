"""The table of files, in which each dataset of files related by name, role and format is one row; and their layouts."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from vani.columns import texts
from vani.name_patterns import NamePatterns
from vani.render.report import tables
from vani.schema.profile import NamePattern, Profile
from vani.schema.saved_profile import ListedFile
from vani.units import counted, format_bytes, format_count, format_share

PATTERNS = ("consecutive", "sequential", "strided", "random")


@dataclass(frozen=True)
class FileGroup:
    """A file, or a group of files in one table row; `name` is its path, or the pattern of their paths."""

    name: str
    files: tuple[ListedFile, ...]
    """Longest I/O time first, or most bytes if times are unknown."""

    @property
    def io_time_s(self) -> float:
        """Seconds of I/O, summed over files and processes; unknown values count as 0."""
        return self.weight[0]

    @property
    def weight(self) -> tuple[float, int]:
        """The cost of the group: seconds of I/O, then bytes; unknown values count as 0."""
        weights = [_weight(file) for file in self.files]
        return sum(seconds for seconds, _ in weights), sum(moved for _, moved in weights)


_cache: ContextVar[dict[int, tuple[Sequence[ListedFile], list[FileGroup]]] | None] = ContextVar(
    "groups", default=None
)


@contextmanager
def groups_kept() -> Iterator[None]:
    """Within this context, group each list of files only once: a report and its plots need the same groups."""
    token = _cache.set({})
    try:
        yield
    finally:
        _cache.reset(token)


def file_groups(files: Sequence[ListedFile]) -> list[FileGroup]:
    """Group files by the patterns of their paths (`vani.name_patterns`); longest I/O time first."""
    cache = _cache.get()
    if cache is None:
        return _grouped(files)
    if id(files) not in cache:
        # Keep the list itself: otherwise another list could get its id.
        cache[id(files)] = files, _grouped(files)
    return list(cache[id(files)][1])


def _grouped(files: Sequence[ListedFile]) -> list[FileGroup]:
    kinds: dict[tuple[str | None, str | None], int] = {}
    apart = np.array([kinds.setdefault((file.role, file.format), len(kinds)) for file in files], np.int64)
    patterns = NamePatterns(texts([_encodable(file.path) for file in files]), apart)
    groups = [
        FileGroup(patterns.name(code), _ordered(files[place] for place in patterns.members(code).tolist()))
        for code in range(patterns.count)
    ]
    return sorted(groups, key=lambda group: (*(-part for part in group.weight), group.name))


def _encodable(path: str) -> str:
    """A path without lone surrogates, which a JSON document can contain but Arrow text cannot."""
    return path if path.isascii() else path.encode(errors="replace").decode()


def _ordered(files: Iterable[ListedFile]) -> tuple[ListedFile, ...]:
    return tuple(sorted(files, key=lambda file: (*(-part for part in _weight(file)), file.path)))


def _weight(file: ListedFile) -> tuple[float, int]:
    return file.io.time_s.total or 0.0, file.io.bytes.total or 0


# --- the table of files ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Columns:
    """How to show files: columns that not every profile has, and the length of the folder that all paths share."""

    flushed: bool
    described: bool
    skipped: int
    limits: tables.Limits

    def titles(self) -> tuple[tables.Column, ...]:
        numbers = ("Processes", "Size", "Read", "Written", "Data calls", *(("Flushes",) if self.flushed else ()))
        return (
            tables.Column("File or dataset"),
            tables.Column("Role"),
            *(tables.Column(title, number=True) for title in (*numbers, "Metadata calls", "I/O time", "Transfer size")),
            tables.Column("Access"),
            *((tables.Column("Holds"),) if self.described else ()),
        )

    def cells(
        self, path: str, note: str, files: Sequence[ListedFile], processes: tables.Cell, sizes: tables.Cell,
        moved: "_Moved"
    ) -> tuple[tables.Cell, ...]:
        return (
            tables.words(tables.clip(path[self.skipped :], self.limits.path), note),
            tables.words(files[0].role or "not known"),
            processes,
            sizes,
            tables.size(moved.read),
            tables.size(moved.written),
            tables.count(moved.data),
            *([tables.count(moved.flushes)] if self.flushed else ()),
            tables.count(moved.metadata),
            tables.seconds(moved.time_s),
            _transfer(files),
            _access(files),
            *([tables.words(_arrays(files))] if self.described else ()),
        )

    def file(self, file: ListedFile) -> tables.Row:
        processes = tables.count(file.processes, "shared" if file.access == "shared" else "")
        return tables.Row(self.cells(file.path, "", [file], processes, tables.size(file.size), _Moved.of([file])))

    def group(self, group: FileGroup, whole: NamePattern | None, shown: Sequence[ListedFile]) -> tables.Row:
        """A row; `whole` is its pattern if that includes unlisted files."""
        if len(group.files) == 1 and whole is None:
            return self.file(group.files[0])
        files = group.files
        shared = sum(file.access == "shared" for file in files)
        users = sorted({file.processes for file in files})
        part = "all shared" if shared == len(files) else f"{format_count(shared)} shared" if shared else ""
        each = " to ".join(map(format_count, dict.fromkeys((users[0], users[-1]))))
        known = [file.size for file in files if file.size is not None]
        sizes = tables.size(sum(known) if known else None)
        if 0 < len(known) < len(files):
            sizes = replace(sizes, note=f"{format_count(len(known))} known")
        elif known:
            sizes = replace(sizes, note=_each(known))
        many = f"dataset of {format_count(len(files) if whole is None else whole.files)} files"
        many += "" if whole is None else f", {format_count(len(files))} listed"
        moved = _Moved.of(files)
        if whole is not None:
            calls, sizes = whole.reads + whole.writes, tables.size(whole.size)
            moved = _Moved(whole.bytes.read, whole.bytes.written, calls, whole.flushes, None, whole.time_s)
        cells = self.cells(group.name, many, files, tables.Cell(each, users[-1], part), sizes, moved)
        return tables.Row(cells, tuple(map(self.file, shown)), len(files) - len(shown))


@dataclass(frozen=True)
class _Moved:
    """Bytes, calls and time of files; None for what is unknown of one of them."""

    read: float | None
    written: float | None
    data: int
    flushes: int
    metadata: int | None
    time_s: float | None

    @classmethod
    def of(cls, files: Sequence[ListedFile]) -> "_Moved":
        def total(attribute: str) -> float | None:
            values = [value for value in map(attrgetter(attribute), files) if value is not None]
            return sum(values) if len(values) == len(files) else None

        return cls(
            total("io.bytes.read"),
            total("io.bytes.written"),
            sum(file.io.ops.read + file.io.ops.write for file in files),
            sum(file.io.ops.sync for file in files),
            sum(file.io.ops.metadata for file in files),
            total("io.time_s.total"),
        )


def file_table(profile: Profile, groups: Sequence[FileGroup], limits: tables.Limits) -> tuple[tables.Table, list[str]]:
    """The table, and sentences about omitted files."""
    folder = _folder([file.path for group in groups for file in group.files])
    columns = _Columns(
        flushed=any(file.io.ops.sync for file in profile.files),
        described=any(file.format_attributes is not None for file in profile.files),
        skipped=len(folder),
        limits=limits,
    )
    rows = []
    members_left = limits.all_members
    whole = _of_all_files(profile, groups)
    for group in groups[: limits.groups]:
        shown = group.files[: min(limits.members, members_left)] if len(group.files) > 1 else ()
        members_left -= len(shown)
        rows.append(columns.group(group, whole.get(group.name), shown))
    left_out = len(groups) - len(rows)
    table = tables.Table("files", _caption(profile, groups, folder, limits), columns.titles(), tuple(rows), left_out)
    notes = []
    listed, total = len(profile.files), profile.workflow.files.total
    if total is None:
        notes.append(
            "Files that were renamed are not listed: which calls were on them depends on the order of calls."
        )
    elif listed < total:
        notes.append(
            f"The profile lists {format_count(listed)} of {format_count(total)} files, those with the most I/O time "
            "(`vani profile --files all` lists all); totals of the workload count every file."
        )
    if left_out:
        notes.append(f"{counted(left_out, 'row')} of the file table with less I/O time than those shown.")
    hidden = sum(row.unlisted for row in rows)
    if hidden:
        notes.append(f"{counted(hidden, 'file')} of datasets: their dataset's row counts them.")
    return table, notes


def _of_all_files(profile: Profile, groups: Sequence[FileGroup]) -> dict[str, NamePattern]:
    """Patterns with unlisted files, by name, except those whose files are in several rows."""
    if profile.lists_all_files:
        return {}
    rows = Counter(group.name for group in groups)
    listed = {group.name: len(group.files) for group in groups}
    return {
        pattern.pattern: pattern
        for pattern in profile.patterns or ()
        if rows[pattern.pattern] == 1 and pattern.files > listed[pattern.pattern]
    }


def _caption(profile: Profile, groups: Sequence[FileGroup], folder: str, limits: tables.Limits) -> str:
    files, total = len(profile.files), profile.workflow.files.total
    part = total is not None and files < total
    listed = f"{format_count(files)} of {format_count(total)}" if part else format_count(files)
    caption = f"{listed} file{'' if total == files == 1 else 's'}"
    if folder:
        caption += f" in `{tables.clip(folder, limits.path).replace('`', '')}`"
    timed = any(group.files[0].io.time_s.total is not None for group in groups)
    caption += f", most {'I/O time' if timed or not groups else 'bytes'} first"
    datasets = sum(len(group.files) > 1 for group in groups)
    if datasets:
        many = f"{format_count(datasets)} dataset{'' if datasets == 1 else 's'}"
        caption += f"; files whose names differ only in numbers are one row ({many})"
    return f"{caption}. The transfer size is the most frequent one."


def _folder(paths: Sequence[str]) -> str:
    """The folder that all files share, with a final slash; empty if it is not worth mentioning."""
    if len(paths) < 2 or not all(path.startswith("/") for path in paths):
        return ""
    shared = os.path.commonpath([os.path.dirname(path) for path in paths])  # noqa: PTH120 - text, not places on this machine
    folder = f"{shared}/"
    # Paths such as /a//b are not shortened: the removed part must be the beginning of every path.
    return folder if folder.count("/") > 2 and all(path.startswith(folder) for path in paths) else ""


def _arrays(files: Sequence[ListedFile]) -> str:
    """The arrays in the files (table XI); empty if unknown, or if they differ."""
    attributes = files[0].format_attributes
    if attributes is None or any(file.format_attributes != attributes for file in files):
        return ""
    arrays = None
    if attributes.datasets is not None:
        arrays = f"{format_count(attributes.datasets)} array{'s'[: attributes.datasets != 1]}"
    dims = None if attributes.dims is None else f"{attributes.dims}-D"
    chunks = None if not attributes.chunks else f"chunks of {' x '.join(map(str, attributes.chunks))}"
    return ", ".join(filter(None, (arrays, " ".join(filter(None, (dims, attributes.type))), chunks)))


def _each(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{format_bytes(low)} each" if low == high else f"{format_bytes(low)} to {format_bytes(high)}"


def _transfer(files: Iterable[ListedFile]) -> tables.Cell:
    """The most common size of a data operation, as far as the profile lists sizes."""
    sizes: Counter[int] = Counter()
    for file in files:
        for side in (file.io.transfer_size.read, file.io.transfer_size.write):
            for length, operations in side.common if side is not None else ():
                sizes[length] += operations
    if not sizes:
        return tables.Cell("", None)
    # The larger of equally common ones, independent of the order of files.
    return tables.size(max(sizes, key=lambda length: (sizes[length], length)))


def _access(files: Iterable[ListedFile]) -> tables.Cell:
    """The pattern of most data operations, with its share."""
    shares = dict.fromkeys(PATTERNS, 0.0)
    operations = 0
    for file in files:
        pattern = file.io.access_pattern
        if pattern is None:
            continue
        weight = file.io.ops.read + file.io.ops.write
        operations += weight
        for name in PATTERNS:
            shares[name] += weight * getattr(pattern, name)
    if not operations:
        return tables.words("")
    most = max(PATTERNS, key=lambda name: shares[name])
    return tables.words(most, format_share(shares[most] / operations))


# --- layouts -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    """Files with the same layout."""

    targets: int
    stripe: int
    files: Sequence[ListedFile]

    @property
    def fullest(self) -> float:
        """Bytes on a target of the file with the most bytes per target."""
        return max((file.io.bytes.total or 0) / self.targets for file in self.files)


def layout_table(files: Iterable[ListedFile], limits: tables.Limits) -> tables.Table | None:
    """Files by layout, those with most bytes on a target first; None if no layout is known.

    A profile contains the number of a file's Lustre targets, not their identity, so a target's load is the mean. On
    CephFS, stripes are no targets.
    """
    by_layout: defaultdict[tuple[int, int], list[ListedFile]] = defaultdict(list)
    for file in files:
        if file.stripe_count is not None and file.object_size is None:
            by_layout[file.stripe_count, file.stripe_size or 0].append(file)
    if not by_layout:
        return None

    def time(layout: _Layout) -> tables.Cell:
        times = [file.io.time_s.total for file in layout.files if file.io.time_s.total is not None]
        return tables.seconds(sum(times) if times else None)

    columns = (
        tables.shows("Storage targets", "targets"),
        tables.shows("Stripe size", lambda layout: tables.size(layout.stripe or None)),
        tables.shows("Files", lambda layout: tables.count(len(layout.files))),
        tables.shows("Processes on one of them",
            lambda layout: tables.count(max(file.processes for file in layout.files))),
        tables.shows("Bytes moved", lambda layout: tables.size(sum(file.io.bytes.total or 0 for file in layout.files))),
        tables.shows("Bytes on a target of the fullest", "fullest", tables.size),
        tables.shows("I/O time", time),
    )
    layouts = sorted((_Layout(*shape, some) for shape, some in by_layout.items()), key=lambda some: -some.fullest)
    caption = (
        "Listed files by their layout on Lustre. A file on few targets that many processes use at once is as fast as "
        "those targets; a small file on many costs an object on each."
    )
    return tables.table_of("layouts", caption, layouts, columns, limits.rows)
