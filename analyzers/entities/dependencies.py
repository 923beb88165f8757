"""Dependencies through files: processes that read data that others wrote before (tables III and IV).

A process depends on another if it read bytes that the other was the last to write (`flows`). If calls do not show
which bytes they moved, it is enough that it read the file at or after the other's first write to it. Times are on the
workload's clock, on which ranks and traces agree only within their skew; the skew that collective calls prove is
allowed for. Reading its own bytes does not link a process to anything. A coarser graph, by files only, is kept, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from vani.analyzers.entities.flows import Blocks, Links, numbers_of_sets, spread
from vani.analyzers.entities.view import Notes, View
from vani.analyzers.int_table import How, IntTable, group, pack, unpack
from vani.analyzers.measurements import PossibleExchanges
from vani.analyzers.measures.extents import NEVER, Exchanges
from vani.columns import Bools, Ints, distinct
from vani.schema.profile import AppDependency, FileLevelDependencies, ProcessDependencies

if TYPE_CHECKING:
    import networkx as nx


MAX_EDGES = 2_000_000
MAX_PAIRS = 1 << 26
"""Maximum number of pairs of a writer and a reader of one file that are examined."""
_AT_ONCE = 1 << 20
Pattern = Literal["none", "one_to_many", "many_to_one", "neighbour", "all_to_all", "irregular"]



def pairs(writer: Ints, reader: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs with equal keys, as indices into two ascending arrays, about a million at a time."""
    begin = np.searchsorted(reader, writer)
    count = np.searchsorted(reader, writer, side="right") - begin
    upto = np.cumsum(count)
    at = 0
    while at < len(writer):
        done = int(upto[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(upto, done + _AT_ONCE, side="right")))
        first, second = spread(begin[at:stop], count[at:stop])
        yield first + at, second
        at = stop


@dataclass(frozen=True, eq=False)
class Graph:
    """Summary of the pairs of processes."""

    edges: int
    by_extents: int
    files: int
    pattern: Pattern
    cut: bool = False


def all_to_all(writer: tuple[Ints, Ints], reader: tuple[Ints, Ints], file: Ints) -> Graph | None:
    """The graph of blocks that all have the same members; None if they differ.

    It avoids examining pairs, of which thousands of processes have millions. Takes (block, process) pairs of each side
    with ascending blocks, and the `file` of each block.
    """
    written = distinct(writer[0])
    both = written[np.isin(written, distinct(reader[0]), assume_unique=True)]
    if not len(both):
        return Graph(0, 0, 0, "none")
    sides = []
    for block, process in (writer, reader):
        in_both = np.isin(block, both)
        numbers = numbers_of_sets(len(both), np.searchsorted(both, block[in_both]), process[in_both])
        if (numbers != numbers[0]).any():
            return None
        sides.append(np.sort(process[block == both[0]]))
    writers, readers = sides
    # Exclude processes with only themselves on the other side.
    if len(readers) == 1:
        writers = np.setdiff1d(writers, readers)
    if len(writers) == 1:
        readers = np.setdiff1d(readers, writers)
    edges = len(writers) * len(readers) - len(np.intersect1d(writers, readers, assume_unique=True))
    files = len(distinct(file[both])) if edges else 0
    return Graph(edges, edges, files, _pattern_of_all(writers, readers) if edges else "none")


def _pattern_of_all(writers: Ints, readers: Ints) -> Pattern:
    if len(writers) == 1:
        return "one_to_many"
    return "many_to_one" if len(readers) == 1 else "all_to_all"


