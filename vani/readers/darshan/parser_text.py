"""Log text that darshan-parser printed, optionally compressed with gzip, for when the log itself is not available."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.errors import TraceError, UnknownFormatError, one_line
from vani.readers.darshan.log import check_job, check_ranks
from vani.readers.darshan.reader import DarshanReader
from vani.readers.darshan.record_layouts import largest
from vani.readers.darshan.records import Module, Records
from vani.readers.signatures import NO_VALUE

_TOTAL = re.compile(r"total_[A-Za-z0-9_-]+: ")
_SIGNS: Sequence[tuple[str, tuple[str, ...], str]] = (
    (
        "darshan-dxt-parser",
        ("# DXT, file_id", "# DXT_POSIX module data", "# DXT_MPIIO module data", "# no DXT module data"),
        "at most single reads and writes, and no counters",
    ),
    ("darshan-parser --total", ("total_",), "sums over all files and no counters of single files"),
    (
        "darshan-parser --perf",
        ("# performance", "# total_bytes:", "# I/O timing for unique files", "# agg_perf_by_"),
        "rates of the whole run and no counters of files",
    ),
    (
        "darshan-parser --file-list",
        ("# Per-file summary of I/O activity",),
        "times of files and no counters",
    ),
    ("darshan-parser --file", ("# files", "# Total file counts", "# <file_type>"), "numbers of files and no counters"),
)
"""The command, how its lines begin, and its contents in place of counters. The first match counts, because
`--perf` and `--file` print less than `--total`."""
_EMPTY = "# no module data available"
"""Line that `darshan-parser` prints for a log without records."""
_TODO: Final = "name the log itself, or print its counters with `darshan-parser LOG > FILE` and name FILE"


def is_total(line: str) -> bool:
    """Whether a line is a sum printed by `darshan-parser --total` (or `--all`)."""
    return _TOTAL.match(line) is not None


def refuse_other_texts(path: Path, text: str, exe: str) -> None:
    """Raise an error that names the command behind a text without counters; return if the text matches none.

    Raises
    ------
    UnknownFormatError
        Another command or option printed the text.
    """
    lines = text.split("\n")
    for command, signs, instead in _SIGNS:
        if any(line.startswith(signs) for line in lines):
            raise UnknownFormatError(f"is text of `{command}`{_run(exe)}, which has {instead}", where=path, todo=_TODO)


def refuse_head_alone(path: Path, text: str, exe: str) -> None:
    """Refuse a text without counter lines, unless `darshan-parser` printed it for a log without records.

    Raises
    ------
    UnknownFormatError
        The text ends after the head.
    """
    if not any(line.startswith(_EMPTY) for line in text.split("\n")):
        raise UnknownFormatError(
            f"is the head of a printed Darshan log{_run(exe)}, without a counter", where=path, todo=_TODO
        )


def _run(exe: str) -> str:
    return f" of the run of {one_line(exe.split(maxsplit=1)[0])}" if exe.split() else ""


_MAX = 1 << 31
_COMPONENT = re.compile(r"LUSTRE_COMP(\d{1,4})_(STRIPE_COUNT|STRIPE_SIZE|EXT_START|EXT_END)")
_OLD_LAYOUT = {"LUSTRE_STRIPE_WIDTH": "STRIPE_COUNT", "LUSTRE_STRIPE_SIZE": "STRIPE_SIZE"}
_TARGET = re.compile(r"LUSTRE_(?:COMP\d{1,4}_)?OST_ID_\d{1,5}")
_BIN = re.compile(r"HEATMAP_(READ|WRITE)_BIN_(\d{1,7})")
_PARTIAL = re.compile(r"The (\S+) module contains incomplete data")
_WARNING = "# Warning: "
_OTHERS = ("LUSTRE", "HEATMAP")
_FIELDS = 6

_Record = tuple[str, int, int]
"""Module, rank, and id of a record."""


class ParserTextReader(DarshanReader):
    """A reader of a log's printed text."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, check=False)
        self.layout = "darshan-parser"
        content = _text(path)
        self._content = hashlib.sha256(content).hexdigest()
        records = parsed(path, content.decode(errors="surrogateescape"))
        check_job(path, records.ranks, records.start_s, records.end_s)
        for name, module in records.modules.items():
            check_ranks(path, name, module.rank, records.ranks)
        self.format = records.version
        self.__dict__["_records"] = records


