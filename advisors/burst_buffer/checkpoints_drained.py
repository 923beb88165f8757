"""BB003: checkpoints that can be written near the nodes and copied to the file system while the run continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vani.advisors.burst_buffer.staging_lines import Plan, lines, name_of, place
from vani.advisors.commands import launcher_name
from vani.advisors.data_files import Item
from vani.advisors.gains import SUPPLY, staging_gain
from vani.advisors.rule import Answer, Evidence, Finding, Gain, Rule, Target, Verdict, figures, known_figures
from vani.models import staging
from vani.models.checkpoint import Checkpoints, checkpoints
from vani.units import format_bytes, format_number, format_rate, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

# More evidence does not convince more.
SHOWN = 3


class CheckpointsDrained(Rule):
    """A run waits for its checkpoints to reach the file system, though it could continue meanwhile.

    Looks at
        Apps that write about the same amount repeatedly: the size of a checkpoint, the time between two, whether each
        file has one writer, how much fits near the nodes, and how fast the file system takes it.
    Why
        The program waits until its data is stored. Storage near the nodes takes it at once. No process waits while it
        moves on to the file system, if it arrives before the next checkpoint is written.
    Recommends
        Write checkpoints to the burst buffer and copy each to the file system while the run continues, the last one
        before the job ends. Files with one writer each may be on the node's storage; a file that several nodes write
        needs a burst buffer that all of them see.
    Stays silent when
        No app writes about the same amount at least twice, or it writes less than `min_bytes`; the files are already
        near the nodes; several nodes write one file and no burst buffer is shared; `copies` checkpoints do not fit; the
        file system takes longer for one than the time between two, so the run would still wait; the writers of the
        files are not known; the only nearer storage is the nodes' memory, which loses checkpoints with the node that
        they protect; the files are read again at once, as in benchmarks.
    Source
        Xie et al., section II-A (checkpoints at a fixed interval). HPE and Slurm burst-buffer guides: each rank's
        checkpoints go to node-private storage, and those that must survive are copied out.
    Example
        1,280 processes write 160 GB every 10 min, each to its own file: 5 GB per node go to the node's NVMe
        and from there to the file system, `copy_out` or `cp` in the background.
    """

    id = "BB003"
    needs = ("phases",)
    settles = "location"
    sources = ("Xie et al., section II-A", "HPE NNF and Slurm burst-buffer guides")

    # Sixteen buffers of 4 MiB (mpiFileUtils' default), which one copying process moves at once. A smaller write ends
    # in the client's memory, and no process waits for it.
    min_bytes = 64 * 1024 * 1024
    # A state has the same variables each time (Xie et al., section II-A), so half of the largest is something else.
    alike = 0.5
    # One is written while the previous one is being copied.
    copies = 2
    # In practice, 10 to 20 % of a tier stay free in addition to the expected data.
    spare = 0.2
    # Repetitions of a write differ by a factor of 1.3 (Xie et al., section IV-D): leave that margin for the copy.
    variation = 1.3

    def check(self, profile: Profile, system: System) -> Verdict:
        all_series, why = checkpoints(profile, least_bytes=self.min_bytes, alike=self.alike, least_count=2)
        return self.among((self._judge(series, profile, system) for series in all_series), why)

    def _judge(self, series: Checkpoints, profile: Profile, system: System) -> Answer:
        written = [
            Item(index, file)
            for index, file in enumerate(profile.files)
            if series.app in file.apps and file.writers > 0 and file.role in ("output", "intermediate")
        ]
        # Files of several apps may have a reader elsewhere: a restart, or another app.
        own = [item for item in written if len(item.file.apps) == 1]
        if not own:
            return f"which files the checkpoints of {series.app} are is not in the profile" + (
                "" if not written else ": other apps use all that it writes"
            )
        far = [item for item in own if not staging.is_near(item.path, profile, system)]
        if not far:
            return f"the output of {series.app} is already near the nodes"
        nodes, shared = profile.job.nodes, next((item for item in far if item.file.access == "shared"), None)
        candidates = staging.tiers(profile, system, spare=self.spare, memory_share=1.0)
        lasting = [tier for tier in candidates if not tier.uses_memory]
        if candidates and not lasting:
            return (
                f"{candidates[0].name} is memory of the node, which loses checkpoints with the node: they need a disk "
                "of the node or a burst buffer"
            )
        tier = staging.choose(
            lasting,
            total=round(series.size * self.copies),
            nodes=nodes or 1,
            # Without the number of nodes, assume that a file of several processes is used by several nodes.
            shared=shared is not None and nodes != 1,
        )
        if isinstance(tier, str):
            return f"{shared.path} is written or opened by several processes: {tier}" if shared else tier
        if shared is not None and not tier.is_shared and nodes is None:
            return (
                f"{shared.path} is used by several processes, and how many nodes they are on is not known; "
                "supply --job job.yaml"
            )
        disk, where = staging.file_system_of((item.file for item in far), system)
        rate = staging.write_rate(disk, profile)
        way = series.size / rate if rate else None
        if way is not None and way * self.variation > series.interval_s:
            return (
                f"the file system needs {format_number(way)} s for a checkpoint of {series.app}, and the next one "
                f"comes after {format_number(series.interval_s)} s: the run would wait for the burst buffer to empty"
            )
        finding = self._finding(series, far, tier, way, profile, system)
        if rate and not where.startswith("system.max"):
            return replace(finding, evidence=[*finding.evidence, Evidence(f"{where}.max_bandwidth.write", rate)])
        return finding

    def _finding(
        self,
        series: Checkpoints,
        far: Sequence[Item],
        tier: staging.Tier,
        way: float | None,
        profile: Profile,
        system: System,
    ) -> Finding:
        nodes, top = profile.job.nodes or 1, staging.common_folder(item.path for item in far)
        total = round(series.size * self.copies)
        plan = Plan(
            name=name_of(top, "checkpoints"),
            folders=(top,),
            total=total,
            per_node=-(-total // nodes),
            nodes=profile.job.nodes,
            launcher_name=launcher_name(profile, system),
            stage_out=True,
            shared=tier.is_shared and any(item.file.access == "shared" for item in far),
            survives=True,
        )
        reason = (
            f"{series.app} waits {format_seconds(series.cost_s)} for each of {series.count} checkpoints of "
            f"{format_bytes(series.size)}, {format_seconds(series.interval_s)} apart. {tier.name} takes "
            f"{format_bytes(plan.total if tier.is_shared else plan.per_node)}"
            f"{'' if tier.is_shared else ' per node'} for {self.copies:g} of them"
        )
        reason += (
            f", and the file system has {format_seconds(way)} of work with each meanwhile."
            if way is not None
            else "; whether the file system takes one before the next comes is not known."
        )
        if not tier.is_shared:
            reason += (
                " Until it has been copied, a checkpoint is lost with its node: keep the copy of the one before, and "
                "restart from the last one that is whole on the file system."
            )
        if tier.because:
            reason += f" Note: {tier.because}."
        first, where = (profile.phases or [])[series.phases[0]], f"phases[{series.phases[0]}]"
        gain: Gain | str = SUPPLY
        if way is not None and (rate := tier.writes(nodes)):
            gain = staging_gain(
                "write_time_s",
                series.cost_s * series.count,
                way * series.count,
                # The copy of the last one is not hidden: the job ends with it.
                series.count * series.size / rate + way,
                f"checkpoints at {format_rate(rate)}, and the last one's way to the file system",
                generic=system.generic,
            )
        return Finding(
            target=Target("directory", top, series.app),
            reason=reason,
            confidence=round(tier.certainty * (0.7 if way is not None else 0.4), 2),
            touched_s=series.cost_s * series.count,
            recommended={"directory": place(tier, plan, top), "bytes_per_node": plan.per_node, "then": "drain"},
            current={"directory": top},
            evidence=[
                *figures(first, where, "io.bytes.written", "io.busy_s.total"),
                *known_figures(first, where, "repeats.count"),
                *(figure for item in far[:SHOWN] for figure in item.figures("path", "access")),
                *(Evidence(name, value) for name, value in tier.evidence),
            ],
            gain=gain,
            apply=lines(tier, plan),
            files=frozenset(item.path for item in far),
        )
