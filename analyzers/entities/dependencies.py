"""Dependencies through files: who read what another wrote before (tables III and IV).

A process (app) depends on another if it reads a file that the other wrote earlier: by the workload's clock, to which
ranks and traces agree only to their skew. Files that a process reads and writes itself link nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal

import numpy as np

from vani.analyzers.entities.view import View
from vani.analyzers.keyed import Keyed
from vani.analyzers.measures.exchanges import NEVER
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
Pattern = Literal["none", "one_to_many", "many_to_one", "neighbour", "all_to_all", "irregular"]


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
        self.bounds: list[tuple[int, int]] = []
        if len(self.file):
            starts = np.flatnonzero(np.append(True, self.file[1:] != self.file[:-1]))
            self.bounds = list(
                zip(starts.tolist(), np.append(starts[1:], len(self.file)).tolist(), strict=True)
            )
        apps = np.array(view.world.app_of_trace)
        self.trace = view.trace_of_process[self.process] if len(self.process) else self.process
        self.app = apps[self.trace] if len(self.process) else self.process


def exchanged_files(view: View) -> set[int]:
    """Files that one process wrote and another read later."""
    links = _links(view)
    found = set()
    for a, b in links.bounds:
        if b - a < 2:
            continue
        process = links.process[a:b]
        wrote = links.columns["first_write"][a:b]
        read = links.columns["last_read"][a:b]
        writers = wrote != NEVER
        if not writers.any():
            continue
        earliest = int(wrote.min())
        first_writer = process[int(wrote.argmin())]
        readers = (read > -NEVER) & (read >= earliest) & (process != first_writer)
        # The reader may be a writer too: then another writer must have been before its last read.
        if readers.any():
            found.add(int(links.file[a]))
    return found


def early_reads(view: View) -> str | None:
    """Say how far files are read before another process first writes them, if they are: clocks may disagree."""
    links = _links(view)
    if not links.bounds:
        return None
    starts = np.array([a for a, _ in links.bounds])
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
    found: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    if len(view.world.apps) < 2:
        return []
    for a, b in links.bounds:
        app = links.app[a:b]
        if (app == app[0]).all():
            continue
        wrote, last_read = links.columns["first_write"][a:b], links.columns["last_read"][a:b]
        for producer in np.unique(app[wrote != NEVER]).tolist():
            first = int(wrote[app == producer].min())
            for consumer in np.unique(app[(last_read >= first) & (app != producer)]).tolist():
                edge = found[producer, consumer]
                edge[0] += 1
                edge[1] += int(links.columns["bytes_written"][a:b][app == producer].sum())
                edge[2] += int(links.columns["bytes_read"][a:b][app == consumer].sum())
    names = view.world.apps
    first_start = [start for start, _ in view.run_ns]
    ordered = sorted(found.items(), key=lambda e: (first_start[e[0][0]], first_start[e[0][1]], e[0]))
    return [
        AppDependency(producer=names[p], consumer=names[c], files=n, bytes_written=w, bytes_read=r)
        for (p, c), (n, w, r) in ordered
    ]


def _edges(view: View, app: int) -> tuple[dict[tuple[int, int], int], int, bool]:
    """(writer, reader) -> files, of one app; number of files; whether some edges were left out."""
    links = _links(view)
    edges: dict[tuple[int, int], int] = defaultdict(int)
    files = 0
    for a, b in links.bounds:
        mine = links.app[a:b] == app
        if int(mine.sum()) < 2:
            continue
        process = links.process[a:b][mine]
        wrote, read = links.columns["first_write"][a:b][mine], links.columns["last_read"][a:b][mine]
        writers = np.flatnonzero(wrote != NEVER)
        readers = np.flatnonzero(read > -NEVER)
        if len(writers) * len(readers) + len(edges) > _MOST_EDGES:
            return edges, files, True
        linked = False
        for w in writers.tolist():
            for r in readers[(read[readers] >= wrote[w]) & (process[readers] != process[w])].tolist():
                edges[int(process[w]), int(process[r])] += 1
                linked = True
        files += linked
    return edges, files, False


def process_dependencies(view: View, app: int) -> ProcessDependencies:
    """Summary of the dependencies among the processes of an app."""
    edges, files, cut = _edges(view, app)
    if cut:
        view.notes[f"apps[{app}].process_dependencies"] = (
            f"more than {_MOST_EDGES:,} pairs: only the first are counted"
        )
    return ProcessDependencies(edges=len(edges), files=files, pattern=_pattern(edges))


def _pattern(edges: dict[tuple[int, int], int]) -> Pattern:
    if not edges:
        return "none"
    writers, readers = {w for w, _ in edges}, {r for _, r in edges}
    if len(writers) == 1:
        return "one_to_many"
    if len(readers) == 1:
        return "many_to_one"
    everyone = writers | readers
    if len(edges) == len(writers) * len(readers) - len(writers & readers):
        return "all_to_all"
    distances = {(r - w) % (max(everyone) - min(everyone) + 1) for w, r in edges}
    return "neighbour" if len(distances) == 1 else "irregular"


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
        for (writer, reader), files in _edges(view, app)[0].items():
            graph.add_edge(name(writer), name(reader), files=files)
    return graph
