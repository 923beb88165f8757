"""Checks that a profile's numbers agree with each other. A contradiction is a fault of Vani, never a result."""

from collections.abc import Iterator
from operator import attrgetter

from vani.errors import SelfCheckError
from vani.schema.profile import App, ByKind, FileCounts, IOStats, Profile, Sizes, Workflow

_CLOSE = 1e-6


def refuse_contradictions(profile: Profile) -> None:
    """Raise SelfCheckError, naming the attribute, if two numbers of the profile contradict each other."""
    for fault in _faults(profile):
        raise SelfCheckError(
            f"self-check failed: {fault}", todo="please report this with the trace; nothing was written"
        )


def _faults(p: Profile) -> Iterator[str]:
    blocks = {
        "workflow.io": p.workflow.io,
        "dataset.io": p.dataset.io,
        "excluded.io": p.excluded.io,
        **{f"apps[{i}].io": a.io for i, a in enumerate(p.apps)},
        # If only bytes are known, there is nothing to compare them with.
        **{f"phases[{i}].io": a.io for i, a in enumerate(p.phases or ()) if a.io.ops is not None},
        **{f"files[{i}].io": a.io for i, a in enumerate(p.files)},
    }
    for where, io in blocks.items():
        yield from (f"{where}.{text}" for text in _block(io, counted="io.busy_s" in p.provenance))
    yield from _parts(p)
    for where, io in blocks.items():
        yield from (f"{where}.{text}" for text in _costs(io))
    runtime, busy = p.workflow.runtime_s, p.workflow.io.busy_s.total
    if _longer(busy, runtime):
        yield f"workflow.io.busy_s.total {busy} is longer than the run, {runtime}"
    if runtime is None and (p.phases or any(b.time_s.total for b in blocks.values())):
        yield "workflow.runtime_s is null, but times are known"
    for i, app in enumerate(p.apps):
        if _longer(app.io.busy_s.total, app.runtime_s):
            yield f"apps[{i}].io.busy_s.total is longer than its run time"
        if app.balance and _longer(app.balance.slowest_io_time_s, app.runtime_s):
            yield f"apps[{i}].balance.slowest_io_time_s is longer than its run time"
        if not _adds_up(app.files):
            yield f"apps[{i}].files does not add up"
    for i, phase in enumerate(p.phases or ()):
        if phase.start_s > phase.end_s or (phase.io.busy_s.total or 0.0) > phase.runtime_s + _CLOSE:
            yield f"phases[{i}] ends before it starts, or is busier than long"
    if not _adds_up(p.workflow.files) or p.workflow.files.total != p.dataset.files:
        yield "workflow.files does not add up"
    if p.workflow.processes != sum(t.ranks for t in p.traces):
        yield "workflow.processes is not the sum of the traces' ranks"
    yield from _shares(p)


def _adds_up(files: FileCounts) -> bool:
    known = [files.shared, files.file_per_process, files.total]
    return None in known or (files.shared or 0) + (files.file_per_process or 0) == files.total


def _block(io: IOStats, *, counted: bool) -> Iterator[str]:
    """`counted`: busy times are independent lower bounds, and not all metadata operations were counted."""
    b = io.bytes
    if b.read is not None and b.written is not None and b.total != b.read + b.written:
        yield f"bytes: {b.read} + {b.written} is not {b.total}"
    for name, share in (("ops_share", io.ops_share), ("time_share", io.time_share)):
        whole = 1.0 if share is None else share.data + share.metadata + (share.sync or 0.0)
        if abs(whole - 1) > _CLOSE:
            yield f"{name} adds up to {whole}"
    if io.access_pattern is not None:
        total = sum(io.access_pattern.model_dump().values())
        if abs(total - 1) > _CLOSE:
            yield f"access_pattern adds up to {total}"
    for side in ("read", "write"):
        sizes, ops = getattr(io.transfer_size, side), getattr(io.ops, side)
        if (sizes is None) != (ops == 0):
            yield f"transfer_size.{side} does not fit {ops} operations"
        elif sizes is not None:
            yield from (f"transfer_size.{side}.{text}" for text in _sizes(sizes, ops))
    yield from (f"time_s: {text}" for text in _times(io.time_s, io.ops.all, apart=False, counted=counted))
    yield from (f"busy_s: {text}" for text in _times(io.busy_s, io.ops.all, apart=counted, counted=counted))
    if _longer(io.busy_s.total, io.time_s.total):
        yield f"busy_s.total {io.busy_s.total} is longer than the time of all processes, {io.time_s.total}"
    if io.past_end.read is not None and b.read is not None and io.past_end.read > b.read:
        yield f"past_end.read {io.past_end.read} is more than was requested, {b.read}"
    for name, moved in (("read", b.read), ("written", b.written)):
        touched = getattr(io.footprint, name)
        if touched is not None and moved is not None and touched > moved:
            yield f"footprint.{name} {touched} is more than was moved, {moved}"


