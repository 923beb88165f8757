"""The models of Xie et al. (IPDPS 2019): features of a write, the placement of nodes, and table V."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from vani.centre.columns import Floats, read_csv_file
from vani.centre.prediction.schema import PredictedTerm
from vani.errors import InputError, one_line
from vani.schema.host_list import expand
from vani.units import first_of, format_seconds

# Features of a write as in section III-A of Xie et al. (IPDPS 2019).
#
# n nodes with m processes each write K megabytes per process to separate files; W is Lustre's stripe count. Each stage
# of the path gives aggregate load, load skew and resources in use, plus their reciprocals. Neighbouring stages give
# products, and three more features represent interference. The paper counts 41 features for GPFS and 30 for Lustre. 40
# and 27 of them are distinct: n / (m n K) is 1 / (m K), and Lustre's n and 1 / (m n K) occur twice.
#
# A megabyte is whatever unit the caller uses, as long as K, GPFS's block and Lustre's stripe size share it.

Figure = float | Floats


@dataclass(frozen=True)
class Write:
    """A pattern of bursts: n nodes, m processes per node, K megabytes per process, W stripes per file.

    For `gpfs_features` and `lustre_features`, each may also be an array of many patterns, shape (patterns,).
    """

    nodes: int
    per_node: int
    megabytes: float
    stripes: int = 1


@dataclass(frozen=True)
class GpfsPool:
    """GPFS's data pool: numbers of servers and disks (NSDs), megabytes per block, sub-blocks per block."""

    servers: int
    disks: int
    block: float
    subblocks: int = 32


@dataclass(frozen=True)
class LustrePool:
    """A Lustre file system: numbers of servers (OSS) and targets (OST), megabytes per stripe."""

    servers: int
    targets: int
    stripe: float


@dataclass(frozen=True)
class Groups:
    """The nodes of a job, grouped by the component that they share; or of each of many jobs, as arrays.

    Parameters
    ----------
    largest
        Nodes in the largest group (the paper's s_io, s_b, s_l, s_r).
    used
        Number of components in use (n_io, n_b, n_l, n_r).
    """

    largest: int
    used: int


def _with_reciprocals(base: dict[str, Figure]) -> dict[str, Figure]:
    both: dict[str, Figure] = {}
    for name, value in base.items():
        both[name] = value
        both[f"1/({name})" if "*" in name else f"1/{name}"] = 1.0 / np.asarray(value, dtype=float)
    return both


def gpfs_features(write: Write, pool: GpfsPool, io: Groups, bridge: Groups, link: Groups) -> dict[str, Figure]:
    """The 40 distinct features of a GPFS path (table I), by name.

    Parameters
    ----------
    io, bridge, link
        How the job's nodes share I/O nodes, bridge nodes and links.
    """
    n, m, size = write.nodes, write.per_node, write.megabytes
    # A write of whole blocks has no sub-blocks.
    partial = np.ceil(np.mod(size, pool.block) * pool.subblocks / pool.block)
    n_d = np.minimum(pool.disks, np.ceil(np.asarray(size) / pool.block))
    n_s = np.minimum(pool.servers, n_d)
    mk = m * size
    skew_io, skew_b, skew_l = io.largest * mk, bridge.largest * mk, link.largest * mk
    n_nsds, n_nsd = m * n * n_s, m * n * n_d
    features = _with_reciprocals(
        {
            "m*n": m * n,
            "s_io*m": io.largest * m,
            "n_io": io.used,
            "m*n*K": n * mk,
            "m*K": mk,
            "K": size,
            "n": n,
            "m": m,
            "s_b*m*K": skew_b,
            "n_b": bridge.used,
            "s_l*m*K": skew_l,
            "n_l": link.used,
            "s_io*m*K": skew_io,
            "n_s": n_s,
            "n_nsds": n_nsds,
            "n_d": n_d,
            "n_nsd": n_nsd,
        }
    )
    return features | {
        "m*n*p_sub": m * n * partial,
        "s_io*m*p_sub": io.largest * m * partial,
        "(m*K)*(s_b*m*K)": mk * skew_b,
        "(s_l*m*K)*(s_b*m*K)": skew_l * skew_b,
        "(s_b*m*K)*n_nsds": skew_b * n_nsds,
        "(s_l*m*K)*(s_io*m*K)": skew_l * skew_io,
    }


