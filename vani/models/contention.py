"""The time of a burst of reads or writes, from the load on every component that its bytes pass.

Bytes pass a process, its compute node, an I/O node (on machines that have them), the servers and the targets. Each
of these is a stage. The time of a stage is the load on its busiest member over the rate of one member, and the
time of the burst is the sum over the stages:

    T = files / metadata + s_process / r + s_node / d + s_io / b_io + bytes / B + s_server / b_s
        + s_target / b + lock * passes

which is the form of the models of Xie et al. (tables I, II and V): aggregate load (bytes / B), load skew (s, the
most bytes on one member of a stage) and resources in use (the members that share the load). The sum applies if no two
stages of the same byte overlap; if all do, T is the longest stage. The sum is the estimate and the longest stage the
best case.

- s_target: one file is on distinct targets, with its stripes assigned in turn. Each of many files begins at a random
  target (Lustre's allocator, as one job sees it), so the busiest of M targets has the expected maximum of
  F * w balls in M bins.
- B and b_s are what the targets' rates leave unexplained: a file system of M targets of b bytes/s with a known
  total bandwidth of W < M * b has a shared part of 1 / B = 1 / W - 1 / (M * b). With W >= M * b there is
  none. The same gives b_s for a server and its targets.
- lock * passes: if neighbouring pieces of a shared file are smaller than a stripe and belong to different nodes,
  an extent lock moves with each piece. Locks of different objects move independently.

`docs/models.md` describes the fit, its data, and its errors on other data.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vani.schema.system import FileSystem, System

PAGE_CACHE_RATE: Final = 1.6e9
"""Bytes per second that one process copies between its memory and the page cache of the client. From OPRAEL's sweep
of processes on one node with files of 8 GiB and more: 1.6 GB/s per process explains the difference between 300 to
318 MiB/s with one process and 365 to 439 MiB/s with 16."""

CLIENT_RATE: Final = 3.0e9
"""Bytes per second of a compute node as a client, for machines that give at most its network: median of the
ior-easy writes per node in the 18 IO500 submissions (2017 to 2019) with ten nodes on Lustre."""

LOCK_S: Final = 4.4e-3
"""Seconds to pass the lock on a piece of a shared file from one node to another, including the partial pages and the
flush that come with it. Fitted to ior-hard on Lustre, see docs/models.md."""

VARIATION: Final = 1.3
"""In half of Titan's samples, repetitions of the same write differ by more than this factor (Xie et al.,
section IV-D)."""

REACH: Final = 0.9
"""Share of the best bandwidth that is enough: the rest is not worth the targets it needs. A file on many
targets takes them from others, and each open and stat costs more with more objects (Lustre manual, section 19.2)."""

MARGIN: Final = math.sqrt(1.5)
"""Factor on the model's stripe count, which may be wrong either way: too few targets are slow, too many a nuisance.
If the model is right, the advice is still at most 1.5 times the need; if it errs by a fifth, the count is still
enough."""

LUSTRE_MAX_STRIPES: Final = 2000
_SCANNED: Final = 64


@dataclass(frozen=True)
class Path:
    """Rates in bytes per second of one member of each stage. A stage with None costs nothing.

    `assumed` lists, in words, the figures that the machine's description lacks and what replaces them.
    """

    target: float
    targets: int | None = None
    server: float | None = None
    servers: int | None = None
    whole: float | None = None
    io_node: float | None = None
    io_nodes: int | None = None
    nodes_per_io_node: int | None = None
    client: float | None = None
    process: float | None = PAGE_CACHE_RATE
    metadata_per_s: float | None = None
    lock_s: float = LOCK_S
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Burst:
    """The bytes that a job moves at once, in `files` files of `stripe_count` stripes each.

    Parameters
    ----------
    piece
        Contiguous bytes of a shared file that one node moves before the bytes of another node begin; None if no
        two nodes meet within a stripe.
    opens
        Number of opens: the processes that open each file, summed over files. None: each process opens one file.
    """

    bytes: float
    nodes: int = 1
    processes: int = 1
    files: int = 1
    stripe_count: int = 1
    stripe_size: int = 1 << 20
    piece: int | None = None
    opens: int | None = None


@dataclass(frozen=True)
class Prediction:
    """Seconds if no stages overlap (`seconds`), if all do (`best_s`), and on a bad day without overlap (`worst_s`).

    `stages` has the seconds of each stage that takes time, in path order.
    """

    seconds: float
    best_s: float
    worst_s: float
    stages: dict[str, float]

    @property
    def slowest(self) -> str:
        """Name of the longest stage."""
        return max(self.stages, key=lambda name: self.stages[name])


def path_of(
    system: System,
    disk: FileSystem | None,
    *,
    reads: bool = False,
    target_rate: float | None = None,
    client_rate: float = CLIENT_RATE,
) -> Path | str:
    """The path to a file system according to its description, or, as a string, what the user has to supply.

    `target_rate` and `client_rate` are the defaults for rates that the description lacks.
    """
    assumed: list[str] = []
    rates = disk and (disk.bandwidth_per_target, disk.bandwidth_per_server, disk.max_bandwidth)
    target, server, whole = (
        ((rate.read if reads else rate.write) or None for rate in rates) if rates else (None, None, None)
    )
    targets, servers = (disk.targets or None, disk.servers or None) if disk else (None, None)
    if target is None and targets:
        # The server or the whole file system is then exactly as fast as its targets: no separate stage is left.
        if server is not None and servers:
            target, server = server * servers / targets, None
            assumed.append("a target's rate: its share of a server's")
        elif whole is not None:
            target, whole = whole / targets, None
            assumed.append("a target's rate: its share of the whole file system's")
    if target is None and target_rate is not None:
        target = target_rate
        assumed.append(f"a target's rate: {target_rate / 1e6:.0f} MB/s")
    if target is None:
        return "supply the rate of one target (bandwidth_per_target), or the targets and the whole rate, in --system"
    network = system.network.bandwidth_per_node
    client = (disk.bandwidth_per_client.read if reads else disk.bandwidth_per_client.write) if disk else None
    if client is None:
        client = min(client_rate, network or math.inf)
        assumed.append(f"a node's rate: {client / 1e6:.0f} MB/s")
    return Path(
        target=target,
        targets=targets,
        server=_rest(server, target * targets / servers) if server and targets and servers else server,
        servers=servers,
        whole=_rest(whole, target * targets) if whole and targets else whole,
        io_node=system.forwarding.bandwidth_per_io_node if system.forwarding else None,
        io_nodes=system.forwarding.io_nodes if system.forwarding else None,
        nodes_per_io_node=system.forwarding.compute_nodes_per_io_node if system.forwarding else None,
        client=client,
        metadata_per_s=disk.metadata_ops_per_s if disk else None,
        lock_s=LOCK_S if disk is None or disk.lock_transfer_s is None else disk.lock_transfer_s,
        assumed=tuple(assumed),
    )


def predict(burst: Burst, path: Path, *, packed: bool = False) -> Prediction:
    """Predict the seconds of a burst. `packed`: the job's nodes are neighbours that share I/O nodes."""
    stages = {name: s for name, s in _stages(burst, path, packed=packed) if s > 0}
    longest = max(stages.values(), default=0.0)
    total = sum(stages.values())
    worst = total
    if not packed and path.io_node:
        worst = predict(burst, path, packed=True).seconds
    return Prediction(total, longest, worst * VARIATION, stages)


