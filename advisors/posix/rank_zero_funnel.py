"""POS004: one process writes what all of them computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.advisors import movers
from vani.advisors.commands import language_of
from vani.advisors.data_files import data_files
from vani.advisors.floors import UNKNOWN_RATES
from vani.advisors.rule import Answer, Finding, Gain, Rule, Target, Value, Verdict, figures
from vani.models.run_time import seconds
from vani.models.savings import PROCESS_RATE
from vani.schema.damage import overhead_of
from vani.units import format_bytes, format_count, format_rate, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


_COLLECTIVELY: Final = (
    "in the program, instead of gathering on one process:\n"
    "  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);\n"
    "  MPI_File_write_at_all(file, offset_of_this_rank, part, count, MPI_DOUBLE, &status);"
)
_SHARED_OUT: Final = (
    "in the program: share out the files among the workers, such as file i to worker i mod n, or let each worker\n"
    "  write the part that it has (a sharded checkpoint: torch.distributed.checkpoint, DeepSpeed's parallel writer)"
)


_IN_PYTHON: Final = (
    "in the program (Python), instead of gathering on one process:\n"
    "  PyTorch:  torch.distributed.checkpoint.save(state, checkpoint_id=folder)   # in place of torch.save on rank 0\n"
    "  mpi4py:   file.Write_at_all(offset_of_this_rank, part)\n"
    "  h5py:     h5py.File(name, 'w', driver='mpio', comm=MPI.COMM_WORLD), each rank its part of the data set"
)


class RankZeroFunnel(Rule):
    """All output of an app goes through one of its processes, while the others wait.

    Looks at
        Apps of at least `min_processes` processes where only one writes, or at most one in four, at least `min_bytes`.
        For several writers, and for processes that are not MPI ranks, also whether the others do next to no I/O.
    Why
        One process writes as fast as one process can, however many targets and nodes there are; before that, all
        data passes its network link and its memory.
    Recommends
        Let several processes write: collectively to one file (MPI-IO, parallel HDF5, PnetCDF), or one file per node. If
        there are many files already, divide them among the processes. If the amount is small, keep the funnel but write
        in the background (POS007) and in large pieces (POS002).
    Stays silent when
        An app has few processes, writes little, writes with several processes, or uses collective calls, including
        non-blocking ones, of MPI-IO, PnetCDF or HDF5 (whose aggregator may be one process, see MIO002); under strace,
        all ranks open what one writes, as these calls do; files that several processes open lack their writes in the
        trace (`unseen`: Fortran, C++, MPI-IO); its balance is not known.
    Source
        Vani paper, section IV (CM1: rank 0 writes all output). Rate of one process: OPRAEL's sweep.
    Example
        CM1 on 1,280 processes: rank 0 writes 1.2 GB in 2,303 writes, alone:

            MPI_Gather(part, ...);  if (rank == 0) fwrite(all, ...);                       // before
            MPI_File_write_at_all(file, offset_of_this_rank, part, count, type, &status);  // after

            if rank == 0: torch.save(model.state_dict(), name)                             # before
            torch.distributed.checkpoint.save(model.state_dict(), checkpoint_id=folder)    # after
    """

    id = "POS004"
    settles = "writers"
    sources = ("Vani paper, section IV",)

    min_processes = movers.FUNNEL_PROCESSES  # see movers.py
    min_bytes = movers.FUNNEL_BYTES  # see movers.py
    # OPRAEL: 8 nodes give 4000 MiB/s in the fit of `vani/models/striping.py`.
    node_rate = 524_000_000

    def check(self, profile: Profile, system: System) -> Verdict:
        answers = (self._judge(number, app, profile, system) for number, app in enumerate(profile.apps))
        # A workflow may have hundreds of apps.
        return self.among(answers, "there is no app", most=3)

    def _judge(self, number: int, app: App, profile: Profile, system: System) -> Answer:
        balance, written = app.balance, app.io.bytes.written or 0
        if balance is None:
            return f"apps[{number}].balance is not known: {app.name} has no I/O"
        if app.processes < self.min_processes * app.instances:
            return f"runs of {app.name} have fewer than {format_count(self.min_processes)} processes"
        if not balance.writing_processes:
            return f"no write of {app.name} is recorded"
        if not movers.is_few(balance, app):
            return f"{format_count(balance.writing_processes)} processes of {app.name} write"
        if movers.gathers(app, profile):
            return f"{app.name} writes by collective calls, whose aggregator is one process: see MIO002"
        if movers.may_gather(app, profile):
            return (
                f"all ranks of {app.name} open the files that one writes, as in collective calls of MPI-IO, which "
                "strace does not show"
            )
        if movers.may_write_unseen(app, profile):
            return f"other processes of {app.name} may write, too: calls that move data were not recorded"
        if written < self.min_bytes:
            return f"{app.name} writes {format_bytes(app.io.bytes.written)} by one process: too little to share out"
        if not movers.is_funnel(app, profile, processes=self.min_processes, least=self.min_bytes):
            return f"the processes of {app.name} are not MPI ranks, and others have their own I/O"
        busy = seconds(app.io.busy_s.write)
        outputs = data_files(profile, lambda file: file.writers > 0 and app.name in file.apps)
        ranks = not movers.are_plain(app, profile)
        kind = "rank" if ranks else "process"
        who = f"{kind} {balance.busiest_rank}" if balance.busiest_bytes >= written else "one process"
        if balance.writing_processes > 1:
            who = format_count(balance.writing_processes)
        verb = "write everything" if balance.writing_processes > 1 else "writes"
        nodes: Value = profile.job.nodes or "one or more per node"
        return Finding(
            target=Target("app", None, app.name),
            reason=f"Only {who} of the {format_count(app.processes)} processes of {app.name} {verb}: "
            f"{format_bytes(written)} in {format_count(app.io.ops.write)} writes, {format_seconds(busy)}, while the "
            "others wait. Several can write at once.",
            confidence=0.6,
            touched_s=busy,
            recommended={"writing_processes": nodes if ranks else app.processes},
            current={"writing_processes": balance.writing_processes},
            evidence=figures(
                app, f"apps[{number}]", "processes", "balance.writing_processes", "balance.busiest_rank",
                "io.bytes.written", "io.ops.write", "io.busy_s.write",
            ),
            gain=self._gain(app, outputs[0].path if outputs else "", profile, system)
            or "supply the bandwidth of the file system (--system)",
            apply=(
                _SHARED_OUT
                if not ranks
                else _IN_PYTHON
                if language_of(app, profile) == "Python"
                else _COLLECTIVELY
            ),
            files=frozenset(item.path for item in outputs),
            precedes=frozenset({"waiting"}),
        )

    def _gain(self, app: App, path: str, profile: Profile, system: System) -> Gain | None:
        """The gain from writing at the rate of the nodes and the file system, if known, instead of one process."""
        disk = system.file_system_for(path) or next(iter(system.file_systems), None)
        if disk is None or not app.io.busy_s.write:
            return None
        per_target = disk.bandwidth_per_target.write
        disk_rate = disk.max_bandwidth.write or (per_target * disk.targets if per_target and disk.targets else None)
        if disk_rate is None:
            return None
        nodes = profile.job.nodes or app.processes
        offered = min(app.processes * PROCESS_RATE, nodes * self.node_rate, disk_rate)
        before = app.io.busy_s.write
        after = min(before, (app.io.bytes.written or 0) / offered)
        return Gain(
            "write_time_s",
            before,
            # Small writes stay small in parallel, so only the number of writers counts, at least a handful.
            after_s=max(after, before / self.min_processes),
            best_s=after,
            worst_s=before,
            method=f"expected: as fast as {int(self.min_processes)} processes; high: the bytes at "
            f"{format_rate(offered)}, what processes, nodes and file system offer; low: the same file and folder "
            "serve all writers",
            # Times that the tracer lengthened decide nothing about what others can write.
            why_no_number=UNKNOWN_RATES if overhead_of(profile) is not None else "",
        )
