"""The resources and flows of a simulation's jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.columns import Floats, Ints
from vani.centre.plan.simulate import machine as machines
from vani.centre.plan.simulate.events import Phase, Usage, Workload
from vani.centre.plan.simulate.jobs import Choices, Job
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import PlacedExtent
    from vani.centre.plan.schema.scenario import Pieces, ScenarioPhase

# A workload that is ready to run.

@dataclass(frozen=True)
class Built:
    """A workload with the meaning of its resources and phases.

    `place_of` is the index of the first resource of each kind. `direction` is the operation of each phase, or None.
    """

    work: Workload
    place_of: dict[str, int]
    direction: list[str | None]
    placer: machines.Placer
    clipped: bool
    """True if a component requests more targets than there are."""
    has_dom: bool
    """True if there are bytes on the metadata target."""

    @cached_property
    def bytes_by_phase(self) -> Floats:
        """Bytes that each phase has to move, shape (phases,)."""
        work = self.work
        ends = np.concatenate([[0.0], np.cumsum(np.where(work.is_bytes, work.amount, 0.0))])
        own = (ends[work.chain[:, 1]] - ends[work.chain[:, 0]]) * work.count
        sums = np.concatenate([[0.0], np.cumsum(own)])
        starts = np.array([phase.flows.start for phase in work.phases], dtype=np.int64)
        stops = np.array([phase.flows.stop for phase in work.phases], dtype=np.int64)
        moved: Floats = sums[stops] - sums[starts]
        return moved

    @cached_property
    def phases_by_job(self) -> list[list[int]]:
        """Indexes of the phases of each job."""
        phases: list[list[int]] = [[] for _ in range(self.work.jobs)]
        for number, phase in enumerate(self.work.phases):
            phases[phase.job].append(number)
        return phases


# Splits files among the processes that move them.

@dataclass(frozen=True)
class Part:
    """Bytes that a process moves at the same time, and their targets; none on the node or the metadata target."""

    bytes: float
    target: tuple[int, ...]
    share: tuple[float, ...]


def parts_of(
    size: float, parts: tuple[machines.Component, ...], own: Sequence[Ints], users: Sequence[int], in_turn: bool,
    strided: bool,
) -> Iterator[tuple[int, Part]]:
    """Each process with the parts that it moves: a range of the file, or a share of everything if `strided`."""
    count = len(users)
    strided = strided and count > 1
    for place, process in enumerate(users):
        begin, end = (0.0, size) if strided else (size * place / count, size * (place + 1) / count)
        for piece in machines.pieces_of(parts, size, begin, end, in_turn=in_turn, strided=strided):
            on = piece.share > 0
            moved = piece.bytes / count if strided else piece.bytes
            share = np.round(piece.share[on], 12)
            yield process, Part(moved, tuple(own[piece.component][on].tolist()), tuple(share.tolist()))


def owners_of(files: int, processes: int) -> list[list[int]]:
    """Processes of each file. With more processes than files, several share a file; otherwise each has one or more."""
    if files >= processes:
        return [[n * processes // files] for n in range(files)]
    owners: list[list[int]] = [[] for _ in range(files)]
    for process in range(processes):
        owners[process * files // processes].append(process)
    return owners


# Flows of jobs: which process moves which bytes of which file, and the resources on the way.

MAX_FLOWS: Final = 200_000
"""Most flows of a scenario: with that many, a run takes minutes."""
_MAX_ENTRIES: Final = 10_000_000


_Leg = tuple[str, Ints, Floats]
"""Kind of resource, members, and the share of the bytes that passes each member."""


@dataclass
class Builder:
    """Builds the resources and flows of a simulation. `layout` of all files overrides that of the phases."""

    jobs: Sequence[Job]
    machine: machines.Machine
    placer: machines.Placer
    choices: Choices
    pieces: Pieces
    serial: bool
    layout: int | str | None = None
    where: str = "scenario"

    def __post_init__(self) -> None:
        capacity = {kind: stage.share for kind, stage in self.machine.stages.items()}
        self.capacity = capacity | {"job": np.ones(len(self.jobs))}
        ends = np.cumsum([0, *map(len, self.capacity.values())]).tolist()
        self.place_of = dict(zip((*self.capacity, "lock"), ends, strict=True))
        self.locks: list[float] = []
        """Passes per second of each shared file's locks."""
        self.position = {int(index): n for n, index in enumerate(self.machine.targets.index)}
        self.rows: list[tuple[Ints, Floats, float, float, bool]] = []
        """Resources, loads, amount, cap and whether it counts as bytes, of each segment built so far."""
        self.chain: list[tuple[int, int]] = []
        self.count: list[int] = []
        self.phases: list[Phase] = []
        self.direction: list[str | None] = []
        self.file_sets: dict[tuple[int, str, int, str], list[list[Ints]]] = {}
        self.clipped = self.has_dom = False
        self.parts: dict[Part, Part] = {}
        self.components: dict[int | str | None, tuple[machines.Component, ...]] = {}
        self.entries = 0

    def built(self) -> Built:
        """Build everything.

        Raises
        ------
        InputError
            There are too many flows, a plan names a missing target, or nothing limits the rate of some bytes.
        """
        node = 0
        for number, job in enumerate(self.jobs):
            self.job(number, job, node)
            node += job.nodes
        resource, load, amount, cap, is_bytes = zip(*self.rows, strict=True) if self.rows else [()] * 5
        capacity = self.capacity | {"lock": np.array(self.locks)}
        numbers = [machines.KINDS.index(kind) for kind in capacity]
        kinds = np.repeat(numbers, [len(share) for share in capacity.values()])
        lengths = [len(resources) for resources in resource]
        use = Usage(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.concatenate([*resource, np.zeros(0, dtype=np.int64)]).astype(np.int64),
            np.concatenate([*load, np.zeros(0)]),
            np.array(cap, dtype=np.float64),
        )
        work = Workload(
            use,
            np.array(amount, dtype=np.float64),
            np.array(is_bytes, dtype=bool),
            np.array(self.chain, dtype=np.int64).reshape(-1, 2),
            np.array(self.count, dtype=np.int64),
            self.phases,
            len(self.jobs),
            np.concatenate([*capacity.values()]),
            kinds,
            len(machines.KINDS),
        )
        return Built(work, self.place_of, self.direction, self.placer, self.clipped, self.has_dom)

    def job(self, number: int, job: Job, first_node: int) -> None:
        rate = self.choices.rates.get(job.name, job.rate)
        if rate is not None and job.rate is not None:
            rate = min(rate, job.rate)
        after: int | None = None
        for phase in job.phases:
            chains = self._chains(number, job, phase, first_node, rate)
            last = after
            for _ in range(phase.repeat):
                begin = len(self.chain)
                self.chain += [chain for chain, _ in chains]
                self.count += [count for _, count in chains]
                self._refuse_too_many(len(self.chain))
                at = job.start_s if last is None else 0.0
                flows = range(begin, len(self.chain))
                self.phases.append(Phase(number, flows, last, phase.compute_s, at))
                self.direction.append(phase.operation)
                last = len(self.phases) - 1
            if not phase.background:
                after = last

    def _refuse_too_many(self, flows: int) -> None:
        if flows > MAX_FLOWS:
            what = f"there are more than {MAX_FLOWS:,} flows"
            raise InputError(what, where=self.where, todo="give fewer processes: one can represent all of a node")

    def _chains(
        self, number: int, job: Job, phase: ScenarioPhase, first_node: int, rate: float | None
    ) -> list[tuple[tuple[int, int], int]]:
        """For each flow of a phase, its range of segments and the number of equal flows that it represents."""
        self._refuse_too_many(max(job.processes, phase.files or 0, len(job.files)))
        node_of = first_node + np.arange(job.processes) * job.nodes // job.processes
        locks: list[list[tuple[int, float]]] = [[] for _ in range(job.processes)]
        shares = self._shares(number, job, phase, node_of, locks)
        opens = (float(job.processes) if phase.opens is None else phase.opens) / job.processes
        alike: dict[object, int] = {}
        chains: list[tuple[tuple[int, int], int]] = []
        for process, moved in enumerate(shares):
            if not moved and not opens:
                continue
            key = (int(node_of[process]), tuple(moved), tuple(locks[process]))
            if key in alike:
                chain, count = chains[alike[key]]
                chains[alike[key]] = chain, count + 1
                continue
            alike[key] = len(chains)
            begin = len(self.rows)
            metadata = [("metadata", 0, opens)] if opens > 0 and "metadata" in self.machine.stages else []
            for kind, member, amount in (*metadata, *(("lock", *lock) for lock in locks[process])):
                self._add([(kind, np.array([member]), np.ones(1))], amount, np.inf, reads=False)
            for piece in moved:
                self._segments(number, job, phase, int(node_of[process]), first_node, piece, rate)
            if len(self.rows) > begin:
                chains.append(((begin, len(self.rows)), 1))
            else:
                alike.pop(key)
        return chains

    def _shares(
        self, number: int, job: Job, phase: ScenarioPhase, node_of: Ints, locks: list[list[tuple[int, float]]]
    ) -> list[list[Part]]:
        """Successive parts that each process moves, each on one or more targets at a time.

        Adds to `locks`, by process, the passes of the locks of files that processes of several nodes write.
        """
        if phase.storage == "burst_buffer" and phase.operation in {"read", "write"}:
            own = phase.bytes / job.processes
            return [[Part(own, (), ())] if own else [] for _ in range(job.processes)]
        shares: list[list[Part]] = [[] for _ in range(job.processes)]
        if not phase.bytes:
            return shares
        if job.files:
            sizes = [(file.size, self._components(self.layout or file.layout)) for file in job.files]
            paths = [file.path for file in job.files]
            owners = [[*range(job.processes)] if file.rank is None else [file.rank] for file in job.files]
            turns = machines.turns_of(file.rank for file in job.files)
        else:
            count = phase.files or job.processes
            parts = self._components(self.layout or phase.layout)
            sizes = [(phase.bytes / count, parts)] * count
            paths = [f"{phase.file_set}.{n}" for n in range(count)]
            owners = owners_of(count, job.processes)
            turns = machines.turns_of(own[0] for own in owners)
        planned = [self.choices.extents.get((job.name, path)) for path in paths]
        if self.layout is not None and any(planned):
            what = "a variant's `layout` and a plan of OSTs both set the layout of files"
            raise InputError(what, where="plans", todo="leave the layout out of the variant, or use it in the plan")
        sizes = [
            (size, parts if own is None else machines.components_of_plan(own))
            for (size, parts), own in zip(sizes, planned, strict=True)
        ]
        key = (number, phase.file_set, len(paths), str(self.layout or phase.layout))
        if key not in self.file_sets:
            self.file_sets[key] = self._placed(paths, sizes, planned, turns)
        for (size, parts), lists in zip(sizes, self.file_sets[key], strict=True):
            # A file that was smaller in an earlier phase grows into more components.
            while len(lists) < len(parts) and size > parts[len(lists)].start:
                lists.append(self.placer.targets_of_component(size, parts, len(lists)))
        in_turn = (phase.pieces or self.pieces) == "in_turn"
        for (size, parts), lists, users in zip(sizes, self.file_sets[key], owners, strict=True):
            nodes, strided = len(np.unique(node_of[users])), phase.order == "strided"
            if self.machine.lock_s and phase.operation == "write" and nodes > 1:
                piece = phase.request * len(users) / nodes if strided and phase.request else None
                self._lock(size, parts, nodes, [locks[process] for process in users], piece, in_turn=in_turn)
            for process, part in parts_of(size, parts, lists, users, in_turn, strided):
                shares[process].append(self._one_of(part))
        return shares

    def _lock(
        self,
        size: float,
        parts: tuple[machines.Component, ...],
        nodes: int,
        of_users: Sequence[list[tuple[int, float]]],
        piece: float | None,
        *,
        in_turn: bool,
    ) -> None:
        """Add the locks of a file, whose passes its writers share equally.

        Where processes alternate, those of a node are neighbours and write `piece` bytes together.
        """
        passes, objects = 0.0, 0
        for part in parts:
            end = size if part.end is None else min(size, part.end)
            if end <= part.start or not part.count:
                continue
            length = end - part.start
            own = nodes if piece is not None else max(1, round(nodes * length / size))
            stripe = part.size if in_turn else length / part.count
            passes += machines.lock_passes(length, nodes=own, objects=part.count, stripe_size=stripe, piece=piece)
            objects += part.count
        if passes:
            self.locks.append(machines.passes_per_s(self.machine.lock_s, nodes=nodes, objects=objects))
            for locks in of_users:
                locks.append((len(self.locks) - 1, passes / len(of_users)))

    def _one_of(self, part: Part) -> Part:
        """Return one object for all equal parts, because many processes move equal ones."""
        known = self.parts.setdefault(part, part)
        if known is part:
            self._count(len(part.target))
        return known

    def _count(self, entries: int) -> None:
        self.entries += entries
        if self.entries > _MAX_ENTRIES:
            what = f"flows pass resources more than {_MAX_ENTRIES:,} times"
            raise InputError(what, where=self.where, todo="give fewer processes or stripes")

    def _components(self, layout: int | str | None) -> tuple[machines.Component, ...]:
        if layout in self.components:
            return self.components[layout]
        usable = len(self.placer.usable)
        count, size = self.machine.stripe_count, self.machine.stripe_size
        components = machines.components_of(layout, targets=usable, count=count, size=size, where=self.where)
        if isinstance(layout, int) and layout > usable:
            self.clipped = True
        self.has_dom |= any(not part.count for part in components)
        self.components[layout] = components
        return components

    def _placed(
        self,
        paths: Sequence[str],
        sizes: Sequence[tuple[float, tuple[machines.Component, ...]]],
        planned: Sequence[Sequence[PlacedExtent] | None],
        turns: Sequence[int],
    ) -> list[list[Ints]]:
        free = [n for n, own in enumerate(planned) if own is None]
        chosen = self.placer.place([sizes[n] for n in free], [turns[n] for n in free])
        placed = dict(zip(free, chosen, strict=True))
        for n, (path, own) in enumerate(zip(paths, planned, strict=True)):
            if own is None:
                continue
            size, parts = sizes[n]
            placed[n] = [self._known(extent.osts, path) for extent in own]
            for number, on in enumerate(placed[n]):
                self.placer.hold(on, size, parts, number)
        return [placed[n] for n in range(len(paths))]

    def _known(self, indexes: Sequence[int], path: str) -> Ints:
        missing = next((index for index in indexes if index not in self.position), None)
        if missing is not None:
            what = f"the plan puts {path} on OST {missing}, which is not there"
            raise InputError(what, where="plans", todo="give a plan for this machine")
        return np.array([self.position[index] for index in indexes], dtype=np.int64)

    def _segments(
        self, number: int, job: Job, phase: ScenarioPhase, node: int, first_node: int, part: Part, rate: float | None
    ) -> None:
        machine, operation = self.machine, phase.operation
        reads = operation in {"read", "stage_in"}
        near = phase.storage == "burst_buffer" or operation in {"stage_in", "stage_out"}
        if near and "burst_buffer" not in machine.stages:
            what = f"job {job.name!r} uses a burst buffer without a known rate"
            raise InputError(what, where=self.where, todo="give `machine.burst_buffer`")
        whole, at_node = np.ones(1), np.array([node])
        legs: list[_Leg] = []
        if near:
            legs.append(("burst_buffer", at_node, whole))
        if phase.storage == "file_system":
            legs.append(("node", at_node, whole))
            io_node = self._io_node(job, node - first_node, node)
            legs += [("io_node", np.array([io_node]), whole)] if io_node is not None else []
        if part.target:
            targets, share = np.array(part.target), np.array(part.share)
            legs.append(("whole", np.zeros(1, dtype=np.int64), whole))
            servers, inverse = np.unique(machine.targets.server[targets], return_inverse=True)
            legs.append(("server", servers, np.bincount(inverse, share).astype(np.float64)))
            legs.append(("target", targets, share))
        cap = machine.process.of(reads=reads) if machine.process is not None else np.inf
        if operation in {"stage_in", "stage_out"}:
            cap = np.inf  # Copied by the nodes, not by the processes.
        legs = [leg for leg in legs if leg[0] in machine.stages]
        limited = (rate and part.target) or (cap < np.inf and not machine.is_process_assumed)
        if not legs and not limited:
            what = f"nothing on the way of {job.name!r} has a rate: its transfer would take no time"
            raise InputError(what, where=self.where, todo="give `machine.target`, `machine.node` or another rate")
        own_rate = [("job", np.array([number]), np.full(1, 1 / rate))] if rate and part.target else []
        steps: list[tuple[list[_Leg], float]] = [([], cap)] if self.serial and cap < np.inf else []
        if self.serial:
            steps += [([leg], np.inf) for leg in legs]
            # The job's measured rate limits its last stage.
            steps[-1] = ([*steps[-1][0], *own_rate], steps[-1][1])
        else:
            steps = [([*legs, *own_rate], cap)]
        for left, (stage, most) in zip(reversed(range(len(steps))), steps, strict=True):
            self._add(stage, part.bytes, most, reads=reads, near_writes=operation == "stage_in", is_bytes=not left)

    def _io_node(self, job: Job, within: int, node: int) -> int | None:
        if not self.machine.io_nodes:
            return None
        own = self.choices.io_nodes.get(job.name)
        if own is not None:
            return own[within * len(own) // job.nodes] if len(own) else None
        return node % self.machine.io_nodes

    def _add(
        self, legs: Sequence[_Leg], amount: float, cap: float, *, reads: bool, near_writes: bool = False,
        is_bytes: bool = False,
    ) -> None:
        resources, loads = [], []
        for kind, members, share in legs:
            stage = self.machine.stages.get(kind)
            # Staging in reads the file system and writes the burst buffer.
            direction = reads if kind != "burst_buffer" else reads and not near_writes
            pace = 1.0 if stage is None else stage.pace.of(reads=direction)
            resources.append(self.place_of[kind] + members)
            # A pace of 0 makes the load nearly infinite; only bad figures get here.
            loads.append(share / max(pace, 1e-300))
        resource = np.concatenate([*resources, np.zeros(0, dtype=np.int64)])
        self.rows.append((resource, np.concatenate([*loads, np.zeros(0)]), amount, cap, is_bytes))
        self._count(len(resource))
