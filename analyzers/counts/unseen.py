"""I/O that happened but that a log did not count, as entries of `profile.unseen`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vani.counts import NotCounted
from vani.schema.profile import Unseen

_MOST_FILES: Final = 10


def unseen_of_counts(missed: Iterable[tuple[str, NotCounted]]) -> list[Unseen]:
    """The entries, one per kind and cause, because several logs of a workload usually miss the same I/O.

    Parameters
    ----------
    missed
        Name of an app, and the I/O that its log did not count.
    """
    same: dict[tuple[str, str, str], list[NotCounted]] = {}
    for _, entry in missed:
        same.setdefault((entry.kind, entry.cause, entry.see_with), []).append(entry)
    return [
        Unseen(
            kind=entries[0].kind,
            files=list(dict.fromkeys(file for entry in entries for file in entry.files))[:_MOST_FILES],
            count=len({what for entry in entries for what in entry.what}),
            cause=cause if len(entries) == 1 else f"{cause} (in {len(entries):,} logs)",
            see_with=see_with,
            most_s=None if any(entry.most_s is None for entry in entries) else sum(e.most_s or 0.0 for e in entries),
        )
        for (_, cause, see_with), entries in same.items()
    ]
