"""Features of a write, as section III-A of Xie et al. builds them (IPDPS 2019).

n nodes with m processes each write K megabytes per process to a file of its own; W is Lustre's stripe count. Stages of
the path give aggregate load, load skew and resources in use, each as it is and as its reciprocal; neighbouring stages
give products; three more stand for interference. The paper counts 41 features for GPFS and 30 for Lustre, of which 40
and 27 are distinct: n / (m n K) is 1 / (m K), and Lustre's n and 1 / (m n K) are there twice.

A megabyte is what the user means by it: the same unit in K, in the block of GPFS and in Lustre's stripe size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vani.models.write_time.placement import Groups

__all__ = ["GPFS", "LUSTRE", "GpfsPool", "LustrePool", "Write", "gpfs_features", "lustre_features"]


@dataclass(frozen=True)
class Write:
    """One pattern of bursts: n nodes, m processes on each, K megabytes per process, W stripes per file."""

    nodes: int
    per_node: int
    megabytes: float
    stripes: int = 1

    @property
    def bursts(self) -> int:
        """m n: processes that write, each a file."""
        return self.nodes * self.per_node


@dataclass(frozen=True)
class GpfsPool:
    """GPFS's data pool: servers, disks (NSDs), megabytes of a block, sub-blocks of a block."""

    servers: int
    disks: int
    block: float
    subblocks: int = 32


@dataclass(frozen=True)
class LustrePool:
    """Lustre's servers (OSS), targets (OST) and megabytes of a stripe."""

    servers: int
    targets: int
    stripe: float


def _with_reciprocals(base: dict[str, float]) -> dict[str, float]:
    both = {}
    for name, value in base.items():
        both[name] = value
        both[f"1/({name})" if "*" in name else f"1/{name}"] = 1.0 / value if value else 0.0
    return both


def gpfs_features(write: Write, pool: GpfsPool, io: Groups, bridge: Groups, link: Groups) -> dict[str, float]:
    """The 40 distinct features of a GPFS path (table I), by name.

    Parameters
    ----------
    io, bridge, link
        The nodes of the job behind I/O nodes, bridge nodes and links.
    """
    n, m, size = write.nodes, write.per_node, write.megabytes
    rest = size % pool.block
    partial = math.ceil(rest * pool.subblocks / pool.block) if rest > 0 else 0
    blocks = math.ceil(size / pool.block)
    n_d = min(pool.disks, blocks)
    n_s = min(pool.servers, n_d)
    mk, skew_io, skew_b, skew_l = (
        m * size,
        io.largest * m * size,
        bridge.largest * m * size,
        link.largest * m * size,
    )
    n_nsds, n_nsd = float(m * n * n_s), float(m * n * n_d)
    found = _with_reciprocals(
        {
            "m*n": float(m * n),
            "s_io*m": float(io.largest * m),
            "n_io": float(io.used),
            "m*n*K": m * n * size,
            "m*K": mk,
            "K": size,
            "n": float(n),
            "m": float(m),
            "s_b*m*K": skew_b,
            "n_b": float(bridge.used),
            "s_l*m*K": skew_l,
            "n_l": float(link.used),
            "s_io*m*K": skew_io,
            "n_s": float(n_s),
            "n_nsds": n_nsds,
            "n_d": float(n_d),
            "n_nsd": n_nsd,
        }
    )
    return found | {
        "m*n*p_sub": float(m * n * partial),
        "s_io*m*p_sub": float(io.largest * m * partial),
        "(m*K)*(s_b*m*K)": mk * skew_b,
        "(s_l*m*K)*(s_b*m*K)": skew_l * skew_b,
        "(s_b*m*K)*n_nsds": skew_b * n_nsds,
        "(s_l*m*K)*(s_io*m*K)": skew_l * skew_io,
    }


def lustre_features(write: Write, pool: LustrePool, router: Groups) -> dict[str, float]:
    """The 27 distinct features of a Lustre path (table II), by name.

    The files of a write begin one after the other (the paper's "OST sequence"): file i has the targets from i W on.
    So the objects are dealt to targets and servers in turn.
    """
    n, m, size = write.nodes, write.per_node, write.megabytes
    stripes = min(write.stripes, pool.targets, max(1, math.ceil(size / pool.stripe)))
    objects = write.bursts * stripes
    n_ost, n_oss = min(pool.targets, objects), min(pool.servers, objects)
    each = size / stripes
    s_ost = math.ceil(objects / pool.targets) * each
    s_oss = math.ceil(objects / pool.servers) * each
    mk, skew = m * size, router.largest * m * size
    found = _with_reciprocals(
        {
            "m*n": float(m * n),
            "m*n*K": m * n * size,
            "m*K": mk,
            "K": size,
            "m": float(m),
            "n": float(n),
            "s_r*m*K": skew,
            "n_r": float(router.used),
            "n_oss": float(n_oss),
            "s_oss": s_oss,
            "n_ost": float(n_ost),
            "s_ost": s_ost,
        }
    )
    return found | {
        "(m*K)*(s_r*m*K)": mk * skew,
        "(s_r*m*K)*n_oss": skew * n_oss,
        "s_oss*s_ost": s_oss * s_ost,
    }


GPFS = tuple(gpfs_features(Write(1, 1, 1.0), GpfsPool(1, 1, 1.0), Groups(1, 1), Groups(1, 1), Groups(1, 1)))
"""Names of the features of GPFS."""

LUSTRE = tuple(lustre_features(Write(1, 1, 1.0), LustrePool(1, 1, 1.0), Groups(1, 1)))
"""Names of the features of Lustre."""
