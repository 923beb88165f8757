"""A log of any version, read region by region: the job, the file names, and the records of modules.

Darshan 2 logs: one stream of records, each with the counters of all interfaces to a file.

A job of 1,024 or 4,096 bytes comes first, then the records. A record has the last 15 bytes of a path, and the number of
its file system in the mount table. Source: `darshan-log-format.h` of Darshan 2.0.0 to 2.3.1.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from vani.columns import Floats, Ints, Numbers
from vani.errors import UnknownFormatError
from vani.readers.darshan import record_layouts
from vani.readers.darshan.regions import LogFile
from vani.readers.signatures import bounded
from vani.site import BUDGET

MAX_SECONDS: Final = 1e9
"""Longest plausible time; longer ones are damage."""
_PER_BYTE: Final = 6
"""Memory of a profile in bytes, for each byte of records."""
_WIDE: Final = "3.41"
"""First version in which a job's times have nanoseconds."""
_MAX_RANKS: Final = 1 << 24
_LATEST: Final = 1 << 33
"""Latest plausible time in seconds since 1970: the year 2242."""
_METADATA: Final = 1024
_JOB: Final = 4096
"""Maximum size of the job region that Darshan reads, in bytes."""
_STREAMED: Final = ("DXT_POSIX", "DXT_MPIIO")
"""Modules with regions that may exceed memory; they are inflated again each time they are read."""


@dataclass(frozen=True)
class Job:
    """Contents of the job region."""

    uid: int
    job_id: int
    exe: str
    processes: int
    start_s: float
    """Seconds since 1970."""
    runtime_s: float
    mounts: tuple[tuple[str, str], ...]
    """Folder and type of each mount, longest folders first."""
    metadata: Mapping[str, str]


