"""BB003: checkpoints that can be written near the nodes and copied to the file system while the run continues."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.advisors.anchored_gain import SUPPLY, staging_gain
from vani.advisors.burst_buffer.staging_lines import Plan, lines, place
from vani.advisors.commands import launcher_name
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Verdict
from vani.models import staging
from vani.models.checkpoint import Checkpoints, checkpoints
from vani.units import format_bytes, format_number, format_rate, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
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
        if not all_series:
            return why
        findings: list[Finding] = []
        reasons: list[str] = []
        for series in all_series:
            judged = self._judge(series, profile, system)
            findings.append(judged) if isinstance(judged, Finding) else reasons.append(judged)
        return self.verdict(findings, reasons)

    def _judge(self, series: Checkpoints, profile: Profile, system: System) -> Finding | str:
        written = [
            (i, f)
            for i, f in enumerate(profile.files)
            if series.app in f.apps and f.writers > 0 and f.role in ("output", "intermediate")
        ]
        # Files of several apps may have a reader elsewhere: a restart, or another app.
        files = [(i, f) for i, f in written if len(f.apps) == 1]
        if not files:
            return f"which files the checkpoints of {series.app} are is not in the profile" + (
                "" if not written else ": other apps use all that it writes"
            )
        far = [(i, f) for i, f in files if not staging.is_near(f.path, profile, system)]
        if not far:
            return f"the output of {series.app} is already near the nodes"
        nodes = profile.job.nodes or 1
        shared = next((f for _, f in far if f.access == "shared"), None)
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
            nodes=nodes,
            # Without the number of nodes, assume that a file of several processes is used by several nodes.
            shared=shared is not None and (nodes > 1 or profile.job.nodes is None),
        )
        if isinstance(tier, str):
            return f"{shared.path} is written or opened by several processes: {tier}" if shared else tier
        if shared is not None and not tier.is_shared and profile.job.nodes is None:
            return (
                f"{shared.path} is used by several processes, and how many nodes they are on is not known; "
                "supply --job job.yaml"
            )
        disk, where = staging.file_system_of((f for _, f in far), system)
        rate = staging.write_rate(disk, profile)
        way = series.size / rate if rate else None
        if way is not None and way * self.variation > series.interval_s:
            return (
                f"the file system needs {format_number(way)} s for a checkpoint of {series.app}, and the next "
                "one comes "
                f"after {format_number(series.interval_s)} s: the run would wait for the burst buffer to empty"
            )
        return self._finding(
            series,
            far,
            tier,
            way,
            nodes,
            profile,
            (f"{where}.max_bandwidth.write", rate),
            system,
        )

    def _finding(
        self,
        series: Checkpoints,
        far: Sequence[tuple[int, FileEntity]],
        tier: staging.Tier,
        way: float | None,
        nodes: int,
        profile: Profile,
        rate: tuple[str, float | None],
        system: System,
    ) -> Finding:
        top = staging.common_folder(file.path for _, file in far)
        total = round(series.size * self.copies)
        plan = Plan(
            name=re.sub(r"[^A-Za-z0-9_.-]", "_", posixpath.basename(top.rstrip("/"))) or "checkpoints",
            folders=(top,),
            total=total,
            per_node=-(-total // nodes),
            nodes=profile.job.nodes,
            launcher_name=launcher_name(profile, system),
            stage_out=True,
            shared=tier.is_shared and any(file.access == "shared" for _, file in far),
            survives=True,
        )
        gain = self._gain(series, tier, way, nodes, generic=system.generic)
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
        first, phases = series.phases[0], profile.phases or []
        evidence = [
            Evidence(f"phases[{first}].io.bytes.written", phases[first].io.bytes.written),
            Evidence(f"phases[{first}].io.busy_s.total", phases[first].io.busy_s.total),
            *(
                [Evidence(f"phases[{first}].repeats.count", repeats.count)]
                if (repeats := phases[first].repeats) is not None
                else ()
            ),
            *(
                Evidence(f"files[{index}].{key}", value)
                for index, file in far[:SHOWN]
                for key, value in (("path", file.path), ("access", file.access))
            ),
            *(Evidence(name, value) for name, value in tier.evidence),
        ]
        if rate[1] and not rate[0].startswith("system.max"):
            evidence.append(Evidence(rate[0], rate[1]))
        return Finding(
            target=Target("directory", top, series.app),
            reason=reason,
            confidence=round(tier.certainty * (0.7 if way is not None else 0.4), 2),
            touched_s=series.cost_s * series.count,
            recommended={
                "directory": place(tier, plan, top),
                "bytes_per_node": plan.per_node,
                "then": "drain",
            },
            current={"directory": top},
            evidence=evidence,
            gain=gain,
            apply=lines(tier, plan),
            files=frozenset(file.path for _, file in far),
        )

    def _gain(
        self, series: Checkpoints, tier: staging.Tier, way: float | None, nodes: int, *, generic: bool
    ) -> Gain | str:
        tier_s = tier.writes(nodes)
        if way is None or not tier_s:
            return SUPPLY
        # The copy of the last one is not hidden: the job ends with it.
        after = series.count * series.size / tier_s + way
        method = f"checkpoints at {format_rate(tier_s)}, and the last one's way to the file system"
        return staging_gain(
            "write_time_s",
            series.cost_s * series.count,
            way * series.count,
            after,
            method,
            generic=generic,
        )
