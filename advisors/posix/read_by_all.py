"""POS001: a small file that every process reads for itself."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import TYPE_CHECKING

from vani.advisors.commands import Language, comment, language_of, quoted_path, text_literal
from vani.advisors.data_files import Item, is_software, only
from vani.advisors.rule import Finding, Gain, Rule, Verdict, known_figures
from vani.models.run_time import of_files_s, seconds
from vani.models.savings import broadcast_s
from vani.units import MiB, format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import App, FileEntity, Profile
    from vani.schema.system import System


class ReadByAll(Rule):
    """A small file is opened and read by all processes, where one could read it for all.

    Looks at
        Shared files that at most one process writes, and that are read by at least `min_share` of the processes of the
        apps that use it and by at least `min_readers`. At most `max_bytes` of a file are touched, and repeatedly: the
        processes request the distinct bytes at least `min_share` times as often as there are processes.
    Why
        The metadata server and the one target with the file answer every process in turn, while the run
        waits for the last of them. Their time grows with the number of processes; a broadcast's grows with
        its logarithm.
    Recommends
        Read the file on one process and broadcast it. If the program cannot be changed, copy the file to the node's
        storage before the program starts, and name that copy.
    Stays silent when
        No file is read by all processes; those that are have more than `max_bytes`, or are more than
        `max_files` of one folder (staging, not broadcast); each process reads its own part; several
        processes write it, too; few small requests read it; the readers are runs of serial programs, which cannot
        send to each other.
    Source
        Vani paper, section IV (CM1: a configuration read by all 1,280 processes). Broadcast: Thakur,
        Rabenseifner and Gropp 2005, section 4.3.
    Example
        1,280 processes of CM1 open `namelist.input` and read the same 16 MiB each: if rank 0 reads it and MPI_Bcast
        sends it, 1,279 opens are saved.

            read_namelist("namelist.input", &list);    // before: on every process
            if (rank == 0) read_namelist("namelist.input", &list);    // after
            MPI_Bcast(&list, sizeof list, MPI_BYTE, 0, comm);
    """

    id = "POS001"
    settles = "reading"
    sources = ("Vani paper, section IV", "Thakur, Rabenseifner and Gropp 2005, section 4.3")

    # With fewer readers, a broadcast saves less than three of four reads and is not worth a change of the program.
    min_readers = 4
    # Nearly all: in CM1's real trace, 1,279 of 1,280 processes open a file.
    min_share = 0.9
    # 40 processes per node, each with a copy, take 4 % of Lassen's 256 GB per node (Vani paper, table VIII).
    max_bytes = 256 * MiB
    # More files in a folder are samples to read one after another, not a configuration that all processes need at
    # once. CM1 has one file, its mini-app two (general knowledge: programs have a handful).
    max_files = 16
    # As in HD5002: fewer opens and reads are not worth a change, unless they move more than one request of Lustre.
    min_operations = 100
    min_bytes = MiB  # see min_operations
    # Bytes per second of a broadcast without a description of the network: slower than any machine in the papers.
    network_rate = 1_000_000_000

    def check(self, profile: Profile, system: System) -> Verdict:
        apps = {app.name: app for app in profile.apps}
        read_by_all = [
            Item(index, file)
            for index, file in enumerate(profile.files)
            if file.access == "shared"
            and not is_software(file.path)
            and file.readers >= self.min_readers
            and file.writers <= 1
            and self._can_broadcast(file, apps)
            and file.readers >= self.min_share * _processes(file, apps, profile)
        ]
        if not read_by_all:
            return "no file is read by all processes of a parallel app and written by one at most"
        known = [i for i in read_by_all if _distinct(i.file) is not None and i.io.bytes.read is not None]
        if not known:
            return "files[].io.footprint.read of the files that all read is not known; supply a trace with offsets"
        small = [item for item in known if 0 < (_distinct(item.file) or 0) <= self.max_bytes]
        if not small:
            return f"no file that all processes read has {format_bytes(self.max_bytes)} or less: too much to broadcast"
        again = [item for item in small if self._is_redundant(item.file)]
        if not again:
            return "the processes read different parts of the files that they share"
        per_folder = Counter(posixpath.dirname(item.path) for item in again)
        few = [item for item in again if per_folder[posixpath.dirname(item.path)] <= self.max_files]
        if not few:
            return f"the {len(again)} files that all processes read are a data set: to be staged, not broadcast"
        findings = [self._finding(item, profile, system) for item in few if self._is_much(item.file)]
        return findings or f"{format_count(len(few))} files are read by all processes, in few and small requests"

    def _can_broadcast(self, file: FileEntity, apps: dict[str, App]) -> bool:
        """True if the readers belong to a run with enough processes."""
        runs = [app.processes // max(1, app.instances) for name in file.apps if (app := apps.get(name))]
        return max(runs, default=int(self.min_readers)) >= self.min_readers

    def _is_much(self, file: FileEntity) -> bool:
        return file.opens + file.io.ops.read >= self.min_operations or (file.io.bytes.read or 0) >= self.min_bytes

    def _is_redundant(self, file: FileEntity) -> bool:
        requested = file.io.bytes.read or 0
        return requested >= self.min_share * file.readers * (_distinct(file) or 0)

    def _finding(self, item: Item, profile: Profile, system: System) -> Finding:
        file, size = item.file, _distinct(item.file) or 0
        spent = of_files_s([file], profile, "total")
        likely = "" if file.io.footprint.read is not None else "presumably "
        return Finding(
            **only(file),
            reason=f"All {format_count(file.readers)} processes read {likely}the same {format_bytes(size)} of "
            f"{file.path}: together {format_bytes(file.io.bytes.read or 0)} and {format_count(file.opens)} opens, "
            f"{format_seconds(file.io.time_s.total)} summed over the processes. One of them can read it and "
            "send it to the others.",
            confidence=0.5 if file.io.footprint.read is None else 0.8,
            touched_s=spent,
            recommended={"readers": 1, "then": "broadcast"},
            current={"readers": file.readers, "opens": file.opens},
            evidence=[
                *item.figures("path", "readers", "opens", "io.bytes.read"),
                *known_figures(file, item.where, "io.footprint.read"),
                *item.figures("io.busy_s.total", "io.time_s.total"),
            ],
            gain=self._gain(file, size, spent, system)
            or "supply a rate per target or per server, as one process alone reads it (--system; "
            "`vani systems detect --measure`)",
            apply=_commands(file, size, system, language_of(None, profile)),
            # The lines include a copy on each node.
            removes=frozenset({"location"}), precedes=frozenset({"opening", "request-size"}),
        )

    def _gain(self, file: FileEntity, size: int, spent: float, system: System) -> Gain | None:
        """Seconds until the last process has the file.

        Before: the run's time for opening and reading it, because all processes wait for the last, or a process's mean
        if they read at different times. After: the time of one process alone plus the broadcast. Alone, it takes the
        bytes at the rate of one target plus opening, at most the mean of a process.
        """
        busy, mean = seconds(file.io.busy_s.total), seconds(file.io.time_s.total) / file.readers
        disk = system.file_system_for(file.path) or next(iter(system.file_systems), None)
        rate = (disk.bandwidth_per_target.read or disk.bandwidth_per_server.read) if disk else None
        if not rate or not busy:
            return None
        # True for a single burst, in which accesses are no farther apart than they are long.
        together = seconds(file.last_s) - seconds(file.first_s) <= 2 * busy
        before = spent if together else min(spent, mean)
        network = system.network.bandwidth_per_node or float(self.network_rate)
        sending = broadcast_s(size, file.readers, network)
        # Opening costs at most the mean over processes, which includes waiting for the others.
        metadata = seconds(file.io.time_s.metadata) / file.readers
        alone, best = min(mean, size / rate + metadata), min(before, size / rate + sending)
        method = (
            "until the last process has the file: "
            + ("the time in which it is opened and read" if together else "the mean time of a process")
            + ", against one process alone and a broadcast (scatter and ring); low: no process waits for it"
        )
        return Gain("read_time_s", before, min(before, alone + sending), best, before, method)


def _processes(file: FileEntity, apps: dict[str, App], profile: Profile) -> int:
    """Number of processes of the apps that use the file. All of them could read it."""
    of_apps = [apps[name].processes for name in file.apps if name in apps]
    return sum(of_apps) if of_apps else profile.workflow.processes


def _distinct(file: FileEntity) -> int | None:
    """Distinct bytes read, at most the size of the file, because requests may reach past its end."""
    distinct = file.io.footprint.read
    if distinct is None:
        distinct = file.size or _equal_part(file)
    # A size of 0 means that no access reached the end of the file.
    return min(distinct, file.size) if distinct is not None and file.size else distinct


def _equal_part(file: FileEntity) -> int | None:
    """Bytes that each process requests, if offsets are unknown and all request the same amount; otherwise None."""
    sizes, requested = file.io.transfer_size.read, file.io.bytes.read
    if sizes is None or sizes.min is None or sizes.min != sizes.max or requested is None:
        return None
    return requested // file.readers


def _commands(file: FileEntity, size: int, system: System, language: Language | None) -> list[str]:
    name = text_literal(file.path)
    lines = comment(
        "in the program (Fortran): read on rank 0, once, send to all\n"
        "  if (rank == 0) read(unit, nml=settings)\n"
        "  call MPI_Bcast(values, count, MPI_REAL8, 0, MPI_COMM_WORLD, ierror)"
        if language == "Fortran"
        else "in the program: read on rank 0, send to all\n"
        "  if (rank == 0) {\n"
        f"    int fd = open({name}, O_RDONLY);\n"
        f"    n = read(fd, buffer, {size});  close(fd);\n"
        "  }\n"
        "  MPI_Bcast(&n, 1, MPI_LONG, 0, MPI_COMM_WORLD);\n"
        "  MPI_Bcast(buffer, n, MPI_BYTE, 0, MPI_COMM_WORLD);\n"
        "where a process needs a part alone: MPI_File_read_at_all of it, or MPI_Scatterv in place of MPI_Bcast"
    )
    near = system.node_local()
    path = quoted_path(file.path)
    if near is None or near.dir is None or path is None or "$" in near.dir:
        return lines
    copy = quoted_path(posixpath.join(near.dir, posixpath.basename(file.path)))
    if copy is None:
        return lines
    # One copy per node. Only the user knows the job's launcher.
    return [
        *lines,
        *comment(f"or without changing it, once on every node, then name the copy:\n  cp {path} {copy}"),
    ]
