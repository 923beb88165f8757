"""Facts of a log besides its counts: job, layouts, traced calls, contradictions, and I/O that is not counted.

Contradictory Darshan counters, which occur in damaged or edited logs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from vani.calls import MAX_SUM, Layer
from vani.columns import Bools, Ints, UInt64s, distinct
from vani.counts import Beside, FileLayout, Heat, JobFacts, NotCounted, Segments, TargetsOfFiles, Unsound
from vani.readers.darshan.record_layouts import BINS, IDS
from vani.readers.darshan.records import Module, Records
from vani.readers.signatures import NO_VALUE

ENDS: Final = np.array([100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30])
"""Largest size of each bin in bytes; the last bin has none."""
_SOURCE: Final = "the log's header"


def job_of(records: Records) -> JobFacts:
    """The job as the header names it. The user is a number; job 0 and a negative user mean that it is unknown."""
    user, job = records.user, records.job_id
    return JobFacts(
        id=str(job) if job is not None and job > 0 else None,
        user=str(user) if user is not None and user >= 0 else None,
        command=records.exe.strip() or None,
        source=_SOURCE,
    )


def hints_passed(records: Records) -> int | None:
    """MPI-IO opens and views for which the program or a library passed hints; None if they were not counted.

    No log records the hints themselves: `h` in the header lists those with which Darshan writes the log.
    """
    module = records.modules.get("MPI-IO")
    if module is None or "MPI-IO" in records.partial or "MPIIO_HINTS" not in module.counters:
        return None
    counts = module.counters["MPIIO_HINTS"]
    return None if (counts < 0).any() else int(counts.sum())


def layouts_of(records: Records, files: Callable[[UInt64s], Ints], reach: Ints) -> dict[int, FileLayout] | None:
    """Layout of each file that has one; None if the log has no Lustre records.

    Parameters
    ----------
    files
        Maps ids to file codes, which are negative for files that were not used.
    reach
        Shape (files,): end of the furthest read or write.
    """
    table = records.layouts
    if table is None:
        return None
    begin, end = (table[f"LUSTRE_COMP_EXT_{side}"] for side in ("START", "END"))
    count, size = (table[f"LUSTRE_COMP_STRIPE_{name}"] for name in ("COUNT", "SIZE"))
    code = files(table["id"])
    rows: dict[int, list[int]] = {}
    for row in np.flatnonzero(code >= 0).tolist():
        rows.setdefault(int(code[row]), []).append(row)
    layouts = {}
    for file, own in rows.items():
        last = max(0, int(reach[file]) - 1)
        # A negative end means no end. Mirrors and damaged extents may overlap: the first component that fits counts.
        component = next((r for r in own if begin[r] <= last and (end[r] < 0 or last < end[r])), own[-1])
        layouts[file] = FileLayout(_known(count[component]), _known(size[component]), len(own))
    return layouts


def targets_of(records: Records, files: Callable[[UInt64s], Ints]) -> TargetsOfFiles | None:
    """The targets of each file; None if the log has none. `files` is as in `layouts_of`."""
    table = records.targets
    if table is None or not len(table["id"]):
        return None
    code, target = files(table["id"]), table["target"].astype(np.int64)
    sound = (code >= 0) & (target >= 0)
    of_system: dict[int, int] = {}
    if records.layouts is not None and "OSTS" in records.layouts:
        osts = records.layouts["OSTS"].tolist()
        pairs = zip(files(records.layouts["id"]).tolist(), osts, strict=True)
        of_system = {file: count for file, count in pairs if file >= 0 and count > 0}
    return TargetsOfFiles(code[sound], target[sound], of_system)


def _known(value: np.int64) -> int | None:
    """Uncounted counters are negative; a component on the metadata target has no stripes."""
    return int(value) if value > 0 else None


_MAX_SECONDS = 1e9
_BESIDE: Mapping[str, Beside] = {"LUSTRE": "layouts", "DXT_POSIX": "segments", "HEATMAP": "heat"}
"""Modules without counters, and the facts that they provide."""
_COUNTED = {"heatmap:POSIX": int(Layer.POSIX), "heatmap:STDIO": int(Layer.STDIO)}


def segments_of(records: Records, files: Callable[[UInt64s], Ints], span_ns: int) -> Segments | None:
    """POSIX calls that read or write, in time order within rank, file and direction; None without DXT.

    Impossible calls are skipped, so counters may count more calls than these.
    """
    table = records.calls
    if table is None:
        return None
    # A record's writes come before its reads.
    counts = np.stack([table["writes"], table["reads"]], axis=1).ravel()
    calls = len(table["offset"])
    if (counts < 0).any() or int(counts.sum()) != calls:
        counts = np.zeros(len(counts), np.int64)
        calls = 0
    file = np.repeat(np.repeat(files(table["id"]), 2), counts)
    rank = np.repeat(np.repeat(records.own_ranks(table["rank"]), 2), counts)
    kind = np.repeat(np.tile([1, 0], len(counts) // 2), counts)
    offset, size, start, end = (table[name][:calls] for name in ("offset", "length", "start", "end"))
    with np.errstate(invalid="ignore"):
        sound = (file >= 0) & (rank >= 0) & (rank < records.ranks) & (offset >= 0) & (size >= 0)
        sound &= (start >= 0) & (start <= end) & (end < _MAX_SECONDS)
    begin, stop = (np.minimum(np.round(t[sound] * 1e9).astype(np.int64), span_ns) for t in (start, end))
    return Segments(rank[sound], file[sound], kind[sound], offset[sound], size[sound], begin, stop)


def dropped_of(records: Records) -> frozenset[Beside]:
    """Facts in addition to the counts whose records are incomplete or too many."""
    dropped = frozenset(_BESIDE[name] for name in records.partial if name in _BESIDE)
    return dropped | {"many_segments"} if records.many_calls else dropped


def hosts_of(records: Records) -> tuple[str, ...] | None:
    """Distinct node names; None if DXT does not name the node of every process."""
    if records.calls is None or not all(records.hosts):
        return None
    ranks = distinct(records.own_ranks(records.calls["rank"]))
    return None if len(ranks) < records.ranks else tuple(dict.fromkeys(records.hosts))


def heat_of(records: Records) -> Heat | None:
    """Bytes that each process moved over time through POSIX and STDIO; None if the log lacks some processes."""
    table = records.heat
    if table is None or "HEATMAP" in records.partial or not len(table["id"]):
        return None
    names = dict(zip(records.ids.tolist(), records.names, strict=True))
    layers = np.array([_COUNTED.get(names.get(record_id, ""), -1) for record_id in table["id"].tolist()], np.int64)
    counted = layers >= 0
    widths = np.unique(table["width"][counted])
    # Processes merge bins when they run out of them, and finally agree on a number.
    if len(widths) != 1 or not 0 < widths[0] * table["read"].shape[1] < _MAX_SECONDS:
        return None
    ranks = records.own_ranks(table["rank"][counted])
    read, written = (np.maximum(table[side][counted], 0) for side in ("read", "write"))
    if float(read.astype(np.float64).sum() + written.astype(np.float64).sum()) >= MAX_SUM:
        return None
    row, stretch = np.nonzero((read > 0) | (written > 0))
    if not ((ranks[row] >= 0) & (ranks[row] < records.ranks)).all():
        return None
    return Heat(
        round(float(widths[0]) * 1e9),
        layers[counted][row],
        ranks[row],
        stretch,
        read[row, stretch],
        written[row, stretch],
    )


def without_contradictions(
    modules: Mapping[str, Module], names: Mapping[int, str]
) -> tuple[dict[str, Module], list[str], dict[str, set[Unsound]]]:
    """Remove contradictory values: bytes without an operation, and sizes of more operations than were counted.

    Returns
    -------
    modules
        Modules without these values.
    problems
        Sentences that name the records.
    unsound
        Unknown facts about each file, by path.
    """
    sound, problems = dict(modules), []
    unsound: dict[str, set[Unsound]] = {}
    for name in set(modules) & {"MPI-IO", "H5D", "PNETCDF_VAR"}:
        module, counters = modules[name], dict(modules[name].counters)
        for side, moved in (("READ", "BYTES_READ"), ("WRITE", "BYTES_WRITTEN")):
            wrapped, counter = _below_sizes(module, f"SIZE_{side}_AGG_", moved), f"{module.prefix}_{moved}"
            if wrapped.any():
                counters[counter] = np.where(wrapped, -1, counters[counter])
                problems.append(f"{counter} is less than {_WRAPPED} in {wrapped.sum():,} records: unknown")
        sound[name] = replace(module, counters=counters)
    for name in ("POSIX", "STDIO"):
        if name not in modules:
            continue
        module, counters = modules[name], dict(modules[name].counters)
        sides: tuple[tuple[Literal["read", "written"], str, str, str], ...] = (
            ("read", "READS", "BYTES_READ", "SIZE_READ"),
            ("written", "WRITES", "BYTES_WRITTEN", "SIZE_WRITE"),
        )
        for done, calls, moved, size in sides:
            count = module.raw(calls)
            count = np.where(count == NO_VALUE, count, np.maximum(count, 0))
            bins = [bin_ for bin_ in counters if bin_.startswith(f"{name}_{size}_")]
            # As floats: sums of damaged counters may exceed 64 bits.
            sized = np.sum([np.maximum(counters[bin_], 0) for bin_ in bins], axis=0, dtype=np.float64)
            bytes_of_none = (module.raw(moved) > 0) & (count == 0)
            wrapped = _below_sizes(module, f"{size}_", moved)
            too_many_sizes = (sized > count) & (count >= 0) & (f"{name}_{calls}" in counters)
            for wrong, columns, claim, what in (
                (bytes_of_none, [f"{name}_{moved}"], f"bytes {done} by no call", "bytes"),
                (wrapped & ~too_many_sizes, [f"{name}_{moved}"], f"bytes {done} are less than {_WRAPPED}", "bytes"),
                (too_many_sizes, bins, f"sizes of more calls than have {done}", "sizes"),
            ):
                if not wrong.any():
                    continue
                counters |= {column: np.where(wrong, 0, counters[column]) for column in columns}
                files = _named(module.id[wrong], names, unsound, (what, done))
                problems.append(
                    f"the {name} record of {files} contradicts itself: {claim}, which are unknown and left out"
                )
        sound[name] = replace(module, counters=counters)
    for name, module in modules.items():
        beyond = {
            counter: module.id[values == NO_VALUE]
            for counter, values in module.counters.items()
            if (values == NO_VALUE).any() and not counter.endswith(IDS)
        }
        for name_of_counter, ids in beyond.items():
            _named(ids, names, unsound, _FACTS.get(name_of_counter.partition("_")[2]) if name in _FILE_SYSTEM else None)
        if beyond:
            counter, files = _one_of([*beyond]), _named(np.concatenate([*beyond.values()]), names, unsound, None)
            problems.append(f"{counter} of {files} is more than a run can reach: unknown, and left out of its sums")
    return sound, problems, unsound


def data_sets(records: Records) -> list[tuple[str, list[str], int]]:
    """Dimensions and chunks of HDF5 data sets as the calls that would set them: function, arguments, and number."""
    module = records.modules.get("H5D")
    if module is None:
        return []
    dims, chunk = module.raw("DATASPACE_NDIMS"), module.raw("CHUNK_SIZE_D1")
    # Records of data sets without data calls have no dimensions.
    known = (dims > 0) & (chunk >= 0)
    sizes, often = np.unique(dims[known], return_counts=True)
    calls = [("H5Screate_simple", [str(n)], count) for n, count in zip(sizes.tolist(), often.tolist(), strict=True)]
    chunked = int((chunk[known] > 0).sum())
    calls += [("H5Dcreate2", [], int(known.sum()))] if calls else []
    return [*calls, ("H5Pset_chunk", [], chunked)] if chunked else calls


_FACTS: Final[Mapping[str, Unsound]] = {
    "BYTES_READ": ("bytes", "read"), "BYTES_WRITTEN": ("bytes", "written"),
    "MAX_BYTE_READ": ("extents", "read"), "MAX_BYTE_WRITTEN": ("extents", "written"),
    **dict.fromkeys((f"SIZE_READ_{name}" for name in BINS), ("sizes", "read")),
    **dict.fromkeys((f"SIZE_WRITE_{name}" for name in BINS), ("sizes", "written")),
}  # fmt: skip
"""Facts about a file that are unknown without a counter."""


def _named(ids: UInt64s, names: Mapping[int, str], unsound: dict[str, set[Unsound]], fact: Unsound | None) -> str:
    """The first file of some records, and the number of others; the fact becomes unknown for all of them."""
    paths = list(dict.fromkeys(names.get(id_, "a file without a name") for id_ in ids.tolist()))
    if fact is not None:
        for path in paths:
            unsound.setdefault(path, set()).add(fact)
    return _one_of(paths)


def _one_of(names: Sequence[str]) -> str:
    return names[0] + (f" (and {len(names) - 1:,} more)" if len(names) > 1 else "")


_WRAPPED: Final = "the sizes of its calls add up to, as a counter that wrapped at 2^32 is"


def _below_sizes(module: Module, bins: str, moved: str) -> Bools:
    """Records with fewer bytes than calls of these sizes move at least."""
    total = module.counters.get(f"{module.prefix}_{moved}", np.full(len(module), -1))
    # As floats: sums of damaged counters may exceed 64 bits.
    number = (module.count(f"{bins}{name}") for name in BINS[1:])
    least = sum(count * (end + 1.0) for count, end in zip(number, ENDS.tolist(), strict=True))
    below: Bools = (total >= 0) & (total < least)
    return below


_FILE_SYSTEM: Final = ("POSIX", "STDIO")
"""Modules that count file-system calls; a program may use only one of them."""
_LIBRARIES: Final = ("MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
_SWITCHES: Final = {"mod_disable": "DARSHAN_MOD_DISABLE"}
_EXCLUSIONS: Final = {
    "exclude_dirs": "DARSHAN_EXCLUDE_DIRS",
    "name_exclude": "NAME_EXCLUDE of DARSHAN_CONFIG_PATH",
    "rank_exclude": "DARSHAN_RANK_EXCLUDE",
    "app_exclude": "DARSHAN_APP_EXCLUDE",
}
"""Notes that a site or a run may add to a log's header (lower case, without `darshan_`), and their settings."""
_MAX_FILES: Final = 10
STREAMS: Final = ("<STDIN>", "<STDOUT>", "<STDERR>")
"""Record names of the standard streams, which are not files."""
_MORE_MEMORY: Final = "run it with more memory for Darshan: DARSHAN_MODMEM=64 (MiB) in the job's environment"


