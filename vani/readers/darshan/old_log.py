"""Darshan 2 logs: one stream of records, each with the counters of all interfaces to a file.

A job of 1,024 or 4,096 bytes comes first, then the records. A record has the last 15 bytes of a path, and the number of
its file system in the mount table. Source: `darshan-log-format.h` of Darshan 2.0.0 to 2.3.1.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.errors import UnknownFormatError
from vani.readers.darshan.log import Job, Log, job_of
from vani.readers.darshan.record_ends import damaged_log
from vani.readers.darshan.record_layouts import LAYOUTS, MISSING, RecordLayout, bins
from vani.readers.darshan.regions import LogFile

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_HEAD: Final = {"2.00": (1024, 0), "2.01": (1024, 64), "2.02": (1024, 64), "2.03": (1024, 64)}
"""Bytes of the job, and of the notes in it, by version; later versions have 4,096 and 1,024."""
_RELATIVE: Final = "2.03"
"""First version in which call times are relative to the start of the run."""
_SUFFIX: Final = 16
_OF_MPI: Final = (
    "INDEP_OPENS", "COLL_OPENS", "INDEP_READS", "INDEP_WRITES", "COLL_READS", "COLL_WRITES", "SPLIT_READS",
    "SPLIT_WRITES", "NB_READS", "NB_WRITES",
)  # fmt: skip
_COUNTERS: Final = (
    *_OF_MPI, "SYNCS", "POSIX_READS", "POSIX_WRITES", "POSIX_OPENS", "POSIX_SEEKS", "POSIX_STATS", "POSIX_MMAPS",
    "POSIX_FREADS", "POSIX_FWRITES", "POSIX_FOPENS", "POSIX_FSEEKS", "POSIX_FSYNCS", "POSIX_FDSYNCS",
    "INDEP_NC_OPENS", "COLL_NC_OPENS", "HDF5_OPENS", *(f"COMBINER_{number}" for number in range(18)), "HINTS",
    "VIEWS", "MODE", "BYTES_READ", "BYTES_WRITTEN", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN", "CONSEC_READS",
    "CONSEC_WRITES", "SEQ_READS", "SEQ_WRITES", "RW_SWITCHES", "MEM_NOT_ALIGNED", "MEM_ALIGNMENT",
    "FILE_NOT_ALIGNED", "FILE_ALIGNMENT", "MAX_READ_TIME_SIZE", "MAX_WRITE_TIME_SIZE", *bins("SIZE_{}_{}"),
    *bins("SIZE_{}_AGG_{}"), *bins("EXTENT_{}_{}"),
    *(f"{what}{number}_{name}" for what, name in
      (("STRIDE", "STRIDE"), ("STRIDE", "COUNT"), ("ACCESS", "ACCESS"), ("ACCESS", "COUNT")) for number in range(1, 5)),
    "DEVICE", "SIZE_AT_OPEN", "FASTEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK", "SLOWEST_RANK_BYTES",
)  # fmt: skip
_TIMES: Final = (
    "F_OPEN_START_TIMESTAMP", "F_READ_START_TIMESTAMP", "F_WRITE_START_TIMESTAMP", "F_CLOSE_END_TIMESTAMP",
    "F_READ_END_TIMESTAMP", "F_WRITE_END_TIMESTAMP", "F_READ_TIME", "F_WRITE_TIME", "F_META_TIME", "MPI_META_TIME",
    "MPI_READ_TIME", "MPI_WRITE_TIME", "F_MAX_READ_TIME", "F_MAX_WRITE_TIME", "F_FASTEST_RANK_TIME",
    "F_SLOWEST_RANK_TIME", "F_VARIANCE_RANK_TIME", "F_VARIANCE_RANK_BYTES",
)  # fmt: skip
"""Names in newer records; MPI's own counters are separate."""
_AT: Final = {name: at for names in (_COUNTERS, _TIMES) for at, name in enumerate(names)}
_BOTH: Final = {"OPENS": "FOPENS", "READS": "FREADS", "WRITES": "FWRITES", "SEEKS": "FSEEKS"}
"""Counters of POSIX calls, and of stream calls."""
_OWN: Final = ("STATS", "MMAPS", "FSYNCS", "FDSYNCS")
_SIZE: Final = 16 + _SUFFIX + 8 * (len(_COUNTERS) + len(_TIMES))


