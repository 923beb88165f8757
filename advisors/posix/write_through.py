"""POS014: each write waits for the storage, because the file is opened with O_SYNC or O_DSYNC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import Group, by_folder, data_files
from vani.advisors.rule import Finding, Gain, Rule, Verdict
from vani.models.savings import LARGE
from vani.units import MiB, format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class WriteThrough(Rule):
    """Each write waits for the storage, because the file is opened with `O_SYNC` or `O_DSYNC`.

    Looks at
        Writes through descriptors that were opened with one of these flags: their number, and the time that they take.
    Why
        Such a write returns when the storage has its bytes, as if `fdatasync` came after it. The client can neither
        cache the bytes nor join them to large requests, and the program waits each time.
    Recommends
        Open the files without the flag, write pieces of 4 MiB, and call `fsync` once, before the file is closed. Where
        each record must survive a crash, put several records in one write.
    Stays silent when
        No write certainly goes through such a descriptor: the source does not store the flags of opens, or a file is
        opened with and without them and the source names no descriptors (only strace does); fewer than `min_writes` do;
        the file is flushed as often (POS010).
    Source
        open(2), section on synchronized I/O. A benchmark that measures storage this way (dd oflag=dsync) needs the
        flag.
    Example
        dd writes 20,000 blocks of 4 KiB with `oflag=dsync`: the run waits for the disk nearly all of its time.

            fd = open(name, O_WRONLY | O_CREAT | O_SYNC, 0666);  // before: waits in each write
            fd = open(name, O_WRONLY | O_CREAT, 0666);           // after, with fsync(fd) before close(fd)
    """

    id = "POS014"
    settles = "flush"
    sources = ("open(2)",)

    # Our choice, as in POS010: fewer writes are headers and trailers.
    min_writes = 8

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        items = data_files(profile, lambda file: bool(file.synchronous_writes))
        if not items:
            return "no write is known to go through a descriptor opened with O_SYNC or O_DSYNC"
        items = [item for item in items if (item.file.synchronous_writes or 0) > (item.io.ops.sync or 0)]
        if not items:
            return "files with writes through descriptors with O_SYNC or O_DSYNC are flushed as often: see POS010"
        few = f"{format_count(_writes(Group(None, '', items)))} writes go through descriptors with O_SYNC or O_DSYNC"
        groups = [group for group in by_folder(items, profile) if _writes(group) >= self.min_writes]
        return [*map(_finding, groups)] or f"{few}: fewer than {self.min_writes:g}"


def _writes(group: Group) -> int:
    return round(sum(item.waiting_writes for item in group.items))


def _finding(group: Group) -> Finding:
    writes, all_writes = _writes(group), round(group.scaled("io.ops.write", "writes"))
    # The time of one descriptor's writes is not known apart; that of a usual write is assumed.
    spent = group.wall_s("write") * writes / all_writes
    size, once = round(group.scaled("io.bytes.written", "written") / all_writes), min(writes, group.writers)
    part = "" if writes == all_writes else f" of {format_count(all_writes)}"
    return Finding(
        **group.affected,
        reason=f"{format_count(writes)}{part} writes to {group.words}, opened with O_SYNC or O_DSYNC, take "
        f"{format_seconds(spent)} of the run, {format_bytes(size)} on average. Each waits until the "
        f"storage has its bytes. Writes of {LARGE // MiB} MiB and one fsync make the closed file as safe.",
        confidence=0.75,
        touched_s=spent,
        recommended={"open_flags": "without O_SYNC and O_DSYNC", "flushes": "once per file", "request_bytes": LARGE},
        current={"writes": writes, "write_bytes": size},
        evidence=group.figures("path", "synchronous_writes", "io.ops.write", "io.time_s.write"),
        # The cost of waiting once without the bytes that it waits for is unknown; half is assumed.
        gain=Gain.at_best(
            "write_time_s",
            spent,
            after=spent * (1 + once / writes) / 2,
            best=spent * once / writes,
            method=f"the program waits {format_count(once)} times instead of {format_count(writes)}, half of the time "
            "is saved; low: it waits only for the bytes, high: only for the number of writes",
        ),
        precedes=frozenset({"request-size"}),
        apply=f"in the program: open without O_SYNC and O_DSYNC, collect {LARGE} bytes, write them, and call "
        "fsync(fd)\n  once, right before close(fd); where each record must survive a crash, put several records in "
        "one write",
    )
