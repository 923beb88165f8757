"""The models of Cetus and Titan as printed by Xie et al. (IPDPS 2019, table V), with every term.

Exponents that the scan of the paper lost are restored; the rates that the coefficients imply agree with the hardware
(1.94 GB/s per I/O node, 3.4 GB/s per router). The printed table leaves one cell of Titan's row empty; coefficients are
assigned to features in column order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from vani.centre.write_time.models.features import GpfsPool, LustrePool, Write, gpfs_features, lustre_features
from vani.centre.write_time.models.placement import Component, Groups, packed, spread
from vani.units import format_seconds

_NOMINAL: Final = 0.9

Placement = Literal["packed", "spread", "mapped"]


@dataclass(frozen=True)
class Term:
    """A term of the predicted time: seconds = coefficient * value."""

    feature: str
    coefficient: float
    value: float

    @property
    def seconds(self) -> float:
        """Contribution of the term to the predicted time."""
        return self.coefficient * self.value


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

    def terms(self, write: Write, groups: Mapping[str, Groups]) -> list[Term]:
        """Every term for a write from nodes in these groups, the intercept first."""
        if isinstance(self.pool, LustrePool):
            values = lustre_features(write, self.pool, groups["router"])
        else:
            values = gpfs_features(write, self.pool, groups["I/O node"], groups["bridge"], groups["link"])
        return [
            Term("1", self.intercept, 1.0),
            *(
                Term(name, coefficient, float(values[name]))
                for name, coefficient in self.coefficients.items()
            ),
        ]


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

