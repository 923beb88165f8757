"""A Darshan log behind the interface of all traces: it contains counts but no calls."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from vani.calls import FILES
from vani.columns import small_table
from vani.counts import RunCounts
from vani.errors import TraceError
from vani.readers.darshan.counters import counts_of
from vani.readers.darshan.facts import data_sets
from vani.readers.darshan.log import Log, open_log
from vani.readers.darshan.records import Records, read_records
from vani.readers.files import Identified
from vani.readers.functions import function_table
from vani.readers.trace_reader import Limit, Piece

_LIMITS = (
    Limit("io.ops.metadata", "lower bound: Darshan counts opens, seeks, stats and renames that succeeded, "
          "no closes, removals, truncations nor calls on directories"),
    Limit("excluded", "lower bound: Darshan leaves out files below /etc, /dev, /usr, /bin, /boot, /lib, /opt, /sbin, "
          "/sys, /proc and /var, by default"),
)  # fmt: skip
_NO_HDF5 = Limit("interfaces.layer", "the log has no record of HDF5, whose module is often left out")


class DarshanReader(Identified):
    """See `vani.readers.trace_reader.TraceReader`; regions are checked at once, records are read on demand."""

    tool = "darshan"

    def __init__(self, path: Path, *, check: bool = True) -> None:
        super().__init__(Path(path), lambda file: [file], with_ends=True)
        self.digest()
        if not check:
            return
        self._log: Log | None = open_log(self.path)
        self.format, self._content = self._log.version, self._log.digest
        self.layout = self.format

    @cached_property
    def _records(self) -> Records:
        log, self._log = self._log, None
        # A second attempt after an error reads the log again.
        return read_records(open_log(self.path) if log is None else log)

    @cached_property
    def _counted(self) -> tuple[RunCounts, list[str]]:
        try:
            return counts_of(self._records)
        except ValueError as error:
            raise TraceError(str(error), where=self.path, todo="the log is damaged, leave it out") from error

    @property
    def app(self) -> str:
        words = self._records.exe.split()
        return PurePath(words[0]).name if words and PurePath(words[0]).name else self.path.stem

    @property
    def ranks(self) -> int:
        return self._records.ranks

    @property
    def start_unix_s(self) -> float:
        return self._records.start_s

    @property
    def limits(self) -> tuple[Limit, ...]:
        has_hdf5 = {"H5F", "H5D"} & self._records.modules.keys()
        return _LIMITS if has_hdf5 else (*_LIMITS, _NO_HDF5)

    @property
    def problems(self) -> Sequence[str]:
        return self._counted[1]

    def counts(self) -> RunCounts:
        """All counts of the log."""
        return self._counted[0]

    def content(self) -> str:
        """Digest of the file."""
        return self._content

    def calls_per_rank(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Zeros, because a log contains no calls; an unreadable log raises its error here."""
        self.counts()
        return np.zeros(self.ranks, np.int64)

    def functions(self) -> pa.Table:
        return function_table([])

    def files(self) -> pa.Table:
        counts = self.counts()
        codes = range(len(counts.paths))
        return small_table([codes, counts.paths, counts.file_class.tolist()], FILES)

    def facts(self) -> Sequence[tuple[str, Sequence[str], int]]:
        return data_sets(self._records)

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        del ranks, piece
        raise TraceError(
            "is a Darshan log, which contains counts and no calls",
            where=self.path,
            todo="trace the run with Recorder for what takes calls: `vani convert`, heat maps, --graph",
        )