def _longer(time: float | None, limit: float | None) -> bool:
    """Whether a time is longer than possible, if both are known."""
    return time is not None and limit is not None and time > limit * (1 + _CLOSE) + _CLOSE


def _times(times: ByKind, operations: int, *, apart: bool, counted: bool) -> Iterator[str]:
    # Only the flush time may be null, because it may be part of write time.
    kinds = (times.read, times.write, times.metadata)
    known = [t for t in (*kinds, times.sync) if t is not None]
    if times.total is None or None in kinds:
        if times.total is not None or known:
            yield "some of its times are null, others not"
        return
    parts = sum(known)
    if (times.total > parts * (1 + _CLOSE) + _CLOSE and not apart) or max(known) > times.total + _CLOSE:
        yield f"total {times.total} is not between its parts and their sum {parts}"
    if parts and not operations and not counted:
        yield "time without an operation"


def _shares(p: Profile) -> Iterator[str]:
    """Recompute shares of the run from the values next to them."""
    entities: list[tuple[str, Workflow | App]] = [("workflow", p.workflow)]
    entities += [(f"apps[{i}]", app) for i, app in enumerate(p.apps)]
    for where, entity in entities:
        busy, runtime, share = entity.io.busy_s.total, entity.runtime_s, entity.io_time_share
        if share is not None and busy is not None and runtime and abs(share - min(1.0, busy / runtime)) > _CLOSE:
            yield f"{where}.io_time_share {share} is not busy_s.total / runtime_s"
        for layer, time in (entity.library_time_s or {}).items():
            if time.outside_file_system > time.total + _CLOSE or time.slowest > time.total + _CLOSE:
                yield f"{where}.library_time_s.{layer} has parts that are longer than the whole"
            if _longer(time.slowest, runtime):
                yield f"{where}.library_time_s.{layer}.slowest is longer than the run"


def _costs(io: IOStats) -> Iterator[str]:
    if io.calls is not None and sum(call.count for call in io.calls) != io.ops.all:
        yield f"calls are {sum(call.count for call in io.calls)}, not {io.ops.all}"
    spent = [call.time_s for call in io.calls or () if call.time_s is not None]
    if spent and io.time_s.total is not None and io.time_s.total > sum(spent) * (1 + _CLOSE) + _CLOSE:
        yield f"calls take {sum(spent)} s, less than the I/O time {io.time_s.total}"
    if io.metadata_kinds is not None:
        counted = sum(getattr(io.metadata_kinds, kind).count for kind in type(io.metadata_kinds).model_fields)
        if counted != io.ops.metadata:
            yield f"metadata_kinds are {counted}, not {io.ops.metadata}"


def _sizes(sizes: Sizes, ops: int) -> Iterator[str]:
    if sum(sizes.histogram.values()) != ops:
        yield f"histogram adds up to {sum(sizes.histogram.values())}, not {ops}"
    order = [s for s in (sizes.min, sizes.p50, sizes.p90, sizes.max) if s is not None]
    if order != sorted(order):
        yield f"percentiles are out of order: {order}"


_ADDED_UP = ("bytes.read", "bytes.written", "ops.read", "ops.write", "ops.metadata", "ops.sync")


def _parts(p: Profile) -> Iterator[str]:
    whole = p.workflow.io
    for name, entities in (("apps", p.apps), ("phases", p.phases)):
        if entities is None or any(entity.io.ops is None for entity in entities):
            continue
        parts = [entity.io for entity in entities]
        # The source kept only some kinds of calls, which provenance names.
        some = name == "phases" and "phases" in p.provenance
        for path in _ADDED_UP:
            of_part = attrgetter(path)
            total, of_whole = sum(of_part(io) or 0 for io in parts), of_part(whole) or 0
            if total > of_whole if some else total != of_whole:
                yield f"{name}: {path} adds up to {total}, the workflow has {of_whole}"
        spent = sum(io.time_s.total for io in parts if io.time_s.total is not None)
        total = whole.time_s.total
        if total is None:
            continue
        # A process with simultaneous calls in two phases counts the time in both, but only once in the workflow.
        beyond = spent - total if name == "apps" else 0.0 if some else min(0.0, spent - total)
        if abs(beyond) > _CLOSE * max(1.0, total):
            yield f"{name}: time_s.total adds up to {spent}, the workflow has {total}"
    if len(p.files) == p.dataset.files:
        for key in ("read", "written"):
            total = sum(getattr(f.io.bytes, key) or 0 for f in p.files)
            if total != (getattr(whole.bytes, key) or 0):
                yield f"files: bytes.{key} adds up to {total}, the workflow has {getattr(whole.bytes, key)}"
    counted = whole.ops.all + p.excluded.io.ops.all
    if counted > sum(t.records for t in p.traces):
        yield f"{counted} operations are more than the traces' records"
