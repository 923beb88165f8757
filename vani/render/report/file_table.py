"""The table of files, in which each dataset of many files is one row."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from vani.render.report.bounds import Limits, clip
from vani.render.report.datasets import FileGroup
from vani.render.report.tables import Cell, Column, Row, Table, count, seconds, size, words
from vani.schema.profile import NamePattern, Profile
from vani.schema.saved_profile import ListedFile
from vani.units import counted, format_bytes, format_count, format_share

_PATTERNS = ("consecutive", "sequential", "strided", "random")


def file_table(profile: Profile, groups: Sequence[FileGroup], limits: Limits) -> tuple[Table, list[str]]:
    """The table, and sentences about omitted files."""
    folder = _folder([file.path for group in groups for file in group.files])
    rows = []
    members_left = limits.all_members
    flushed = any(file.io.ops.sync for file in profile.files)
    described = any(file.format_attributes is not None for file in profile.files)
    whole = _of_all_files(profile, groups)
    for group in groups[: limits.groups]:
        shown = group.files[: min(limits.members, members_left)] if len(group.files) > 1 else ()
        members_left -= len(shown)
        pattern = whole.get(group.name)
        rows.append(_group_row(group, pattern, shown, len(folder), limits, flushed=flushed, described=described))
    left_out = len(groups) - len(rows)
    columns = _columns(flushed=flushed, described=described)
    table = Table("files", _caption(profile, groups, folder, limits), columns, tuple(rows), left_out)
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


def _columns(*, flushed: bool, described: bool) -> tuple[Column, ...]:
    numbers = ("Processes", "Size", "Read", "Written", "Data calls", *(("Flushes",) if flushed else ()))
    return (
        Column("File or dataset"),
        Column("Role"),
        *(Column(title, number=True) for title in (*numbers, "Metadata calls", "I/O time", "Transfer size")),
        Column("Access"),
        *((Column("Holds"),) if described else ()),
    )


def _caption(profile: Profile, groups: Sequence[FileGroup], folder: str, limits: Limits) -> str:
    files, total = len(profile.files), profile.workflow.files.total
    part = total is not None and files < total
    listed = f"{format_count(files)} of {format_count(total)}" if part else format_count(files)
    caption = f"{listed} file{'' if total == files == 1 else 's'}"
    if folder:
        caption += f" in `{clip(folder, limits.path).replace('`', '')}`"
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


def _group_row(
    group: FileGroup,
    whole: NamePattern | None,
    shown: Sequence[ListedFile],
    skipped: int,
    limits: Limits,
    *,
    flushed: bool,
    described: bool,
) -> Row:
    """A row, with the first `skipped` characters of paths removed.

    `whole` is its pattern if that includes unlisted files. `flushed` adds the number of flushes, and `described`
    the known facts about the files' arrays.
    """
    if len(group.files) == 1 and whole is None:
        return _file_row(group.files[0], skipped, limits, flushed=flushed, described=described)
    files = group.files
    shared = sum(file.access == "shared" for file in files)
    users = sorted({file.processes for file in files})
    part = "all shared" if shared == len(files) else f"{format_count(shared)} shared" if shared else ""
    each = (
        format_count(users[0])
        if len(users) == 1
        else f"{format_count(users[0])} to {format_count(users[-1])}"
    )
    known = [file.size for file in files if file.size is not None]
    sizes = size(sum(known) if known else None)
    if 0 < len(known) < len(files):
        sizes = Cell(sizes.text, sizes.value, f"{format_count(len(known))} known")
    elif known:
        sizes = Cell(sizes.text, sizes.value, _each(known))
    many = f"dataset of {format_count(len(files) if whole is None else whole.files)} files"
    many += "" if whole is None else f", {format_count(len(files))} listed"
    moved: tuple[float | None, float | None, int, int, int | None, float | None] = (
        _sum(files, lambda file: file.io.bytes.read),
        _sum(files, lambda file: file.io.bytes.written),
        sum(file.io.ops.read + file.io.ops.write for file in files),
        sum(file.io.ops.sync or 0 for file in files),
        sum(file.io.ops.metadata for file in files),
        _sum(files, lambda file: file.io.time_s.total),
    )
    if whole is not None:
        calls, sizes = whole.reads + whole.writes, size(whole.size)
        moved = (whole.bytes.read, whole.bytes.written, calls, whole.flushes, None, whole.time_s)
    cells = (
        words(clip(group.name[skipped:], limits.path), many),
        words(files[0].role or "not known"),
        Cell(each, users[-1], part),
        sizes,
        size(moved[0]),
        size(moved[1]),
        count(moved[2]),
        *([count(moved[3])] if flushed else ()),
        count(moved[4]),
        seconds(moved[5]),
        _transfer(files),
        _access(files),
        *([words(_arrays(files))] if described else ()),
    )
    members = tuple(_file_row(file, skipped, limits, flushed=flushed, described=described) for file in shown)
    return Row(cells, members, len(files) - len(shown))


def _file_row(file: ListedFile, skipped: int, limits: Limits, *, flushed: bool, described: bool) -> Row:
    cells = (
        words(clip(file.path[skipped:], limits.path)),
        words(file.role or "not known"),
        count(file.processes, "shared" if file.access == "shared" else ""),
        size(file.size),
        size(file.io.bytes.read),
        size(file.io.bytes.written),
        count(file.io.ops.read + file.io.ops.write),
        *([count(file.io.ops.sync)] if flushed else ()),
        count(file.io.ops.metadata),
        seconds(file.io.time_s.total),
        _transfer([file]),
        _access([file]),
        *([words(_arrays([file]))] if described else ()),
    )
    return Row(cells)


def _arrays(files: Sequence[ListedFile]) -> str:
    """The arrays in the files (table XI); empty if unknown, or if they differ."""
    attributes = files[0].format_attributes
    if attributes is None or any(file.format_attributes != attributes for file in files):
        return ""
    arrays = (
        None
        if attributes.datasets is None
        else f"{format_count(attributes.datasets)} array{'s'[: attributes.datasets != 1]}"
    )
    dims = None if attributes.dims is None else f"{attributes.dims}-D"
    chunks = None if not attributes.chunks else f"chunks of {' x '.join(map(str, attributes.chunks))}"
    return ", ".join(filter(None, (arrays, " ".join(filter(None, (dims, attributes.type))), chunks)))


def _sum(files: Iterable[ListedFile], of: Callable[[ListedFile], float | None]) -> float | None:
    """Sum over files; None as soon as one value is unknown."""
    values = [of(file) for file in files]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _each(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{format_bytes(low)} each" if low == high else f"{format_bytes(low)} to {format_bytes(high)}"


def _transfer(files: Iterable[ListedFile]) -> Cell:
    """The most common size of a data operation, as far as the profile lists sizes."""
    sizes: Counter[int] = Counter()
    for file in files:
        for side in (file.io.transfer_size.read, file.io.transfer_size.write):
            for length, operations in side.common if side is not None else ():
                sizes[length] += operations
    if not sizes:
        return Cell("", None)
    # The larger of equally common ones, independent of the order of files.
    return size(max(sizes, key=lambda length: (sizes[length], length)))


def _access(files: Iterable[ListedFile]) -> Cell:
    """The pattern of most data operations, with its share."""
    shares = dict.fromkeys(_PATTERNS, 0.0)
    operations = 0
    for file in files:
        pattern = file.io.access_pattern
        if pattern is None:
            continue
        weight = file.io.ops.read + file.io.ops.write
        operations += weight
        for name in _PATTERNS:
            shares[name] += weight * getattr(pattern, name)
    if not operations:
        return words("")
    most = max(_PATTERNS, key=lambda name: shares[name])
    return words(most, format_share(shares[most] / operations))