def lustre_features(write: Write, pool: LustrePool, router: Groups) -> dict[str, Figure]:
    """The 27 distinct features of a Lustre path (table II), by name.

    The files of a write start on successive targets (the paper's "OST sequence"): file i uses the W targets from
    i W on. Objects are therefore assigned to targets and servers in turn.
    """
    n, m, size = write.nodes, write.per_node, write.megabytes
    blocks = np.maximum(1, np.ceil(np.asarray(size) / pool.stripe))
    stripes = np.minimum(np.minimum(write.stripes, pool.targets), blocks)
    objects = m * n * stripes
    n_ost, n_oss = np.minimum(pool.targets, objects), np.minimum(pool.servers, objects)
    each = size / stripes
    s_ost = np.ceil(objects / pool.targets) * each
    s_oss = np.ceil(objects / pool.servers) * each
    mk = m * size
    skew = router.largest * mk
    features = _with_reciprocals(
        {
            "m*n": m * n,
            "m*n*K": n * mk,
            "m*K": mk,
            "K": size,
            "m": m,
            "n": n,
            "s_r*m*K": skew,
            "n_r": router.used,
            "n_oss": n_oss,
            "s_oss": s_oss,
            "n_ost": n_ost,
            "s_ost": s_ost,
        }
    )
    return features | {"(m*K)*(s_r*m*K)": mk * skew, "(s_r*m*K)*n_oss": skew * n_oss, "s_oss*s_ost": s_oss * s_ost}


_ONE: Final = Groups(1, 1)
GPFS = tuple(gpfs_features(Write(1, 1, 1.0), GpfsPool(1, 1, 1.0), _ONE, _ONE, _ONE))
"""Names of the features of GPFS."""

LUSTRE = tuple(lustre_features(Write(1, 1, 1.0), LustrePool(1, 1, 1.0), _ONE))
"""Names of the features of Lustre."""

LOADS = frozenset(
    name
    for name in (*GPFS, *LUSTRE)
    if name in ("n_nsds", "n_nsd", "s_oss", "s_ost") or (name[0] in "ms" and "*" in name)
)
"""Features that are the load of a stage, and therefore proportional to its time."""


# How a job's nodes share the components on the way to the file system: routers, links, bridges, I/O nodes.
#
# The scheduler's placement decides that, and it changes the load of the busiest router by orders of magnitude. If it is
# unknown, there are two extremes: *packed*, with as few components as possible, and *spread*, with as many.

@dataclass(frozen=True)
class Component:
    """A kind of component that several compute nodes share.

    Parameters
    ----------
    count
        Number of components in the machine.
    nodes
        Compute nodes behind each component.
    """

    count: int
    nodes: int


def packed(nodes: int, component: Component) -> Groups:
    """Put all nodes behind as few components as possible."""
    return Groups(min(nodes, component.nodes), max(1, min(component.count, math.ceil(nodes / component.nodes))))


def spread(nodes: int, component: Component) -> Groups:
    """Spread the nodes evenly over as many components as possible."""
    used = max(1, min(nodes, component.count))
    return Groups(math.ceil(nodes / used), used)


def groups_of(behind: Iterable[str]) -> Groups:
    """Group nodes by component; `behind` has the component of each node."""
    sizes = Counter(behind)
    return Groups(max(sizes.values(), default=0), len(sizes))


# The models of Cetus and Titan as printed by Xie et al. (IPDPS 2019, table V), with every term.
#
# Exponents that the scan of the paper lost are restored; the rates that the coefficients imply agree with the hardware
# (1.94 GB/s per I/O node, 3.4 GB/s per router). The printed table leaves one cell of Titan's row empty; coefficients
# are assigned to features in column order.

_NOMINAL: Final = 0.9

Placement = Literal["packed", "spread", "mapped"]


@dataclass(frozen=True)
class Tested:
    """A test set, and the number of its writes that a model predicted within 20 and 30 % of their time (table VI).

    The sizes of the sets are the only ones that give the printed shares and add up to the printed totals.
    """

    name: Literal["small", "medium", "unconverged"]
    nodes: tuple[int, int]
    writes: int
    within_20: int
    within_30: int


