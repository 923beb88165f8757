"""Paths of I/O through forwarding nodes, storage nodes and OSTs: AIOT's path search (IPDPS 2022)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vani.centre.papers.figures import rows, whole
from vani.centre.plan.path import path
from vani.centre.plan.schema.jobs import Demand, Jobs, PlannedJob
from vani.centre.plan.schema.plans import PathSettings
from vani.centre.plan.schema.snapshot import IoNode, Rates, Snapshot, StorageNode, Target
from vani.errors import InputError, nearest

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


def aiot(
    demand: ArrayLike,
    topology: Mapping[str, Any],
    *,
    as_printed: bool = False,
    exact: bool = False,
) -> Aiot:
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
        PathSettings(capacity="eq1" if as_printed else "binding", exact=exact, pack=False, metadata_share=None),
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


def _layer(topology: Mapping[str, Any], name: str, columns: tuple[str, ...]) -> NDArray[np.float64]:
    table = rows(topology[name], columns, f"topology: {name}", unknown=columns)
    if columns[-1] == "U_real" and np.any(table[:, -1] > 1):
        raise InputError("has a U_real above 1", where=f"topology: {name}", todo="give shares, 0 to 1")
    return table


def _positions(given: Any, entries: int, most: int, name: str) -> list[list[int]]:
    where = f"topology: {name}"
    lists = [
        [whole(position, where, most=most - 1) for position in _list(row, where)] for row in _list(given, where)
    ]
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
