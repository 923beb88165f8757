"""Conversion of Darshan's counters to counts: the meaning of each counter, and its limits (docs/darshan.md).

- POSIX `OPENS` counts `fileno` and `dup`, too; STDIO `OPENS` counts `fdopen`.
- `SEQ` includes `CONSEC`. Darshan's stride is the gap between two operations.
- `ACCESS1` to `ACCESS4` mix reads and writes: a size belongs to one direction only if the bins prove it.
- A negative counter was not counted.
- Write time includes flush time.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from vani.calls import MAX_SUM, FileClass, Layer
from vani.columns import Ints, UInt64s, distinct
from vani.counts import COLUMNS, REQUESTS, UNKNOWN, CountedSizes, RunCounts
from vani.readers.darshan import facts
from vani.readers.darshan.record_layouts import BINS
from vani.readers.darshan.records import Module, Records
from vani.readers.paths import classify_path
from vani.readers.signatures import NO_VALUE

T = TypeVar("T")

_ENDS = facts.ENDS
_NEVER_COUNTED = "STDIO_FDOPENS"
"""A count that Darshan lacks in some versions."""
_MODULES = (("POSIX", Layer.POSIX), ("STDIO", Layer.STDIO))
_LIBRARIES = (
    ("MPI-IO", Layer.MPIIO),
    ("H5F", Layer.HDF5),
    ("H5D", Layer.HDF5),
    ("PNETCDF_FILE", Layer.PNETCDF),
    ("PNETCDF_VAR", Layer.PNETCDF),
)
_FUNCTIONS = {
    "POSIX": {
        "open": "opens", "read": "READS", "write": "WRITES", "lseek": "SEEKS", "stat": "STATS", "fsync": "FSYNCS",
        "fdatasync": "FDSYNCS", "rename": "RENAME_SOURCES",
    },
    "STDIO": {"fopen": "opens", "fread": "READS", "fwrite": "WRITES", "fseek": "SEEKS", "fflush": "FLUSHES"},
}  # fmt: skip
"""A representative function of each kind, and the counters that count the kind."""


_DATA_FUNCTIONS = {
    "MPI-IO": ("MPI_File_read", "MPI_File_write"),
    "H5D": ("H5Dread", "H5Dwrite"),
    "PNETCDF_VAR": ("ncmpi_get", "ncmpi_put"),
}
"""Representative functions for all reads and all writes, by library."""
_ASKING = {"MPI-IO": Layer.MPIIO, "H5D": Layer.HDF5, "PNETCDF_VAR": Layer.PNETCDF}
"""Modules that count the bytes requested by library calls."""
_OTHER_CALLS = (
    "OPENS", "INDEP_OPENS", "COLL_OPENS", "CREATES", "FLUSHES", "SYNCS", "VIEWS", "REDEFS", "INDEP_WAITS", "COLL_WAITS",
)  # fmt: skip
"""Counters of library calls that move no data."""
_MOVING = ("", "INDEP_", "COLL_", "SPLIT_", "NB_")
"""Prefixes of READS and WRITES in the libraries' counters."""


_COUNTS = {
    "stats": "STATS", "bytes_read": "BYTES_READ", "bytes_written": "BYTES_WRITTEN",
    "slowest_bytes": "SLOWEST_RANK_BYTES", "fastest_bytes": "FASTEST_RANK_BYTES",
}  # fmt: skip
_TIMES = {
    "read_ns": "READ_TIME", "write_ns": "WRITE_TIME", "metadata_ns": "META_TIME",
    "slowest_ns": "SLOWEST_RANK_TIME", "fastest_ns": "FASTEST_RANK_TIME",
}  # fmt: skip
"""Columns that are counters or times of the module."""


def _ns(module: Module, name: str) -> Ints:
    """Seconds as nanoseconds."""
    return np.round(module.seconds(name) * 1e9).astype(np.int64)


def _modules_of(records: Records, rows: Iterable[tuple[str, T]]) -> Iterator[tuple[str, T, Module]]:
    """Rows (module, value) of modules that have records."""
    for name, value in rows:
        if (module := records.modules.get(name)) is not None and len(module):
            yield name, value, module