@dataclass(frozen=True)
class Published:
    """A printed model.

    Parameters
    ----------
    shared
        Components that compute nodes share on the way to the file system, by their name in the features.
    trained_on
        Smallest and largest number of nodes in the chosen training set.
    tested
        Test sets. All but the last contain writes whose mean time converged.
    most_nodes, least_seconds, most_per_node, megabytes, stripes
        Limits of the training and test data.
    """

    system: str
    intercept: float
    coefficients: Mapping[str, float]
    pool: GpfsPool | LustrePool
    shared: Mapping[str, Component]
    trained_on: tuple[int, int]
    tested: tuple[Tested, ...]
    most_nodes: int = 512
    least_seconds: float = 5.0
    most_per_node: int = 16
    megabytes: tuple[float, float] = (1.0, 10_240.0)
    stripes: tuple[int, int] | None = None
    default_stripes: int = 1

    def off_by_at_most(self, nodes: int) -> tuple[float, float]:
        """Error of a write from so many nodes as a share of its time, and the share of tested writes within it.

        The error is 0.2 if nine of ten converged writes of the nearest test set were within 20 %, otherwise 0.3.
        """
        sets = self.tested[:-1]
        test_set = next((candidate for candidate in sets if nodes <= candidate.nodes[1]), sets[-1])
        within = test_set.within_20 / test_set.writes
        return (0.2, within) if within >= _NOMINAL else (0.3, test_set.within_30 / test_set.writes)

    def ends(self, nodes: int) -> dict[Placement, dict[str, Groups]]:
        """The groups by component at both extremes of the placement of `nodes` nodes."""
        return {
            "packed": {name: packed(nodes, members) for name, members in self.shared.items()},
            "spread": {name: spread(nodes, members) for name, members in self.shared.items()},
        }

    def outside(self, write: Write, seconds: float) -> list[str]:
        """How a write of at most `seconds` seconds differs from the training and test data, as phrases."""
        low, high = self.megabytes
        columns = []
        if write.nodes > self.most_nodes:
            columns.append(f"{write.nodes:,} nodes: the model was tested with at most {self.most_nodes:,}")
        if write.per_node > self.most_per_node:
            columns.append(f"{write.per_node:,} processes per node: there were at most {self.most_per_node:,}")
        if not low <= write.megabytes <= high:
            columns.append(f"{write.megabytes:,.6g} MB per process: there were {low:,.0f} to {high:,.0f}")
        if self.stripes is not None and not self.stripes[0] <= write.stripes <= self.stripes[1]:
            columns.append(f"{write.stripes:,} stripes: there were {self.stripes[0]} to {self.stripes[1]}")
        if seconds < self.least_seconds:
            columns.append(
                f"{format_seconds(max(seconds, 0.0))} at most: the model was made from writes of more than "
                f"{self.least_seconds:g} s"
            )
        return columns

    def terms(self, write: Write, groups: Mapping[str, Groups]) -> list[PredictedTerm]:
        """Every term for a write from nodes in these groups, the intercept first."""
        if isinstance(self.pool, LustrePool):
            values = lustre_features(write, self.pool, groups["router"])
        else:
            values = gpfs_features(write, self.pool, groups["I/O node"], groups["bridge"], groups["link"])
        return [
            _term("1", self.intercept, 1.0),
            *(_term(name, coefficient, float(values[name])) for name, coefficient in self.coefficients.items()),
        ]


def _term(feature: str, coefficient: float, value: float) -> PredictedTerm:
    return PredictedTerm(feature=feature, coefficient=coefficient, value=value, seconds=coefficient * value)


