"""Checks whether a plan is still valid by comparing what it needs with a snapshot of the machine."""

from __future__ import annotations

import hashlib
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

import vani
from vani.centre.plan.inputs import loaded, loaded_snapshot
from vani.centre.plan.path_layers import DIMENSIONS
from vani.centre.plan.schema.plans import Left, Plan, PlanInput
from vani.centre.plan.schema.snapshot import IoNode, Snapshot, StorageNode, Target
from vani.centre.plan.text import reasons
from vani.errors import InputError, one_line
from vani.render.formats import Formats
from vani.schema.document import MAX_BYTES
from vani.schema.model import Model, schema_field
from vani.schema.settings import PathLike
from vani.schema.syntax.json_text import json_text
from vani.units import counted, first_of, format_bytes

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import ForwardPlan, JobPath, PathPlan, PlacePlan, ReplayPlan

# The verdict of `vani plan check`: whether a plan is still valid on the machine as it is now.
#
# The only time in this document is that of the snapshot.

class PlanStatus(Model):
    """Whether a plan is still valid."""

    # The name of the schema stays: other programs read it.
    schema_: Literal["vani.standing/1"] = schema_field("vani.standing/1")
    version: str = Field(description="version of Vani")
    kind: str = Field(description="kind of the plan")
    plan: PlanInput = Field(description="plan that was checked")
    snapshot: PlanInput = Field(description="state of the machine that the plan was compared with")
    time: datetime | None = Field(description="time of the snapshot; null if unknown")
    holds: bool = Field(description="true if the plan is still valid, that is `broken` is empty")
    broken: list[Left] = Field(description="parts of the plan that are no longer valid, and why")
    unknown: list[Left] = Field(
        description="parts that could not be compared, and why; they do not invalidate the plan"
    )
    notes: list[str] = Field(description="other changes since the plan was made")


# Checks of plans against a snapshot: one module per kind of plan, with a function that
# `vani.centre.plan.check` lists.
#
# Such a function takes a plan and a snapshot, each valid by itself, and returns `Findings`. It reads neither files nor
# the clock. If the plan uses a component that the snapshot does not name, the plan is broken, because the component may
# be gone. If the snapshot names a component but lacks a figure of it, the finding is unknown.

@dataclass(frozen=True)
class Findings:
    """Reasons that break a plan, comparisons that were impossible, and notes. All are empty by default."""

    broken: list[Left] = field(default_factory=list)
    unknown: list[Left] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# Check of plans that assign I/O nodes: the pool must still have as many.

_NAMED = 5


def check_io_nodes(plan: ForwardPlan | ReplayPlan, snapshot: Snapshot) -> Findings:
    """Compare the assigned I/O nodes (for a replay, those in use at once) with the forwarding nodes in service."""
    wanted = plan.after.io_nodes or 0
    if not wanted:
        return Findings(notes=["the plan assigns no I/O nodes"])
    if not snapshot.forwarding:
        reason = f"{_assigned(wanted)}, and the snapshot names no forwarding nodes"
        return Findings(broken=[Left(name="pool", reason=reason)])
    offline = [node.name for node in snapshot.forwarding if node.state == "offline"]
    usable = len(snapshot.forwarding) - len(offline)
    notes = []
    degraded = [node.name for node in snapshot.forwarding if node.state == "degraded"]
    if degraded:
        notes.append(f"slower than planned, because degraded: {first_of(degraded, _NAMED)}")
    if usable > plan.forward.io_nodes:
        notes.append(f"the pool has {usable:,} I/O nodes, the plan expects {plan.forward.io_nodes:,}")
    if usable >= wanted:
        return Findings(notes=notes)
    reason = f"{_assigned(wanted)}, {usable:,} of {len(snapshot.forwarding):,} can be used"
    if offline:
        reason += f"; offline: {first_of(offline, _NAMED)}"
    return Findings(broken=[Left(name="pool", reason=reason)], notes=notes)


def _assigned(wanted: int) -> str:
    return f"{counted(wanted, 'I/O node', 'is', 'are')} assigned"


# Check of plans that choose OSTs: these must be in service and have room for the planned bytes.

def check_osts(plan: PlacePlan, snapshot: Snapshot) -> Findings:
    """Compare the OSTs that get bytes with the snapshot.

    An OST breaks the plan if it is missing or offline, has less free space than the plan adds, or belongs to another
    server. An OST that has become fuller or degraded is only a note: some files of the plan may already be on it.
    """
    there = {target.index: target for target in snapshot.ost}
    used = [target for target in plan.targets if target.added]
    if not used:
        return Findings(notes=["the plan places nothing on OSTs"])
    findings = Findings()
    for use in used:
        name, now = f"OST {use.index}", there.get(use.index)
        if now is None:
            findings.broken.append(Left(name=name, reason="it is not in the snapshot"))
            continue
        if now.state == "offline":
            findings.broken.append(Left(name=name, reason="it is offline"))
        elif now.state == "degraded" and use.state == "ok":
            findings.notes.append(f"{name} is degraded since")
        if now.oss is not None and use.oss is not None and now.oss != use.oss:
            findings.broken.append(Left(name=name, reason=f"it belongs to {now.oss}, not {use.oss}"))
        free = now.size - now.used
        if use.added > free:
            reason = f"{format_bytes(use.added)} will be written, {format_bytes(free)} are free"
            findings.broken.append(Left(name=name, reason=reason))
        elif now.used + use.added > plan.place.ceiling * now.size:
            findings.notes.append(f"{name} will be above the ceiling of {plan.place.ceiling:g}")
    return findings


