"""POS010: a program that flushes after each write, or waits for flushing most of its I/O time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.commands import Language, code_lines, comment, language_of
from vani.advisors.data_files import (
    Group,
    Item,
    alike,
    by_folder,
    data_files,
    files_of,
    folder_of,
    is_journal,
)
from vani.advisors.rule import Finding, Gain, Rule, Target, Verdict
from vani.models.run_time import cost_s, seconds
from vani.models.savings import LARGE
from vani.units import MiB, counted, format_bytes, format_count, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


class FrequentFlushes(Rule):
    """The program flushes after each write, or waits for flushing most of its I/O time.

    Looks at
        The files of one folder, or of one app: flushes (`fsync`, `fdatasync`, `msync` and similar) per write, and their
        share of the I/O time and of the run.
    Why
        A flush waits until all servers have the bytes on disk. Nothing else happens meanwhile, and data that caches on
        the way would merge into large requests goes out in small ones. One flush at the end of a file is as safe for
        readers of the complete file.
    Recommends
        If there are at least `min_per_write` flushes per write, and more than one per file: write pieces of 4 MiB, and
        flush once, before the file is closed. If the source counts the time of flushes with that of writes, this is
        reported without a gain. If files are flushed once already and flushing still takes `min_time` of the I/O time
        and `min_run` of the app's run: write them to storage near the nodes that survives a failure and copy them in
        the background (BB003), or flush in a thread while the program computes. For a database: one transaction for
        many changes.
    Stays silent when
        Nothing is flushed, or rarely, or flushing takes little of the I/O time or of the run.
    Source
        fsync(2); Lustre manual, section on `sync` and commit on share; SQLite FAQ, question 19. A benchmark that
        flushes to measure storage (IOR -e) has to.
    Example
        Four threads write 64 KiB and call `fsync`, eight times each: 82 % of the I/O time is flushing:

            for (...) { write(fd, record, n); fsync(fd); }        // before
            for (...) write(fd, record, n);  fsync(fd);           // after

            for row in rows: db.execute(insert, row); db.commit()   # before: SQLite
            with db: db.executemany(insert, rows)                   # after
    """

    id = "POS010"
    settles = "flush"
    sources = ("fsync(2)",)

    # Our choice: two writes per flush are a log, more are a block.
    min_per_write = 0.5
    # Our choice: fewer flushes are headers and trailers.
    min_flushes = 8
    # Our choice: most of the I/O time.
    min_time = 0.5
    # Share of the app's run: half of the share that Xie et al. (section II) allow for all I/O.
    min_run = 0.05

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        flushed = data_files(profile, lambda file: bool(file.io.ops.sync))
        if not flushed:
            return "no file that is read or written is flushed"
        databases = _databases(flushed)
        # A database flushes for each commit, so fewer flushes need fewer commits.
        others = [item for item in flushed if item not in databases]
        often = [item for items in alike(others) if self._is_often(Group(None, "", items)) for item in items]
        findings = [
            _after_each_write(group)
            for group in by_folder(often, profile)
            if _flushes(group) >= self.min_flushes
        ]
        known = {path for finding in findings for path in finding.files}
        rest: defaultdict[str, list[Item]] = defaultdict(list)
        for item in flushed:
            if item.path not in known and item.io.time_s.sync is not None:
                rest[item.file.apps[0] if item.file.apps else ""].append(item)
        for app in profile.apps:
            group = Group(app, "", rest[app.name])
            if group.items and self._is_bound(group, app, profile):
                of_databases = group.of(item for item in group.items if item in databases)
                if not any(is_journal(path) for path in of_databases.paths):
                    of_databases = group.of([])
                plain = group.of(item for item in group.items if item not in of_databases.items)
                findings += [_commits(app, of_databases, profile)] if of_databases.items else []
                findings += [_bound(app, plain)] if _flushes(plain) >= self.min_flushes else []
        return findings or self._why_not(Group(None, "", flushed), profile)

    def _why_not(self, flushed: Group, profile: Profile) -> str:
        """The reason for no finding: how many flushes there are and how little time they take."""
        flushes = _flushes(flushed)
        few = (
            "at most one for each file"
            if flushes <= files_of(flushed.items)
            else f"fewer than {self.min_per_write:g} to a write"
        )
        if _is_hidden(flushed):
            return (
                f"files are flushed {format_count(flushes)} times, {few}, and the time of flushes is counted as write "
                "time"
            )
        if flushes < self.min_flushes:
            return f"files are flushed {format_count(flushes)} times: fewer than {self.min_flushes:g}"
        total, taken = seconds(profile.workflow.io.time_s.total), flushed.seconds("io.time_s.sync")
        share = format_share(min(1.0, taken / total) if total else None)
        needed = f"{format_share(self.min_time)} of an app's I/O time and {format_share(self.min_run)} of its run"
        return (
            f"{format_count(flushes)} flushes, {few}, take {share} of the I/O time, {format_seconds(taken)} over all "
            f"processes: a finding needs {needed}"
        )

    def _is_often(self, group: Group) -> bool:
        # The recommendation itself is one flush per file.
        flushes, files = _flushes(group), files_of(group.items)
        writes = group.scaled("io.ops.write", "writes")
        return writes > files and flushes > files and flushes >= self.min_per_write * writes

    def _is_bound(self, group: Group, app: App, profile: Profile) -> bool:
        if _flushes(group) < self.min_flushes:
            return False
        run = app.runtime_s or profile.workflow.runtime_s or 0.0
        is_most = group.scaled("io.time_s.sync", "time") >= self.min_time * seconds(app.io.time_s.total) > 0
        return is_most and _spent(group) >= self.min_run * run > 0


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


def _after_each_write(group: Group) -> Finding:
    flushes, writes = _flushes(group), round(group.scaled("io.ops.write", "writes"))
    size = round(group.scaled("io.bytes.written", "written") / writes)
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
        target=group.target,
        reason=f"{format_count(flushes)} flushes for {format_count(writes)} writes to {group.words}, "
        f"{format_bytes(size)} on average, {'take, with these writes, ' if hidden else 'take '}{format_seconds(spent)} "
        f"of the run. Each flush waits until the data is on disk. Requests of {LARGE // MiB} MiB and one flush before "
        "the file is closed are as safe." + (_APART if hidden else ""),
        confidence=0.6,
        touched_s=spent,
        recommended={"flushes": "once per file", "request_bytes": LARGE},
        current={"flushes_per_write": flushes / writes, "write_bytes": size},
        evidence=group.figures(*_FIGURES),
        gain=None if hidden else gain,
        apply=f"in the program: collect {LARGE} bytes, write them, and call fsync(fd) once, right before close(fd);\n"
        "  where each record must survive a crash, write the records of several steps with one flush",
        files=group.paths,
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


def _databases(items: list[Item]) -> set[Item]:
    """SQLite journals, their databases, and their folders, which are flushed with a journal."""
    journals = {item.file.path for item in items if is_journal(item.file.path)}
    paths = journals | {_database(path) for path in journals} | {folder_of(path) for path in journals}
    return {item for item in items if item.file.path in paths}


def _database(journal: str) -> str:
    return journal.rpartition("-")[0]


def _commits(app: App, group: Group, profile: Profile) -> Finding:
    flushes, spent = _flushes(group), _spent(group)
    journals = [item for item in group.items if is_journal(item.path)]
    names = dict.fromkeys(_database(item.path) for item in journals)
    busiest = max(journals, key=lambda item: item.io.ops.sync)
    where = f"the database {next(iter(names))}" if len(names) == 1 else f"{format_count(len(names))} databases"
    gain = Gain.at_best(
        "sync_time_s",
        spent,
        after=spent * (1 + 1 / _CHANGES) / 2,
        best=spent / _CHANGES,
        method=f"{_CHANGES} changes to a commit: high, as many times fewer flushes; middle, half of their time "
        "stays for more bytes in each; low: the program commits as often as it can",
    )
    return Finding(
        target=Target("app", None, app.name),
        reason=f"{app.name} commits changes of {where} one by one: {format_count(flushes)} flushes take "
        f"{format_seconds(spent)} of the run, since each commit waits until it is on disk. Many changes in one "
        "transaction need one flush.",
        confidence=0.6,
        touched_s=spent,
        recommended={"flushes": "one transaction for many changes"},
        current={"flushes": flushes},
        evidence=group.figures(*_FIGURES),
        gain=None if _is_hidden(group) else gain,
        apply=[
            *code_lines(_TRANSACTIONS, language_of(app, profile)),
            *comment(
                ("" if busiest.path.endswith("-wal") else _WAL)
                + "or keep the database on storage near the node while the program runs"
            ),
        ],
        files=group.paths,
    )


_FIGURES = ("path", "io.ops.sync", "io.ops.write", "io.time_s.sync")

_CHANGES = 100
"""Changes per commit: with this many, the cost of commits is negligible (SQLite FAQ, question 19)."""

_WAL = (
    "fewer flushes for each commit (SQLite): PRAGMA journal_mode=WAL, for processes of one node only; with\n"
    "  PRAGMA synchronous=NORMAL, the last commits may be lost if the node fails\n"
)

_TRANSACTIONS: dict[Language, str] = {
    "Python": (
        'before:  for row in rows: db.execute("INSERT INTO t VALUES (?, ?)", row); db.commit()\n'
        'after:   with db: db.executemany("INSERT INTO t VALUES (?, ?)", rows)'
    ),
    "C": (
        "before:  for (...) { sqlite3_step(insert);  sqlite3_reset(insert); }\n"
        'after:   sqlite3_exec(db, "BEGIN", 0, 0, 0);  for (...) { ... }  sqlite3_exec(db, "COMMIT", 0, 0, 0);'
    ),
}