def not_counted(records: Records, name_of: Mapping[int, str]) -> list[NotCounted]:
    """I/O that the log does not count, as its own records show; the most important comes first."""
    spots = [*_mapped(records, name_of), *_off(records, name_of), *_partial(records), *_excluded(records)]
    if records.unread:
        cause = f"I/O by {' and '.join(records.unread)} is in the log, and Vani does not read these records"
        spots.append(NotCounted("module_off", tuple(records.unread), (), cause, "run darshan-parser, which has them"))
    return spots


def _mapped(records: Records, name_of: Mapping[int, str]) -> list[NotCounted]:
    """Files that were mapped into memory: Darshan counts the calls of mmap, but not their lengths."""
    module = records.modules.get("POSIX")
    if module is None or not (module.raw("MMAPS") > 0).any():
        return []
    maps = module.raw("MMAPS")
    order = np.argsort(-maps, kind="stable")[: int((maps > 0).sum())]
    paths = tuple(dict.fromkeys(name_of.get(id_, "a file without a name") for id_ in module.id[order].tolist()))
    cause = f"mmap ({int(maps[maps > 0].sum()):,}): loads and stores in mapped memory are no calls"
    how = "a trace of page faults (perf trace -F all), or the file without mmap"
    return [NotCounted("memory_mapped", paths, paths[:_MAX_FILES], cause, how)]