def counts_of(records: Records) -> tuple[RunCounts, list[str]]:
    """The counts of a log, and sentences about what it lost.

    Raises
    ------
    ValueError
        A sum exceeds 64 bits.
    """
    name_of = dict(zip(records.ids.tolist(), records.names, strict=True))
    modules, contradictions, unsound = facts.without_contradictions(records.modules, name_of)
    records = replace(records, modules=modules)
    used = [records.modules[name].id for name, _ in _MODULES if name in records.modules]
    ids = distinct(np.concatenate([np.empty(0, np.uint64), *used]))
    names = [name_of.get(file_id) or f"(file {file_id} without a name)" for file_id in ids.tolist()]
    # Several ids with one name are one file.
    paths = list(dict.fromkeys(names))
    code_of = {path: code for code, path in enumerate(paths)}
    file_of_id = np.array([code_of[name] for name in names], np.int64)

    def files(ids_of_records: UInt64s) -> Ints:
        """File codes of ids; `UNKNOWN` if no file-system call was counted."""
        if not len(ids):
            return np.full(len(ids_of_records), UNKNOWN)
        place = np.minimum(np.searchsorted(ids, ids_of_records), len(ids) - 1)
        return np.where(ids[place] == ids_of_records, file_of_id[place], UNKNOWN)

    tables, sizes, functions = [], [], Counter[str]()
    problems = [*_problems(records), *contradictions]
    before = 0
    for name, layer, module in _modules_of(records, _MODULES):
        table = _table(module, records)
        table |= {"file": files(module.id), "layer": np.full(len(module), layer, np.int64)}
        table["rank"] = records.own_ranks(module.rank)
        tables.append(table)
        sizes.append(_sizes(module, before))
        before += len(module)
        for function, counter in _FUNCTIONS[name].items():
            counted = module.opens if counter == "opens" else module.count(counter)
            functions[function] += _sum(counted)
    for _, both, module in _modules_of(records, _DATA_FUNCTIONS.items()):
        for function, counter in zip(both, ("READS", "WRITES"), strict=True):
            functions[function] += _sum(module.count(*(f"{kind}{counter}" for kind in _MOVING)))
    table = {
        column: np.concatenate([np.empty(0, np.int64), *(table[column] for table in tables)])
        for column in COLUMNS
    }
    for column in ("bytes_read", "bytes_written", "read_ns", "write_ns", "metadata_ns", "reads", "writes"):
        _sum(table[column])
    span_ns = round((records.end_s - records.start_s) * 1e9)
    return (
        RunCounts(
            paths=paths,
            file_class=np.array(
                [FileClass.STANDARD_STREAM if p in facts.STREAMS else classify_path(p) for p in paths], np.int8
            ),
            table=table,
            sizes=_joined(sizes),
            functions={name: n for name, n in functions.most_common() if n},
            span_ns=span_ns,
            through=_through(records, files),
            requests=_requests(records, files),
            layouts=facts.layouts_of(records, files, _reach(table, len(paths))),
            mounts=records.mounts,
            hosts=facts.hosts_of(records),
            segments=facts.segments_of(records, files, span_ns),
            heat=facts.heat_of(records),
            unsound=unsound,
            dropped=facts.dropped_of(records),
            job=facts.job_of(records),
            hints_passed=facts.hints_passed(records),
            not_counted=facts.not_counted(records, name_of),
            targets=facts.targets_of(records, files),
        ),
        problems,
    )


def _reach(table: Mapping[str, Ints], files: int) -> Ints:
    reach = np.zeros(files, np.int64)
    np.maximum.at(reach, table["file"], np.maximum(table["read_end"], table["write_end"]))
    return reach


def _sum(values: Ints) -> int:
    if values.astype(np.float64).sum() >= MAX_SUM:
        raise ValueError("its counters add up to more than can be counted")
    return int(values.sum())


def _problems(records: Records) -> list[str]:
    """Limits: records dropped while the program ran, and uncounted calls."""
    counters = {name for name, _ in (*_MODULES, *_LIBRARIES)}
    problems = [
        f"{name}: records were dropped when memory ran out: counts are lower bounds"
        for name in records.partial
        if name in counters
    ]
    for name, _ in _MODULES:
        module = records.modules.get(name)
        for counter, values in ({} if module is None else module.counters).items():
            lost = int(((values < 0) & (values != NO_VALUE)).sum())
            adds_up = counter.endswith(("READS", "WRITES", "OPENS", "BYTES_READ", "BYTES_WRITTEN"))
            if lost and (adds_up or "_SIZE_" in counter) and counter != _NEVER_COUNTED:
                problems.append(
                    f"{counter} is negative in {lost:,} of {len(values):,} records, which were left out of its sums"
                )
    return problems