class OldLog(Log):
    """A Darshan 2 log in the form of newer logs.

    Files that only streams opened become STDIO records. If a file has calls of both kinds, its bytes and times cover
    both: it becomes a POSIX record with the calls of both.
    """

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self.path, self.digest, self.version = file.path, file.digest, file.old_version or ""
        self._order = file.old_order
        size, _ = self._head
        content = b"".join(file.old_pieces())
        self._job, records = content[:size], content[size:]
        if len(content) < size:
            raise damaged_log(self.path, f"it has {len(content):,} bytes, and its job alone {size:,}")
        if len(records) % _SIZE:
            raise damaged_log(
                self.path, f"it has {len(records):,} bytes of records, and each has {_SIZE:,}: one is cut"
            )
        kind = np.dtype(
            [
                ("id", f"{self._order}u8"),
                ("rank", f"{self._order}i8"),
                ("suffix", f"S{_SUFFIX}"),
                ("counters", f"{self._order}i8", len(_COUNTERS)),
                ("times", f"{self._order}f8", len(_TIMES)),
            ]
        )
        stored = np.frombuffer(records, kind)
        self._id, self._rank = stored["id"].astype(np.uint64), stored["rank"].astype(np.int64)
        self._suffix: list[bytes] = stored["suffix"].tolist()
        self._counters: Ints = stored["counters"].astype(np.int64)
        self._times: Floats = stored["times"].astype(np.float64)
        streams = self._count("POSIX_FOPENS") > 0
        for name in ("POSIX_OPENS", "POSIX_READS", "POSIX_WRITES"):
            streams &= self._count(name) <= 0
        self._chosen = {
            "POSIX": ~streams,
            "STDIO": streams,
            "MPI-IO": (np.stack([self._count(name) for name in _OF_MPI]) > 0).any(axis=0),
            "H5F": self._count("HDF5_OPENS") > 0,
            "PNETCDF_FILE": (self._count("INDEP_NC_OPENS") > 0) | (self._count("COLL_NC_OPENS") > 0),
        }

    @property
    def _head(self) -> tuple[int, int]:
        return _HEAD.get(self.version, (4096, 1024))

    def _count(self, name: str) -> Ints:
        counter: Ints = self._counters[:, _AT[name]]
        return counter

    def has(self, module: str) -> bool:
        """Whether any file was opened through a module."""
        return module in self._chosen and bool(self._chosen[module].any())

    @property
    def partial(self) -> tuple[str, ...]:
        """Empty, because a Darshan 2 log records omissions separately."""
        return ()

    @property
    def lost_counters(self) -> bool:
        """False, because a Darshan 2 log does not record whether counters were dropped."""
        return False

    @cached_property
    def job(self) -> Job:
        """See `Log.job`."""
        begin = 56 + self._head[1]
        uid, start, end, processes, job_id = struct.unpack_from(f"{self._order}5q", self._job, 16)
        # Each line begins with the mount's number, then come type and folder.
        lines = self._job[begin:].split(b"\0", 1)[0].split(b"\n")
        text = b"\n".join([lines[0], *(line.partition(b"\t")[2] for line in lines[1:])])
        return job_of(
            self.path, (uid, job_id, processes), (float(start), float(end + 1)), self._job[56:begin], text
        )

    @cached_property
    def _mount_of_device(self) -> dict[int, str]:
        lines = self._job[56 + self._head[1] :].split(b"\0", 1)[0].decode(errors="backslashreplace").split("\n")
        fields = [line.split("\t", 2) for line in lines[1:]]
        return {
            int(number): folder
            for number, _, folder in (field for field in fields if len(field) == 3)
            if number.lstrip("-").isdecimal()
        }

    def mixed(self) -> int:
        """0: see the class."""
        return 0

    def rows(self, module: str) -> tuple[NDArray[Any], RecordLayout]:
        """See `Log.rows`."""
        layout = LAYOUTS[module][max(LAYOUTS[module])]
        chosen = self._chosen.get(module, np.zeros(len(self._id), np.bool_))
        counters, times = self._counters[chosen], self._times[chosen]
        words = np.full((len(counters), layout.size // 8), -1, np.int64)
        words[:, 0], words[:, 1] = self._id[chosen].view(np.int64), self._rank[chosen]
        behind = layout.first + len(layout.counters)
        for name, at in layout.at.items():
            if name in layout.counters:
                column = _column(module, name, counters)
                words[:, layout.first + at] = MISSING.get(name, -1) if column is None else column
            else:
                seconds = _seconds(module, name, times)
                words[:, behind + at] = seconds.view(np.int64)
        self._check_ranks(module, words[:, 1])
        return words, layout

    def names(self) -> dict[int, str]:
        """Path ends after their file system's folder, by id; identical ones get the id appended."""
        names: dict[int, str] = {}
        taken: dict[str, int] = {}
        devices = self._count("DEVICE").tolist()
        for id_, suffix, device in zip(self._id.tolist(), self._suffix, devices, strict=True):
            if id_ in names:
                continue
            name = suffix.decode(errors="backslashreplace")
            if len(suffix) == _SUFFIX - 1:
                folder = self._mount_of_device.get(device, "")
                name = f"{'' if folder == '/' else folder}/...{name}" if folder else f"...{name}"
            if taken.setdefault(name, id_) != id_:
                name = f"{name} ({id_:016x})"
            names[id_] = name
        return names

    def name_of(self, file: int | None) -> str:
        """See `Log.name_of`."""
        return "" if file is None else self.names().get(file, "")

    def targets(self) -> dict[int, tuple[int, ...]]:
        """Empty, because Darshan 2 has no layouts."""
        return {}

    def stripes_of(self, file: int | None) -> int | None:
        """None, because Darshan 2 has no layouts."""
        del file
        return None

    def refuse_moments(self) -> None:
        """Raise UnknownFormatError if call times are not relative to the start of the run."""
        if self.version < _RELATIVE:
            raise UnknownFormatError(
                f"is a Darshan log of version {self.version}, whose times of calls do not begin with the run",
                where=self.path,
                todo="take its sums with `vani history add --totals`",
            )


def _column(module: str, name: str, counters: Ints) -> Ints | None:
    """A module's counter; None if it was not counted."""
    if module in ("POSIX", "STDIO"):
        if name in _BOTH:
            calls, streams = (counters[:, _AT[f"POSIX_{counter}"]] for counter in (name, _BOTH[name]))
            together = np.maximum(calls, 0) + np.maximum(streams, 0)
            return np.where((calls < 0) & (streams < 0), -1, together)
        if name in _OWN:
            return counters[:, _AT[f"POSIX_{name}"]]
        return counters[:, _AT[name]] if name in _AT else None
    if module == "MPI-IO":
        return counters[:, _AT[name]] if name in (*_OF_MPI, "SYNCS", "HINTS", "VIEWS") else None
    if name != "OPENS":
        return None
    names = ("HDF5_OPENS",) if module == "H5F" else ("INDEP_NC_OPENS", "COLL_NC_OPENS")
    opens: Ints = np.sum([np.maximum(counters[:, _AT[counter]], 0) for counter in names], axis=0)
    return opens


def _seconds(module: str, name: str, times: Floats) -> Floats:
    """A module's time; -1 if it was not measured."""
    if module == "MPI-IO":
        name = name.replace("F_", "MPI_", 1) if name in ("F_READ_TIME", "F_WRITE_TIME", "F_META_TIME") else ""
    elif module not in ("POSIX", "STDIO"):
        name = ""
    return times[:, _AT[name]].copy() if name in _AT else np.full(len(times), -1.0)