def fewest_targets(burst: Burst, path: Path, most: int, reach: float = REACH) -> int:
    """The smallest stripe count whose bandwidth is at least `reach` of the best with 1 to `most` stripes."""
    top = max(1, min(most, LUSTRE_MAX_STRIPES))

    def seconds(count: int) -> float:
        return predict(replace(burst, stripe_count=count), path).seconds

    if top <= _SCANNED:
        times = [seconds(count) for count in range(1, top + 1)]
        return next(i for i, time in enumerate(times, start=1) if time <= min(times) / reach)
    # Too many counts to try each: try round ones, with which the time falls, then bisect between two of them.
    steps = sorted(
        {1 << i for i in range(top.bit_length())} | {n for n in (path.targets, path.servers, top) if n}
    )
    times = [seconds(count) for count in steps if count <= top]
    enough = min(times) / reach
    high = next(count for count, time in zip(steps, times, strict=False) if time <= enough)
    low = max((count for count in steps if count < high), default=0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if seconds(middle) <= enough else (middle, high)
    return high


def advised_count(
    burst: Burst, path: Path, most: int, *, reach: float = REACH, margin: float = MARGIN
) -> int:
    """The stripe count to recommend: `fewest_targets` times a margin, rounded by `neat`."""
    return neat(fewest_targets(burst, path, most, reach) * margin, most)


def neat(count: float, most: int) -> int:
    """The nearest of 1, 2, 3, 4, 6, 8, 12, ... by ratio. At most `most`, which counts as neat itself.

    2^n and 3 * 2^n divide the usual numbers of processes. (LUMI's user guide: the stripe count should be a factor of
    the number of processes.)
    """
    top = max(1, most)
    steps = {top} | {n << shift for shift in range(top.bit_length()) for n in (1, 3) if n << shift <= top}
    return min(sorted(steps), key=lambda step: abs(math.log(step / max(1.0, count))))


@functools.lru_cache(maxsize=4096)
def most_loaded(balls: int, bins: int) -> float:
    """Expected load of the fullest of `bins` with `balls` thrown at random (loads as independent Poisson variables)."""
    if balls <= 0:
        return 0.0
    if bins <= 1:
        return float(balls)
    mean = balls / bins
    if mean >= 700:
        # Normal limit. exp(-mean) is close to underflow, and the sum below would have many terms.
        return mean + math.sqrt(2 * mean * math.log(bins))
    # E[max] = sum over k >= 1 of 1 - P(load < k) ** bins.
    below = term = math.exp(-mean)
    expected, k = 0.0, 1
    while True:
        above = 1 - below**bins
        expected += above
        if above < 1e-9 and k > mean:
            return min(expected, float(balls))
        term *= mean / k
        below = min(1.0, below + term)
        k += 1


def _rest(whole: float | None, parts: float) -> float | None:
    """Rate of the stage that all parts share; None if the whole is as fast as its parts together."""
    if whole is None or whole >= parts * (1 - 1e-9):
        return None
    return 1 / (1 / whole - 1 / parts)


def _stages(burst: Burst, path: Path, *, packed: bool) -> list[tuple[str, float]]:
    nodes, processes = max(1, burst.nodes), max(1, burst.processes)
    moved, objects = burst.bytes, burst.files * burst.stripe_count
    opens = processes if burst.opens is None else burst.opens
    stages = [
        ("metadata", opens / path.metadata_per_s if path.metadata_per_s else 0.0),
        ("process", moved / processes / path.process if path.process else 0.0),
        ("client", moved / nodes / path.client if path.client else 0.0),
        (
            "io_node",
            moved * _io_node_share(nodes, path, packed=packed) / path.io_node if path.io_node else 0.0,
        ),
        ("shared", moved / path.whole if path.whole else 0.0),
        ("server", moved * _share(burst, path.servers or 1) / path.server if path.server else 0.0),
        ("target", moved * _share(burst, path.targets or objects) / path.target),
    ]
    piece = burst.piece
    if burst.files == 1 and nodes > 1 and piece is not None and 0 < piece < burst.stripe_size:
        # At most one lock per node moves at a time.
        stages.append(("lock", path.lock_s * moved / piece / min(burst.stripe_count, nodes)))
    return stages


def _io_node_share(nodes: int, path: Path, *, packed: bool) -> float:
    """Share of the bytes that pass the busiest I/O node, 0..1."""
    if packed and path.nodes_per_io_node:
        return min(nodes, path.nodes_per_io_node) / nodes
    used = min(nodes, path.io_nodes or nodes)
    return math.ceil(nodes / used) / nodes


def _share(burst: Burst, members: int) -> float:
    """Share of the bytes on the busiest of the members (targets, servers), 0..1."""
    objects = burst.files * burst.stripe_count
    if burst.files == 1:
        used = min(objects, members)
        return math.ceil(objects / used) / objects
    return most_loaded(objects, members) / objects