class Edges:
    """Dependencies: pairs of processes, or with `by_file` triples of both processes and a file."""

    def __init__(self, processes: int, files: int, *, by_file: bool = False) -> None:
        self._widths = (processes, processes)
        self._with_file = (processes**2, files)
        self._by_file = by_file
        self._table = IntTable()
        self._seen = 0
        self._linked = np.zeros(files, np.bool_)
        self.cut = False
        """Whether there are more than are counted."""

    def add(self, writer: Ints, reader: Ints, file: Ints, by_extents: bool) -> None:
        """Add pairs, some of which may have been added before."""
        self._seen += len(writer)
        if self._seen > MAX_PAIRS:
            self.cut = True
            return
        others = writer != reader
        writer, reader, file = writer[others], reader[others], file[others]
        self._linked[file] = True
        key = pack((writer, reader), self._widths)
        key = pack((key, file), self._with_file) if self._by_file else key
        new = group(key, {"by_extents": np.full(len(key), by_extents, np.int64)}, {"by_extents": "max"})
        self._table = IntTable.merged([self._table, new], {"by_extents": "max"})
        if len(self._table) > MAX_EDGES:
            self._table = self._table.where(np.arange(MAX_EDGES))
            self.cut = True

    def graph(self) -> Graph:
        edges = self.pairs()
        pattern = _pattern(*unpack(edges.keys, self._widths))
        by_extents = int(edges["by_extents"].sum()) if len(edges) else 0
        return Graph(len(edges), by_extents, int(self._linked.sum()), pattern, self.cut)

    def pairs(self) -> IntTable:
        """Table by keys of writer and reader: `files` (only with `by_file`), and the `by_extents` among them."""
        table = self._table
        if not len(table) or not self._by_file:
            return table
        files = {"files": np.ones(len(table), np.int64), "by_extents": table["by_extents"]}
        return group(unpack(table.keys, self._with_file)[0], files)


def _pattern(writer: Ints, reader: Ints) -> Pattern:
    if not len(writer):
        return "none"
    writers, readers = distinct(writer), distinct(reader)
    both = np.intersect1d(writers, readers, assume_unique=True)
    if len(writers) == 1 or len(readers) == 1 or len(writer) == len(writers) * len(readers) - len(both):
        return _pattern_of_all(writers, readers)
    everyone = distinct(writers, readers)
    distances = (reader - writer) % int(everyone[-1] - everyone[0] + 1)
    return "neighbour" if (distances == distances[0]).all() else "irregular"


def exchanged_files(view: View) -> set[int]:
    """Files that one process wrote and another read later."""
    links = _links(view)
    starts = links.starts
    if not len(starts):
        return set()
    wrote, read = links["first_write"], links["last_read"]
    number = np.cumsum(links.begins) - 1
    earliest = np.minimum.reduceat(wrote, starts)
    rows = np.arange(len(wrote))
    first_writer = links.process[np.minimum.reduceat(np.where(wrote == earliest[number], rows, len(rows)), starts)]
    # If the reader is also a writer, another writer must precede its last read.
    readers = (read > -NEVER) & (read >= earliest[number]) & (links.process != first_writer[number])
    exchanged = np.logical_or.reduceat(readers, starts) & (earliest != NEVER)
    return set(links.file[starts[exchanged]].tolist())


def early_reads(view: View) -> str | None:
    """A sentence if files are read before another process first writes them, because clocks may disagree; else None."""
    links = view.links
    if links is None or not len(links.starts):
        return None
    starts = links.starts
    reads_only = links["first_write"] == NEVER
    first_read = np.where(reads_only, links["first_read"], NEVER)
    earliest_read = np.minimum.reduceat(first_read, starts)
    earliest_write = np.minimum.reduceat(links["first_write"], starts)
    early = (earliest_read < earliest_write) & (earliest_write != NEVER)
    if not early.any():
        return None
    most = int((earliest_write - earliest_read)[early].max()) / 1e9
    return (
        f"{int(early.sum()):,} of the files that are written are read by another process up to {most:.6g} s before: "
        "they were there before the run, or the clocks of ranks or traces disagree"
    )


def _links(view: View) -> Links:
    if view.links is None:
        raise RuntimeError("the source does not record the order of reads and writes")
    return view.links


