"""The stages of a simulated machine, and the targets of files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from vani.centre.columns import Flags, Floats, Ints
from vani.centre.plan.inputs import layout_of
from vani.centre.plan.placement.layouts import BUFFERED, stripe_bytes
from vani.centre.plan.schema.scenario import Placement
from vani.errors import InputError
from vani.units import format_rate

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import PlacedExtent
    from vani.centre.plan.schema.scenario import Machine as Figures
    from vani.centre.plan.schema.snapshot import Snapshot
    from vani.schema.system import FileSystem, System

# The resources of a machine: members and rates of its stages, and missing figures.

KINDS: Final = ("node", "io_node", "whole", "server", "target", "metadata", "burst_buffer", "job", "lock")
"""Kinds of resources, in the order of the path."""

_MAX_NODES: Final = 2_000_000
PAGE_CACHE_RATE: Final = 1.6e9
"""Bytes per second that one process copies between its memory and the page cache of the client. From OPRAEL's sweep
of processes on one node with files of 8 GiB and more: 1.6 GB/s per process explains the difference between 300 to
318 MiB/s with one process and 365 to 439 MiB/s with 16."""

LEAST_PACE: Final = 0.05
"""Least share of its rate that a busy target has (our choice)."""


@dataclass(frozen=True)
class Pace:
    """Bytes (or operations) per second of one member, by direction."""

    read: float
    write: float

    def of(self, *, reads: bool) -> float:
        """The rate in one direction."""
        return self.read if reads else self.write


@dataclass(frozen=True)
class Stage:
    """Members of a kind. `share`, shape (members,), is their initial capacity over `pace`, which may exceed 1."""

    pace: Pace
    share: Floats

    def __len__(self) -> int:
        return len(self.share)


@dataclass(frozen=True)
class Targets:
    """Targets for files, as arrays of shape (targets,).

    `index` is Lustre's index, `server` the number of the server from 0. `size` is inf if unknown.
    """

    index: Ints
    server: Ints
    size: Floats
    used: Floats
    usable: Flags
    sound: Flags
    """False for targets that are degraded, which are only used if the others do not suffice."""


@dataclass(frozen=True)
class Machine:
    """Stages by kind. A stage without a rate is left out and limits nothing."""

    stages: dict[str, Stage]
    process: Pace | None
    is_process_assumed: bool
    nodes: int
    io_nodes: int
    targets: Targets
    stripe_count: int
    stripe_size: int
    lock_s: float = 0.0
    """Seconds for a write lock to pass from one node to another; 0: locks cost nothing."""
    metadata_free: float | None = None
    """Free bytes of the metadata target; None if unknown."""
    notes: list[str] = field(default_factory=list)
    lacks: list[tuple[str, str]] = field(default_factory=list)
    """Kinds without a figure, and the substitute or consequence."""


def machine_of(
    figures: Figures,
    *,
    nodes: int,
    system: System | None = None,
    snapshot: Snapshot | None = None,
    serial: bool = False,
    where: str = "scenario",
) -> Machine:
    """Combine a scenario, a description and a snapshot. The scenario takes precedence.

    Parameters
    ----------
    nodes
        Number of compute nodes of all jobs.
    serial
        Flows pass stages one after another. The rates of the whole file system and of servers are then reduced to what
        their targets' rates leave unexplained: 1 / (1 / whole - 1 / all targets).

    Raises
    ------
    InputError
        There is no file system of that name or no target, or a stage has rate 0.
    """
    disk = _disk(system, figures.file_system, where)
    targets, target_share = _targets(figures, disk, snapshot, where)
    count = len(targets.index)
    notes: list[str] = []
    paces = _paces(figures, system, disk, snapshot, count, notes)
    servers = int(targets.server.max()) + 1
    if serial:
        _leave_the_rest(paces, count, servers)
    io_nodes, io_share = _io_nodes(figures, system, snapshot)
    have = figures.nodes or nodes
    if have < nodes:
        raise InputError(
            f"the jobs have {nodes:,} nodes, the machine {have:,}", where=where, todo="give `machine.nodes`"
        )
    if have > _MAX_NODES:
        raise InputError(f"the machine has {have:,} nodes", where=where, todo=f"at most {_MAX_NODES:,}")
    shares = {
        "node": np.ones(nodes),
        "io_node": io_share,
        "whole": np.ones(1),
        "server": np.ones(servers),
        "target": target_share,
        "metadata": np.ones(1),
        "burst_buffer": np.ones(nodes),
    }
    stages: dict[str, Stage] = {}
    lacks = []
    for kind, share in shares.items():
        pace = paces.get(kind)
        if pace is not None and len(share):
            stages[kind] = Stage(pace, share)
        elif pace is None and len(share) and kind in {"node", "io_node", "target", "metadata"}:
            lacks.append((kind, "no rate is known: it limits nothing"))
    for kind, pace in paces.items():
        if pace.read == 0 and pace.write == 0:
            raise InputError(f"machine.{kind} is 0: nothing would move", where=where, todo="give a rate above 0")
    if snapshot is not None:
        lacks += [
            (f"OST {target.index}", "degraded, and its load is not known: its full rate is used")
            for target in snapshot.ost
            if target.state == "degraded" and target.load is None
        ]
    return Machine(
        stages,
        paces.get("process"),
        figures.process is None,
        have,
        io_nodes,
        targets,
        (disk.stripe_count if disk is not None else None) or 1,
        (disk.stripe_size if disk is not None else None) or 1 << 20,
        (disk.lock_transfer_s if disk is not None and figures.lock_s is None else figures.lock_s) or 0.0,
        disk.metadata_free if disk is not None and figures.metadata_free is None else figures.metadata_free,
        notes,
        lacks,
    )


def _disk(system: System | None, name: str | None, where: str) -> FileSystem | None:
    if system is None:
        return None
    if name is None:
        return next((file_system for file_system in system.file_systems if file_system.targets), None)
    disk = next((file_system for file_system in system.file_systems if file_system.name == name), None)
    if disk is None:
        known = ", ".join(file_system.name for file_system in system.file_systems) or "none"
        raise InputError(f"{system.name} has no file system {name!r}", where=where, todo=f"it has: {known}")
    return disk


def _targets(
    figures: Figures, disk: FileSystem | None, snapshot: Snapshot | None, where: str
) -> tuple[Targets, Floats]:
    if snapshot is not None and snapshot.ost:
        return _targets_now(figures, snapshot)
    count = figures.targets or (disk.targets if disk is not None else None)
    if not count:
        what = "the machine has no targets"
        raise InputError(what, where=where, todo="give `machine.targets`, or a system with targets")
    servers = min(count, figures.servers or (disk.servers if disk is not None else None) or 1)
    size: float | None = figures.target_size
    if size is None and disk is not None and disk.capacity and disk.targets:
        size = disk.capacity / disk.targets
    numbers, all_of_them = np.arange(count), np.ones(count, dtype=bool)
    sizes = np.full(count, np.inf if size is None else float(size))
    return Targets(numbers, numbers % servers, sizes, np.zeros(count), all_of_them, all_of_them), np.ones(count)


def _targets_now(figures: Figures, snapshot: Snapshot) -> tuple[Targets, Floats]:
    behind = {index: node.name for node in snapshot.storage for index in node.ost}
    names = {target.index: target.oss or behind.get(target.index) for target in snapshot.ost}
    order = {name: n for n, name in enumerate(dict.fromkeys(names[target.index] for target in snapshot.ost))}
    peaks = [target.peak.iobw if target.peak is not None else None for target in snapshot.ost]
    most = max((peak for peak in peaks if peak), default=None)
    rows = []
    for target, peak in zip(snapshot.ost, peaks, strict=True):
        works, server = target.state != "offline", order[names[target.index]]
        # A target that is busy with other jobs still moves something.
        alive = max(LEAST_PACE, 1 - (target.load or 0.0)) if works else 0.0
        # A rate in the scenario applies to all targets; without one, each target has its own peak.
        own = peak / most if figures.target is None and most and peak is not None else 1.0
        sizes = float(target.size), float(target.used)
        rows.append((target.index, server, *sizes, works, target.state == "ok", alive * own))
    *columns, share = map(np.array, zip(*rows, strict=True))
    return Targets(*columns), share


def _io_nodes(figures: Figures, system: System | None, snapshot: Snapshot | None) -> tuple[int, Floats]:
    if figures.io_nodes is not None:
        return figures.io_nodes, np.ones(figures.io_nodes)
    if snapshot is not None and snapshot.forwarding:
        share = [0.0 if node.state == "offline" else 1 - (node.load or 0.0) for node in snapshot.forwarding]
        return len(share), np.array(share)
    layer = system.forwarding if system is not None else None
    count = (layer.io_nodes_in_use or layer.io_nodes or 0) if layer is not None else 0
    return count, np.ones(count)


def _paces(
    figures: Figures,
    system: System | None,
    disk: FileSystem | None,
    snapshot: Snapshot | None,
    targets: int,
    notes: list[str],
) -> dict[str, Pace]:
    paces: dict[str, Pace | None] = {
        kind: _pace(getattr(figures, kind))
        for kind in ("process", "node", "io_node", "whole", "server", "target", "metadata", "burst_buffer")
    }
    if disk is not None:
        parts: tuple[tuple[str, Any], ...] = (
            ("node", disk.bandwidth_per_client),
            ("whole", disk.max_bandwidth),
            ("server", disk.bandwidth_per_server),
            ("target", disk.bandwidth_per_target),
            ("metadata", disk.metadata_ops_per_s),
        )
        for kind, rates in parts:
            paces[kind] = paces[kind] or _pace(rates)
        if paces["target"] is None and (whole := paces["whole"]) is not None and disk.targets:
            paces["target"] = Pace(whole.read / targets, whole.write / targets)
            notes.append("a target's rate is its share of the whole file system's")
    if system is not None:
        paces["node"] = paces["node"] or _pace(system.network.bandwidth_per_node)
        layer = system.forwarding
        paces["io_node"] = paces["io_node"] or (_pace(layer.bandwidth_per_io_node) if layer else None)
        near = system.node_local()
        if near is not None:
            paces["burst_buffer"] = paces["burst_buffer"] or _pace(near.bandwidth_per_node)
    if snapshot is not None:
        for kind, members in (("target", snapshot.ost), ("io_node", snapshot.forwarding)):
            peaks: Sequence[float] = [member.peak.iobw for member in members if member.peak and member.peak.iobw]
            paces[kind] = paces[kind] or _pace(max(peaks, default=None))
    if paces["process"] is None:
        paces["process"] = _pace(PAGE_CACHE_RATE)
        notes.append(
            f"a process moves at most {format_rate(PAGE_CACHE_RATE)}, as measured on one machine (docs/models.md)"
        )
    return {kind: pace for kind, pace in paces.items() if pace is not None}


def _pace(speed: Any) -> Pace | None:
    """The pace of a number, or of rates of reads and writes."""
    if speed is None:
        return None
    if isinstance(speed, (int, float)):
        return Pace(float(speed), float(speed))
    return _either(speed.read, speed.write)


def _either(read: float | None, write: float | None) -> Pace | None:
    read, write = (write if read is None else read), (read if write is None else write)
    return None if read is None or write is None else Pace(read, write)


def _leave_the_rest(paces: dict[str, Pace], targets: int, servers: int) -> None:
    """Replace the rates of whole and servers with their additional time beyond the targets; drop those without any."""
    target = paces.get("target")
    if target is None:
        return
    for kind, members in (("whole", targets), ("server", targets / servers)):
        pace = paces.pop(kind, None)
        if pace is None:
            continue
        rest = _either(_rest(pace.read, target.read * members), _rest(pace.write, target.write * members))
        if rest is not None:
            paces[kind] = rest


def _rest(whole: float, parts: float) -> float | None:
    return None if whole >= parts * (1 - 1e-9) or not whole else 1 / (1 / whole - 1 / parts)


# Splits a file into the parts on each object.

@dataclass(frozen=True)
class Component:
    """Bytes `start` to `end` (None: end of the file) on `count` objects, round-robin in stripes of `size` bytes.

    A component without objects is on the metadata target.
    """

    start: float
    end: float | None
    count: int
    size: float


@dataclass(frozen=True)
class Piece:
    """Bytes of a component that are moved at the same time, with `share[o]` of them on its object `o`."""

    component: int
    bytes: float
    share: Floats


def components_of(
    layout: int | str | None, *, targets: int, count: int, size: int, where: str
) -> tuple[Component, ...]:
    """Components of a layout in jobs.yaml; the machine's defaults are `count` and `size`.

    A component has at most `targets` objects, because each is on a different target.

    Raises
    ------
    InputError
        The text is not a valid layout.
    """
    if layout is None or isinstance(layout, int):
        wanted = layout or count
        return (Component(0.0, None, min(targets, wanted if wanted > 0 else targets), float(size)),)
    parts, _ = layout_of(layout, {}, where)
    components, stated = [], float(size)
    for start, part in zip(parts.starts(), parts.components, strict=True):
        objects = 0
        if not part.on_mdt:
            stated = float(part.size or stated)
            wanted = part.count if part.count is not None else count
            objects = min(targets, wanted if wanted > 0 else targets)
        components.append(Component(float(start), part.end and float(part.end), objects, stated))
    return tuple(components)


def components_of_plan(extents: Sequence[PlacedExtent]) -> tuple[Component, ...]:
    """Components that a plan sets. The last extends to the end of the file."""
    ends = [*(float(extent.end) for extent in extents[:-1]), None]
    return tuple(
        Component(float(extent.start), end, len(extent.osts), float(extent.set_stripe_size))
        for extent, end in zip(extents, ends, strict=True)
    )


def pieces_of(
    components: tuple[Component, ...],
    size: float,
    begin: float,
    end: float,
    *,
    in_turn: bool,
    strided: bool = False,
) -> list[Piece]:
    """Successive pieces in which a process moves bytes `begin` to `end` of a file of `size` bytes.

    With `in_turn`, stripes are round-robin. If a client can buffer several stripes, or processes alternate in the file
    (`strided`), all objects of a component are used at once; otherwise one stripe after another. Without `in_turn`,
    each object has one contiguous piece of its component, and they are used in sequence.
    """
    pieces = []
    for number, part in enumerate(components):
        low, high = max(begin, part.start), min(end, size if part.end is None else part.end)
        if high <= low:
            continue
        if not part.count:
            pieces.append(Piece(number, high - low, np.zeros(0)))
            continue
        if in_turn and (part.size <= BUFFERED or strided or part.count == 1):
            on = dealt(part, low, high)
            pieces.append(Piece(number, high - low, on / on.sum()))
            continue
        # A partly filled component keeps its stripe size.
        length = (max(size, high) if part.end is None else part.end) - part.start
        stripe = part.size if in_turn else length / part.count
        for stripe_number in range(int((low - part.start) // stripe), math.ceil((high - part.start) / stripe)):
            start = part.start + stripe_number * stripe
            moved = min(high, start + stripe) - max(low, start)
            if moved > 0:
                share = np.zeros(part.count)
                share[stripe_number % part.count] = 1.0
                pieces.append(Piece(number, moved, share))
    return pieces


@lru_cache(maxsize=4096)
def dealt(part: Component, low: float, high: float) -> Floats:
    """Bytes `low` to `high` of a file on each object of a component with round-robin stripes, shape (objects,)."""
    return np.array(stripe_bytes(low - part.start, high - part.start, part.size, part.count), dtype=np.float64)


# Chooses targets for the objects of files, as Lustre's allocator does or with other policies.
#
# Lustre's allocator (LSA; Tarazu, section 2.1.2 and equation 1) takes targets in turn, server by server, while free
# bytes differ by less than a window, and draws targets weighted by free bytes otherwise. Its choice depends on its
# position, which is unknown, so it starts at random here and results are a range over seeds. It passes degraded targets
# over unless the others do not suffice. The model ignores that Lustre lowers the weight of recently used targets.

RANDOM = frozenset({"round_robin", "random_start", "random", "weighted", "lsa"})
"""Policies whose result depends on the seed."""


class Placer:
    """Chooses targets for one component after another and keeps account of bytes.

    Targets are positions in `targets`, not Lustre's indexes.

    Parameters
    ----------
    turn
        Where a turn of `lsa` begins: after the previous component, or at random.
    among
        Mask of the targets that may be chosen; None: all.
    """

    def __init__(
        self,
        targets: Targets,
        placement: Placement,
        seed: int,
        *,
        turn: Literal["going-on", "random-start"] = "going-on",
        among: Flags | None = None,
    ) -> None:
        self.targets, self.placement, self.turn = targets, placement, turn
        self.random = np.random.default_rng(seed)
        self.used = targets.used.copy()
        self.placed = np.zeros(len(targets.index))
        """Bytes that this simulation placed on each target, shape (targets,)."""
        order = in_turn(targets.server)
        usable = targets.usable if among is None else targets.usable & among
        self.usable, self.sound = order[usable[order]], order[(usable & targets.sound)[order]]
        if not len(self.usable):
            raise InputError("no target is usable: all are offline", where="snapshot", todo="make one available")
        self.next = int(self.random.integers(len(self.usable)))
        servers = int(targets.server.max()) + 1
        self._servers_used = np.bincount(targets.server, self.used, minlength=servers)

    def place(
        self, files: Sequence[tuple[float, tuple[Component, ...]]], turns: Sequence[int] = ()
    ) -> list[list[Ints]]:
        """Targets of each component of each file. Files of one turn grow to their sizes at the same time.

        A component gets its objects only when its file reaches it. `turns` has the place of each file among those that
        its process writes one after another (`turns_of`); without it, all grow together.
        """
        turns = turns or [0] * len(files)
        placed_on: list[list[Ints]] = [[] for _ in files]
        for _, together in groupby(sorted(range(len(files)), key=turns.__getitem__), key=turns.__getitem__):
            numbers = list(together)
            for component in range(max((len(files[n][1]) for n in numbers), default=0)):
                for n in numbers:
                    size, parts = files[n]
                    if component < len(parts) and (size > parts[component].start or component == 0):
                        placed_on[n].append(self.targets_of_component(size, parts, component))
        return placed_on

    def targets_of_component(self, size: float, parts: tuple[Component, ...], number: int) -> Ints:
        """Choose targets for one component of a file of `size` bytes."""
        part = parts[number]
        chosen = self._choose(min(part.count, len(self.usable)))
        self.hold(chosen, size, parts, number)
        return chosen

    def hold(self, chosen: Ints, size: float, parts: tuple[Component, ...], number: int) -> None:
        """Account for the bytes of a component on the given targets."""
        part = parts[number]
        high = size if part.end is None else min(size, part.end)
        if high <= part.start or not part.count:
            return
        amount = dealt(part, part.start, high)[: len(chosen)]
        np.add.at(self.used, chosen, amount)
        np.add.at(self.placed, chosen, amount)
        np.add.at(self._servers_used, self.targets.server[chosen], amount)

    def _choose(self, count: int) -> Ints:
        among = self.sound if count <= len(self.sound) else self.usable
        policy = self.placement.policy
        if policy == "lsa":
            in_order = "round_robin" if self.turn == "going-on" else "random_start"
            policy = in_order if self._is_level(among) else "weighted"  # type: ignore[assignment]
        if policy == "random_start":
            self.next = int(self.random.integers(len(among)))
        if policy in {"round_robin", "random_start"}:
            chosen = among[(self.next + np.arange(count)) % len(among)]
            self.next = (self.next + count) % len(among)
            return chosen
        if policy == "least_used":
            order = (among, self._servers_used[self.targets.server[among]], self.used[among])
            return among[np.lexsort(order)[:count]]
        # Weighted sampling without replacement: winners of a race with speeds w (Efraimidis and Spirakis, 2006).
        race = self.random.exponential(size=len(among))
        free = self._free(among)
        if policy == "weighted" and np.isfinite(free).all():
            race = np.divide(race, free, out=np.full_like(race, np.inf), where=free > 0)
        return among[np.argsort(race, kind="stable")[:count]]

    def _free(self, among: Ints) -> Floats:
        return np.maximum(self.targets.size[among] - self.used[among], 0.0)

    def _is_level(self, among: Ints) -> bool:
        free = self._free(among)
        most = float(free.max())
        return most == np.inf or most - float(free.min()) <= self.placement.window * most


def in_turn(server: Ints) -> Ints:
    """Targets in round-robin order: the first of each server, then the second of each. Shape (targets,)."""
    return np.lexsort((server, np.array(turns_of(server.tolist()))))


def turns_of(ranks: Iterable[int | None]) -> list[int]:
    """The place of each file, from 0, among the files of its process; None is a file that all processes write."""
    seen: Counter[int | None] = Counter()
    turns = []
    for rank in ranks:
        turns.append(seen[rank])
        seen[rank] += 1
    return turns


# The time that write locks cost when several nodes write one file.
#
# A node that writes into an object (the part of a file on one target) takes its lock from the node that wrote there
# before, which flushes first. Locks of different objects pass independently, and a node takes one at a time. Files that
# one node writes alone, and reads, pass no lock. Only the number of objects matters, not their targets.

def lock_passes(moved: float, *, nodes: int, objects: int, stripe_size: float, piece: float | None = None) -> float:
    """How often a lock passes from one node to another while `nodes` nodes write `moved` bytes of a file once.

    With a contiguous region per node, each node takes the lock of every object that its region reaches once. Where
    pieces of nodes alternate and are smaller than a stripe, a lock passes with each piece. Larger pieces count as
    contiguous regions that reach every object.

    Parameters
    ----------
    objects
        Objects of the file, or of one component of its layout: its stripe count.
    stripe_size
        Bytes of a stripe.
    piece
        Contiguous bytes of one node between those of others, if nodes alternate; None: each has one region.
    """
    if nodes < 2 or objects < 1 or moved <= 0:
        return 0.0
    if piece is not None and piece < stripe_size:
        return max(0.0, moved / piece - objects)
    row = max(1, math.ceil(moved / stripe_size))
    used = min(objects, row)
    reached = used if piece is not None else min(used, math.ceil(moved / nodes / stripe_size))
    # No lock passes to the first node of an object.
    return float(max(0, nodes * reached - used))


def passes_per_s(lock_s: float, *, nodes: int, objects: int) -> float:
    """Passes per second of all locks of a file, with `lock_s` seconds for each."""
    return min(nodes, objects) / lock_s
