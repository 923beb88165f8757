"""Folders and name patterns of the data set, over all its files, including unlisted ones.

A folder's files are those directly in it. Its entries are these files and the direct subfolders that contain data set
files at any depth: a lower bound of the entries that this run adds to its directory.

A look-up is an open or a stat that finds nothing, or a stat of a name that no process opens. Look-ups belong to the
folder of the name; those of a folder itself belong to that folder. Folders that differ only in numbers are one row. A
search path is walked where a loader looks for the same libraries or modules in one folder after the other, until one of
them has the name; its folders are one row where they have a common folder.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.analyzers.entities.files import size_distribution
from vani.analyzers.entities.io_stats import byte_counts
from vani.analyzers.entities.view import Notes, View
from vani.analyzers.int_table import NO_VALUE, Factorized, exact_sum, pack, unpack
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.lengths import FileLengths
from vani.analyzers.measures.operations import NamesAndLocks
from vani.calls import FileClass
from vani.columns import Bools, Ints, Numbers, distinct, scalar, texts, to_numpy
from vani.name_patterns import NamePatterns
from vani.schema.profile import ByteCounts, Folder, Lock, LookUp, NamePattern, SizeDistribution

_EXACT = 1 << 53



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
        self.time, self.metadata_time, self._opens = map(self.total, ("time", "metadata_time", "opens"))
        self._read, self._written = self.total("bytes_read"), self.total("bytes_written")
        # Groups whose reads, or writes, all have unknown sizes.
        self._unread, self._unwritten = (
            (self.total(f"unsized_{n}") == self.total(n)) & (self.total(n) > 0) for n in ("reads", "writes")
        )

    def total(self, column: str) -> Ints:
        """Sum of a survey column; zeros if the source does not count it."""
        return self.sum(self._view.surveyed(column))

    def sum(self, of_files: Numbers) -> Ints:
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
        return byte_counts(read, written)

    def entry(self, group: int) -> dict[str, Any]:
        """Attributes that the rows of folders and of name patterns share."""
        timed = self._view.timed
        return {
            "files": int(self.files[group]),
            "bytes": self.bytes(group),
            "time_s": int(self.time[group]) / 1e9 if timed else None,
            "metadata_time_s": int(self.metadata_time[group]) / 1e9 if timed else None,
            "opens": int(self._opens[group]),
        }

    def ranks(self, first: str, last: str, some: Bools) -> tuple[Ints, Ints] | None:
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


MAX_BY_TIME = 100
MAX_BY_FILES = 10
_SEVERAL_AT_ONCE = "calls were counted for several processes at once (--quick)"
_NO_CREATION = "opens that make their file are not counted apart"



def folders(view: View, size_of: Ints) -> tuple[list[Folder], Notes]:
    """The folders with most metadata time (or operations, if no time is known), then those with most files.

    `size_of` is as returned by `sizes`.
    """
    codes = view.files
    if not len(codes):
        return [], {}
    paths, folder = _parents(view.paths_of_files)
    sums = FileSums(view, folder, len(paths))
    created = sums.sum(view.surveyed("makes") > 0)
    records_creation = view.measured.survey.records_creation
    records_removal = view.measured.survey.records_removal
    removes = sums.sum(view.measured.survey.removed(codes))
    makers = sums.ranks("first_maker", "last_maker", view.surveyed("makes") > 0)
    chosen = most_important(
        sums.metadata_time, sums.total("metadata"), sums.files, by_time=MAX_BY_TIME, by_files=MAX_BY_FILES
    )
    sizes, of_sizes = _sizes(view, codes, folder, size_of, chosen)
    notes = view.nulls(SpentTime, "folders.metadata_time_s", "folders.time_s") | of_sizes
    if not records_creation:
        notes["folders.creates"] = notes["folders.makers"] = _NO_CREATION
    elif makers is None:
        notes["folders.makers"] = _SEVERAL_AT_ONCE
    if not records_removal:
        notes["folders.removes"] = "removals are not recorded"
    notes |= _left_out("folders", len(chosen), len(paths), "metadata time")
    below = _folders_in(paths)
    entities = [
        Folder(
            path=paths[i].as_py(),
            **sums.entry(i),
            creates=int(created[i]) if records_creation else None,
            entries=int(sums.files[i]) + below.get(paths[i].as_py(), 0),
            removes=int(removes[i]) if records_removal else None,
            makers=None if makers is None else int(makers[0][i]),
            sizes=sizes[i],
        )
        for i in chosen
    ]
    return entities, notes


def _left_out(name: str, listed: int, all_: int, most: str) -> Notes:
    """A remark on the rows that a table leaves out, if any."""
    text = f"{listed} of {all_:,}: the {MAX_BY_TIME} with most {most}, and the {MAX_BY_FILES} with most files"
    return {} if listed == all_ else {name: text}


def _sizes(
    view: View, codes: Ints, folder: Ints, size_of: Ints, chosen: list[int]
) -> tuple[dict[int, SizeDistribution | None], Notes]:
    """Size distributions of the files in some folders, and reasons for nulls."""
    lengths = view.measured.of(FileLengths)
    if lengths is None:
        return dict.fromkeys(chosen), {"folders.sizes": view.measured.why(FileLengths)}
    why = view.measured.results.why(FileLengths)
    hidden = np.bincount(folder, lengths.uncertain[codes] & (why is not None), folder.max() + 1) > 0
    order = np.argsort(folder, kind="stable")
    bounds = np.searchsorted(folder[order], np.add.outer((0, 1), chosen))
    distributions: dict[int, SizeDistribution | None] = {}
    for number, begin, end in zip(chosen, *bounds.tolist(), strict=True):
        sizes = size_of[codes[order[begin:end]]]
        distributions[number] = None if hidden[number] else size_distribution(sizes[sizes != NO_VALUE])
    return distributions, {"folders.sizes": why} if why is not None and hidden[chosen].any() else {}


def _parents(paths: pa.Array) -> tuple[pa.Array, Ints]:
    """Distinct folders of paths, in order of first appearance, and the index of each path's folder among them."""
    cut = pc.replace_substring_regex(paths, "/+[^/]*$", "")
    inside = pc.match_substring(paths, "/")
    # Paths without a folder are in the working directory; paths in the root folder have nothing before their slash.
    named = pc.if_else(inside, pc.if_else(pc.equal(cut, scalar("")), scalar("/"), cut), scalar("."))
    encoded = pc.dictionary_encode(named)
    return encoded.dictionary, to_numpy(encoded.indices).astype(np.int64)