def app_dependencies(view: View) -> tuple[list[AppDependency] | None, Notes]:
    """Files exchanged between apps, with the bytes that the producer wrote to them and the consumer read from them.

    None if there may be dependencies, but the order of calls is unknown.
    """
    if view.links is None:
        possible = view.measured.of(PossibleExchanges)
        if possible is not None and not possible.between_apps:
            return list(possible.dependencies), {}
        return None, {}
    dependencies = _between(view)
    return dependencies, _explain_bytes(dependencies)


def _between(view: View) -> list[AppDependency]:
    links = _links(view)
    apps = len(view.workload.apps)
    if apps < 2 or not len(links.file):
        return []
    wrote, read = links["first_write"], links["last_read"]
    columns = links.columns | {
        "unplaced_write": np.where(links.unplaced_writer, wrote, NEVER),
        "unplaced_read": np.where(links.unplaced_reader, read, -NEVER),
        "unsized_writers": links.unsized_writer.astype(np.int64),
        "unsized_readers": links.unsized_reader.astype(np.int64),
    }
    widths = (view.workload.files, apps)
    how: dict[str, How] = {**Exchanges().how, "unplaced_write": "min", "unplaced_read": "max"}
    by_app = group(pack((links.file, links.app), widths), columns, how)
    file, app = unpack(by_app.keys, widths)
    proven = _between_apps(links, view.workload.files, apps)
    writers = np.flatnonzero(by_app["first_write"] != NEVER)
    edges: list[IntTable] = []
    for w, r in pairs(file[writers], file):
        producer = writers[w]
        others = app[r] != app[producer]
        producer, consumer = producer[others], r[others]
        flow = pack((file[producer], app[producer], app[consumer]), (view.workload.files, apps, apps))
        by_extents = np.isin(flow, proven)
        linked = by_extents | (by_app["last_read"][consumer] >= by_app["unplaced_write"][producer])
        linked |= by_app["unplaced_read"][consumer] >= by_app["first_write"][producer]
        producer, consumer = producer[linked], consumer[linked]
        columns_of_pairs = {
            "files": np.ones(len(consumer), np.int64),
            "by_extents": by_extents[linked].astype(np.int64),
            "written": by_app["bytes_written"][producer],
            "read": by_app["bytes_read"][consumer],
            "unsized_written": by_app["unsized_writers"][producer],
            "unsized_read": by_app["unsized_readers"][consumer],
        }
        edges.append(group(pack((app[producer], app[consumer]), (apps, apps)), columns_of_pairs))
    table = IntTable.merged(edges)
    names = view.workload.apps
    first_start = [start for start, _ in view.run_ns or ()]
    ends = list(zip(*(column.tolist() for column in unpack(table.keys, (apps, apps))), strict=True))
    order = sorted(range(len(ends)), key=lambda i: (first_start[ends[i][0]], first_start[ends[i][1]], ends[i]))
    return [
        AppDependency(
            producer=names[ends[i][0]],
            consumer=names[ends[i][1]],
            files=int(table["files"][i]),
            files_by_extents=None if links.extents.given_up else int(table["by_extents"][i]),
            bytes_written=None if table["unsized_written"][i] else int(table["written"][i]),
            bytes_read=None if table["unsized_read"][i] else int(table["read"][i]),
        )
        for i in order
    ]


def _explain_bytes(dependencies: list[AppDependency]) -> Notes:
    notes: Notes = {}
    for side, opened, calls, such in (
        ("bytes_written", "recreated", "write to", "output such as fprintf"),
        ("bytes_read", "opened for reading", "read of", "input such as fscanf or fgets"),
    ):
        unknown = sum(getattr(link, side) is None for link in dependencies)
        if unknown:
            notes[f"workflow.app_dependencies.{side}"] = (
                f"null in {unknown} of {len(dependencies)}: files were {opened} and no {calls} them is in the trace "
                f"(formatted {such} leaves no record), or a call does not record its size"
            )
    return notes


