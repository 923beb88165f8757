"""BB002: intermediate files that need not leave the node."""

from __future__ import annotations

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.advisors.burst_buffer.measured_gain import measured_gain
from vani.advisors.burst_buffer.staging_lines import Plan, lines, place, shell_path
from vani.advisors.commands import comment, quoted_path
from vani.advisors.data_files import folder_of
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Value, Verdict, seconds
from vani.models import staging
from vani.models.run_time import files_share
from vani.units import counted, format_bytes, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System

# A restart in the same run makes a checkpoint look intermediate, but it must survive the node: BB003.
CHECKPOINT = re.compile(r"ckpt|chkp|(?<![a-z])chk|checkpoint|restart|(?<![a-z])rst", re.IGNORECASE)

# More paths are no help for a reader; the folders hold them all.
SHOWN = 100

# Three lines each; who has more folders moves the one above them.
FOLDERS = 20


class IntermediateFiles(Rule):
    """Files that the run itself writes and reads, and nobody needs afterwards, lie on the file system.

    Looks at
        Intermediate files (written by one process or app, read by another later) and temporary ones (removed in
        the end): their share of the I/O time, their size per node, who writes and reads them, whether producers
        and consumers run on one node, and what fits in storage of the node.
    Why
        They cross the network twice and wait for servers that all jobs share, although their consumer
        runs beside their producer, or could. On the node, small accesses cost a call, not a message.
    Recommends
        A folder on the node for them, by the program's arguments or by a link in place of the old folder. With one
        node this is certain; with several it holds if who reads a file runs on the node of who wrote it
        (WFL001 places them so), or on a burst buffer that all nodes of the job see. Results among them are copied
        back at the end.
    Stays silent when
        Nothing is written and read again, or only checkpoints, by their names; such files have less than
        `min_share` of the I/O time; they already lie near; their sizes are not known; they fit nowhere;
        processes of several nodes use one file at the same time and no burst buffer is shared.
    Source
        Vani paper, section V-B (Montage: intermediate files have 95 % of the I/O time, 800 MB per node fit in shared
        memory, 3.9 to 8 times as fast).
    Example
        Montage on 32 nodes: `proj`, `diff` and `corr` go to `/dev/shm`, 800 MB per node; the mosaic stays on GPFS.
    """

    id = "BB002"
    name = "intermediate-files"
    family = "burst_buffer"
    needs = ("files",)
    settles = "location"
    sources = ("Vani paper, section V-B",)

    # Below a twentieth of the I/O time even removing it does not show between runs (see MAT001). Montage: 95 %.
    min_share = 0.05
    # 10 to 20 % of a node's memory stay free beside the program (practice; page cache counts as use).
    spare = 0.2
    # tmpfs holds half of the memory unless mounted otherwise (tmpfs(5)).
    memory_share = 0.5
    # Montage with intermediate files in shared memory was 3.9 to 8 times as fast (Vani paper, figure 8).
    least_factor = 3.9
    # See least_factor.
    most_factor = 8.0

    def check(self, profile: Profile, system: System) -> Verdict:
        inner = [(i, f) for i, f in enumerate(profile.files) if f.role in ("intermediate", "temporary")]
        if not inner:
            return self.nothing("the run reads nothing that it wrote, and removes nothing")
        passing = [(i, f) for i, f in inner if f.role == "temporary" or not CHECKPOINT.search(f.path)]
        if not passing:
            return self.nothing(
                "what the run writes and reads again are checkpoints by name, which must survive"
            )
        far = [(i, f) for i, f in passing if not staging.is_near(f.path, profile, system)]
        if not far:
            return self.nothing("the intermediate files already lie near the nodes")
        listed = sum(seconds(file.io.time_s.total) for file in profile.files)
        whole = max(listed, seconds(profile.dataset.io.time_s.total))
        share = sum(seconds(file.io.time_s.total) for _, file in far) / whole if whole else 0.0
        if share < self.min_share:
            return self.nothing(
                f"files that are written and read again have {format_share(share)} of the I/O time, "
                f"less than {format_share(self.min_share)}"
            )
        sized = [_size(file) for _, file in far]
        if all(size is None for size in sized):
            return self.nothing(
                "the size of the intermediate files is not known; supply a trace with offsets"
            )
        nodes = profile.job.nodes or 1
        crossing = [file.path for _, file in far if _crosses(file, profile)]
        total = _scaled(sum(size or 0 for size in sized), len(far), profile)
        tier = staging.choose(
            staging.tiers(profile, system, spare=self.spare, memory_share=self.memory_share),
            total=total,
            nodes=nodes,
            shared=bool(crossing),
        )
        if isinstance(tier, str):
            if crossing:
                return self.nothing(
                    f"{crossing[0]} is used by processes of several nodes at the same time: {tier}"
                )
            return self.nothing(tier)
        return [self._finding(far, tier, total, nodes, share, profile)]

    def _finding(
        self,
        far: Sequence[tuple[int, FileEntity]],
        tier: staging.Tier,
        total: int,
        nodes: int,
        share: float,
        profile: Profile,
    ) -> Finding:
        top = staging.common_folder(file.path for _, file in far)
        moved = {file.path for _, file in far}
        folders = _whole_folders(moved, profile)
        per_node = total if tier.is_shared else math.ceil(total / nodes)
        plan = Plan(
            name=re.sub(r"[^A-Za-z0-9_.-]", "_", posixpath.basename(top.rstrip("/"))) or "intermediate",
            folders=tuple(folders),
            total=total,
            per_node=per_node,
            nodes=profile.job.nodes,
            scheduler=profile.job.scheduler,
            shared=tier.is_shared and nodes > 1,
        )
        order = sorted(far, key=lambda pair: -seconds(pair[1].io.time_s.total))
        recommended: dict[str, Value] = {
            "directory": posixpath.commonpath([place(tier, plan, folder) for folder in folders])
            if folders
            else posixpath.join(tier.dir or tier.name, plan.name),
            "bytes_per_node": per_node,
            "files": [file.path for _, file in order[:SHOWN]],
        }
        evidence = [
            Evidence(f"files[{index}].{key}", value)
            for index, file in order[:5]
            for key, value in (
                ("path", file.path),
                ("role", file.role),
                ("io.time_s.total", file.io.time_s.total),
            )
        ]
        for number, edge in enumerate((profile.workflow.app_dependencies or [])[:5]):
            evidence.append(Evidence(f"workflow.app_dependencies[{number}].producer", edge.producer))
            evidence.append(Evidence(f"workflow.app_dependencies[{number}].consumer", edge.consumer))
        if profile.job.nodes is not None:
            evidence.append(Evidence("job.nodes", profile.job.nodes))
        evidence += [Evidence(name, value) for name, value in tier.evidence]
        busy = min(
            sum(seconds(file.io.busy_s.total) for _, file in far),
            seconds(profile.dataset.io.busy_s.total) or math.inf,
        )
        gain = self._gain(far, tier, busy, nodes, profile)
        count = _scaled(len(far), len(far), profile)
        per = "" if nodes == 1 or tier.is_shared else " per node"
        size = (
            "" if tier.capacity is None else f" of the {format_bytes(tier.capacity)} that may be used there"
        )
        spent = sum(seconds(file.io.time_s.total) for _, file in far)
        reason = (
            f"{counted(count, 'file')} in {top}, written and read again within the run, "
            f"with {format_share(share)} of its I/O time ({format_seconds(spent)} summed over processes), need "
            f"{format_bytes(per_node)}{per}{size}: keep them in {tier.name}."
        )
        if any(file.role == "intermediate" for _, file in far):
            reason += " What is needed after the run has to be copied back before the job ends."
        own = all(file.processes == 1 for _, file in far)
        if not own and nodes > 1 and not tier.is_shared:
            reason += " This holds if who reads a file runs on the node of who wrote it."
        if profile.job.nodes is None:
            reason += (
                " How many nodes the job has is not known; with several, each file's users must share a node."
            )
        if tier.because:
            reason += f" Note: {tier.because}."
        if gain is not None and gain.best_s >= gain.before_s:
            reason += " In this run the file system answered as fast as the node would: nothing is won here."
        if gain is None:
            reason += " For an expected gain, supply the rates of the burst buffer in --system."
        sure = 0.9 if (nodes == 1 and profile.job.nodes) or own or tier.is_shared else 0.7
        return Finding(
            target=Target("dataset", top, None),
            reason=reason,
            confidence=round(sure * tier.certainty, 2),
            touched_s=busy * files_share([file for _, file in far], profile),
            recommended=recommended,
            current={"directory": top},
            evidence=evidence,
            gain=gain,
            apply=[*lines(tier, plan), *_rest(order, folders, tier, plan, moved, profile)],
            files=frozenset(moved),
        )

    def _gain(
        self,
        far: Sequence[tuple[int, FileEntity]],
        tier: staging.Tier,
        busy: float,
        nodes: int,
        profile: Profile,
    ) -> Gain | None:
        io = [file.io for _, file in far]
        least = staging.local_s(
            tier,
            read=sum(stats.bytes.read or 0 for stats in io),
            written=sum(stats.bytes.written or 0 for stats in io),
            operations=sum(stats.ops.all for stats in io),
            nodes=nodes,
            concurrency=staging.concurrency(profile.dataset.io),
        )
        if least is None:
            return None
        return measured_gain(
            "io_time_s",
            busy,
            least,
            (float(self.least_factor), float(self.most_factor)),
            f"at best {least:.3g} s in {tier.name}; range measured for Montage ({self.least_factor} to "
            f"{self.most_factor} times, Vani paper, figure 8)",
            share=files_share([file for _, file in far], profile),
        )


