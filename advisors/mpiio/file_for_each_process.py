"""MIO006: many processes each make a small file, where collective calls would fill one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors import data_files
from vani.advisors.rule import Answer, Finding, Rule, Target, Verdict, figures
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
        apps = enumerate(profile.apps)
        answers = (answer for number, app in apps for answer in self._answers(number, app, profile))
        return self.among(answers, "there is no app", most=3)

    def _answers(self, number: int, app: App, profile: Profile) -> list[Answer]:
        if why := self._objection(app):
            return [why]
        folders: defaultdict[str, list[data_files.Item]] = defaultdict(list)
        for item in data_files.posix_items(profile):
            file = item.file
            if file.apps == [app.name] and file.access == "file_per_process" and file.writers:
                folders[data_files.folder_of(file.path)].append(item)
        groups = [data_files.Group(app, folder, items) for folder, items in folders.items()]
        findings: list[Answer] = [self._finding(number, app, group) for group in groups if self._pays(group)]
        return findings or [f"creating files takes little of the time on files of {app.name}, or they are large"]

    def _objection(self, app: App) -> str | None:
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
        return None

    def _pays(self, group: data_files.Group) -> bool:
        """True if the files are small and many, and creating them takes a large part of their time."""
        time = group.seconds("io.time_s.total")
        if len(group.items) < 2 or not time or _creating_s(group) < self.min_share * time:
            return False
        return group.total("io.bytes.written") <= self.max_bytes * len(group.items)

    def _finding(self, number: int, app: App, group: data_files.Group) -> Finding:
        share = _creating_s(group) / group.seconds("io.time_s.total")
        mean, own = group.total("io.bytes.written") // len(group.items), app.files.file_per_process
        return Finding(
            target=Target("directory", group.folder, app.name),
            reason=f"{format_count(app.processes)} processes of {app.name} use {format_count(own)} files of one each, "
            f"those listed of {group.folder} with {format_bytes(mean)} on average. Opens, closes and stats take "
            f"{format_share(share)} of their I/O time. Collective calls fill one file for all. What an open of one "
            "file by all processes costs is not known: supply the time of a run with it.",
            confidence=0.5,
            touched_s=group.metadata_s(data_files.SERVED),
            recommended={"files": 1, "writes": "collective"},
            current={"files_of_one_process": own, "bytes_per_file": mean},
            evidence=[
                *figures(app, f"apps[{number}]", "processes", "files.file_per_process"),
                *group.figures("path", "io.bytes.written", "io.time_s.metadata"),
            ],
            apply="in the program, instead of a file for each process (the hint joins parts that do not interleave):\n"
            '  MPI_Info_set(info, "romio_cb_write", "enable");\n'
            "  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);\n"
            "  MPI_File_write_at_all(file, offset_of_this_rank, part, count, MPI_DOUBLE, &status);",
            files=group.paths,
        )


def _creating_s(group: data_files.Group) -> float:
    return data_files.time_of([item.io for item in group.items], data_files.SERVED)