def printed_records(path: Path) -> Records:
    """The records in a log's printed text; raises TraceError like `parsed`."""
    return parsed(path, _text(path).decode(errors="surrogateescape"))


def _text(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if compressed else path.open("rb") as file:
            content = file.read(_MAX + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path, one_line(str(error))) from error
    if len(content) > _MAX:
        raise _damaged(path, "it contains more than 2 GiB of text")
    return content


def _damaged(path: Path, fault: str) -> TraceError:
    return TraceError(
        f"is damaged text of darshan-parser: {fault}",
        where=path,
        todo="print the log again with darshan-parser, or leave it out",
    )


def parsed(path: Path, text: str) -> Records:
    """Parse the records in printed text.

    Raises
    ------
    TraceError
        A line is not a counter, a record lacks some of its module's counters, or the log's own figures are missing.
    """
    facts: dict[str, str] = {}
    mounts: list[tuple[str, str]] = []
    partial: list[str] = []
    metadata: dict[str, str] = {}
    records: dict[_Record, dict[str, str]] = {}
    names: dict[int, str] = {}
    split = False
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#"):
            _note(line, facts, mounts, partial, metadata)
        elif line.strip() and not (is_total(line) or split):
            fields = line.split("\t", _FIELDS - 1)
            if len(fields) < _FIELDS or not (fields[1].lstrip("-").isdecimal() and fields[2].isdecimal()):
                if not records:
                    refuse_other_texts(path, text, facts.get("exe", ""))
                raise _damaged(path, f"line {number:,} is not a counter of a record: {one_line(line[:60])!r}")
            module, rank, id_, counter, value, rest = fields
            key = (module, int(rank), int(id_))
            records.setdefault(key, {})[counter] = value
            # The counter's name is followed by the mount's folder and type.
            names[key[2]] = rest.rsplit("\t", 2)[0]
        # If stderr went to the same file, a warning splits a comment in two.
        split = _WARNING in line[1:]
    try:
        start, length = float(facts["start_time"]), float(facts["run time"])
        ranks = int(facts["nprocs"])
    except (KeyError, ValueError) as error:
        raise _damaged(path, f"its head does not contain {one_line(str(error))}") from error
    if not records:
        refuse_other_texts(path, text, facts.get("exe", ""))
        refuse_head_alone(path, text, facts.get("exe", ""))
    ids = np.array([id_ & (1 << 64) - 1 for id_ in names], np.uint64)
    return Records(
        version=one_line(facts.get("darshan log version", "")),
        exe=facts.get("exe", ""),
        ranks=ranks,
        start_s=start,
        end_s=start + length,
        mounts=mounts,
        partial=partial,
        ids=ids,
        names=list(names.values()),
        modules=dict(_modules(path, records)),
        layouts=_layouts(path, records),
        heat=_heat(path, records),
        user=_whole(facts.get("uid")),
        job_id=_whole(facts.get("jobid")),
        metadata=metadata,
        targets=_targets(records),
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def _note(
    line: str,
    facts: dict[str, str],
    mounts: list[tuple[str, str]],
    partial: list[str],
    metadata: dict[str, str],
) -> None:
    """Read a comment: a fact about the log, a mount, or a module with dropped records."""
    name, colon, value = line[1:].partition(":")
    if name.strip() == "mount entry":
        folder, _, kind = value.strip().rpartition("\t")
        mounts.append((folder, kind))
    elif name.strip() == "metadata":
        key, _, text = value.partition("=")
        metadata[key.strip()] = text.strip()
    elif dropped := _PARTIAL.search(line):
        partial.append(dropped[1])
    elif colon:
        facts.setdefault(name.strip(), value.strip())


def _modules(path: Path, records: dict[_Record, dict[str, str]]) -> Iterator[tuple[str, Module]]:
    for module in dict.fromkeys(key[0] for key in records):
        if module in _OTHERS:
            continue
        of_module = {key: counters for key, counters in records.items() if key[0] == module}
        first = next(iter(of_module.values()))
        if any(counters.keys() != first.keys() for counters in of_module.values()):
            raise _damaged(path, f"a record of {module} lacks some of its counters: it was cut off")
        table = {name: [counters[name] for counters in of_module.values()] for name in first}
        yield (
            module,
            Module(
                np.array([key[2] for key in of_module], np.uint64),
                np.array([key[1] for key in of_module], np.int64),
                {n: _numbers(path, n, v, np.int64) for n, v in table.items() if "_F_" not in n},
                {n: _numbers(path, n, v, np.float64) for n, v in table.items() if "_F_" in n},
            ),
        )


def _numbers(path: Path, name: str, values: list[str], kind: type[Any]) -> NDArray[Any]:
    try:
        if kind is np.float64:
            return np.array([float(value) for value in values], kind)
        # Ids of records and impossible numbers may need more than 63 bits.
        most = largest(name)
        return np.array([NO_VALUE if int(value) > most else int(value) for value in values], kind)
    except (ValueError, OverflowError) as error:
        raise _damaged(path, f"{one_line(name)}: {one_line(str(error))}") from error


def _layouts(path: Path, records: dict[_Record, dict[str, str]]) -> dict[str, NDArray[Any]] | None:
    rows: list[tuple[int, dict[str, str]]] = []
    for (module, _, id_), counters in records.items():
        if module != "LUSTRE":
            continue
        parts: dict[int, dict[str, str]] = {}
        targets = "-1"
        for name, value in counters.items():
            if match := _COMPONENT.fullmatch(name):
                parts.setdefault(int(match[1]), {})[match[2]] = value
            elif name in _OLD_LAYOUT:
                parts.setdefault(0, {})[_OLD_LAYOUT[name]] = value
            elif name == "LUSTRE_OSTS":
                targets = value
        rows += [(id_, part | {"OSTS": targets}) for part in parts.values()]
    if not rows:
        return None
    unknown = {"STRIPE_COUNT": "-1", "STRIPE_SIZE": "-1", "EXT_START": "0", "EXT_END": "-1"}
    table = {
        f"LUSTRE_COMP_{name}": _numbers(path, f"LUSTRE_{name}", [part.get(name, none) for _, part in rows], np.int64)
        for name, none in unknown.items()
    }
    return table | {
        "id": np.array([id_ for id_, _ in rows], np.uint64),
        "OSTS": _numbers(path, "LUSTRE_OSTS", [part["OSTS"] for _, part in rows], np.int64),
    }


def _targets(records: dict[_Record, dict[str, str]]) -> dict[str, NDArray[Any]] | None:
    """The targets of each file; components that were never written have negative ones, which are dropped."""
    pairs = {
        (id_, int(value)): None
        for (module, _, id_), counters in records.items()
        if module == "LUSTRE"
        for name, value in counters.items()
        if _TARGET.fullmatch(name) and value.isdecimal()
    }
    return {
        "id": np.array([id_ for id_, _ in pairs], np.uint64),
        "target": np.array([target for _, target in pairs], np.int64),
    }


def _heat(path: Path, records: dict[_Record, dict[str, str]]) -> dict[str, NDArray[Any]] | None:
    of_heat_map = {key: counters for key, counters in records.items() if key[0] == "HEATMAP"}
    if not of_heat_map:
        return None
    bins = {
        key: [(match[1], int(match[2]), v) for n, v in counters.items() if (match := _BIN.fullmatch(n))]
        for key, counters in of_heat_map.items()
    }
    longest = 1 + max((place for some in bins.values() for _, place, _ in some), default=-1)
    table = {side: np.zeros((len(of_heat_map), longest), np.int64) for side in ("READ", "WRITE")}
    for row, some in enumerate(bins.values()):
        for side, cells in table.items():
            places = [place for of_side, place, _ in some if of_side == side]
            values = [value for of_side, _, value in some if of_side == side]
            cells[row, places] = _numbers(path, f"BYTES_{side}", values, np.int64)
    width = [counters.get("HEATMAP_F_BIN_WIDTH_SECONDS", "0") for counters in of_heat_map.values()]
    return {
        "id": np.array([key[2] for key in of_heat_map], np.uint64),
        "rank": np.array([key[1] for key in of_heat_map], np.int64),
        "width": _numbers(path, "HEATMAP_F_BIN_WIDTH_SECONDS", width, np.float64),
        "read": table["READ"],
        "write": table["WRITE"],
    }