def _folders_in(paths: pa.Array) -> dict[str, int]:
    """Number of direct subfolders of each folder, including folders without files of their own."""
    known: set[str] = set()
    level = set(paths.to_pylist())
    while level:
        known |= level
        level = {parent for path in level if (parent := _parent(path)) is not None} - known
    counts: dict[str, int] = {}
    for path in known:
        parent = _parent(path)
        if parent is not None:
            counts[parent] = counts.get(parent, 0) + 1
    return counts


def _parent(path: str) -> str | None:
    if path in ("/", ".") or "/" not in path:
        return None
    return path.rsplit("/", 1)[0] or "/"


def patterns(view: View, size_of: Ints) -> tuple[list[NamePattern], Notes]:
    """The patterns with most I/O time (or bytes, if no time is known), then those with most files.

    `size_of` is as returned by `sizes`.
    """
    codes = view.files
    if not len(codes):
        return [], {}
    grouped = NamePatterns(view.paths_of_files)
    sums = FileSums(view, grouped.codes, grouped.count)
    users = view.users_of_files
    writes, reads, flushes = (sums.total(n) for n in ("writes", "reads", "syncs"))
    shared = sums.sum(users["processes"] >= 2)
    used = sums.ranks("first_process", "last_process", np.ones(len(codes), np.bool_))
    wrote = sums.ranks("first_writer", "last_writer", view.surveyed("writes") > 0)
    # The users of a single file are known, so a pattern has at least as many processes as its most shared file.
    processes = None if used is None else np.maximum(used[0], sums.most(users["processes"]))
    writers = None if wrote is None else np.maximum(wrote[0], sums.most(users["writers"]))
    sizes = size_of[codes]
    known = sums.sum(sizes != NO_VALUE)
    moved = sums.total("bytes_read") + sums.total("bytes_written")
    weight = sums.time if view.timed else moved
    chosen = most_important(
        weight, moved if view.timed else reads + writes, sums.files, by_time=MAX_BY_TIME, by_files=MAX_BY_FILES
    )
    rank = np.arange(view.workload.processes) - np.array(view.workload.process_base)[view.trace_of_process]
    notes = view.nulls(SpentTime, "patterns.time_s", "patterns.metadata_time_s")
    if processes is None:
        notes |= dict.fromkeys((f"patterns.{n}" for n in ("processes", "writers", "writer")), _SEVERAL_AT_ONCE)
    if (known[chosen] < sums.files[chosen]).any():
        notes["patterns.size"] = "the size of some file is not known: see files.size"
    notes |= _left_out("patterns", len(chosen), grouped.count, "I/O time" if view.timed else "bytes")
    entities = [
        NamePattern(
            pattern=grouped.name(i),
            **sums.entry(i),
            processes=None if processes is None else int(processes[i]),
            writers=None if writers is None else int(writers[i]),
            writer=None if wrote is None or writers is None or writers[i] != 1 else int(rank[wrote[1][i]]),
            shared=int(shared[i]),
            reads=int(reads[i]),
            writes=int(writes[i]),
            flushes=int(flushes[i]),
            size=exact_sum(sizes[grouped.members(i)]) if known[i] == sums.files[i] else None,
        )
        for i in chosen
    ]
    return entities, notes


