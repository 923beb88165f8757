"""Features of a write as in section III-A of Xie et al. (IPDPS 2019).

n nodes with m processes each write K megabytes per process to separate files; W is Lustre's stripe count. Each stage of
the path gives aggregate load, load skew and resources in use, plus their reciprocals. Neighbouring stages give
products, and three more features represent interference. The paper counts 41 features for GPFS and 30 for Lustre. 40
and 27 of them are distinct: n / (m n K) is 1 / (m K), and Lustre's n and 1 / (m n K) occur twice.

A megabyte is whatever unit the caller uses, as long as K, GPFS's block and Lustre's stripe size share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Figure = float | Numbers


class Behind(Protocol):
    """How the nodes of one job, or of each of many, share one kind of component."""

    @property
    def largest(self) -> Figure: ...

    @property
    def used(self) -> Figure: ...


class Pattern(Protocol):
    """A pattern of bursts, or many as arrays of shape (patterns,)."""

    @property
    def nodes(self) -> Figure: ...

    @property
    def per_node(self) -> Figure: ...

    @property
    def megabytes(self) -> Figure: ...

    @property
    def stripes(self) -> Figure: ...


@dataclass(frozen=True)
class Write:
    """A pattern of bursts: n nodes, m processes per node, K megabytes per process, W stripes per file."""

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


def _with_reciprocals(base: dict[str, Figure]) -> dict[str, Figure]:
    both: dict[str, Figure] = {}
    for name, value in base.items():
        both[name] = value
        both[f"1/({name})" if "*" in name else f"1/{name}"] = 1.0 / np.asarray(value, dtype=float)
    return both


def gpfs_features(
    write: Pattern, pool: GpfsPool, io: Behind, bridge: Behind, link: Behind
) -> dict[str, Figure]:
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


def lustre_features(write: Pattern, pool: LustrePool, router: Behind) -> dict[str, Figure]:
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
    return features | {
        "(m*K)*(s_r*m*K)": mk * skew,
        "(s_r*m*K)*n_oss": skew * n_oss,
        "s_oss*s_ost": s_oss * s_ost,
    }


@dataclass(frozen=True)
class _SingleGroup:
    largest: float = 1.0
    used: float = 1.0


GPFS = tuple(
    gpfs_features(Write(1, 1, 1.0), GpfsPool(1, 1, 1.0), _SingleGroup(), _SingleGroup(), _SingleGroup())
)
"""Names of the features of GPFS."""

LUSTRE = tuple(lustre_features(Write(1, 1, 1.0), LustrePool(1, 1, 1.0), _SingleGroup()))
"""Names of the features of Lustre."""

LOADS = frozenset(
    name
    for name in (*GPFS, *LUSTRE)
    if name in ("n_nsds", "n_nsd", "s_oss", "s_ost") or (name[0] in "ms" and "*" in name)
)
"""Features that are the load of a stage, and therefore proportional to its time."""
