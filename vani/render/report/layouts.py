"""The number of storage targets of files, and the load of each target, if layouts are known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from vani.render.report.bounds import Limits
from vani.render.report.tables import Column, Row, Table, count, seconds, size
from vani.schema.saved_profile import ListedFile


def layout_table(files: Iterable[ListedFile], limits: Limits) -> Table | None:
    """Files by layout, those with most bytes on a target first; None if no layout is known.

    A profile contains the number of a file's Lustre targets, not their identity, so a target's load is the mean.
    """
    by_layout: defaultdict[tuple[int, int], list[ListedFile]] = defaultdict(list)
    for file in files:
        if file.stripe_count is not None:
            by_layout[file.stripe_count, file.stripe_size or 0].append(file)
    if not by_layout:
        return None
    rows = []
    for (targets, stripe), some in by_layout.items():
        moved = sum(file.io.bytes.total or 0 for file in some)
        # The file with the most bytes per target, and their amount.
        fullest = max((file.io.bytes.total or 0) / targets for file in some)
        times = [file.io.time_s.total for file in some if file.io.time_s.total is not None]
        rows.append(
            (
                fullest,
                Row(
                    (
                        count(targets),
                        size(stripe or None),
                        count(len(some)),
                        count(max(file.processes for file in some)),
                        size(moved),
                        size(fullest),
                        seconds(sum(times) if times else None),
                    )
                ),
            )
        )
    rows.sort(key=lambda row: -row[0])
    columns = tuple(
        Column(title, number=True)
        for title in (
            "Storage targets", "Stripe size", "Files", "Processes on one of them", "Bytes moved",
            "Bytes on a target of the fullest", "I/O time",
        )
    )  # fmt: skip
    caption = (
        "Listed files by their layout on Lustre. A file on few targets that many processes use at once is as fast as "
        "those targets; a small file on many costs an object on each."
    )
    return Table(
        "layouts",
        caption,
        columns,
        tuple(row for _, row in rows[: limits.rows]),
        max(0, len(rows) - limits.rows),
    )