_LEAST_CALLS: Final = 10
"""Folders with fewer look-ups are left out: every program makes some when it starts."""
_TRIFLE: Final = 100
"""Folders with less than a hundredth of the look-ups are left out, too."""
_MAX_WALKED: Final = 40
_NO_FAILURES: Final = "the tracer does not record which calls failed"
_NO_LOCKS: Final = "the source counts no locks"
_WALKED: Final = 3
"""A name that at least so many folders lack is looked for along a search path."""
_AGAIN: Final = 10
"""Stats of a folder by one process, at least, if its imports look into it: Python stats the folders of `sys.path` at
each import (docs.python.org, importlib.machinery.FileFinder)."""
_LIBRARY: Final = re.compile(r"\.so(?:\.[\d.]+)?$")
_MODULE: Final = re.compile(r"\.(?:py[cdi]?|jar|class|mod|pm|rb|R|m|jl|lua|js)$")
_LOADED: Final = re.compile(f"{_LIBRARY.pattern}|{_MODULE.pattern}")
_INSTALLED: Final = re.compile(r"(.*?/lib(?:64)?/python[0-9][0-9.]*|.*?/(?:site|dist)-packages)(?:/.*)?$", re.DOTALL)
_VARIANT: Final = re.compile(r"/(?:glibc-hwcaps|tls|haswell|avx512_1|x86_64)(?:/.*)?$")
"""Subfolders that the dynamic loader tries first for the processor at hand (ld.so(8))."""


