"""POS010: a program that flushes after each write, or waits for flushing most of its I/O time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.commands import Language, code_lines, comment, language_of
from vani.advisors.data_files import (
    Item,
    alike,
    by_folder,
    data_files,
    files_of,
    folder_of,
    is_journal,
    listed,
    target_of,
    wall_s,
)
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Value, Verdict
from vani.models.run_time import cost_s, seconds
from vani.models.small_io import LARGE
from vani.units import MiB, format_bytes, format_count, format_seconds, format_share

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
    name = "frequent-flushes"
    family = "posix"
    needs = ("files",)
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
            return self.nothing("no file that is read or written is flushed")
        databases = _databases(flushed)
        # A database flushes for each commit, so fewer flushes need fewer commits.
        others = [item for item in flushed if item not in databases]
        often = [item for items in alike(others) if self._is_often(items) for item in items]
        findings = [
            _after_each_write(app, folder, items)
            for app, folder, items in by_folder(often, profile)
            if _flushes(items) >= self.min_flushes
        ]
        known = {path for stats in findings for path in stats.files}
        rest: defaultdict[str, list[Item]] = defaultdict(list)
        for item in flushed:
            if item.file.path not in known and item.file.io.time_s.sync is not None:
                rest[item.file.apps[0] if item.file.apps else ""].append(item)
        for app in profile.apps:
            if (items := rest[app.name]) and self._is_bound(items, app, profile):
                of_databases = [item for item in items if item in databases]
                if not any(is_journal(item.file.path) for item in of_databases):
                    of_databases = []
                plain = [item for item in items if item not in of_databases]
                findings += [_commits(app, of_databases, profile)] if of_databases else []
                findings += [_bound(app, plain)] if _flushes(plain) >= self.min_flushes else []
        if findings:
            return findings
        if any(item.file.io.time_s.sync is None for item in flushed):
            return self.nothing(
                f"files are flushed {format_count(_flushes(flushed))} times, {self._few(flushed)}, and the time of "
                "flushes is counted as write time"
            )
        return self.nothing(self._why_not(flushed, profile))

    def _why_not(self, flushed: list[Item], profile: Profile) -> str:
        """The reason for no finding: how many flushes there are and how little time they take."""
        flushes = _flushes(flushed)
        if flushes < self.min_flushes:
            return f"files are flushed {format_count(flushes)} times: fewer than {self.min_flushes:g}"
        total = seconds(profile.workflow.io.time_s.total)
        taken = sum(seconds(item.file.io.time_s.sync) for item in flushed)
        share = format_share(min(1.0, taken / total) if total else None)
        needed = f"{format_share(self.min_time)} of an app's I/O time and {format_share(self.min_run)} of its run"
        return (
            f"{format_count(flushes)} flushes, {self._few(flushed)}, take {share} of the I/O time, "
            f"{format_seconds(taken)} over all processes: a finding needs {needed}"
        )

    def _few(self, flushed: list[Item]) -> str:
        if _flushes(flushed) <= files_of(flushed):
            return "at most one for each file"
        return f"fewer than {self.min_per_write:g} to a write"

    def _is_often(self, items: list[Item]) -> bool:
        writes = sum(item.file.io.ops.write * item.part.writes for item in items)
        # The recommendation itself is one flush per file.
        flushes, files = _flushes(items), files_of(items)
        return writes > files and flushes > files and flushes >= self.min_per_write * writes

    def _is_bound(self, items: list[Item], app: App, profile: Profile) -> bool:
        if _flushes(items) < self.min_flushes:
            return False
        total = seconds(app.io.time_s.total)
        flushing = sum(seconds(item.file.io.time_s.sync) * item.part.time for item in items)
        run = app.runtime_s or profile.workflow.runtime_s or 0.0
        return flushing >= self.min_time * total > 0 and _spent(items, app) >= self.min_run * run > 0


def _spent(items: list[Item], app: App | None) -> float:
    """Seconds of the run that flushing these files costs, including writes if the source counts both together."""
    io = [item.file.io for item in items]
    if _is_hidden(items):
        return cost_s(io, sum(item.file.writers for item in items), app, "write")
    time, flushing = (
        sum(seconds(stats.time_s.total) for stats in io),
        sum(seconds(stats.time_s.sync) for stats in io),
    )
    users = sum(item.file.writers for item in items)
    share = flushing / time if time else 0.0
    if app is None or all(item.part.time <= 1 for item in items):
        return cost_s(io, users, app, "total") * share
    return wall_s(items, app, "total") * share


def _is_hidden(items: list[Item]) -> bool:
    """True if the time of some flushes is included in that of writes."""
    return any(item.file.io.time_s.sync is None for item in items)


def _flushes(items: list[Item]) -> int:
    return round(sum((item.file.io.ops.sync or 0) * item.part.flushes for item in items))


_APART = (
    " The time of flushes is counted as write time: for an expected gain, trace the calls (DXT of Darshan: "
    "DXT_ENABLE_IO_TRACE=1; or Recorder)."
)


def _after_each_write(app: App | None, folder: str, items: list[Item]) -> Finding:
    flushes = _flushes(items)
    writes = round(sum(item.file.io.ops.write * item.part.writes for item in items))
    written = sum((item.file.io.bytes.written or 0) * item.part.written for item in items)
    spent = _spent(items, app)
    once = min(flushes, round(sum(max(1, item.file.writers) * item.part.files for item in items)))
    gain = None
    hidden = _is_hidden(items)
    if spent and not hidden:
        gain = Gain(
            metric="sync_time_s",
            before_s=spent,
            # The cost of a flush without the bytes that it waits for is unknown; half is assumed.
            after_s=spent * (1 + once / flushes) / 2,
            best_s=spent * once / flushes,
            worst_s=spent,
            method=f"{format_count(once)} flushes instead of {format_count(flushes)}, half of their time is saved; "
            "low: flushing waits only for the bytes, high: only for the number of flushes",
        )
    current: dict[str, Value] = {
        "flushes_per_write": flushes / writes,
        "write_bytes": round(written / writes),
    }
    return Finding(
        target=target_of(folder, items, app),
        reason=f"{format_count(flushes)} flushes for {format_count(writes)} writes to "
        f"{listed(folder, items, app)}, {format_bytes(round(written / writes))} on average, "
        f"{'take, with these writes, ' if hidden else 'take '}{format_seconds(spent)} of the run. "
        f"Each flush waits until the data is on disk. Requests of {LARGE // MiB} MiB and "
        "one flush before the file is closed are as safe."
        + (_APART if hidden else ""),
        confidence=0.6,
        touched_s=spent,
        recommended={"flushes": "once per file", "request_bytes": LARGE},
        current=current,
        evidence=_evidence(items),
        gain=gain,
        apply=comment(
            f"in the program: collect {LARGE} bytes, write them, and call fsync(fd) once, right before close(fd);\n"
            "  where each record must survive a crash, write the records of several steps with one flush"
        ),
        files=frozenset(item.file.path for item in items),
    )


def _bound(app: App, items: list[Item]) -> Finding:
    io = [item.file.io for item in items]
    flushes, spent = _flushes(items), _spent(items, app)
    time = sum(seconds(stats.time_s.total) for stats in io)
    share = sum(seconds(stats.time_s.sync) for stats in io) / time if time else None
    current: dict[str, Value] = {"flush_share": share, "flushes": flushes}
    return Finding(
        target=Target("app", None, app.name),
        reason=f"Flushing {format_count(files_of(items))} file{'s' if files_of(items) > 1 else ''} of {app.name} takes "
        f"{format_share(share)} of the I/O time on them, "
        f"{format_seconds(spent)} of the run, in {format_count(flushes)} flushes: the program waits until the disks "
        "have the bytes. Storage near the nodes takes them sooner, and a copy in the background brings them where they "
        "belong. What that gains is not known: measure one run with the files there.",
        confidence=0.6,
        touched_s=spent,
        recommended={"flushes": "on storage near the nodes, or in the background"},
        current=current,
        evidence=_evidence(items),
        apply=comment(
            "in the program: write and flush on node-local storage that survives a failure of the job, and copy from\n"
            "  there in the background (SCR, VeloC, stage-out of a burst buffer); or flush in a thread while the next\n"
            "  step computes, and wait for it before the next output"
        ),
        files=frozenset(item.file.path for item in items),
    )


def _databases(items: list[Item]) -> set[Item]:
    """SQLite journals, their databases, and their folders, which are flushed with a journal."""
    journals = {item.file.path for item in items if is_journal(item.file.path)}
    paths = journals | {_database(path) for path in journals} | {folder_of(path) for path in journals}
    return {item for item in items if item.file.path in paths}


def _database(journal: str) -> str:
    return journal.rpartition("-")[0]


def _commits(app: App, items: list[Item], profile: Profile) -> Finding:
    flushes, spent = _flushes(items), _spent(items, app)
    journals = [item for item in items if is_journal(item.file.path)]
    names = dict.fromkeys(_database(item.file.path) for item in journals)
    busiest = max(journals, key=lambda item: item.file.io.ops.sync or 0)
    where = f"the database {next(iter(names))}" if len(names) == 1 else f"{format_count(len(names))} databases"
    gain = None
    if spent and not _is_hidden(items):
        gain = Gain(
            metric="sync_time_s",
            before_s=spent,
            after_s=spent * (1 + 1 / _CHANGES) / 2,
            best_s=spent / _CHANGES,
            worst_s=spent,
            method=f"{_CHANGES} changes to a commit: high, as many times fewer flushes; middle, half of their time "
            "stays for more bytes in each; low: the program commits as often as it can",
        )
    current: dict[str, Value] = {"flushes": flushes}
    return Finding(
        target=Target("app", None, app.name),
        reason=f"{app.name} commits changes of {where} one by one: {format_count(flushes)} flushes take "
        f"{format_seconds(spent)} of the run, since each commit waits until it is on disk. Many changes in one "
        "transaction need one flush.",
        confidence=0.6,
        touched_s=spent,
        recommended={"flushes": "one transaction for many changes"},
        current=current,
        evidence=_evidence(items),
        gain=gain,
        apply=[
            *code_lines(_TRANSACTIONS, language_of(app, profile)),
            *comment(
                ("" if busiest.file.path.endswith("-wal") else _WAL)
                + "or keep the database on storage near the node while the program runs"
            ),
        ],
        files=frozenset(item.file.path for item in items),
    )


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


def _evidence(items: list[Item]) -> list[Evidence]:
    return [
        entry
        for item in items[:3]
        for entry in (
            Evidence(f"{item.where}.path", item.file.path),
            Evidence(f"{item.where}.io.ops.sync", item.file.io.ops.sync),
            Evidence(f"{item.where}.io.ops.write", item.file.io.ops.write),
            Evidence(f"{item.where}.io.time_s.sync", item.file.io.time_s.sync),
        )
    ]