def _table(module: Module, records: Records) -> dict[str, Ints]:
    span = max(0, round((records.end_s - records.start_s) * 1e9))
    reads, writes = module.count("READS"), module.count("WRITES")
    posix = module.prefix == "POSIX"
    nothing = np.zeros(len(reads), np.int64)

    def first(*names: str) -> Ints:
        far = np.iinfo(np.int64).max
        moments = [np.where(t > 0, t, far) for t in (_ns(module, f"{n}_START_TIMESTAMP") for n in names)]
        earliest = np.minimum.reduce(moments)
        return np.minimum(np.where(earliest == far, 0, earliest), span)

    def last(*names: str) -> Ints:
        moments = [_ns(module, f"{n}_END_TIMESTAMP") for n in names]
        moment: Ints = np.minimum(np.maximum.reduce(moments), span)
        return moment

    every = ("OPEN", "READ", "WRITE", "CLOSE")
    sequential = module.count("SEQ_READS", "SEQ_WRITES")
    consecutive = np.minimum(module.count("CONSEC_READS", "CONSEC_WRITES"), sequential)
    variance = module.times.get(f"{module.prefix}_F_VARIANCE_RANK_BYTES", np.ones(len(module)))
    by_name = {
        "reads": reads,
        "writes": writes,
        # Only counters of the module exist here, although the text may name any.
        "metadata": module.opens + module.count("SEEKS", *(("STATS", "RENAME_SOURCES") if posix else ())),
        "syncs": module.count(*(("FSYNCS", "FDSYNCS") if posix else ("FLUSHES",))),
        "opens": module.opens,
        **{name: module.count(counter) for name, counter in _COUNTS.items()},
        **{name: _ns(module, counter) for name, counter in _TIMES.items()},
        "slowest_rank": module.raw("SLOWEST_RANK"),
        "fastest_rank": module.raw("FASTEST_RANK"),
        "even_bytes": (variance == 0).astype(np.int64),
        "first_ns": first(*every),
        "last_ns": last(*every),
        "read_first_ns": first("READ"),
        "read_last_ns": last("READ"),
        "write_first_ns": first("WRITE"),
        "write_last_ns": last("WRITE"),
        # The last byte's offset is 0 both for one byte and for none.
        "read_end": _end(module, "READ"),
        "write_end": _end(module, "WRITTEN"),
        "placed": reads + writes if posix else nothing,
        "consecutive": np.minimum(consecutive, reads + writes),
        "forward": np.minimum(sequential, reads + writes) - np.minimum(consecutive, reads + writes),
        "ordered_reads": module.count("SEQ_READS"),
        "ordered_writes": module.count("SEQ_WRITES"),
        "unaligned": module.raw("FILE_NOT_ALIGNED") if posix else nothing,
        "alignment": module.count("FILE_ALIGNMENT"),
    }
    return by_name | _strides(module, by_name["forward"])


def _end(module: Module, side: str) -> Ints:
    """End of the furthest call; the number of its bytes, if it is unknown."""
    moved, last = module.count(f"BYTES_{side}"), module.raw(f"MAX_BYTE_{side}")
    return np.where(moved > 0, np.where(last >= 0, last + 1, moved), 0)


def _strides(module: Module, forward: Ints) -> dict[str, Ints]:
    """Operations with one of the four most common gaps, and the distance between starts if it is certain."""
    holes = np.stack([module.count(f"STRIDE{i}_STRIDE") for i in range(1, 5)])
    often = np.where(holes > 0, np.stack([module.count(f"STRIDE{i}_COUNT") for i in range(1, 5)]), 0)
    sizes = np.stack([module.count(f"ACCESS{i}_COUNT") for i in range(1, 5)])
    most, rows = often.argmax(axis=0), np.arange(often.shape[1])
    commonest = sizes.argmax(axis=0)
    of_one_size = 2 * sizes[commonest, rows] > sizes.sum(axis=0)
    sure = of_one_size & (2 * often[most, rows] > often.sum(axis=0))
    length = np.stack([module.count(f"ACCESS{i}_ACCESS") for i in range(1, 5)])[commonest, rows]
    return {
        "strided": np.minimum(np.where(often >= 2, often, 0).sum(axis=0), forward),
        "stride": np.where(sure, holes[most, rows] + length, 0),
        "stride_count": np.where(sure, often[most, rows], 0),
    }


