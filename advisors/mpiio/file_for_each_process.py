"""MIO006: many processes each make a small file, where collective calls would fill one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import (
    MAY_INCLUDE_FLUSHING,
    SERVED,
    Item,
    data_files,
    folder_of,
    may_include_flushing,
    metadata_s,
    time_of,
)
from vani.advisors.rule import Evidence, Finding, Rule, Target, Value, Verdict
from vani.models.run_time import seconds
from vani.units import MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


class FileForEachProcess(Rule):
    """A parallel program writes a small file for each process, and making them takes a large part of the time on them.

    Looks at
        Apps of at least `min_processes` processes in one run, at least `min_files` of which write, with at least as
        many files that one process each uses. Of a folder's written files, with at most `max_bytes` each on average:
        the share of their I/O time in opens, closes and stats, at least `min_share`.
    Why
        A metadata server makes the files of one folder one after another, and small ones are finished before their
        targets are busy. Programs that read them later must open as many.
    Recommends
        One file that all processes write by collective calls (`MPI_File_write_at_all`, parallel HDF5, PnetCDF), or
        one for each node.
    Stays silent when
        Few processes write together; they share files already, or use MPI-IO; files are large, where a file for each
        process is as fast as it gets; making them takes little of their time.
    Source
        Vani paper, table I and section IV (HACC's file for each process: half of its time is metadata). IO500's
        ior-easy: large files for each process are the fastest there is.
    Example
        4,096 processes write 200 kB each: 90 % of the time is in making 4,096 files.

            sprintf(name, "out.%d", rank); fd = creat(name, 0644); write(fd, part, n);    // before
            MPI_File_open(comm, "out", mode, info, &file);    // after
            MPI_File_write_at_all(file, (MPI_Offset)rank * n, part, n, MPI_BYTE, &status);
    """

    id = "MIO006"
    name = "file-for-each-process"
    family = "mpiio"
    needs = ("files",)
    settles = ""
    sources = ("Vani paper, table I",)

    # Our choice: fewer creates of 0.1 to 1 ms each are not noticed.
    min_processes = 64
    # Our choice: half of the processes.
    min_files = 0.5
    # Our choice, as in POS001: on any file system, writing larger files takes longer than creating them.
    max_bytes = 64 * MiB
    # Our choice, as in POS003: a smaller share of metadata is not what makes I/O slow.
    min_share = 0.25

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        findings: list[Finding] = []
        reasons: list[str] = []
        for number, app in enumerate(profile.apps):
            why = self._objection(app, profile)
            if why is not None:
                reasons.append(why)
                continue
            folders: defaultdict[str, list[Item]] = defaultdict(list)
            for item in data_files(profile, lambda file: file.interface in (None, "posix", "stdio")):
                file = item.file
                if file.apps == [app.name] and file.access == "file_per_process" and file.writers:
                    folders[folder_of(file.path)].append(item)
            groups = [(folder, items) for folder, items in folders.items() if self._pays(items)]
            findings += [self._finding(number, app, folder, items) for folder, items in groups]
            if not groups:
                reasons.append(
                    f"creating files takes little of the time on files of {app.name}, or they are large"
                )
        return self.verdict(findings, list(dict.fromkeys(reasons))[:3] or ["there is no app"])

    def _objection(self, app: App, profile: Profile) -> str | None:
        processes = app.processes // max(1, app.instances)
        if processes < self.min_processes:
            return f"runs of {app.name} have fewer than {format_count(self.min_processes)} processes"
        if app.files.file_per_process is None:
            return "files of one process each are not known; supply a trace with all opens"
        if app.files.file_per_process < self.min_files * processes:
            return f"the processes of {app.name} share their files"
        writing = app.balance.writing_processes if app.balance is not None else 0
        if writing < self.min_files * processes:
            return f"{format_count(writing)} of the {format_count(processes)} processes of {app.name} write"
        if may_include_flushing(profile, app.name):
            return MAY_INCLUDE_FLUSHING
        return None

    def _pays(self, items: list[Item]) -> bool:
        """True if the files are small and many, and creating them takes a large part of their time."""
        io = [item.file.io for item in items]
        time = sum(seconds(stats.time_s.total) for stats in io)
        if len(items) < 2 or not time or time_of(io, SERVED) < self.min_share * time:
            return False
        return sum(stats.bytes.written or 0 for stats in io) <= self.max_bytes * len(items)

    def _finding(self, number: int, app: App, folder: str, items: list[Item]) -> Finding:
        io = [item.file.io for item in items]
        share = time_of(io, SERVED) / sum(seconds(stats.time_s.total) for stats in io)
        mean = sum(stats.bytes.written or 0 for stats in io) // len(items)
        own = app.files.file_per_process
        current: dict[str, Value] = {"files_of_one_process": own, "bytes_per_file": mean}
        return Finding(
            target=Target("directory", folder, app.name),
            reason=f"{format_count(app.processes)} processes of {app.name} use {format_count(own)} files of one each, "
            f"those listed of {folder} with {format_bytes(mean)} on average. Opens, closes and stats take "
            f"{format_share(share)} of their I/O time. Collective calls fill one file for all. What an open of one "
            "file by all processes costs is not known: supply the time of a run with it.",
            confidence=0.5,
            touched_s=metadata_s(items, app, SERVED),
            recommended={"files": 1, "writes": "collective"},
            current=current,
            evidence=[
                Evidence(f"apps[{number}].processes", app.processes),
                Evidence(f"apps[{number}].files.file_per_process", own),
                *(
                    entry
                    for item in items[:3]
                    for entry in (
                        Evidence(f"{item.where}.path", item.file.path),
                        Evidence(f"{item.where}.io.bytes.written", item.file.io.bytes.written),
                        Evidence(f"{item.where}.io.time_s.metadata", item.file.io.time_s.metadata),
                    )
                ),
            ],
            apply=comment(
                "in the program, instead of a file for each process:\n"
                "  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);\n"
                "  MPI_File_write_at_all(file, offset_of_this_rank, part, count, MPI_DOUBLE, &status);"
            ),
            files=frozenset(item.file.path for item in items),
        )