def _between_apps(links: Links, files: int, apps: int) -> Ints:
    """Keys of file, producer and consumer, ascending, for apps that read data that another app had written."""
    blocks = links.blocks
    widths = (len(blocks.file), apps)
    (wrote, writer), (read, reader) = (
        unpack(distinct(pack((block, links.app_of_process[process]), widths)), widths)
        for block, process in ((blocks.writer_block, blocks.writer), (blocks.reader_block, blocks.reader))
    )
    files_of_pairs = [np.empty(0, np.int64)]
    for w, r in pairs(wrote, read):
        flow = pack((blocks.file[wrote[w]], writer[w], reader[r]), (files, apps, apps))
        files_of_pairs.append(distinct(flow))
    return distinct(np.concatenate(files_of_pairs))


def _add_flows(edges: Edges, blocks: Blocks) -> None:
    for w, r in pairs(blocks.writer_block, blocks.reader_block):
        edges.add(blocks.writer[w], blocks.reader[r], blocks.file[blocks.writer_block[w]], by_extents=True)
        if edges.cut:
            return


def _add_by_file(edges: Edges, links: Links, writers: Ints, readers: Ints) -> None:
    """Add pairs in which one process wrote a file and the other read it at that time or later; rows of `links`."""
    for w, r in pairs(links.file[writers], links.file[readers]):
        writer, reader = writers[w], readers[r]
        later = links["last_read"][reader] >= links["first_write"][writer]
        writer, reader = writer[later], reader[later]
        edges.add(links.process[writer], links.process[reader], links.file[writer], by_extents=False)
        if edges.cut:
            return


def _add_unplaced(edges: Edges, links: Links, chosen: Bools) -> None:
    """Add pairs known only by file, because the calls of one side do not show which bytes they moved."""
    wrote, read = chosen & (links["first_write"] != NEVER), chosen & (links["last_read"] > -NEVER)
    unplaced = wrote & links.unplaced_writer
    _add_by_file(edges, links, np.flatnonzero(unplaced), np.flatnonzero(read))
    if not edges.cut:
        _add_by_file(edges, links, np.flatnonzero(wrote & ~unplaced), np.flatnonzero(read & links.unplaced_reader))


def _by_extents(view: View, links: Links, app: int, own: Bools, coarse: Graph) -> Graph:
    """Pairs in which one read bytes that the other had written; judged by file for calls without offsets."""
    blocks = links.blocks
    own_writer, own_reader = (links.app_of_process[p] == app for p in (blocks.writer, blocks.reader))
    writer_block, writer = blocks.writer_block[own_writer], blocks.writer[own_writer]
    reader_block, reader = blocks.reader_block[own_reader], blocks.reader[own_reader]
    if not (own & (links.unplaced_writer | links.unplaced_reader)).any():
        graph = all_to_all((writer_block, writer), (reader_block, reader), blocks.file)
        if graph is not None:
            return graph
    elif not len(writer) and not (own & (links["first_write"] != NEVER) & ~links.unplaced_writer).any():
        return replace(coarse, by_extents=0)
    edges = Edges(view.workload.processes, view.workload.files)
    _add_flows(edges, Blocks(blocks.file, writer_block, writer, reader_block, reader))
    if not edges.cut:
        _add_unplaced(edges, links, own)
    return edges.graph()


def _by_file(view: View, links: Links, own: Bools) -> Graph:
    """Pairs in which one read a file that the other wrote, regardless of bytes."""
    writers = np.flatnonzero(own & (links["first_write"] != NEVER))
    readers = np.flatnonzero(own & (links["last_read"] > -NEVER))
    number = np.cumsum(links.begins) - 1
    latest, earliest = (np.full(len(links.starts), v) for v in (-NEVER, NEVER))
    np.maximum.at(latest, number[writers], links["first_write"][writers])
    np.minimum.at(earliest, number[readers], links["last_read"][readers])
    if (earliest >= latest).all():
        graph = all_to_all(
            (number[writers], links.process[writers]),
            (number[readers], links.process[readers]),
            links.file[links.starts],
        )
        if graph is not None:
            return graph
    edges = Edges(view.workload.processes, view.workload.files)
    _add_by_file(edges, links, writers, readers)
    return edges.graph()