# Check of plans that choose paths: nodes, connections and peaks.

_ROUNDED: Final = 1e-6
"""Relative tolerance: a written plan rounds shares to nine digits, and many flows add up on a node."""

_WORDS: Final = {"iobw": "bytes per second", "iops": "operations per second", "mdops": "metadata operations per second"}


def check_paths(plan: PathPlan, snapshot: Snapshot) -> Findings:
    """Compare the paths of a plan with the snapshot.

    A path breaks the plan if one of its nodes is missing, is not ok or no longer leads to the next, or if a node would
    carry more than its peak. Too little free capacity is only a note: the present load may include the plan's own jobs.
    """
    nodes = _nodes_of(snapshot)
    broken = [*_states(plan, nodes), *_broken_links(plan.jobs, snapshot)]
    unknown, notes = [], []
    for key, sent in _sent(plan).items():
        node = nodes.get(key)
        if node is None or node.state != "ok":
            continue
        for name, amount in sent.items():
            peak = getattr(node.peak, name, None)
            if peak is None:
                # Storage nodes and targets need no peak of metadata operations, which go to the metadata server.
                if not (name == "mdops" and key[0] != "forwarding node"):
                    unknown.append(Left(name=_called(key), reason=f"no peak of {_WORDS[name]}"))
            elif amount > peak * (1 + _ROUNDED):
                reason = f"{amount:,.0f} {_WORDS[name]} are planned, its peak is {peak:,.0f}"
                broken.append(Left(name=_called(key), reason=reason))
            elif node.load is not None and amount > peak * (1 - node.load) * (1 + _ROUNDED):
                notes.append(
                    f"{_called(key)} has {peak * (1 - node.load):,.0f} {_WORDS[name]} free, and {amount:,.0f} are "
                    "planned: not enough, unless its load includes the jobs of the plan"
                )
    return Findings(broken, unknown, notes)


Key = tuple[str, str]


def _nodes_of(snapshot: Snapshot) -> dict[Key, IoNode | StorageNode | Target]:
    return {
        **{("forwarding node", node.name): node for node in snapshot.forwarding},
        **{("storage node", node.name): node for node in snapshot.storage},
        **{("OST", str(target.index)): target for target in snapshot.ost},
    }


def _states(plan: PathPlan, nodes: dict[Key, IoNode | StorageNode | Target]) -> Iterator[Left]:
    servers = {name for kind, name in nodes if kind == "storage node"}
    for key in dict.fromkeys(key for job in plan.jobs for key in _keys(job)):
        node = nodes.get(key)
        if node is not None and node.state != "ok":
            yield Left(name=_called(key), reason=f"it is {node.state}")
        # Without storage nodes in the snapshot, the plan used servers in their place.
        elif node is None and (key[0] != "storage node" or servers):
            yield Left(name=_called(key), reason="it is not in the snapshot")


def _keys(job: JobPath) -> Iterator[Key]:
    yield from (("forwarding node", part.forwarding) for part in job.map)
    for flow in job.flows:
        yield "storage node", flow.storage
        yield "OST", str(flow.ost)


def _broken_links(jobs: Iterable[JobPath], snapshot: Snapshot) -> Iterator[Left]:
    behind = {index: node.name for node in snapshot.storage for index in node.ost}
    ways = dict.fromkeys((flow.forwarding, flow.storage, flow.ost) for job in jobs for flow in job.flows)
    for forwarding, storage in dict.fromkeys(way[:2] for way in ways):
        if snapshot.reach is not None and storage not in snapshot.reach.get(forwarding, ()):
            yield Left(name=f"forwarding node {forwarding}", reason=f"it no longer reaches {storage}")
    for storage, ost in dict.fromkeys(way[1:] for way in ways):
        if snapshot.storage and behind.get(ost) != storage:
            yield Left(name=f"OST {ost}", reason=f"it no longer belongs to {storage}")


def _sent(plan: PathPlan) -> dict[Key, dict[str, float]]:
    """Load of each node that the plan uses, by dimension."""
    loads: defaultdict[Key, dict[str, float]] = defaultdict(dict)
    for job in plan.jobs:
        demand = {name: rate for name in DIMENSIONS if (rate := getattr(job, name))}
        for flow in job.flows:
            for key in ("forwarding node", flow.forwarding), ("storage node", flow.storage), ("OST", str(flow.ost)):
                for name, rate in demand.items():
                    loads[key][name] = loads[key].get(name, 0.0) + flow.share * rate
    return loads