def _off(records: Records, name_of: Mapping[int, str]) -> list[NotCounted]:
    """Modules without records although other modules have records of I/O that they would have counted."""
    counted = _ids(records, _FILE_SYSTEM)
    switched = _setting(records, _SWITCHES)
    missing = [name for name in _FILE_SYSTEM if not _has(records, name)]
    witnesses = {
        "POSIX": {
            **{name: records.modules[name].id for name in _LIBRARIES if _has(records, name)},
            "DXT": _of_table(records.calls),
            "the heat map": _of_heat(records, "heatmap:POSIX"),
        },
        "STDIO": {"the heat map": _of_heat(records, "heatmap:STDIO")},
    }
    if not _has(records, "POSIX") and not _has(records, "STDIO"):
        witnesses["POSIX"]["LUSTRE"] = _of_table(records.layouts)
    spots = []
    for name in missing:
        # By sorting: numpy 2.0's lookup table overflows if 64-bit ids are close to one another.
        shown = {of: ids[~np.isin(ids, counted, kind="sort")] for of, ids in witnesses[name].items()}
        shown = {of: ids for of, ids in shown.items() if len(ids)}
        if not shown and name not in switched:
            continue
        cause = f"{name} has no record"
        if shown:
            cause += f", though {' and '.join(shown)} {'has' if len(shown) == 1 else 'have'} records of the same run"
        if name in switched:
            cause += ": the log states that it was switched off (DARSHAN_MOD_DISABLE)"
        paths = dict.fromkeys(name_of.get(id_, "") for ids in shown.values() for id_ in ids.tolist())
        spots.append(
            NotCounted(
                "module_off",
                (name,),
                tuple(path for path in paths if path.startswith("/"))[:_MAX_FILES],
                cause,
                f"run it with the module on: unset DARSHAN_MOD_DISABLE and set DARSHAN_MOD_ENABLE={name} in the "
                "job's environment",
            )
        )
    streams = [id_ for id_, name in name_of.items() if name in STREAMS]
    if not spots and "POSIX" in missing and np.isin(counted, np.array(streams, np.uint64), kind="sort").all():
        spots.append(
            NotCounted(
                "module_off",
                _FILE_SYSTEM,
                (),
                "the log counts no call on a file (the program made none, or Darshan was not loaded into it)",
                "run it with LD_PRELOAD=libdarshan.so (DARSHAN_ENABLE_NONMPI=1 without MPI), or trace it: "
                "`vani trace --tracer strace -- COMMAND`",
            )
        )
    return spots