_NO_PROCESS_DEPENDENCIES = ProcessDependencies(
    edges=0,
    edges_by_extents=0,
    files=0,
    pattern="none",
    file_level=FileLevelDependencies(edges=0, files=0, pattern="none"),
)


def process_dependencies(view: View, app: int) -> tuple[ProcessDependencies | None, Notes]:
    """Summary of the dependencies among an app's processes.

    None if there may be dependencies, but the order of calls is unknown.
    """
    if view.links is None:
        possible = view.measured.of(PossibleExchanges)
        if possible is not None and not possible.processes[app]:
            return _NO_PROCESS_DEPENDENCIES, {}
        return None, {}
    links = _links(view)
    of_app = links.app == app
    coarse = _by_file(view, links, of_app)
    unknown = links.extents.given_up and coarse.edges > 0
    graph = coarse if unknown or not coarse.edges else _by_extents(view, links, app, of_app, coarse)
    summary = ProcessDependencies(
        edges=graph.edges,
        edges_by_extents=None if unknown else graph.by_extents,
        files=graph.files,
        pattern=graph.pattern,
        file_level=FileLevelDependencies(edges=coarse.edges, files=coarse.files, pattern=coarse.pattern),
    )
    return summary, _explain_edges(links, app, graph, coarse)


def _explain_edges(links: Links, app: int, graph: Graph, coarse: Graph) -> Notes:
    why = []
    if graph.cut or coarse.cut:
        why.append(
            f"more than {MAX_EDGES:,} pairs of processes, or {MAX_PAIRS:,} over all files: "
            "only the first are counted"
        )
    if links.extents.given_up and coarse.edges:
        why.append(
            "files that are written and read have more separate extents than are kept in memory (1 million): only the "
            "file shows the dependency"
        )
    elif graph.edges > graph.by_extents:
        what = "calls do not show which bytes they moved"
        if len(links.unresolved):
            what += f", or {len(links.unresolved):,} files are used in more pieces than are examined"
        why.append(f"{graph.edges - graph.by_extents:,} of the pairs are known by the file only: {what}")
    if graph.by_extents and links.in_doubt and links.extents.start_ns is None:
        why.append(
            "files that are written and read have too many calls to keep the moment of each: for several writers of "
            "the same bytes all count but those that were surely overwritten before the first read"
        )
    return {f"apps[{app}].process_dependencies": "; ".join(why)} if why else {}


def app_graph(view: View) -> nx.DiGraph[str]:
    """A graph with apps as nodes; an edge from producer to consumer has the attributes of an `AppDependency`."""
    import networkx  # noqa: PLC0415 - only graphs that are exported need it

    graph: nx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(view.workload.apps)
    for link in _between(view):
        graph.add_edge(link.producer, link.consumer, **link.model_dump(exclude={"producer", "consumer"}))
    return graph


def process_graph(view: View) -> nx.DiGraph[str]:
    """A graph with all apps' processes (`app/trace/rank`) as nodes; edges have `files` and `files_by_extents`."""
    import networkx  # noqa: PLC0415

    graph: nx.DiGraph[str] = networkx.DiGraph()
    links = _links(view)
    edges = Edges(view.workload.processes, view.workload.files, by_file=True)
    _add_flows(edges, links.blocks)
    _add_unplaced(edges, links, np.ones(len(links.file), np.bool_))
    pair_table = edges.pairs()

    def name(process: int) -> str:
        trace = int(view.trace_of_process[process])
        app = view.workload.apps[view.workload.app_of_trace[trace]]
        return f"{app}/{trace}/{process - view.workload.process_base[trace]}"

    width = view.workload.processes
    ends = (column.tolist() for column in unpack(pair_table.keys, (width, width)))
    for row, (writer, reader) in enumerate(zip(*ends, strict=True)):
        graph.add_edge(
            name(writer),
            name(reader),
            files=int(pair_table["files"][row]),
            files_by_extents=None if links.extents.given_up else int(pair_table["by_extents"][row]),
        )
    return graph