def _called(key: Key) -> str:
    return f"{key[0]} {key[1]}"


# Checks whether a plan is still valid by comparing what it needs with a snapshot of the machine.

CHECKS: Final[Mapping[str, Callable[[Any, Snapshot], Findings]]] = {
    "forward": check_io_nodes,
    "replay": check_io_nodes,
    "path": check_paths,
    "place": check_osts,
}
"""The check of each kind of plan: a function from the plan and a snapshot to findings (`checks`)."""


# Implements `vani plan check`.

_CHANGING_INPUTS: Final = {"snapshot", "plan"}
"""Inputs that are expected to change: the machine's state, and the plan before this one."""


def plan_check(
    plan: PathLike | Plan, snapshot: PathLike | Snapshot, *, max_age: float | None = None, now: datetime | None = None
) -> PlanStatus:
    """Check whether a plan is still valid on the machine in its present state.

    Parameters
    ----------
    plan
        A plan.yaml of any kind, or the document itself.
    max_age
        Maximum age of the snapshot in seconds; None: any age.
    now
        The time at which its age is measured; None: now.

    Raises
    ------
    InputError
        A document cannot be used, or the snapshot is too old, from the future, or without a time.
    """
    # `Plan` accepts plans of all kinds.
    known = loaded("plan", plan, Plan)
    state = loaded_snapshot(snapshot, max_age, now)
    of_kind = CHECKS.get(known.document.kind)
    if of_kind is None:
        what = f"plans of kind {known.document.kind} need nothing that a snapshot has"
        todo = f"this needs plans of kind {' or '.join(CHECKS)}"
        raise InputError(what, where=known.source.path or "plan", todo=todo)
    findings = of_kind(known.document, state.document)
    _compare_inputs(known.document, known.folder, findings)
    return PlanStatus(
        version=vani.__version__,
        kind=known.document.kind,
        plan=known.source,
        snapshot=state.source,
        time=state.document.time,
        holds=not findings.broken,
        **vars(findings),
    )


def _compare_inputs(plan: Plan, folder: Path, findings: Findings) -> None:
    """Compare the documents that a plan was made from with their present content, if they still exist."""
    for source in plan.inputs:
        if source.kind in _CHANGING_INPUTS or source.path is None:
            continue
        digest = _digest(source, folder)
        if digest != source.sha256:
            reason = "has changed since the plan was made" if digest else "cannot be read: not compared"
            left = Left(name=source.path, reason=f"the {source.kind} document {reason}")
            (findings.broken if digest else findings.unknown).append(left)


def files_of_plan(plan: Path) -> Iterator[Path]:
    """A plan.yaml, and its input files that still exist."""
    yield plan
    named = [source for source in Plan.load(plan).inputs if source.kind not in _CHANGING_INPUTS]
    yield from (path for source in named if (path := _place(source, plan.parent)) is not None)


def _place(source: PlanInput, folder: Path) -> Path | None:
    """Path of an input, relative to the working directory or the plan's folder; None if not a regular file."""
    for path in (Path(source.path or ""), folder / (source.path or "")):
        with suppress(OSError, ValueError):
            if stat.S_ISREG(path.stat().st_mode):
                return path
    return None


def _digest(source: PlanInput, folder: Path) -> str | None:
    """SHA-256 of an input; None if it cannot be read."""
    path = _place(source, folder)
    with suppress(OSError):
        if path is not None:
            with path.open("rb") as file:
                # A plan can name any file, even one that never ends.
                return hashlib.sha256(file.read(MAX_BYTES + 1)).hexdigest()
    return None


STATUS_FORMATS: Final[Formats[str]] = Formats(
    {"text": f"{__name__}:status_to_text", "json": f"{__name__}:status_to_json"}, {"text": (".txt",)}
)


def status_to_json(status: PlanStatus) -> str:
    """Write the whole document."""
    return json_text(status.model_dump(mode="json", by_alias=True))


def status_to_text(status: PlanStatus) -> str:
    """Write the verdict, followed by further reasons and notes."""
    return "\n".join(
        [
            one_line(_verdict(status)),
            *reasons(("Also broken", status.broken[1:]), ("Not compared", status.unknown)),
            *(line for note in status.notes for line in ("", f"Note: {one_line(note)}.")),
            "",
        ]
    )


def _verdict(status: PlanStatus) -> str:
    if status.broken:
        first = status.broken[0]
        more = f" (and {len(status.broken) - 1:,} more)" if len(status.broken) > 1 else ""
        return f"Not valid: {first.name}: {first.reason}{more}."
    taken = f" of {status.time.isoformat()}" if status.time is not None else ""
    return f"Valid: the {status.kind} plan fits the snapshot{taken}."
