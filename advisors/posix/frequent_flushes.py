"""POS010: a program that flushes its files again and again, or waits for flushing most of its I/O time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.data_files import Group, Item, alike, by_folder, data_files, files_of, is_recreated
from vani.advisors.rule import Finding, Gain, Rule, Target, Verdict
from vani.models.run_time import cost_s, seconds
from vani.models.savings import LARGE
from vani.units import MiB, counted, format_bytes, format_count, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


class FrequentFlushes(Rule):
    """The program flushes its files again and again, or waits for flushing most of its I/O time.

    Looks at
        The files of one folder, or of one app: flushes (`fsync`, `fdatasync`, `msync` and similar), and their share of
        the I/O time.
    Why
        A flush waits until all servers have the bytes on disk. Nothing else happens meanwhile, and data that caches on
        the way would merge into large requests goes out in small ones. One flush at the end of a file is as safe for
        readers of the complete file.
    Recommends
        If there are `min_per_write` flushes per write, or each writer flushes a file `min_flushes` times, at most
        `max_bytes` each, or mapped memory `min_mapped` times: write pieces of 4 MiB, and flush once, before the file is
        closed, or once for several steps; for a database, one transaction for many changes. If the source counts the
        time of flushes with that of writes, this is reported without a gain, and flushes per write decide. If files are
        flushed once already and flushing `min_bytes` or more still takes `min_time` of the I/O time: write them to
        storage near the nodes that survives a failure and copy them in the background (BB003), or flush in a thread
        while the program computes.
    Stays silent when
        Nothing is flushed, or rarely.
    Source
        fsync(2); Lustre manual, section on `sync` and commit on share; SQLite FAQ, question 19. A benchmark that
        flushes to measure storage (IOR -e) has to.
    Example
        Four threads write 64 KiB and call `fsync`, eight times each: 82 % of the I/O time is flushing:

            for (...) { write(fd, record, n); fsync(fd); }        // before
            for (...) write(fd, record, n);  fsync(fd);           // after

            H5Dwrite(...);  H5Fflush(file, H5F_SCOPE_GLOBAL);     // before, for each of 6 data sets
            for (...) H5Dwrite(...);  H5Fflush(...);              // after, once for a step

            for row in rows: db.execute(insert, row); db.commit()   # before: SQLite
            with db: db.executemany(insert, rows)                   # after
    """

    id = "POS010"
    settles = "flush"
    sources = ("fsync(2)",)

    # Our choice: two writes per flush are a log, more are a block. Where times are known, they decide.
    min_per_write = 0.5
    # Our choice: fewer flushes are headers and trailers.
    min_flushes = 8
    # Our choice, as for the pattern: fewer are the ends of steps.
    min_mapped = 100
    # Our choice: a flush of more waits for the bytes, as the last one would.
    max_bytes = 64 * MiB
    # Our choice: most of the I/O time, and more than a database or a log.
    min_time = 0.5
    min_bytes = 16 * MiB  # see min_time

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        mapped = {path for entry in profile.unseen or () if entry.kind == "memory_mapped" for path in entry.files}
        # A folder is flushed with the files in it.
        flushed = data_files(profile, lambda f: bool(f.io.ops.sync and (f.writers or f.path in mapped)))
        if not flushed:
            return "no file that is written or mapped is flushed"
        often = [item for items in alike(flushed) if not self._why_rare(Group(None, "", items)) for item in items]
        findings = [_often(group) for group in by_folder(often, profile)]
        known = {path for finding in findings for path in finding.files}
        rest: defaultdict[str, list[Item]] = defaultdict(list)
        for item in flushed:
            if item.path not in known and item.io.time_s.sync is not None:
                rest[item.file.apps[0] if item.file.apps else ""].append(item)
        for app in profile.apps:
            group = Group(app, "", rest[app.name])
            if not findings and group.items and self._is_bound(group, app):
                findings.append(_bound(app, group))
        return findings or self._why_not(Group(None, "", flushed), profile)

    def _why_not(self, flushed: Group, profile: Profile) -> str:
        """The reason for no finding: how many flushes there are and how little time they take."""
        rare = dict.fromkeys(self._why_rare(Group(None, "", items)) for items in alike(flushed.items))
        few = f"files are flushed {format_count(_flushes(flushed))} times, {' or '.join(rare)}"
        if _is_hidden(flushed):
            return f"{few}, and the time of flushes is counted as write time"
        total, taken = seconds(profile.workflow.io.time_s.total), flushed.scaled("io.time_s.sync", "time")
        return f"{few}: {format_share(min(1.0, taken / total) if total else None)} of the I/O time"

    def _why_rare(self, group: Group) -> str:
        """Why these files are not flushed again and again; empty if they are."""
        flushes, writes = _flushes(group), group.scaled("io.ops.write", "writes")
        if not any(item.file.writers for item in group.items):
            # Stores in mapped memory are no calls, and some come before each flush (msync).
            mapped = f"fewer than {format_count(int(self.min_mapped))} times, of mapped memory"
            return mapped if flushes < self.min_mapped else ""
        by_writer = "" if _is_hidden(group) else f"fewer than {self.min_flushes:g} times by each writer and "
        few = min(self.min_per_write * writes, self.min_flushes * group.writers if by_writer else writes)
        reasons = {
            # The recommendation itself is one flush per file.
            "at most once each": flushes <= files_of(group.items),
            "written at most once each": writes <= files_of(group.items),
            f"fewer than {self.min_flushes:g} times": flushes < self.min_flushes,
            f"each time for more than {self.max_bytes / MiB:g} MiB": group.scaled("io.bytes.written", "written")
            > self.max_bytes * flushes,
            f"{by_writer}less than once per {1 / self.min_per_write:g} writes": flushes < few,
        }
        return next((reason for reason, met in reasons.items() if met), "")

    def _is_bound(self, group: Group, app: App) -> bool:
        taken = group.scaled("io.time_s.sync", "time")
        if group.scaled("io.bytes.written", "written") < self.min_bytes:
            return False
        return _flushes(group) >= self.min_flushes and taken >= self.min_time * seconds(app.io.time_s.total) > 0


def _spent(group: Group) -> float:
    """Seconds of the run that flushing these files costs, including writes if the source counts both together."""
    io, writers = [item.io for item in group.items], sum(item.file.writers for item in group.items)
    if _is_hidden(group):
        return cost_s(io, writers, group.app, "write")
    if group.app is None or all(item.part.time <= 1 for item in group.items):
        return cost_s(io, writers, group.app, "total") * (_share(group) or 0.0)
    return group.wall_s("total") * (_share(group) or 0.0)


def _share(group: Group) -> float | None:
    """Share of flushing in the I/O time of the files; None without I/O time."""
    time, flushing = group.seconds("io.time_s.total"), group.seconds("io.time_s.sync")
    return flushing / time if time else None


def _is_hidden(group: Group) -> bool:
    """True if the time of some flushes is included in that of writes."""
    return any(item.io.time_s.sync is None for item in group.items)


def _flushes(group: Group) -> int:
    return round(group.scaled("io.ops.sync", "flushes"))


_APART = (
    " The time of flushes is counted as write time: for an expected gain, trace the calls (DXT of Darshan: "
    "DXT_ENABLE_IO_TRACE=1; or Recorder)."
)


def _often(group: Group) -> Finding:
    flushes, writes = _flushes(group), round(group.scaled("io.ops.write", "writes"))
    size = round(group.scaled("io.bytes.written", "written") / writes) if writes else None
    of = f"for {format_count(writes)} writes to {group.words}, {format_bytes(size)} on average,"
    if not writes:
        of = f"of {group.words}, which the program maps into memory,"
    spent, once, hidden = _spent(group), min(flushes, group.writers), _is_hidden(group)
    # The cost of a flush without the bytes that it waits for is unknown; half is assumed.
    gain = Gain.at_best(
        "sync_time_s",
        spent,
        after=spent * (1 + once / flushes) / 2,
        best=spent * once / flushes,
        method=f"{format_count(once)} flushes instead of {format_count(flushes)}, half of their time is saved; "
        "low: flushing waits only for the bytes, high: only for the number of flushes",
    )
    return Finding(
        **group.affected,
        reason=f"{format_count(flushes)} flushes {of} {'take, with these writes, ' if hidden else 'take '}"
        f"{format_seconds(spent)} of the run. Each flush waits until the data is on disk." + (_APART if hidden else ""),
        advice=f"Requests of {LARGE // MiB} MiB and one flush before the file is closed keep the closed file as safe."
        if writes
        else "One for many records, or before the mapping ends, keeps the closed file as safe.",
        confidence=0.6,
        touched_s=spent,
        recommended={"flushes": "once per file", "request_bytes": LARGE},
        current={"flushes": flushes} if not writes else {"flushes_per_write": flushes / writes, "write_bytes": size},
        evidence=group.figures(*_FIGURES),
        gain=None if hidden else gain,
        precedes=frozenset({"request-size"}),
        apply="in the program: write and flush the whole file less often, after several items or seconds;\n"
        "  or append what is new to a journal, a record for each item, flushed once for several"
        if all(map(is_recreated, group.items))
        else f"in the program: collect {LARGE} bytes, write them, and call fsync(fd) once, right before close(fd);\n"
        "  where each record must survive a crash, write the records of several steps with one flush;\n"
        "  MPI-IO: MPI_File_sync(file) after several steps, or MPI_File_close alone"
        if writes
        else "in the program: msync(address, length, MS_SYNC) once for many records (numpy.memmap: one flush())\n"
        "  or MS_ASYNC, which starts writing and does not wait; what a crash may lose then is what was not yet written",
    )


def _bound(app: App, group: Group) -> Finding:
    flushes, spent, share = _flushes(group), _spent(group), _share(group)
    return Finding(
        target=Target("app", None, app.name),
        reason=f"Flushing {counted(files_of(group.items), 'file')} of {app.name} takes {format_share(share)} of the "
        f"I/O time on them, {format_seconds(spent)} of the run, in {format_count(flushes)} flushes: the program waits "
        "until the disks have the bytes. Storage near the nodes takes them sooner, and a copy in the background brings "
        "them where they belong. What that gains is not known: measure one run with the files there.",
        confidence=0.6,
        touched_s=spent,
        recommended={"flushes": "on storage near the nodes, or in the background"},
        current={"flush_share": share, "flushes": flushes},
        evidence=group.figures(*_FIGURES),
        apply="in the program: write and flush on node-local storage that survives a failure of the job, and copy "
        "from\n  there in the background (SCR, VeloC, stage-out of a burst buffer); or flush in a thread while the "
        "next\n"
        "  step computes, and wait for it before the next output",
        files=group.paths,
    )


_FIGURES = ("path", "io.ops.sync", "io.ops.write", "io.time_s.sync")