def _partial(records: Records) -> list[NotCounted]:
    full = [name for name in records.partial if name in _FILE_SYSTEM]
    libraries = [name for name in records.partial if name in _LIBRARIES]
    cause = "{} dropped records when Darshan's memory ran out"
    spots = []
    if full:
        spots.append(NotCounted("module_partial", tuple(full), (), cause.format(" and ".join(full)), _MORE_MEMORY))
    if libraries:
        # The file-system calls that these libraries make are counted separately and completely.
        text = cause.format(" and ".join(libraries)) + ", but the file-system calls below are counted"
        spots.append(NotCounted("module_partial", tuple(libraries), (), text, _MORE_MEMORY, most_s=0.0))
    if records.mixed:
        cause = f"{records.mixed:,} records of POSIX have calls of streams added to them, and are left out"
        spots.append(NotCounted("module_partial", ("POSIX",), (), cause, "run it with Darshan 3.1 or later"))
    return spots


def _excluded(records: Records) -> list[NotCounted]:
    names = _setting(records, _EXCLUSIONS)
    if not names:
        return []
    settings = " and ".join(dict.fromkeys(names.values()))
    return [
        NotCounted(
            "names_excluded",
            tuple(names),
            (),
            f"Darshan was set to leave out {', '.join(names)} ({settings})",
            "run it with DARSHAN_EXCLUDE_DIRS=none, and without other lists of names to leave out",
        )
    ]