def _size(file: FileEntity) -> int | None:
    known = [size for size in (file.size, file.io.footprint.written) if size is not None]
    # A temporary file whose bytes nobody counted may still be a known 0.
    return max(known, default=None)


def _scaled(value: int, listed: int, profile: Profile) -> int:
    """What is said of the listed files, of all files of their kind: a profile lists those with most I/O time."""
    if profile.lists_all_files:
        return value
    roles = profile.dataset.roles or {}
    return round(value * max(1.0, (roles.get("intermediate", 0) + roles.get("temporary", 0)) / listed))


def _crosses(file: FileEntity, profile: Profile) -> bool:
    """Whether processes that run at the same time, on several nodes for sure, use the file."""
    nodes = profile.job.nodes or 1
    apps = [app for app in profile.apps if app.name in file.apps]
    if nodes == 1 or not apps or any(app.instances > 1 for app in apps):
        # Instances of an app follow each other, any number of them on one node.
        return False
    return file.processes > sum(math.ceil(app.processes / nodes) for app in apps)


def _whole_folders(moved: set[str], profile: Profile) -> list[str]:
    """Folders that hold nothing but such files and results, none within another: those can be moved as they are."""
    roles: defaultdict[str, set[str]] = defaultdict(set)
    for file in profile.files:
        folder = folder_of(file.path)
        role = "moved" if file.path in moved else "result" if file.role == "output" else "other"
        roles[folder].add(role)
        # What a folder within holds is moved with it.
        while folder not in ("/", ".", ""):
            folder = posixpath.dirname(folder)
            roles[folder].add(f"below:{role}")
    whole = []
    for folder in sorted(roles, key=lambda folder: folder.split("/")):
        held = roles[folder]
        if (
            "moved" in held
            and not held & {"other", "below:other", "below:result"}
            and folder not in ("/", ".")
        ):
            whole.append(folder)
    most: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for file in profile.files:
        most[folder_of(file.path)][file.path not in moved] += _size(file) or 0
    # A folder that holds more results than intermediate bytes stays where its results belong.
    kept: list[str] = []
    for folder in whole:
        # By their parts, so that a folder comes right after the one that it is in.
        inside = kept and (folder + "/").startswith(kept[-1] + "/")
        if most[folder][0] >= most[folder][1] and not inside:
            kept.append(folder)
    return sorted(sorted(kept, key=lambda folder: -most[folder][0])[:FOLDERS])