def _sizes(module: Module, before: int) -> CountedSizes:
    """Bins of each row, and the sizes that the bins assign to one direction."""
    rows = len(module)
    if module.prefix != "POSIX":
        return _no_sizes(rows)
    read, write = (np.stack([module.count(f"SIZE_{side}_{b}") for b in BINS], axis=1) for side in ("READ", "WRITE"))
    length = np.stack([module.count(f"ACCESS{i}_ACCESS") for i in range(1, 5)], axis=1)
    often = np.stack([module.count(f"ACCESS{i}_COUNT") for i in range(1, 5)], axis=1)
    often = np.where(np.stack([module.raw(f"ACCESS{i}_ACCESS") for i in range(1, 5)], axis=1) >= 0, often, 0)
    place = np.searchsorted(_ENDS, length, side="left")
    each_row = np.arange(rows)[:, None]
    of_bin = np.zeros((rows, len(BINS)), np.int64)
    np.add.at(of_bin, (np.broadcast_to(each_row, place.shape), place), (often > 0).astype(np.int64))
    alone = (often > 0) & (of_bin[each_row, place] == 1)
    reads, writes = read[each_row, place], write[each_row, place]
    complete = alone & (often == reads + writes)
    exact = []
    for kind, operations, other_operations in ((0, reads, writes), (1, writes, reads)):
        proven = np.where(complete, operations, np.where((other_operations == 0) & (often <= operations), often, 0))
        row, slot = np.nonzero(proven)
        exact.append((row + before, np.full(len(row), kind), length[row, slot], proven[row, slot]))
    row, kind_, size, count = (np.concatenate(columns_) for columns_ in zip(*exact, strict=True))
    return CountedSizes(BINS, _ENDS, read, write, row, kind_, size, count)


def _joined(parts: list[CountedSizes]) -> CountedSizes:
    names = ("read", "write", "row", "kind", "size", "count")
    parts = [_no_sizes(0), *parts]
    return CountedSizes(BINS, _ENDS, *(np.concatenate([getattr(p, n) for p in parts]) for n in names))


def _no_sizes(rows: int) -> CountedSizes:
    empty, nothing = np.zeros((rows, len(BINS)), np.int64), np.empty(0, np.int64)
    return CountedSizes(BINS, _ENDS, empty, empty, nothing, nothing, nothing, nothing)


def _through(records: Records, files: Any) -> Mapping[int, Mapping[int, int]]:
    """Number of library calls by layer and file."""
    calls_of_layer: dict[int, Counter[int]] = {}
    for _, layer, module in _modules_of(records, _LIBRARIES):
        data = (f"{kind}{counter}" for kind in _MOVING for counter in ("READS", "WRITES"))
        calls = module.count(*data, *_OTHER_CALLS)
        of_layer = calls_of_layer.setdefault(int(layer), Counter())
        for file, number in zip(files(module.id).tolist(), calls.tolist(), strict=True):
            of_layer[file] += number
    return calls_of_layer


def _requests(records: Records, files: Any) -> Mapping[str, Ints]:
    """Data calls of libraries, with the bytes that they asked to move."""
    parts: list[dict[str, Ints]] = []
    for name, layer, module in _modules_of(records, _ASKING.items()):
        for kind, (calls, moved, time) in enumerate((("READS", "READ", "READ"), ("WRITES", "WRITTEN", "WRITE"))):
            number = module.count(*(f"{prefix}{calls}" for prefix in _MOVING))
            together = module.count(f"COLL_{calls}", f"SPLIT_{calls}")
            if name == "H5D":
                together = np.where(module.raw("USE_MPIIO_COLLECTIVE") > 0, number, 0)
            size = module.raw(f"BYTES_{moved}")
            counted = f"{module.prefix}_BYTES_{moved}" in module.counters
            _sum(np.maximum(size, 0))
            row = {
                "rank": records.own_ranks(module.rank),
                "file": files(module.id),
                "layer": np.full(len(module), layer),
                "kind": np.full(len(module), kind),
                "calls": number,
                "bytes": np.where(counted & (size >= 0), size, UNKNOWN),
                "time_ns": _ns(module, f"{time}_TIME"),
                "together": together,
            }
            parts.append({column: values[number > 0] for column, values in row.items()})
    nothing = np.empty(0, np.int64)
    return {name: np.concatenate([nothing, *(part[name] for part in parts)]) for name in REQUESTS}
