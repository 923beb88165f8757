"""Dependencies through files: who read what another wrote before (tables III and IV).

A process (app) depends on another if it reads a file that the other wrote earlier: by the workload's clock, to which
ranks and traces agree only to their skew. Files that a process reads and writes itself link nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.view import View
from vani.analyzers.keyed import Keyed, group
from vani.analyzers.measures.exchanges import HOW, NEVER
from vani.schema.profile import AppDependency, ProcessDependencies

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "app_dependencies",
    "app_graph",
    "early_reads",
    "exchanged_files",
    "process_dependencies",
    "process_graph",
]

_MOST_EDGES = 2_000_000
_MOST_PAIRS = 1 << 26
"""Pairs of a writer and a reader of one file that are looked at."""
_AT_ONCE = 1 << 20
Pattern = Literal["none", "one_to_many", "many_to_one", "neighbour", "all_to_all", "irregular"]

Ints = NDArray[np.int64]


def _of_several(table: Keyed, width: int) -> Keyed:
    """The rows of files that several processes wrote or read: the others link nothing."""
    file = table.keys % width
    users = np.bincount(file, minlength=1) if len(file) else file
    return table.where(np.flatnonzero(users[file] > 1))


class _Links:
    """Exchanges as arrays: one row per process and file, of files with several processes."""

    def __init__(self, view: View) -> None:
        width = view.world.files + 1
        table = _of_several(view.measured.results["exchanges"], width)
        self.process = table.keys // width
        self.file = table.keys % width - 1
        order = np.argsort(self.file, kind="stable")
        self.process, self.file = self.process[order], self.file[order]
        names = ("first_write", "first_read", "last_read", "bytes_written", "bytes_read")
        self.columns = {n: table[n][order] if len(table) else np.empty(0, np.int64) for n in names}
        self.begins = np.append(True, self.file[1:] != self.file[:-1])[: len(self.file)]
        """Shape (rows,): where another file begins."""
        self.starts = np.flatnonzero(self.begins)
        apps = np.array(view.world.app_of_trace)
        self.trace = view.trace_of_process[self.process] if len(self.process) else self.process
        self.app = apps[self.trace] if len(self.process) else self.process


def _pairs(writer: Ints, reader: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs of equal files, as indices into two ascending arrays of files, about a million at a time."""
    begin = np.searchsorted(reader, writer)
    count = np.searchsorted(reader, writer, side="right") - begin
    upto = np.cumsum(count)
    at = 0
    while at < len(writer):
        done = int(upto[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(upto, done + _AT_ONCE, side="right")))
        some = count[at:stop]
        first = np.repeat(np.arange(at, stop), some)
        yield first, np.arange(len(first)) + np.repeat(begin[at:stop] - (upto[at:stop] - some - done), some)
        at = stop


def exchanged_files(view: View) -> set[int]:
    """Files that one process wrote and another read later."""
    links = _links(view)
    starts = links.starts
    if not len(starts):
        return set()
    wrote, read = links.columns["first_write"], links.columns["last_read"]
    number = np.cumsum(links.begins) - 1
    earliest = np.minimum.reduceat(wrote, starts)
    rows = np.arange(len(wrote))
    first_writer = links.process[
        np.minimum.reduceat(np.where(wrote == earliest[number], rows, len(rows)), starts)
    ]
    # The reader may be a writer too: then another writer must have been before its last read.
    readers = (read > -NEVER) & (read >= earliest[number]) & (links.process != first_writer[number])
    found = np.logical_or.reduceat(readers, starts) & (earliest != NEVER)
    return set(links.file[starts[found]].tolist())


def early_reads(view: View) -> str | None:
    """Say how far files are read before another process first writes them, if they are: clocks may disagree."""
    links = _links(view)
    starts = links.starts
    if not len(starts):
        return None
    reads_only = links.columns["first_write"] == NEVER
    first_read = np.where(reads_only, links.columns["first_read"], NEVER)
    earliest_read = np.minimum.reduceat(first_read, starts)
    earliest_write = np.minimum.reduceat(links.columns["first_write"], starts)
    early = (earliest_read < earliest_write) & (earliest_write != NEVER)
    if not early.any():
        return None
    most = int((earliest_write - earliest_read)[early].max()) / 1e9
    return (
        f"{int(early.sum()):,} of the files that are written are read by another process up to {most:.6g} s before: "
        "they were there before the run, or the clocks of ranks or traces disagree"
    )


def _links(view: View) -> _Links:
    if not hasattr(view, "_exchange_links"):
        view._exchange_links = _Links(view)  # type: ignore[attr-defined]
    links: _Links = view._exchange_links  # type: ignore[attr-defined]
    return links


