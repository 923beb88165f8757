"""MIO005: all processes open a file that only aggregators access."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import (
    MAY_INCLUDE_FLUSHING,
    OPENING,
    Item,
    listed,
    may_include_flushing,
    metadata_s,
    target_of,
)
from vani.advisors.mpiio.mpiio_files import Use, hint_lines, mpiio_files, mpiio_uses, set_hints
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Value, Verdict
from vani.units import counted, format_count

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class DeferredOpen(Rule):
    """Every process opens files that only aggregators need to open, since all calls are collective.

    Looks at
        Shared files that are accessed by collective calls of MPI-IO only: how often they are opened, at least
        `min_opens` times together, and the time of opening and closing them.
    Why
        Each open is a request to the metadata server, which answers them one after another. Collective calls
        are carried out by the aggregators; the other processes open files that they never touch.
    Recommends
        `romio_no_indep_rw true`: the others open a file only when they access it independently.
    Stays silent when
        No app uses MPI-IO, or no file is shared through it; some calls are independent; files are rarely opened; the
        hint is set already.
    Source
        ROMIO users guide (`romio_no_indep_rw`, deferred open).
    Example
        1,024 processes on 16 nodes open each of 40 plot files, 40,960 opens; with deferred open 640 remain.

            MPI_File_open(comm, name, mode, MPI_INFO_NULL, &file);    // before: every process opens it
            MPI_Info_set(info, "romio_no_indep_rw", "true");    // after: only aggregators do
            MPI_File_open(comm, name, mode, info, &file);
    """

    id = "MIO005"
    name = "deferred-open"
    family = "mpiio"
    needs = ("files", "interfaces", mpiio_files)
    settles = "opening"
    sources = ("ROMIO users guide",)

    # General knowledge: a metadata server answers about ten thousand opens per second, so fewer take about 10 ms.
    min_opens = 128
    # Even one independent call in a hundred opens the file on every process.
    min_collective = 0.99

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        findings: list[Finding] = []
        reasons: list[str] = []
        for use in mpiio_uses(profile):
            share = use.layer.collective_share
            opens = sum(item.file.opens for item in use.items)
            if share is None:
                reasons.append(
                    f"{use.where}.collective_share is not known; supply a trace with the data calls of MPI-IO"
                )
            elif share < self.min_collective:
                reasons.append(f"{use.app.name} accesses files by independent calls, too")
            elif may_include_flushing(profile, use.app.name):
                reasons.append(MAY_INCLUDE_FLUSHING)
            elif opens < self.min_opens:
                reasons.append(f"files are opened {counted(opens, 'time')}: too seldom to matter")
            elif set_hints(use.layer, {"romio_no_indep_rw"}) == {"romio_no_indep_rw": "true"}:
                reasons.append("the program sets romio_no_indep_rw itself")
            else:
                findings.append(self._finding(use, use.items, opens, profile))
        return self.verdict(findings, reasons)

    def _finding(self, use: Use, items: list[Item], opens: int, profile: Profile) -> Finding:
        own = set_hints(use.layer, {"cb_nodes", "romio_no_indep_rw"})
        given = own.get("cb_nodes", "")
        openers = int(given) if given.isdigit() else profile.job.nodes
        before = metadata_s(items, use.app, OPENING)
        gain: Gain | str = "supply the number of nodes (--job job.yaml): one process on each opens"
        reason = (
            f"The {format_count(use.app.processes)} processes of {use.app.name} open {listed(use.folder, items)} "
            f"{format_count(opens)} times, and access it by collective calls only."
        )
        if openers is not None and before:
            left = min(1.0, openers / use.app.processes)
            gain = Gain(
                metric="metadata_time_s",
                before_s=before,
                after_s=before * (1 + left) / 2,
                best_s=before * left,
                worst_s=before,
                method=f"opened and closed by {format_count(openers)} of {format_count(use.app.processes)} processes "
                "still; half of that time is theirs; low: all of it is the first open's, high: each open takes as long",
            )
        current: dict[str, Value] = {
            "opens": opens,
            "romio_no_indep_rw": own.get("romio_no_indep_rw", None if use.layer.hints is None else "false"),
        }
        return Finding(
            target=target_of(use.folder, items, use.app),
            reason=reason,
            confidence=0.6,
            touched_s=before,
            recommended={"romio_no_indep_rw": "true"},
            current=current,
            evidence=[
                Evidence(f"{use.where}.collective_share", use.layer.collective_share),
                *(Evidence(f"{item.where}.opens", item.file.opens) for item in items[:3]),
                *(
                    Evidence(f"{item.where}.io.busy_s.metadata", item.file.io.busy_s.metadata)
                    for item in items[:3]
                ),
                *([Evidence("job.nodes", profile.job.nodes)] if profile.job.nodes is not None else []),
            ],
            gain=gain,
            apply=[
                *comment("only while the program makes no independent calls on these files:"),
                *hint_lines({"romio_no_indep_rw": "true"}, items[0].file.path if len(items) == 1 else None),
            ],
            files=frozenset(item.file.path for item in items),
        )