PUBLISHED: Final[Mapping[str, Published]] = {
    "cetus": Published(
        system="cetus",
        intercept=0.902,
        coefficients={
            "m": 0.0864,
            "s_l*m*K": 5.812e-4,
            "s_b*m*K": 4.301e-5,
            "m*n": 2.646e-4,
            "m*K": 0.0022,
            "n_nsds": 2.535e-4,
            "s_io*m*K": 5.167e-4,
            "n_nsd": 3.238e-6,
            "(s_l*m*K)*(s_b*m*K)": 5.958e-13,
            "(s_b*m*K)*n_nsds": 2.97e-10,
        },
        pool=GpfsPool(servers=48, disks=336, block=8.0),
        # The paper does not state which nodes share a link. Each bridge has one to its I/O node.
        shared={"I/O node": Component(32, 128), "bridge": Component(64, 64), "link": Component(64, 64)},
        trained_on=(32, 128),
        tested=(
            Tested("small", (200, 256), 416, 404, 410),
            Tested("medium", (400, 512), 360, 236, 308),
            Tested("unconverged", (200, 512), 98, 41, 59),
        ),
    ),
    "titan": Published(
        system="titan",
        intercept=1.7826,
        coefficients={
            "K": 3.485e-4,
            "n_r": -0.010,
            "s_r*m*K": 2.91e-4,
            "s_ost": 8.963e-5,
            "m*n*K": 1.463e-6,
            "m*K": 2.116e-4,
            "(m*K)*(s_r*m*K)": 9.315e-11,
            "(s_r*m*K)*n_oss": 1.925e-10,
        },
        pool=LustrePool(servers=144, targets=1008, stripe=1.0),
        shared={"router": Component(172, 110)},
        trained_on=(16, 128),
        tested=(
            Tested("small", (200, 256), 288, 284, 287),
            Tested("medium", (400, 512), 333, 320, 327),
            Tested("unconverged", (200, 512), 47, 9, 12),
        ),
        stripes=(1, 64),
        default_stripes=4,
    ),
}
"""Published models by name of the machine's description."""


# The router, or the link, bridge and I/O node, of each compute node, from a site's CSV file.

_MAX_NODES: Final = 1_000_000
_SHOWN: Final = 3


@dataclass(frozen=True)
class NodeMap:
    """The components between each node and the file system.

    Parameters
    ----------
    behind
        Names of a node's components by node, in the order of `kinds`.
    """

    kinds: tuple[str, ...]
    behind: Mapping[str, tuple[str, ...]]
    path: Path

    def groups(self, nodes: Sequence[str]) -> dict[str, Groups]:
        """The groups that a job's nodes form, by kind of component.

        Raises
        ------
        InputError
            A node is not in the map; the error names the first ones.
        """
        unknown = [node for node in nodes if node not in self.behind]
        if unknown:
            some = first_of(list(map(one_line, unknown)), _SHOWN)
            raise InputError(f"has no node {some}", where=self.path, todo="add a row for each node")
        return {kind: groups_of(self.behind[node][number] for node in nodes) for number, kind in enumerate(self.kinds)}

    def of_job(self, hosts: str | None, count: int | None) -> list[str]:
        """The nodes of a job: those in a host list, or all mapped nodes.

        Parameters
        ----------
        hosts
            Host list in Slurm's notation: `nid[00001-00128]`.
        count
            Required number of nodes; None: any.

        Raises
        ------
        InputError
            The list is invalid, or the number of nodes differs.
        """
        nodes = expand(hosts) if hosts is not None else list(self.behind)
        if count is not None and len(nodes) != count:
            what = "--job-nodes" if hosts is not None else str(self.path)
            todo = "leave -n out" if hosts is not None else "name the job's nodes with --job-nodes"
            raise InputError(f"names {len(nodes):,} nodes where the job has {count:,}", where=what, todo=todo)
        return nodes


def read_mapping(path: Path, kinds: Sequence[str]) -> NodeMap:
    """Read a CSV file with a column `node` and one for each kind: `router`, or `io_node`, `bridge`, `link`.

    Raises
    ------
    InputError
        The file or a column is missing, a column or node occurs twice, or a cell is empty. The error names the
        line.
    """
    columns = [kind.lower().replace("/", "").replace(" ", "_") for kind in kinds]
    table = read_csv_file(path, "name a CSV file", most=_MAX_NODES)
    if missing := [name for name in ("node", *columns) if name not in table.head]:
        raise InputError(f"has no column {missing[0]!r}", where=path, todo="start it with the names of the columns")
    behind: dict[str, tuple[str, ...]] = {}
    for row, cells in enumerate(zip(*map(table.column, ("node", *columns)), strict=True)):
        if not all(cells):
            raise InputError("has an empty cell", where=table.place(row), todo="fill it in or leave the row out")
        node, *components = cells
        if node in behind:
            raise InputError(f"node {one_line(node)} appears twice", where=table.place(row), todo="leave one out")
        behind[node] = tuple(components)
    if not behind:
        raise InputError("maps no node", where=path, todo="add a row for each node")
    return NodeMap(tuple(kinds), behind, path)