def lookups(view: View) -> tuple[list[LookUp] | None, Notes]:
    """The folders with most time in look-ups (most look-ups, if no time is known)."""
    measured = view.measured.of(NamesAndLocks)
    if measured is None:
        return None, view.nulls(NamesAndLocks, "lookups")
    table = measured.names
    if not len(table):
        return [], {}
    of_class, names = view.workload.file_class[table.keys], ("opens", "stats", "failed", "listings", "folder")
    opens, stats, failed, listings, is_folder = (table[name] for name in names)
    absent = of_class == FileClass.PROBE
    failed = failed + np.where(absent, opens, 0)
    # Who lists a folder opens it, and stats it.
    looks = np.where(absent | (opens == 0), np.maximum(stats - listings, 0), 0)
    calls, time = failed + looks, table["failed_ns"] + np.where(absent, table["opens_ns"], 0)
    time += np.where(looks > 0, table["stats_ns"] * looks // np.maximum(1, stats), 0)
    several = table["first_process"] < table["last_process"]
    per_process = calls // np.where(several, view.workload.processes, 1)
    # Most names are files that are opened, and may be millions.
    some = np.flatnonzero((calls > 0) | (listings > 0))
    first, outside = table["first"][some], np.where(of_class == FileClass.DATASET, 0, time)[some]
    calls, time, failed, listings, is_folder, per_process = (
        column[some] for column in (calls, time, failed, listings, is_folder, per_process)
    )
    paths = [view.workload.paths[code] for code in table.keys[some].tolist()]
    folder = [path if inside else posixpath.dirname(path) or "." for path, inside in zip(paths, is_folder, strict=True)]
    searched = _searched(view, paths, folder, is_folder > 0, failed, per_process)
    joined = _joined(searched, set(folder))
    named = joined | _names_of({where for where in folder if where not in joined})
    rows = Factorized(*np.unique(np.array([named[where] for where in folder], object), return_inverse=True))
    sums = [rows.sum(column) for column in (calls, time, outside, failed, listings, (calls > 0).astype(np.int64))]
    most = np.zeros(len(rows.keys), np.int64)
    np.maximum.at(most, rows.codes, per_process)
    knows, timed = _has_failures(view), view.timed
    least = max(_LEAST_CALLS, int(calls.sum()) // _TRIFLE)
    chosen = [at for at in np.lexsort((-sums[0], -sums[1])).tolist() if sums[0][at] >= least][:MAX_BY_FILES]
    in_order = [folder[at] for at in np.argsort(first, kind="stable").tolist()]
    walked = [list(dict.fromkeys(map(_plain, filter(kind.__contains__, in_order)))) for kind in reversed(searched)]
    entities = []
    for at in chosen:
        inside = {_plain(folder[i]) for i in np.flatnonzero(rows.codes == at).tolist()}
        searches = (kind for kind in walked if len(kind) >= _WALKED and not inside.isdisjoint(kind))
        number, spent, apart, missing, listed, distinct_names = (int(column[at]) for column in sums)
        entities.append(
            LookUp(
                folder=str(rows.keys[at]),
                folders=len(inside),
                names=distinct_names,
                calls=number,
                failed=missing if knows else None,
                most=int(most[at]),
                listings=listed,
                time_s=spent / 1e9 if timed else None,
                excluded_s=apart / 1e9 if timed else None,
                search_path=max(searches, key=len, default=[])[:_MAX_WALKED] or None,
            )
        )
    notes = view.nulls(SpentTime, "lookups.time_s", "lookups.excluded_s")
    return entities, notes | ({"lookups.failed": _NO_FAILURES} if entities and not knows else {})


def _has_failures(view: View) -> bool:
    return all(trace.tool in ("strace", "dftracer") for trace in view.measured.traces)


def _names_of(folders: set[str]) -> dict[str, str]:
    """The name pattern of each folder."""
    known = {where: f"{installed[1]}/**" for where in folders if (installed := _INSTALLED.match(where)) is not None}
    others = sorted(folders.difference(known))
    patterns = NamePatterns(texts(others))
    return known | {where: patterns.name(code) for where, code in zip(others, patterns.codes.tolist(), strict=True)}


def _plain(folder: str) -> str:
    return _VARIANT.sub("", folder)


def _searched(
    view: View, paths: list[str], folder: list[str], is_folder: Bools, failed: Ints, most: Ints
) -> tuple[set[str], set[str]]:
    """The folders that lack libraries that a loader looks for, and those that lack modules."""
    tried = defaultdict[str, set[str]](set)
    for path, where, inside, missing in zip(paths, folder, is_folder.tolist(), failed.tolist(), strict=True):
        name = posixpath.basename(path)
        # A package has its own file of this name.
        if missing and not inside and not name.startswith("__init__.") and _LOADED.search(name):
            tried[name].add(where)
    walked = {name: folders for name, folders in tried.items() if len(folders) >= _WALKED}
    libraries = {where for name, folders in walked.items() if _LIBRARY.search(name) for where in folders}
    modules = {where for name, folders in walked.items() if not _LIBRARY.search(name) for where in folders}
    again = {folder[at] for at in np.flatnonzero(is_folder & (most >= _AGAIN)).tolist()}
    if len(again) >= _WALKED:
        files = [path.replace("/__pycache__/", "/") for path in view.workload.paths if _LOADED.search(path)]
        packages = {posixpath.dirname(path) for path in files if "/__init__." in path}
        modules |= (again - packages) & _above(files)
    return libraries, modules - libraries


def _joined(searched: Iterable[set[str]], folders: set[str]) -> dict[str, str]:
    """The common folder of the folders that a loader searches, by folder."""
    roots: dict[str, str] = {}
    for members in searched:
        tops = defaultdict[str, set[str]](set)
        for member in members:
            tops["/".join(member.split("/")[:2])].add(member)
        for some in tops.values():
            if len(set(map(_plain, some))) < _WALKED:
                continue
            common = posixpath.commonpath(some)
            between = {above for above in _above(some) if above.startswith(f"{common}/")}
            roots.update(dict.fromkeys((some | (between & folders)) - set(roots), common))
    return roots


def _above(paths: Iterable[str]) -> set[str]:
    """All folders that contain these, directly or not."""
    folders: set[str] = set()
    for path in paths:
        while (path := posixpath.dirname(path)) not in ("", "/") and path not in folders:
            folders.add(path)
    return folders


def locks(view: View) -> tuple[list[Lock] | None, Notes]:
    """A row for each function that locks files, with most time first."""
    known = view.measured.of(NamesAndLocks)
    if known is None or known.locks is None:
        return None, {"locks": _NO_LOCKS if known is not None else view.measured.why(NamesAndLocks)}
    measured = known.locks
    errors, entities, knows = defaultdict[str, Counter[str]](Counter), [], _has_failures(view)
    for name, args, count in (fact for trace in view.measured.traces for fact in trace.facts):
        if args[:1] == ["refused"]:
            errors[name][args[1]] += count
    for code in distinct(measured.function).tolist():
        own = np.flatnonzero(measured.function == code)
        calls, failed, time = (measured.counts[name][own] for name in ("calls", "failed", "time"))
        files, name = measured.file[own][np.argsort(-time, kind="stable")], view.workload.functions[code]
        rest = int(failed.sum()) - errors[name].total()
        entities.append(
            Lock(
                call=name,
                calls=int(calls.sum()),
                time_s=int(time.sum()) / 1e9 if view.timed else None,
                failed=errors[name] | Counter({"unknown": rest} if rest > 0 else {}) if knows else None,
                files=[view.workload.paths[file] for file in files[files >= 0][:3].tolist()],
            )
        )
    notes = view.nulls(SpentTime, "locks.time_s")
    notes |= {"locks.failed": _NO_FAILURES} if entities and not knows else {}
    return sorted(entities, key=lambda lock: (-(lock.time_s or 0.0), -lock.calls)), notes
