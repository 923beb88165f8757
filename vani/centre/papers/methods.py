"""The methods of the papers as functions of lists and arrays, in the papers' symbols."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vani.centre.columns import Floats, Ints
from vani.centre.plan.io_node_shares import Items, optima
from vani.centre.plan.path import path
from vani.centre.plan.place import place
from vani.centre.plan.placement.layouts import settable
from vani.centre.plan.schema.jobs import Creation, Demand, Jobs, PlannedJob
from vani.centre.plan.schema.plans import PathSettings, PlaceSettings
from vani.centre.plan.schema.snapshot import MAX_TARGETS, IoNode, Rates, Server, Snapshot, StorageNode, Target
from vani.centre.write_time.design import model_design
from vani.centre.write_time.published import PUBLISHED, Placement, Published, Write
from vani.errors import InputError, nearest
from vani.models.striping import STRIPE_UNIT

# Converts callers' lists and arrays to arrays of a known shape, or raises an error of one line.

_MAX: Final = 1e18


def rows(values: ArrayLike, columns: Sequence[str], where: str, *, unknown: Sequence[str] = ()) -> Floats:
    """Convert to an array of shape (rows, columns) with figures from 0 to 1e18. Columns in `unknown` may have NaN.

    Raises
    ------
    InputError
        The shape is wrong, there are no rows, or a figure is invalid.
    """
    todo = f"give rows of {', '.join(columns)}"
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("is not a table of numbers", where=where, todo=todo) from None
    if table.ndim != 2 or table.shape[1] != len(columns) or not len(table):
        raise InputError(f"has the shape {table.shape}", where=where, todo=todo)
    allowed = np.isnan(table) & np.isin(columns, list(unknown))
    wrong = np.argwhere(~(allowed | ((table >= 0) & (table <= _MAX))))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise InputError(f"{columns[column]} is {table[row, column]:g}", where=f"{where}[{row}]", todo="give 0 to 1e18")
    return table


def whole(value: object, where: str, *, least: int = 0, most: int = 1 << 62) -> int:
    """Convert to a whole number within bounds. A float with an integral value is accepted.

    Raises
    ------
    InputError
        The value is not a whole number, or is out of bounds.
    """
    todo = f"give a whole number from {least:,} to {most:,}"
    try:
        number: int = int(value)  # type: ignore[call-overload]
        is_whole = bool(number == value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"is {value!r}"[:100], where=where, todo=todo) from None
    if not is_whole or not least <= number <= most:
        raise InputError(f"is {value}"[:100], where=where, todo=todo)
    return number


# I/O nodes for running applications: the multiple-choice knapsack of Bez et al. (IPDPS 2021).

_MAX_CELLS: Final = 100_000_000
"""Most applications, or items of one application, times I/O nodes: 2 GB."""
_MAX_ITEMS: Final = 65_535
_BITS: Final = 60
"""Bits of a sum of bandwidths, so that sums of whole numbers stay below 2^61."""


class Mckp(NamedTuple):
    """The optimum: I/O nodes `w` and bandwidth `p` of each application, in the unit of the curves."""

    w: list[int]
    p: list[float]


def mckp(curves: Sequence[ArrayLike], pool: int) -> Mckp:
    """Choose the I/O nodes of each application so that the sum of bandwidths is largest.

    Equation 1: maximise sum p_ij x_ij, where sum w_ij x_ij <= W and one item j of each application i is taken. Among
    equal sums, the one with the fewest I/O nodes is taken.

    Parameters
    ----------
    curves
        For each application its items, rows of (w_ij, p_ij): I/O nodes (0 for direct access) and the bandwidth with
        them, in any unit. List only numbers that the application can have: those that divide its compute nodes.
    pool
        W, the number of I/O nodes.

    Raises
    ------
    InputError
        A figure is invalid, or the applications need more I/O nodes than there are.

    Examples
    --------
    Table 4: twelve I/O nodes for BT-C, BT-D, IOR-MPI, POSIX-L, MAD and S3D, with the points printed in the paper, in
    MB/s:

    >>> curves = [[(0, 195.7), (1, 77.6)], [(1, 597.2), (2, 594.2)], [(1, 268.4), (8, 5089.9)],
    ...           [(2, 411.9)], [(0, 255.9), (1, 77.8)], [(0, 241.3), (2, 48.1)]]
    >>> best = mckp(curves, 12)
    >>> best.w
    [0, 1, 8, 2, 0, 0]
    >>> round(sum(best.p), 1)
    6791.9
    """
    capacity = whole(pool, "pool")
    tables = [rows(curve, ("w", "p"), f"curves[{i}]") for i, curve in enumerate(curves)]
    if not tables:
        raise InputError("is empty", where="curves", todo="give the items of one application at least")
    for i, table in enumerate(tables):
        if len(table) > _MAX_ITEMS:
            raise InputError(f"has {len(table):,} items", where=f"curves[{i}]", todo=f"give {_MAX_ITEMS:,} at most")
        for j, w in enumerate(table[:, 0].tolist()):
            whole(w, f"curves[{i}][{j}]: w")
    capacity = min(capacity, int(sum(table[:, 0].max() for table in tables)))
    if max(len(tables), *map(len, tables)) * (capacity + 1) > _MAX_CELLS:
        what = f"{len(tables):,} applications that can use {capacity:,} I/O nodes are more than can be solved"
        raise InputError(what, where="pool", todo="give a smaller pool, or fewer applications or items")
    # Whole numbers add up exactly. Scaling by a power of two preserves the digits of a bandwidth.
    most = sum(float(table[:, 1].max()) for table in tables)
    scale = 2.0 ** min(_BITS - math.frexp(most)[1], 1023) if most > 0 else 1.0
    # Items that need more than the pool get a weight that never fits.
    classes = [
        Items(np.minimum(table[:, 0], capacity + 1).astype(np.int64), np.rint(table[:, 1] * scale).astype(np.int64))
        for table in tables
    ]
    taken = optima(classes, capacity).at(capacity)
    if taken is None:
        least = int(sum(table[:, 0].min() for table in tables))
        raise InputError(f"is {capacity:,}", where="pool", todo=f"the applications need {least:,} I/O nodes at least")
    chosen = [table[j] for table, j in zip(tables, taken, strict=True)]
    return Mckp([int(w) for w, _ in chosen], [float(p) for _, p in chosen])


# OSTs for new files: Tarazu's allocation (ACM Transactions on Storage, 2024).

_MAX_STRIPES: Final = 2_000


class TarazuExtent(NamedTuple):
    """A row of the interaction database (tables 1 and 2).

    `osts` are positions in the argument `osts` of `tarazu`, empty if there is no room.
    """

    file: int
    start: int
    end: int
    stripe_size: int
    osts: list[int]


class Tarazu(NamedTuple):
    """The extents of all files, in order.

    `ost_cost` is equation 4: the use of the fullest OST over the mean, including existing bytes. `least` is a lower
    bound for any choice. Both are None if nothing is placed.
    """

    extents: list[TarazuExtent]
    ost_cost: float | None
    least: float | None


def tarazu(
    files: Sequence[tuple[int, int | Iterable[tuple[int | None, int]]]],
    osts: ArrayLike,
    *,
    oss: Sequence[int] | None = None,
    oss_load: Sequence[float] | None = None,
    as_printed: bool = False,
) -> Tarazu:
    """Choose OSTs for every extent of every file so that the fullest OST is as empty as possible.

    A plain file gets one stripe of equal size on each of its OSTs (equations 2 and 3: an even multiple of AP = 64 KiB).
    An extent of a progressive layout (section 5.5.2) gets stripes of (end - start) / stripeCount. If Lustre refuses
    that size, it is the largest that Lustre accepts and that puts the same bytes on each OST.

    Parameters
    ----------
    files
        For each file its bytes and its layout: a stripeCount, or extents as pairs of (end in bytes, stripeCount). The
        end of the last is None, the end of the file.
    osts
        For each OST its capacity and available bytes (the paper's totalKbytes and kbytesAvail).
    oss
        For each OST its server, a number from 0; None if unknown.
    oss_load
        For each server ossLoad, 0 to 1, which only the printed algorithm uses; None: 0.
    as_printed
        Use the printed stripe sizes and Algorithm 1 as printed. Its costs do not grow with what it places, so it piles
        stripes up on the OSTs that are cheapest at first.

    Raises
    ------
    InputError
        A figure is invalid, or Lustre refuses a layout.

    Examples
    --------
    Figure 15: 16 files of 2 GiB on 8 of 35 OSTs each. The paper reports 1.08, which is below the possible minimum.

    >>> GiB = 1 << 30
    >>> plan = tarazu([(2 * GiB, 8)] * 16, [(10 * GiB, 10 * GiB)] * 35)
    >>> round(plan.ost_cost, 3), round(plan.least, 3)
    (1.094, 1.094)

    Table 1: Lustre refuses the third extent with the printed stripes of 192 MiB.

    >>> MiB = 1 << 20
    >>> layout = [(128 * MiB, 1), (512 * MiB, 3), (2 * GiB, 8), (None, 16)]
    >>> plan = tarazu([(8 * GiB, layout)], [(10 * GiB, 10 * GiB)] * 35, as_printed=True)
    >>> [extent.stripe_size for extent in plan.extents]
    [134217728, 134217728, 201326592, 402653184]
    >>> [extent.stripe_size for extent in tarazu([(8 * GiB, layout)], [(10 * GiB, 10 * GiB)] * 35).extents]
    [134217728, 134217728, 67108864, 402653184]
    """
    jobs = Jobs(jobs=[PlannedJob(name="files", nodes=1, creations=_creations(files, sets_sizes=not as_printed))])
    plan = place(
        jobs,
        _snapshot(osts, oss, oss_load),
        PlaceSettings.of(
            method="tarazu" if as_printed else "balanced", ceiling=1.0, cpu_weight=1.0, memory_weight=0.0, seeds=1
        ),
        where="files",
        where_snapshot="osts",
    )
    extents = [
        TarazuExtent(
            number,
            extent.start,
            extent.end,
            extent.stripe_size if as_printed else extent.set_stripe_size,
            list(extent.osts),
        )
        for number, file in enumerate(plan.files)
        for extent in file.extents
    ]
    return Tarazu(extents, plan.after.ost_cost if any(extent.osts for extent in extents) else None, plan.least)


def _creations(
    files: Sequence[tuple[int, int | Iterable[tuple[int | None, int]]]], *, sets_sizes: bool
) -> list[Creation]:
    if not len(files):
        raise InputError("is empty", where="files", todo="give the bytes and the stripeCount of one file at least")
    creations = []
    for number, file in enumerate(files):
        where = f"files[{number}]"
        try:
            size, layout = file
        except (TypeError, ValueError):
            raise InputError("is not a pair", where=where, todo="give (bytes, stripeCount)") from None
        size = whole(size, f"{where}: bytes")
        creations.append(
            Creation(path=f"/{number}", size=size, layout=_layout(layout, where, size if sets_sizes else None))
        )
    return creations


def _layout(layout: int | Iterable[tuple[int | None, int]], where: str, size: int | None) -> int | str:
    """The layout as options of `lfs setstripe`, with stripe sizes for a file of `size` bytes unless it is None."""
    if not isinstance(layout, Iterable):
        stripes = whole(layout, f"{where}: stripeCount", least=1, most=_MAX_STRIPES)
        return stripes if size is None else f"-c {stripes} -S {settable(max(1, size), stripes, None)}"
    words: list[str] = []
    start = 0
    for extent in layout:
        try:
            end, count = extent
        except (TypeError, ValueError):
            raise InputError("has an extent that is not a pair", where=where, todo="give (end, stripeCount)") from None
        stripes = whole(count, f"{where}: stripeCount", least=1, most=_MAX_STRIPES)
        end = None if end is None else whole(end, f"{where}: end", least=1)
        words.append(f"-E {-1 if end is None else end} -c {stripes}")
        last = max(size or 0, start + 1) if end is None else end
        # An end that Lustre refuses is reported when the layout is parsed.
        if size is not None and last > start and (end or 0) % STRIPE_UNIT == 0:
            words.append(f"-S {settable(last - start, stripes, end)}")
        start = last
    if not words:
        raise InputError("has no extent", where=where, todo="give (end, stripeCount), the last with the end None")
    return " ".join(words)


def _snapshot(osts: ArrayLike, oss: Sequence[int] | None, oss_load: Sequence[float] | None) -> Snapshot:
    table = rows(osts, ("bytes", "available"), "osts")
    if len(table) > MAX_TARGETS:
        raise InputError(f"has {len(table):,} OSTs", where="osts", todo=f"Lustre has {MAX_TARGETS:,} at most")
    wrong = np.flatnonzero((table[:, 1] > table[:, 0]) | (table[:, 0] < 1))
    if len(wrong):
        size, available = table[wrong[0]].tolist()
        raise InputError(
            f"has {available:,.0f} of {size:,.0f} bytes available", where=f"osts[{wrong[0]}]", todo="give at most all"
        )
    servers = [None] * len(table) if oss is None else [whole(number, "oss") for number in oss]
    if len(servers) != len(table):
        raise InputError(f"has {len(servers):,} entries", where="oss", todo=f"give one for each of {len(table):,} OSTs")
    loads = [] if oss_load is None else rows([[load] for load in oss_load], ("ossLoad",), "oss_load")[:, 0].tolist()
    known = sorted({number for number in servers if number is not None})
    if loads and (max(loads) > 1 or len(loads) <= max(known, default=len(loads))):
        raise InputError("has no load from 0 to 1 for some server", where="oss_load", todo="give one for each server")
    return Snapshot(
        oss=[Server(name=str(number), cpu=loads[number] if loads else 0.0) for number in known],
        ost=[
            Target(
                index=index,
                oss=None if server is None else str(server),
                size=int(size),
                used=int(size) - int(available),
            )
            for index, ((size, available), server) in enumerate(zip(table.tolist(), servers, strict=True))
        ],
    )


# Paths of I/O through forwarding nodes, storage nodes and OSTs: AIOT's path search (IPDPS 2022).

_LAYERS = ("compute", "forwarding", "storage", "ost", "behind", "reach")
_PEAKS = ("Y1", "Y2", "Y3")


class AiotFlow(NamedTuple):
    """A share of a job's demand, 0 to 1, and its path as positions in the layers."""

    job: int
    forwarding: int
    storage: int
    ost: int
    share: float


class Aiot(NamedTuple):
    """Flows of all jobs, and the carried share of each job's demand; None without a demand."""

    flows: list[AiotFlow]
    carried: list[float | None]


def aiot(demand: ArrayLike, topology: Mapping[str, Any], *, as_printed: bool = False, exact: bool = False) -> Aiot:
    """Route the I/O of each job around busy and abnormal nodes.

    Algorithm 1: each layer queues its nodes by U_real in buckets of 20 %, and the heads of the lowest buckets carry
    what they can. Jobs are served in order. A compute node uses a single forwarding node.

    Parameters
    ----------
    demand
        For each job the ideal load on its path: IOBW, IOPS and MDOPS, per second; NaN if unknown.
    topology
        - `compute`: the compute nodes of each job;
        - `forwarding`: rows of (Y1, Y2, Y3, U_real), the peaks of IOBW, IOPS and MDOPS and the load, 0 to 1;
        - `storage`: rows of (Y1, Y2, Y3), whose U_real is the mean of their OSTs;
        - `ost`: rows of (Y1, Y2, U_real);
        - `behind`: for each storage node the positions of its OSTs;
        - `reach`, optional: for each forwarding node the positions of the storage nodes that it reaches.

        A peak that is NaN in all rows is not a limit. A node whose U_real is NaN is abnormal (Abqueue) and never used.
    as_printed
        Use equation 1 with x1 Y1 = x2 Y2 = x3 Y3 at each node: c = 0.3 Y1 (1 - U_real), which does not depend on IOPS
        and MDOPS. By default each dimension has a capacity of Y (1 - U_real), and the scarcest one limits.
    exact
        Use a maximum flow if Algorithm 1, which is greedy, leaves demand unmet.

    Raises
    ------
    InputError
        A figure is invalid, or the topology has no path.

    Examples
    --------
    Table III: XCFD, Macdrp, Quantum, WRF and Grapes on four forwarding nodes and four storage nodes with three OSTs
    each. The first OST is busy, the second abnormal. The paper gives the nodes of each job; rates and peaks are ours.

    >>> nan = float("nan")
    >>> demand = [(2e9, 4e3, 200), (2e9, 3e4, 100), (5e7, 3e3, 1.2e4), (1e8, 1e3, 50), (1.5e9, 2e3, 100)]
    >>> topology = {
    ...     "compute": [512, 256, 512, 256, 512],
    ...     "forwarding": [(2.5e9, 3e5, 2e4, 0.0)] * 4,
    ...     "storage": [(3e9, 1.5e5, nan)] * 4,
    ...     "ost": [(1e9, 5e4, 1.0), (1e9, 5e4, nan)] + [(1e9, 5e4, 0.0)] * 10,
    ...     "behind": [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)],
    ... }
    >>> plan = aiot(demand, topology)
    >>> [round(share, 6) for share in plan.carried]
    [1.0, 1.0, 1.0, 1.0, 1.0]
    >>> {flow.ost for flow in plan.flows} & {0, 1}
    set()
    """
    rates = rows(demand, ("IOBW", "IOPS", "MDOPS"), "demand", unknown=("IOBW", "IOPS", "MDOPS"))
    snapshot, nodes = _machine(topology, len(rates))
    jobs = Jobs(
        jobs=[
            PlannedJob(name=f"job {number}", nodes=count, demand=Demand(**_rates(row)))
            for number, (count, row) in enumerate(zip(nodes, rates.tolist(), strict=True))
        ]
    )
    plan = path(
        jobs,
        snapshot,
        PathSettings.of(capacity="eq1" if as_printed else "binding", exact=exact),
        where="demand",
        where_snapshot="topology",
    )
    flows = [
        AiotFlow(number, int(flow.forwarding), int(flow.storage), flow.ost, flow.share)
        for number, job in enumerate(plan.jobs)
        for flow in job.flows
    ]
    return Aiot(flows, [job.met for job in plan.jobs])


def _machine(topology: Mapping[str, Any], jobs: int) -> tuple[Snapshot, list[int]]:
    for name in topology:
        if name not in _LAYERS:
            raise InputError(f"has no {name!r}", where="topology", todo=nearest(str(name), _LAYERS))
    for name in _LAYERS[:-1]:
        if name not in topology:
            raise InputError(f"has no {name!r}", where="topology", todo="add it")
    compute = _list(topology["compute"], "topology: compute")
    nodes = [whole(count, "topology: compute", least=1, most=10_000_000) for count in compute]
    if len(nodes) != jobs:
        raise InputError(
            f"has {len(nodes):,} entries", where="topology: compute", todo=f"give one for each of {jobs:,} jobs"
        )
    forwarding = _layer(topology, "forwarding", (*_PEAKS, "U_real"))
    storage = _layer(topology, "storage", _PEAKS)
    ost = _layer(topology, "ost", ("Y1", "Y2", "U_real"))
    behind = _positions(topology["behind"], len(storage), len(ost), "behind")
    reach = topology.get("reach")
    snapshot = Snapshot(
        forwarding=[
            IoNode(name=str(number), peak=Rates(**_rates(row[:3])), **_state(row[3]))
            for number, row in enumerate(forwarding.tolist())
        ],
        storage=[
            StorageNode(name=str(number), peak=Rates(**_rates(row)), ost=behind[number])
            for number, row in enumerate(storage.tolist())
        ],
        ost=[
            Target(index=number, size=1, used=0, peak=Rates(**_rates(row[:2])), **_state(row[2]))
            for number, row in enumerate(ost.tolist())
        ],
        reach=None
        if reach is None
        else {
            str(number): [str(node) for node in reached]
            for number, reached in enumerate(_positions(reach, len(forwarding), len(storage), "reach"))
        },
    )
    snapshot.refuse_contradictions("topology")
    return snapshot, nodes


def _layer(topology: Mapping[str, Any], name: str, columns: tuple[str, ...]) -> Floats:
    table = rows(topology[name], columns, f"topology: {name}", unknown=columns)
    if columns[-1] == "U_real" and np.any(table[:, -1] > 1):
        raise InputError("has a U_real above 1", where=f"topology: {name}", todo="give shares, 0 to 1")
    return table


def _positions(given: Any, entries: int, most: int, name: str) -> list[list[int]]:
    where = f"topology: {name}"
    lists = [[whole(position, where, most=most - 1) for position in _list(row, where)] for row in _list(given, where)]
    if len(lists) != entries:
        raise InputError(f"has {len(lists):,} entries", where=where, todo=f"give {entries:,}")
    return lists


def _list(given: Any, where: str) -> list[Any]:
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise InputError("is not a list", where=where, todo="give a list")
    return list(given)


def _rates(row: list[float]) -> dict[str, float | None]:
    return {name: None if np.isnan(rate) else rate for name, rate in zip(("iobw", "iops", "mdops"), row, strict=False)}


def _state(load: float) -> dict[str, Any]:
    return {"state": "degraded"} if np.isnan(load) else {"load": load}


# Write times on Cetus and Titan: the Lasso models printed by Xie et al. (IPDPS 2019).

class Xie(NamedTuple):
    """Seconds for both extremes of the placement of compute nodes, in the broadcast shape of the arguments."""

    packed: Floats
    """Nodes behind as few routers (Titan) or I/O nodes, bridges and links (Cetus) as possible."""
    spread: Floats
    """Nodes behind as many as possible."""


def xie(system: str, n: ArrayLike, m: ArrayLike, K: ArrayLike, W: ArrayLike | None = None) -> Xie:  # noqa: N803 - the paper's symbols
    """Predict the mean time of a write, from the first open to the last close.

    Table V: t = intercept + sum of coefficient * feature, over the features of tables I (Cetus, GPFS) and II (Titan,
    Lustre). The models were fitted to writes of more than 5 s with a file per process on at most 128 nodes. With 200
    and 256 nodes, they were within 20 % for 97 % (Cetus) and 99 % (Titan) of the writes (table VI).

    Parameters
    ----------
    system
        `cetus` or `titan`.
    n, m, K
        Compute nodes, processes per node, and megabytes per process: numbers, or arrays that broadcast.
    W
        Stripe count of each file, on Titan only; None: 4, its default.

    Raises
    ------
    InputError
        The system is unknown, a figure is invalid, or there are stripes on Cetus.

    Examples
    --------
    Titan's row of table V by hand for n = 128, m = 8, K = 500, packed behind two routers (n_r = 2, s_r = 110). 4,096
    objects put five of 125 MB on the fullest of 1,008 OSTs and use all 144 OSSs:


    >>> t = xie("titan", 128, 8, 500, 4)
    >>> by_hand = (1.7826 + 3.485e-4 * 500 - 0.010 * 2 + 2.91e-4 * 110 * 4000 + 8.963e-5 * 625 + 1.463e-6 * 512000
    ...            + 2.116e-4 * 4000 + 9.315e-11 * 4000 * 440000 + 1.925e-10 * 440000 * 144)
    >>> abs(float(t.packed) - by_hand) < 1e-9
    True
    >>> [round(float(seconds), 1) for seconds in t]
    [131.8, 3.5]
    >>> xie("cetus", [128, 256], 16, 100).packed.round(1).tolist()
    [183.7, 191.9]
    """
    model = PUBLISHED.get(system)
    if model is None:
        raise InputError(f"is {system!r}", where="system", todo=nearest(str(system), PUBLISHED))
    if W is not None and model.stripes is None:
        raise InputError("is given", where="W", todo=f"leave it out: files of {system} have no stripe count")
    arrays = [_positive(n, "n"), _positive(m, "m"), _positive(K, "K", is_whole=False)]
    arrays.append(_positive(model.default_stripes if W is None else W, "W"))
    try:
        nodes, per_node, megabytes, stripes = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InputError(f"have the shapes {shapes}", where="n, m, K, W", todo="give shapes that fit") from None
    writes = [
        Write(int(a), int(b), float(c), int(d))
        for a, b, c, d in zip(nodes.flat, per_node.flat, megabytes.flat, stripes.flat, strict=True)
    ]
    return Xie(*(_seconds(model, writes, end).reshape(nodes.shape) for end in ("packed", "spread")))


class XieSamples(NamedTuple):
    """Writes to measure: n, m, K (megabytes) and W of each, shape (writes,); W is 0 without stripes."""

    n: Ints
    m: Ints
    K: Floats
    W: Ints


def xie_samples(system: str, node_hours: float, seed: int = 0) -> XieSamples:
    """Draw the writes to measure on a machine, from the ranges of tables III (Cetus) and IV (Titan).

    Each is to be repeated until 1.645 s / sqrt(repetitions) is at most a tenth of the mean, or nine times.

    Raises
    ------
    InputError
        The machine has no rates, or the budget is too small for a model.

    Examples
    --------
    >>> drawn = xie_samples("titan", 200)
    >>> sorted(set(drawn.n.tolist()))
    [16, 32, 64, 128]
    """
    design = model_design(system=system, node_hours=node_hours, seed=seed)
    return XieSamples(design.nodes, design.per_node, design.megabytes, design.stripes)


def _seconds(model: Published, writes: list[Write], end: Placement) -> Floats:
    return np.array(
        [sum(term.seconds for term in model.terms(write, model.ends(write.nodes)[end])) for write in writes]
    )


def _positive(values: ArrayLike, where: str, *, is_whole: bool = True) -> Floats:
    todo = f"give {'whole numbers' if is_whole else 'numbers'} above 0, at most 1e9"
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("is not a number", where=where, todo=todo) from None
    wrong = ~((array > 0) & (array <= 1e9)) | (is_whole & (array != np.floor(array)))
    if np.any(wrong):
        raise InputError(f"is {array[wrong].flat[0]:g}", where=where, todo=todo)
    return array
