"""Libraries through which each file was used, from their own counts of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.counts.rows import Rows
from vani.analyzers.measures.libraries import ANY_LIBRARY, ASKED, Libraries, LibrariesResult, LibraryUse
from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.tables.keys import LAYERS, pack
from vani.analyzers.tables.pair_counts import Pairs, count_pairs
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context
from vani.calls import Layer
from vani.counts import RunCounts

Ints = NDArray[np.int64]
_OUTERMOST_FIRST = (Layer.HDF5, Layer.PNETCDF, Layer.MPIIO)


def library_use(rows: Rows, contexts: Sequence[Context], runs: Sequence[RunCounts]) -> LibraryUse:
    """Attribute all file-system calls on a file that a library knows to that library."""
    workload, apps = rows.workload, len(rows.workload.apps)
    widths = (apps, LAYERS)
    calls: list[IntTable] = []
    requests: list[IntTable] = []
    known: dict[tuple[int, int], set[int]] = {}
    for context, run in zip(contexts, runs, strict=True):
        for library, files in run.through.items():
            numbers = np.array(list(files.values()), np.int64).reshape(-1, 3).sum(axis=0)
            key = np.array([int(pack((context.app, library), widths))])
            calls.append(
                IntTable(
                    key,
                    {
                        n: np.array([int(v)])
                        for n, v in zip(("calls", "data", "collective"), numbers, strict=True)
                    },
                )
            )
            # One call of unknown size represents all calls that were not counted.
            read, written = run.requested.get(library, (0, 0))
            unsized = int(library not in run.requested and numbers[1] > 0)
            sums = (read, written, unsized, unsized, 0, 0)
            requests.append(IntTable(key, {n: np.array([v]) for n, v in zip(ASKED, sums, strict=True)}))
            codes = {int(context.file_codes[code]) for code in files if code >= 0}
            known.setdefault((context.app, library), set()).update(codes)
    included = np.flatnonzero(rows.included)
    app, file, layer = rows.app[included], rows.file[included], rows["layer"][included]
    own = rows["reads"] + rows["writes"] + rows["metadata"] + rows["syncs"]
    used = (rows["opens"] + rows["reads"] + rows["writes"])[included]
    moved = (rows["bytes_read"] + rows["bytes_written"])[included]
    within = {int(layer_): _is_known(known, app, file, int(layer_)) for layer_ in _OUTERMOST_FIRST}
    outermost = layer.copy()
    for layer_ in reversed(_OUTERMOST_FIRST):
        outermost = np.where(within[int(layer_)], int(layer_), outermost)
    through = [(layer, np.ones(len(included), np.bool_))]
    through += [(np.full(len(included), layer_), mask) for layer_, mask in within.items() if mask.any()]
    under, files_ = [], []
    for of, mask in through:
        key = pack((app[mask], of[mask]), widths)
        columns = {n: rows[n][included][mask] for n in ("reads", "writes", "bytes_read", "bytes_written")}
        nothing = np.zeros(int(mask.sum()), np.int64)
        under.append(group(key, columns | {"unsized_reads": nothing, "unsized_writes": nothing}))
        files_.append(
            count_pairs(key[used[mask] > 0], file[mask][used[mask] > 0], used[mask][used[mask] > 0])
        )
    own_key = pack((rows.app[included], layer), widths)
    data = rows["reads"] + rows["writes"]
    calls.append(
        group(
            own_key,
            {"calls": own[included], "data": data[included], "collective": np.zeros(len(included), np.int64)},
        )
    )
    via = pack((app, outermost), widths)
    opened = used > 0
    result = LibrariesResult(
        under=IntTable.merged(under),
        calls=IntTable.merged(calls),
        files=Pairs.merged(files_),
        data=_sizes(rows, runs, within, included, widths),
        outer=count_pairs(via[opened], file[opened], used[opened]),
        via=group(via, {"bytes": moved, "calls": own[included]}),
        requests=IntTable.merged(requests),
        handed_down=IntTable(),
    )
    empty = np.zeros(0, np.int64)
    return Libraries().aggregate(result, workload, SurveyFindings(empty, empty, np.zeros(apps + 1, np.int64)))


def _is_known(known: dict[tuple[int, int], set[int]], app: Ints, file: Ints, layer: int) -> NDArray[np.bool_]:
    is_known = np.zeros(len(app), np.bool_)
    for (of_app, of_layer), codes in known.items():
        if of_layer == layer and codes:
            is_known |= (app == of_app) & np.isin(file, np.fromiter(codes, np.int64, len(codes)))
    return is_known


def _sizes(
    rows: Rows,
    runs: Sequence[RunCounts],
    within: dict[int, NDArray[np.bool_]],
    included: Ints,
    widths: tuple[int, int],
) -> Pairs:
    """Sizes that are certain, by layer and again for any library."""
    before, parts = 0, []
    for run in runs:
        parts.append((run.sizes.row + before, run.sizes.size, run.sizes.count))
        before += len(run.sizes.read)
    row, size, count = (np.concatenate(c) for c in zip(*parts, strict=True))
    place = np.full(len(rows), -1, np.int64)
    place[included] = np.arange(len(included))
    known = place[row] >= 0
    row, size, count = row[known], size[known], count[known]
    parts_of_sizes = [count_pairs(pack((rows.app[row], rows["layer"][row]), widths), size, count)]
    through_any = np.zeros(len(row), np.bool_)
    for layer, mask in within.items():
        some = mask[place[row]]
        through_any |= some
        if some.any():
            parts_of_sizes.append(count_pairs(pack((rows.app[row[some]], layer), widths), size[some], count[some]))
    if through_any.any():
        some = through_any
        parts_of_sizes.append(count_pairs(pack((rows.app[row[some]], ANY_LIBRARY), widths), size[some], count[some]))
    return Pairs.merged(parts_of_sizes)