def mount_of(name: str, mounts: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Folder and type of the first mount that contains a file; empty if none does. `mounts` begins with the longest."""
    for folder, kind in mounts if name.startswith("/") else ():
        if folder in ("/", name) or name.startswith(f"{folder}/"):
            return folder, kind
    return "", ""


def check_job(path: Path, processes: int, start: float, end: float) -> None:
    """Raise TraceError if a log claims something that no run can do."""
    if not 0 < processes <= _MAX_RANKS:
        raise record_layouts.damaged_log(path, f"it claims {processes:,} processes")
    if not 0 <= start <= _LATEST:
        raise record_layouts.damaged_log(path, f"it claims to have started {start:,.0f} s after 1970")
    if not 0 <= end - start <= MAX_SECONDS:
        raise record_layouts.damaged_log(path, f"it claims to have run for {end - start:,.0f} s")


def check_ranks(path: Path, module: str, ranks: Numbers, processes: int) -> None:
    """Raise TraceError if a module has a record of a rank that the run does not have; -1 is a record of all ranks."""
    wrong = ranks[(ranks < -1) | (ranks >= processes)]
    if len(wrong):
        fault = f"{module} has a record of rank {int(wrong[0]):,} of {processes:,} processes"
        raise record_layouts.damaged_log(path, fault)


def job_of(path: Path, numbers: tuple[int, int, int], times: tuple[float, float], notes: bytes, text: bytes) -> Job:
    """Build the job from its stored fields; raises TraceError if it claims something impossible.

    Parameters
    ----------
    numbers
        User, job, and number of processes.
    times
        Start and end.
    notes
        Lines of `name=value`.
    text
        The command, then a line with the type and folder of each mount.
    """
    uid, job_id, processes = numbers
    start, end = times
    check_job(path, processes, start, end)
    exe, *lines = _text(text).split("\n")
    mounts = [(folder, kind) for kind, _, folder in (line.partition("\t") for line in lines) if kind and folder]
    pairs = (line.partition("=") for line in _text(notes).split("\n"))
    return Job(
        uid,
        job_id,
        exe,
        processes,
        start,
        end - start,
        tuple(sorted(mounts, key=lambda mount: -len(mount[0]))),
        {name.strip(): value.strip() for name, equals, value in pairs if equals},
    )


class Log:
    """Regions of a log, inflated and checked on first use. All except DXT calls are then kept."""

    partial: tuple[str, ...] = ()
    """Modules that dropped some records while the program ran, sorted by name."""
    lost_counters = False
    """Whether records with counters were dropped. A Darshan 2 log records neither."""
    mixed = 0
    """Number of POSIX records that `rows` dropped because stream calls were added to them."""

    def __init__(self, file: LogFile) -> None:
        self._file, header = file, file.header
        self.path, self.version, self.digest = file.path, header.version, file.digest
        self._order = header.order
        self._number, self._versions = record_layouts.module_numbers(header.version), header.versions
        self._places = {file.name(number): number for number, (_, length) in enumerate(header.regions) if length}
        self._regions: dict[str, bytes] = {}
        dropped = [name for name, at in self._number.items() if header.flags >> at & 1]
        self.partial = tuple(sorted(name for name in dropped if self.has(name)))
        without_counters = sum(1 << number for name, number in self._number.items() if name in record_layouts.GROWING)
        self.lost_counters = bool(header.flags & ~without_counters)

    def check(self) -> None:
        """Inflate and check all regions.

        Raises
        ------
        TraceError
            A region does not inflate completely, or ends inside a record.
        """
        for name, number in self._places.items():
            is_known = name in record_layouts.LAYOUTS or name in record_layouts.GROWING
            if name not in _STREAMED and (number < 2 or is_known):
                self._region(name)
            else:
                for _ in self._pieces(name, number, keep=False):
                    pass

    def _region(self, name: str) -> bytes:
        """The whole content of a region; empty if the log does not have it."""
        region = self._regions.get(name)
        if region is None:
            number = self._places.get(name)
            pieces = iter(()) if number is None else self._pieces(name, number, keep=True)
            region = b"".join(BUDGET.charged(pieces, _PER_BYTE, self.path))
            self._regions[name] = region
        return region

    def _pieces(self, name: str, number: int, *, keep: bool) -> Iterator[bytes]:
        pieces = self._file.pieces(number, keep=keep)
        if name not in self._number:
            return pieces
        return record_layouts.checked_records(self.path, name, self._versions[number - 2], self._order, pieces)

    def has(self, module: str) -> bool:
        """Whether the log has a module's region."""
        return module in self._number and module in self._places

    @cached_property
    def job(self) -> Job:
        """The job: user, command and times; raises TraceError if it claims something impossible."""
        region = self._region("the job's region")[:_JOB]
        numbers = 7 if self.version >= _WIDE else 5
        begin = 8 * numbers + _METADATA
        if len(region) < begin:
            fault = f"its job has {len(region):,} bytes, and {begin:,} are its least"
            raise record_layouts.damaged_log(self.path, fault)
        uid, *times, processes, job_id = struct.unpack_from(f"{self._order}{numbers}q", region)
        notes, text = region[8 * numbers : begin], region[begin:]
        if numbers == 7:
            start, end = times[0] + times[1] / 1e9, times[2] + times[3] / 1e9
        else:
            # Times are whole seconds, so the run ended before the next one.
            start, end = float(times[0]), float(times[1] + 1)
        return job_of(self.path, (uid, job_id, processes), (start, end), notes, text)

    def rows(self, module: str) -> tuple[Ints, record_layouts.RecordLayout]:
        """The records of a module with counters: one row of 8-byte words each; impossible counters are `NO_VALUE`.

        Raises
        ------
        TraceError
            Records have another form, or an invalid rank.
        """
        layouts, region = record_layouts.LAYOUTS[module], self._region(module)
        version = self._versions[self._number[module]] if region else max(layouts)
        layout = self._known(module, layouts, version)
        rows = np.frombuffer(region, f"{self._order}i8").reshape(-1, layout.size // 8).astype(np.int64)
        behind = layout.first + len(layout.counters)
        rows[:, layout.first : behind] = bounded(rows[:, layout.first : behind], layout.largest)
        if "FOPENS" in layout.at:
            # Darshan 3.0 added stream calls to these records: `darshan-util` drops them.
            is_plain = rows[:, layout.first + layout.at["FOPENS"]] <= 0
            rows, self.mixed = rows[is_plain], int((~is_plain).sum())
        check_ranks(self.path, module, rows[:, 1], self.job.processes)
        return rows, layout

    def refuse_moments(self) -> None:
        """Raise UnknownFormatError if call times are not relative to the start of the run; here they always are."""

    def _known(self, module: str, versions: Mapping[int, Any], version: int) -> Any:
        if version not in versions:
            raise UnknownFormatError(
                f"is a Darshan log whose {module} has records of version {version:,}, which is not known",
                where=self.path,
                todo="update Vani" if version > max(versions) else "copy it again, or leave it out",
            )
        return versions[version]

    def parts(self, module: str) -> Iterator[tuple[bool, bytes]]:
        """Pieces of the records of a module without counters: see `record_parts`."""
        if not self.has(module):
            return iter(())
        number = self._number[module]
        growing = self._known(module, record_layouts.GROWING[module], self._versions[number])
        streamed = module in _STREAMED
        pieces = self._file.pieces(number + 2, keep=False) if streamed else iter((self._region(module),))
        return record_layouts.record_parts(self.path, module, growing, self._order, pieces)

    def numbers(self, part: bytes, kind: str = "i8") -> Numbers:
        """The 8-byte numbers in a part, in this machine's byte order; incomplete trailing bytes are dropped."""
        stored = np.frombuffer(part, f"{self._order}{kind}", len(part) // 8)
        return stored.astype(stored.dtype.newbyteorder("="), copy=False)

    def version_of(self, module: str) -> int:
        """Version of a module's records."""
        return self._versions[self._number[module]]

    def names(self) -> dict[int, str]:
        """The paths of all files, by id, in log order; a file with several names gets the first valid one.

        Raises
        ------
        TraceError
            The table ends inside a name.
        """
        table, at, names = self._region("the name table"), 0, dict[int, str]()
        number, length = struct.Struct(f"{self._order}Q"), struct.Struct(f"{self._order}QI")
        while at < len(table):
            if self.version < "3.10":
                begin = at + length.size
                end = begin + (length.unpack_from(table, at)[1] if begin <= len(table) else 0)
                behind = end
            else:
                begin, end = at + number.size, table.find(b"\0", at + number.size)
                behind = end + 1
            if begin > len(table) or not begin <= end <= len(table):
                raise record_layouts.damaged_log(self.path, "the name table ends inside a name")
            (file,) = number.unpack_from(table, at)
            if not names.get(file):
                names[file] = _text(table[begin:end])
            at = behind
        return names


def _text(content: bytes) -> str:
    """Text up to the first zero byte; file names may have any encoding."""
    return content.split(b"\0", 1)[0].decode(errors="backslashreplace")


_OLD_HEAD: Final = {"2.00": (1024, 0), "2.01": (1024, 64), "2.02": (1024, 64), "2.03": (1024, 64)}
"""Bytes of the job, and of the notes in it, by version; later versions have 4,096 and 1,024."""
_RELATIVE: Final = "2.03"
"""First version in which call times are relative to the start of the run."""
_SUFFIX: Final = 16
_OF_MPI: Final = (
    "INDEP_OPENS", "COLL_OPENS", "INDEP_READS", "INDEP_WRITES", "COLL_READS", "COLL_WRITES", "SPLIT_READS",
    "SPLIT_WRITES", "NB_READS", "NB_WRITES",
)  # fmt: skip
_OLD_COUNTERS: Final = (
    *_OF_MPI, "SYNCS", "POSIX_READS", "POSIX_WRITES", "POSIX_OPENS", "POSIX_SEEKS", "POSIX_STATS", "POSIX_MMAPS",
    "POSIX_FREADS", "POSIX_FWRITES", "POSIX_FOPENS", "POSIX_FSEEKS", "POSIX_FSYNCS", "POSIX_FDSYNCS",
    "INDEP_NC_OPENS", "COLL_NC_OPENS", "HDF5_OPENS", *(f"COMBINER_{number}" for number in range(18)), "HINTS",
    "VIEWS", "MODE", "BYTES_READ", "BYTES_WRITTEN", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN", "CONSEC_READS",
    "CONSEC_WRITES", "SEQ_READS", "SEQ_WRITES", "RW_SWITCHES", "MEM_NOT_ALIGNED", "MEM_ALIGNMENT",
    "FILE_NOT_ALIGNED", "FILE_ALIGNMENT", "MAX_READ_TIME_SIZE", "MAX_WRITE_TIME_SIZE",
    *record_layouts.bins("SIZE_{}_{}"),
    *record_layouts.bins("SIZE_{}_AGG_{}"), *record_layouts.bins("EXTENT_{}_{}"),
    *(f"{what}{number}_{name}" for what, name in
      (("STRIDE", "STRIDE"), ("STRIDE", "COUNT"), ("ACCESS", "ACCESS"), ("ACCESS", "COUNT")) for number in range(1, 5)),
    "DEVICE", "SIZE_AT_OPEN", "FASTEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK", "SLOWEST_RANK_BYTES",
)  # fmt: skip
_OLD_TIMES: Final = (
    "F_OPEN_START_TIMESTAMP", "F_READ_START_TIMESTAMP", "F_WRITE_START_TIMESTAMP", "F_CLOSE_END_TIMESTAMP",
    "F_READ_END_TIMESTAMP", "F_WRITE_END_TIMESTAMP", "F_READ_TIME", "F_WRITE_TIME", "F_META_TIME", "MPI_META_TIME",
    "MPI_READ_TIME", "MPI_WRITE_TIME", "F_MAX_READ_TIME", "F_MAX_WRITE_TIME", "F_FASTEST_RANK_TIME",
    "F_SLOWEST_RANK_TIME", "F_VARIANCE_RANK_TIME", "F_VARIANCE_RANK_BYTES",
)  # fmt: skip
"""Names in newer records; MPI's own counters are separate."""
_OLD_AT: Final = {name: at for names in (_OLD_COUNTERS, _OLD_TIMES) for at, name in enumerate(names)}
_BOTH: Final = {"OPENS": "FOPENS", "READS": "FREADS", "WRITES": "FWRITES", "SEEKS": "FSEEKS"}
"""Counters of POSIX calls, and of stream calls."""
_OWN: Final = ("STATS", "MMAPS", "FSYNCS", "FDSYNCS")
_OLD_SIZE: Final = 16 + _SUFFIX + 8 * (len(_OLD_COUNTERS) + len(_OLD_TIMES))


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
            raise record_layouts.damaged_log(self.path, f"it has {len(content):,} bytes, and its job alone {size:,}")
        if len(records) % _OLD_SIZE:
            raise record_layouts.damaged_log(
                self.path, f"it has {len(records):,} bytes of records, and each has {_OLD_SIZE:,}: one is cut"
            )
        kind = np.dtype(
            [
                ("id", f"{self._order}u8"),
                ("rank", f"{self._order}i8"),
                ("suffix", f"S{_SUFFIX}"),
                ("counters", f"{self._order}i8", len(_OLD_COUNTERS)),
                ("times", f"{self._order}f8", len(_OLD_TIMES)),
            ]
        )
        stored = np.frombuffer(records, kind)
        self._id, self._rank = stored["id"].astype(np.uint64), stored["rank"].astype(np.int64)
        self._suffix: list[bytes] = stored["suffix"].tolist()
        self._counters: Ints = bounded(
            stored["counters"].astype(np.int64), [record_layouts.largest(name) for name in _OLD_COUNTERS]
        )
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
        return _OLD_HEAD.get(self.version, (4096, 1024))

    def _count(self, name: str) -> Ints:
        return self._counters[:, _OLD_AT[name]]

    def has(self, module: str) -> bool:
        """Whether any file was opened through a module."""
        return module in self._chosen and bool(self._chosen[module].any())

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

    def rows(self, module: str) -> tuple[Ints, record_layouts.RecordLayout]:
        """See `Log.rows`."""
        layout = record_layouts.LAYOUTS[module][max(record_layouts.LAYOUTS[module])]
        chosen = self._chosen.get(module, np.zeros(len(self._id), np.bool_))
        counters, times = self._counters[chosen], self._times[chosen]
        words = np.full((len(counters), layout.size // 8), -1, np.int64)
        words[:, 0], words[:, 1] = self._id[chosen].view(np.int64), self._rank[chosen]
        behind = layout.first + len(layout.counters)
        for name, at in layout.at.items():
            if name in layout.counters:
                column = _column(module, name, counters)
                words[:, layout.first + at] = record_layouts.MISSING.get(name, -1) if column is None else column
            else:
                seconds = _seconds(module, name, times)
                words[:, behind + at] = seconds.view(np.int64)
        check_ranks(self.path, module, words[:, 1], self.job.processes)
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
            calls, streams = (counters[:, _OLD_AT[f"POSIX_{counter}"]] for counter in (name, _BOTH[name]))
            together = np.maximum(calls, 0) + np.maximum(streams, 0)
            return np.where((calls < 0) & (streams < 0), -1, together)
        if name in _OWN:
            return counters[:, _OLD_AT[f"POSIX_{name}"]]
        return counters[:, _OLD_AT[name]] if name in _OLD_AT else None
    if module == "MPI-IO":
        return counters[:, _OLD_AT[name]] if name in (*_OF_MPI, "SYNCS", "HINTS", "VIEWS") else None
    if name != "OPENS":
        return None
    names = ("HDF5_OPENS",) if module == "H5F" else ("INDEP_NC_OPENS", "COLL_NC_OPENS")
    opens: Ints = np.sum([np.maximum(counters[:, _OLD_AT[counter]], 0) for counter in names], axis=0)
    return opens


def _seconds(module: str, name: str, times: Floats) -> Floats:
    """A module's time; -1 if it was not measured."""
    if module == "MPI-IO":
        name = name.replace("F_", "MPI_", 1) if name in ("F_READ_TIME", "F_WRITE_TIME", "F_META_TIME") else ""
    elif module not in ("POSIX", "STDIO"):
        name = ""
    return times[:, _OLD_AT[name]].copy() if name in _OLD_AT else np.full(len(times), -1.0)


def open_log(path: Path, *, whole: bool = True) -> Log:
    """Open a log.

    Parameters
    ----------
    whole
        Inflate and check all of it now; otherwise each region on first use, because sums need only some of them.

    Raises
    ------
    UnknownFormatError
        The file is not a log, or of an unsupported version.
    TraceError
        The log is damaged, or claims something impossible.
    """
    file = LogFile(path)
    if file.old_version is not None:
        return OldLog(file)
    log = Log(file)
    if whole:
        log.check()
    return log
