"""LUS009: one storage target on which files take many times as long as on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.placement import SlowTarget, slow_targets
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Verdict
from vani.units import format_count, format_number, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class SlowTargets(Rule):
    """Files on one Lustre target take many times as long as files on the others.

    Looks at
        The mean time of the reads, and of the writes, of the files on each target of a file system with at least four
        used targets. A slow target takes at least five times as long as the median and the next slowest one, and at
        least a second longer. It has two files or more, at most twice as large as those on the other targets.
    Why
        A target that rebuilds a disk, is nearly full or serves another job delays every process with a file on it, and
        the run waits for the slowest process. More stripes would put more files on that target.
    Recommends
        Report the target to the site, and leave it out of the layout of new files until it is repaired.
    Stays silent when
        The trace does not have the targets of files; few targets are used; times are even, as they are where each file
        is striped over all targets; or the files on that target are larger.
    Source
        Lustre manual, sections on `lfs check`, `lfs find --ost` and pools. Estimate: the median over the targets.
    Example
        Writing each of 85 files on target 14 takes 546 s on average. It takes 14 s on the next slowest target, and 11 s
        on the median of the 24 targets.
    """

    id = "LUS009"
    needs = ("storage.mounts",)
    sources = ("Lustre manual, lfs-check(1), lfs-find(1)",)

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - the trace has the targets
        if not any(mount.slowest_targets for mount in profile.storage.mounts or ()):
            return "the trace does not record which files are on which storage targets"
        findings = [_finding(slow) for slow in slow_targets(profile)]
        return findings or "no storage target takes much longer for its files than the others"


def _finding(slow: SlowTarget) -> Finding:
    use, mount = slow.use, slow.mount
    longer = slow.own_s / slow.next_s if slow.next_s else 101.0
    times = format_number(longer, 2) if longer <= 100 else "more than 100"
    verb = {"read": "reading", "write": "writing"}[slow.kind]
    return Finding(
        target=Target("directory", mount.dir),
        reason=f"Files on OST {use.target} of {mount.dir} take {times} times as long as those on any other "
        f"target: {verb} one takes {format_seconds(slow.own_s)} on average of {format_count(use.files)} files there, "
        f"on the next slowest target {format_seconds(slow.next_s)}, on half of the "
        f"{format_count(mount.used_targets or 0)} targets at most {format_seconds(slow.median_s)}. The files are no "
        "larger: the target or its server is slow, which only the site can change. "
        "Other stripe counts do not help as long as files are there.",
        confidence=0.8,
        touched_s=slow.own_s,
        recommended={"report_to_site": f"OST {use.target} of {mount.dir}"},
        current={"slow_target": use.target, "files": use.files, f"{slow.kind}_s": slow.own_s},
        evidence=[
            Evidence(f"{slow.where}.target", use.target),
            Evidence(f"{slow.where}.files", use.files),
            Evidence(f"{slow.where}.{slow.kind}_s", slow.own_s),
            Evidence(f"{slow.where.rpartition('.')[0]}.median_{slow.kind}_s", slow.median_s),
        ],
        gain=Gain(
            metric="io_time_slowest_process_s",
            before_s=slow.own_s,
            after_s=max(slow.median_s, slow.next_s),
            best_s=slow.median_s,
            worst_s=slow.own_s,
            method="the time of the next slowest target; low: the target stays slow, high: the median of all targets",
        ),
        apply=f"report to the site: OST {use.target} of {mount.dir} is slow; `lfs osts {mount.dir}` shows its name\n"
        f"  and state, `lfs df {mount.dir}` how full it is, `lfs find --ost {use.target} FOLDER` which files\n"
        "  are on it. Until it is repaired: write new files to a pool without it (`lfs setstripe -p POOL`)",
    )
