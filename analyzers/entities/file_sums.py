"""Sums over groups of files: totals by folder, or by name pattern, over all files of the run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.view import View
from vani.analyzers.tables.keys import pack, unpack
from vani.distinct import distinct
from vani.schema.profile import ByteCounts

_EXACT = 1 << 53

Ints = NDArray[np.int64]


class FileSums:
    """Sums by group over all files of the data set (`view.files`).

    Parameters
    ----------
    group
        Group of each file, starting at 0; shape (files,).
    count
        Number of groups.
    """

    def __init__(self, view: View, group: Ints, count: int) -> None:
        self._view, self._group, self._count = view, group, count
        self.files: Ints = np.bincount(group, minlength=count)
        self.time, self.metadata_time = self.total("time"), self.total("metadata_time")
        self._read, self._written = self.total("bytes_read"), self.total("bytes_written")
        # Groups whose reads, or writes, all have unknown sizes.
        self._unread, self._unwritten = (
            (self.total(f"unsized_{n}") == self.total(n)) & (self.total(n) > 0) for n in ("reads", "writes")
        )

    def total(self, column: str) -> Ints:
        """Sum of a survey column; zeros if the source does not count it."""
        return self.sum(self._view.surveyed(column))

    def sum(self, of_files: NDArray[Any]) -> Ints:
        """Sum of nonnegative integers, or count of True values, over each group's files."""
        if of_files.dtype != np.int64 or int(of_files.max(initial=0)) < _EXACT // max(1, len(of_files)):
            return np.bincount(self._group, of_files, self._count).astype(np.int64)
        # numpy adds weights as floats, which are exact below 2^53.
        high, low = (self.sum(part) for part in (of_files >> 31, of_files & 0x7FFFFFFF))
        return (high << 31) + low

    def most(self, of_files: Ints) -> Ints:
        """Largest value of each group's files; 0 for an empty group."""
        highest = np.zeros(self._count, np.int64)
        np.maximum.at(highest, self._group, of_files)
        return highest

    def bytes(self, group: int) -> ByteCounts:
        """Bytes of a group, moved or requested; null if no call's size is known."""
        read = None if self._unread[group] else int(self._read[group])
        written = None if self._unwritten[group] else int(self._written[group])
        return ByteCounts(
            read=read, written=written, total=None if read is None or written is None else read + written
        )

    def ranks(self, first: str, last: str, some: NDArray[np.bool_]) -> tuple[Ints, Ints] | None:
        """Processes that did something: a lower bound of their number, and the only process (-1 if none or several).

        Parameters
        ----------
        first, last
            Survey columns with the first and the last process that did it to a file.
        some
            Mask of the files to which it was done, shape (files,).

        Returns
        -------
        tuple
            None if calls were not counted by process.
        """
        survey = self._view.measured.survey.files
        if len(survey) and first not in survey.columns:
            return None
        widths = (self._count, self._view.workload.processes)
        pairs = [pack((self._group[some], self._view.surveyed(n)[some]), widths) for n in (first, last)]
        group, process = unpack(distinct(*pairs), widths)
        number = np.bincount(group, minlength=self._count).astype(np.int64)
        only = np.full(self._count, -1, np.int64)
        only[group] = process
        return number, np.where(number == 1, only, -1)


def most_important(time: Ints, calls: Ints, files: Ints, *, by_time: int, by_files: int) -> list[int]:
    """Groups with most time (or most calls, if no time is known), then others with most files."""
    order = np.lexsort((np.arange(len(files)), -files, -calls, -time))
    chosen: list[int] = order[:by_time].tolist()
    largest = np.lexsort((np.arange(len(files)), -files))[:by_files].tolist()
    return chosen + [group for group in largest if group not in chosen]