def _setting(records: Records, names: Mapping[str, str]) -> dict[str, str]:
    """Values of settings in the log's header, each with the setting's name."""
    words: dict[str, str] = {}
    for key, value in records.metadata.items():
        setting = names.get(key.lower().removeprefix("darshan_"))
        if setting is not None:
            words |= {word: setting for word in value.replace(";", ",").split(",") if word.strip()}
    return words


def _has(records: Records, name: str) -> bool:
    return name in records.modules and len(records.modules[name]) > 0


def _ids(records: Records, names: Iterable[str]) -> UInt64s:
    return np.concatenate([np.empty(0, np.uint64), *(records.modules[n].id for n in names if _has(records, n))])


def _of_table(table: Mapping[str, NDArray[np.generic]] | None) -> UInt64s:
    return np.empty(0, np.uint64) if table is None else np.unique(table["id"]).astype(np.uint64)


def _of_heat(records: Records, layer: str) -> UInt64s:
    """UInt64s of the records in a layer's heat map that moved bytes."""
    if records.heat is None or not len(records.heat["id"]):
        return np.empty(0, np.uint64)
    name_of = dict(zip(records.ids.tolist(), records.names, strict=True))
    moved = (records.heat["read"] > 0).any(axis=1) | (records.heat["write"] > 0).any(axis=1)
    ids = np.unique(records.heat["id"][moved]).astype(np.uint64)
    return ids[[name_of.get(id_) == layer for id_ in ids.tolist()]] if len(ids) else ids