def app_dependencies(view: View) -> list[AppDependency]:
    """Files exchanged between apps, with the bytes that the producer wrote to and the consumer read from them."""
    links = _links(view)
    apps = len(view.world.apps)
    if apps < 2:
        return []
    by_app = group(links.file * apps + links.app, links.columns, HOW)
    file, app = by_app.keys // apps, by_app.keys % apps
    writers = np.flatnonzero(by_app["first_write"] != NEVER) if len(by_app) else file
    edges: list[Keyed] = []
    for w, r in _pairs(file[writers], file):
        producer = writers[w]
        linked = (by_app["last_read"][r] >= by_app["first_write"][producer]) & (app[r] != app[producer])
        producer, consumer = producer[linked], r[linked]
        columns = {
            "files": np.ones(len(consumer), np.int64),
            "written": by_app["bytes_written"][producer],
            "read": by_app["bytes_read"][consumer],
        }
        edges.append(group(app[producer] * apps + app[consumer], columns))
    found = Keyed.merged(edges)
    names = view.world.apps
    first_start = [start for start, _ in view.run_ns]
    ends = list(zip((found.keys // apps).tolist(), (found.keys % apps).tolist(), strict=True))
    order = sorted(range(len(ends)), key=lambda i: (first_start[ends[i][0]], first_start[ends[i][1]], ends[i]))
    return [
        AppDependency(
            producer=names[ends[i][0]],
            consumer=names[ends[i][1]],
            files=int(found["files"][i]),
            bytes_written=int(found["written"][i]),
            bytes_read=int(found["read"][i]),
        )
        for i in order
    ]


@dataclass(frozen=True)
class _Edges:
    """Dependencies among processes, one row per pair; ordered by writer, then reader."""

    writer: Ints
    reader: Ints
    files: Ints
    linked: int
    """Files over which there is some."""
    cut: bool
    """There are more than are counted."""


def _edges(view: View, app: int) -> _Edges:
    """Who reads what another process of the app wrote before."""
    links = _links(view)
    mine = np.flatnonzero(links.app == app)
    process, file = links.process[mine], links.file[mine]
    wrote, read = links.columns["first_write"][mine], links.columns["last_read"][mine]
    writers, readers = np.flatnonzero(wrote != NEVER), np.flatnonzero(read > -NEVER)
    width = view.world.processes
    edges, linked = Keyed(), np.zeros(view.world.files, np.bool_)
    seen, cut = 0, False
    for w, r in _pairs(file[writers], file[readers]):
        seen += len(w)
        cut = seen > _MOST_PAIRS
        if cut:
            break
        writer, reader = writers[w], readers[r]
        some = (read[reader] >= wrote[writer]) & (process[reader] != process[writer])
        writer, reader = writer[some], reader[some]
        linked[file[writer]] = True
        new = group(process[writer] * width + process[reader], {"files": np.ones(len(writer), np.int64)})
        edges = Keyed.merged([edges, new])
        cut = len(edges) > _MOST_EDGES
        if cut:
            edges = edges.where(np.arange(_MOST_EDGES))
            break
    count = edges["files"] if len(edges) else edges.keys
    return _Edges(edges.keys // width, edges.keys % width, count, int(linked.sum()), cut)


def process_dependencies(view: View, app: int) -> ProcessDependencies:
    """Summary of the dependencies among the processes of an app."""
    edges = _edges(view, app)
    if edges.cut:
        view.notes[f"apps[{app}].process_dependencies"] = (
            f"more than {_MOST_EDGES:,} pairs of processes, or {_MOST_PAIRS:,} over all files: "
            "only the first are counted"
        )
    return ProcessDependencies(edges=len(edges.writer), files=edges.linked, pattern=_pattern(edges))


def _pattern(edges: _Edges) -> Pattern:
    if not len(edges.writer):
        return "none"
    writers, readers = np.unique(edges.writer), np.unique(edges.reader)
    if len(writers) == 1:
        return "one_to_many"
    if len(readers) == 1:
        return "many_to_one"
    everyone = np.union1d(writers, readers)
    both = np.intersect1d(writers, readers, assume_unique=True)
    if len(edges.writer) == len(writers) * len(readers) - len(both):
        return "all_to_all"
    distances = (edges.reader - edges.writer) % int(everyone[-1] - everyone[0] + 1)
    return "neighbour" if (distances == distances[0]).all() else "irregular"


def app_graph(view: View) -> nx.DiGraph[str]:
    """Apps as nodes; an edge from producer to consumer carries files, bytes_written and bytes_read."""
    import networkx  # noqa: PLC0415 - only graphs that are exported need it

    graph: nx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(view.world.apps)
    for link in app_dependencies(view):
        graph.add_edge(
            link.producer,
            link.consumer,
            files=link.files,
            bytes_written=link.bytes_written,
            bytes_read=link.bytes_read,
        )
    return graph


def process_graph(view: View) -> nx.DiGraph[str]:
    """Processes (`app/trace/rank`) as nodes; an edge carries the number of files."""
    import networkx  # noqa: PLC0415

    graph: nx.DiGraph[str] = networkx.DiGraph()

    def name(process: int) -> str:
        trace = int(view.trace_of_process[process])
        app = view.world.apps[view.world.app_of_trace[trace]]
        return f"{app}/{trace}/{process - view.world.process_base[trace]}"

    for app in range(len(view.world.apps)):
        edges = _edges(view, app)
        for writer, reader, files in zip(
            edges.writer.tolist(), edges.reader.tolist(), edges.files.tolist(), strict=True
        ):
            graph.add_edge(name(writer), name(reader), files=files)
    return graph
