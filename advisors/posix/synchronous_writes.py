"""POS007: the program waits for writes that could go on while it computes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import data_files
from vani.advisors.movers import FUNNEL_PROCESSES, is_funnel
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Value, Verdict, seconds
from vani.models.overlap import Overlap, overlap
from vani.models.run_time import app_share
from vani.units import format_bytes, format_count, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Phase, Profile
    from vani.schema.system import System


class SynchronousWrites(Rule):
    """Phases of writing and of computing alternate, and computing waits for the writes.

    Looks at
        Each app's phases that write, at least `min_phases`, and the time without I/O after and within them, at least
        `min_pauses` times that of writing: the writing that fits into it, at least `min_share` of the app's run. Time
        in I/O libraries is no computing, nor is a pause before a program reads back what it wrote (at least
        `min_read_back` of it).
    Why
        Data that is copied to a buffer can be written in the background while the program computes on. The run is
        then shorter by what fits into the pauses.
    Recommends
        Asynchronous writes with two buffers: `MPI_File_iwrite`, HDF5's asynchronous connector, ADIOS2, or a thread
        that writes. At most the overlapping time is won, less the copy of the bytes.
    Stays silent when
        An app writes in too few phases, or little of it fits into pauses; the program calls asynchronous functions
        already; phases are not known.
    Source
        Vani paper, table V (frequency of phases). Model: `vani/models/overlap.py`.
    Example
        Three output steps write for 2 s each, 60 s of computing lie after each: 6 s of writing can be hidden.
    """

    id = "POS007"
    name = "synchronous-writes"
    family = "posix"
    needs = ("phases",)
    settles = ""
    sources = ("Vani paper, table V",)

    # One phase is no pattern: writes at the end have nothing to overlap with.
    min_phases = 2
    # Where severities begin: 1 % of the run.
    min_share = 0.01

    # Ours: what pauses for less than it writes does little but I/O, and its pauses are barriers and opens.
    min_pauses = 1.0
    # Ours: most of the bytes that it wrote, as benchmarks of storage do and restarts do not.
    min_read_back = 0.5

    # Functions that already write in the background, by their beginnings.
    _ASYNCHRONOUS = (
        "MPI_File_iwrite",
        "aio_write",
        "lio_listio",
        "H5Dwrite_async",
        "ncmpi_iput",
        "ncmpi_bput",
    )

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - holds on every machine
        by_app: defaultdict[str, list[Phase]] = defaultdict(list)
        for phase in profile.phases or ():
            by_app[phase.app].append(phase)
        findings: list[Finding] = []
        reasons: list[str] = []
        for number, app in enumerate(profile.apps):
            phases = sorted(by_app[app.name], key=lambda phase: phase.start_s)
            if app.instances > 1:
                # Its phases are those of several runs of the program, each with an end of its own.
                reasons.append(f"{app.name} runs several times: its phases are not those of one run")
                continue
            inside = app.interface in (None, "posix", "stdio")
            end = max((phase.end_s for phase in phases), default=0.0)
            overlapping = overlap(
                phases,
                end,
                inside=inside,
                share=app_share(app, "write"),
                reads_back=self._reads_back(app, profile),
                library_s=_in_libraries_s(app),
            )
            if overlapping.phases < self.min_phases:
                reasons.append(
                    f"{app.name} has fewer than {self.min_phases} phases of writing before a pause"
                )
            elif overlapping.pauses_s < self.min_pauses * overlapping.writing_s:
                reasons.append(f"{app.name} hardly pauses between its writes")
            elif overlapping.hidden_s < self.min_share * seconds(app.runtime_s):
                reasons.append(
                    f"less than {format_share(self.min_share)} of {app.name} is writing that fits into its pauses"
                )
            elif self._is_asynchronous(app, profile):
                reasons.append(f"{app.name} calls asynchronous functions already")
            else:
                findings.append(_finding(number, app, overlapping, profile))
        return self.verdict(findings, list(dict.fromkeys(reasons))[:3] or ["there is no app"])

    def _reads_back(self, app: App, profile: Profile) -> bool:
        written = {
            item.file.path: (item.file.io.bytes.written or 0, item.file.io.bytes.read or 0)
            for item in data_files(profile, lambda file: file.writers > 0 and app.name in file.apps)
        }
        again = sum(bytes_ for bytes_, read in written.values() if read)
        return again > 0 and again >= self.min_read_back * sum(bytes_ for bytes_, _ in written.values())

    def _is_asynchronous(self, app: App, profile: Profile) -> bool:
        return any(
            name.startswith(self._ASYNCHRONOUS)
            for trace in profile.traces
            if trace.app == app.name
            for name in trace.functions
        )


def _in_libraries_s(app: App) -> float:
    """Seconds that the slowest process spends in I/O libraries, but not in file-system calls."""
    balance = app.balance
    if balance is None or balance.slowest_call_time_s is None:
        return 0.0
    return max(0.0, balance.slowest_call_time_s - (balance.slowest_io_time_s or 0.0))


def _finding(number: int, app: App, overlap: Overlap, profile: Profile) -> Finding:
    outputs = data_files(profile, lambda file: file.writers > 0 and app.name in file.apps)
    # Several writers come first, and leave less to hide (POS004).
    shared_out = is_funnel(app, profile)
    part = 1 / FUNNEL_PROCESSES if shared_out else 1.0
    before, hidden, copying = (part * s for s in (overlap.writing_s, overlap.hidden_s, overlap.copying_s))
    left = before - hidden
    current: dict[str, Value] = {"write_phases": overlap.phases, "writing_s": overlap.writing_s}
    where = f"apps[{number}]"
    return Finding(
        target=Target("app", None, app.name),
        reason=f"{app.name} writes for {format_seconds(overlap.writing_s)} in {format_count(overlap.phases)} phases "
        f"with pauses for computing, into which {format_seconds(overlap.hidden_s)} of it fit. A process must keep up "
        f"to {format_bytes(overlap.largest)} in a second buffer meanwhile."
        + (" One process writes for all: let several write first (POS004)." if shared_out else ""),
        confidence=0.5,
        touched_s=hidden,
        recommended={"writes": "asynchronous", "buffer_bytes_per_process": overlap.largest},
        current=current,
        evidence=[
            Evidence(f"{where}.io.busy_s.write", app.io.busy_s.write),
            Evidence(f"{where}.runtime_s", app.runtime_s),
            Evidence(f"{where}.phase_gap_s", app.phase_gap_s),
        ],
        gain=Gain(
            metric="write_time_s",
            before_s=before,
            after_s=min(before, left + copying),
            best_s=left,
            worst_s=before,
            method="what fits into the pauses after and within each phase, less a copy in memory; low: computing is "
            "slowed by as much, high: without the copy"
            + (f"; of the time that {FUNNEL_PROCESSES} writers leave" if shared_out else ""),
        ),
        apply=comment(
            "in the program, with two buffers in turn:\n"
            "  MPI_File_iwrite_at(file, offset, buffer[i], count, type, &request);  compute();\n"
            "  MPI_Wait(&request, MPI_STATUS_IGNORE);\n"
            "  or HDF5's asynchronous connector (H5Dwrite_async), or a thread that writes"
        ),
        files=frozenset(item.file.path for item in outputs),
    )
