"""MIO005: all processes open a file that only aggregators access."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import OPENING, LayerGroup
from vani.advisors.mpiio import MPIIORule, hint_lines, set_hints
from vani.advisors.rule import Answer, Finding, Gain, Value, known_figures
from vani.units import counted, format_count

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class DeferredOpen(MPIIORule):
    """Every process opens files that only aggregators need to open, since all calls are collective.

    Looks at
        Shared files that are accessed by collective calls of MPI-IO only and opened at least once per process: how
        often they are opened, at least `min_opens` times together, and the time of opening and closing them.
    Why
        Each open is a request to the metadata server, which answers them one after another. Collective calls
        are carried out by the aggregators; the other processes open files that they never touch.
    Recommends
        `romio_no_indep_rw true`: the others open a file only when they access it independently.
    Stays silent when
        No app uses MPI-IO, or no file is shared through it; some calls are independent; files are rarely opened, or
        not by all processes; the hint is set already.
    Source
        ROMIO users guide (`romio_no_indep_rw`, deferred open).
    Example
        1,024 processes on 16 nodes open each of 40 plot files, 40,960 opens; with deferred open 640 remain.

            MPI_File_open(comm, name, mode, MPI_INFO_NULL, &file);    // before: every process opens it
            MPI_Info_set(info, "romio_no_indep_rw", "true");    // after: only aggregators do
            MPI_File_open(comm, name, mode, info, &file);
    """

    id = "MIO005"
    settles = "opening"
    sources = ("ROMIO users guide",)

    # General knowledge: a metadata server answers about ten thousand opens per second, so fewer take about 10 ms.
    min_opens = 128
    # Even one independent call in a hundred opens the file on every process.
    min_collective = 0.99

    def judge(self, use: LayerGroup, profile: Profile, system: System) -> Answer:  # noqa: ARG002 - applies on every machine
        share = use.layer.collective_share
        if share is None:
            return use.missing("collective_share") or ""
        if share < self.min_collective:
            return f"{use.app.name} accesses files by independent calls, too"
        # With deferred open, only aggregators open a file.
        use = use.of(item for item in use.items if item.file.opens >= use.app.processes)
        if not use.items:
            return "not all processes open the files: opens are deferred already"
        opens = use.total("opens")
        if opens < self.min_opens:
            return f"files are opened {counted(opens, 'time')}: too seldom to matter"
        own = set_hints(use.layer, {"cb_nodes", "romio_no_indep_rw"})
        if own.get("romio_no_indep_rw") == "true":
            return "the program sets romio_no_indep_rw itself"
        given = own.get("cb_nodes", "")
        openers = int(given) if given.isdigit() else profile.job.nodes
        before, gain = use.metadata_s(OPENING), None
        if openers is not None:
            left = min(1.0, openers / use.app.processes)
            gain = Gain.at_best(
                "metadata_time_s",
                before,
                after=before * (1 + left) / 2,
                best=before * left,
                method=f"opened and closed by {format_count(openers)} of {format_count(use.app.processes)} processes "
                "still; half of that time is theirs; low: all of it is the first open's, high: each open takes as long",
            )
        switched: Value = own.get("romio_no_indep_rw", None if use.layer.hints is None else "false")
        return Finding(
            **use.affected,
            reason=f"The {format_count(use.app.processes)} processes of {use.app.name} open {use.words} "
            f"{format_count(opens)} times, and access it by collective calls only.",
            confidence=0.6,
            touched_s=before,
            recommended={"romio_no_indep_rw": "true"},
            current={"opens": opens, "romio_no_indep_rw": switched},
            evidence=[
                *use.layer_figures("collective_share"),
                *use.figures("opens"),
                *use.figures("io.busy_s.metadata"),
                *known_figures(profile, "", "job.nodes"),
            ],
            gain=gain or "supply the number of nodes (--job job.yaml): one process on each opens",
            apply=[
                *comment("only while the program makes no independent calls on these files:"),
                *hint_lines({"romio_no_indep_rw": "true"}, use.path, profile),
            ],
        )