def _rest(
    order: Sequence[tuple[int, FileEntity]],
    folders: Sequence[str],
    tier: staging.Tier,
    plan: Plan,
    moved: set[str],
    profile: Profile,
) -> list[str]:
    """Lines for files whose folder stays, and for results whose folder moves."""
    made: list[str] = []
    single = [
        file.path for _, file in order if not any(file.path.startswith(f"{folder}/") for folder in folders)
    ]
    if single:
        shown = ", ".join(single[:10]) + (f" and {len(single) - 10} more" if len(single) > 10 else "")
        made += comment(f"their folder holds other files, too, so name these in {plan.name} by hand: {shown}")
    for folder in folders:
        results = [
            file
            for file in profile.files
            if file.path not in moved and file.path.startswith(f"{folder}/") and file.role == "output"
        ]
        old, new = quoted_path(folder), shell_path(place(tier, plan, folder))
        if results and old is not None and new is not None:
            launcher = plan.launcher
            each = f"{launcher.on_each()} " if launcher and not tier.is_shared else ""
            made += comment(
                f"at the end, where the results there are needed ({counted(len(results), 'file')} that nobody read):"
            )
            made.append(f"test ! -h {old} || rm {old}")
            script = 'mkdir -p "$2" && cp -R -p "$1/." "$2/"'
            made.append(f"{each}sh -c '{script}' sh {new} {old}")
    return made
