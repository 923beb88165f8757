"""BB002: intermediate files that need not leave the node.

Rereading a file does not make it intermediate: a restart reads a checkpoint, a check reads its result, and a
benchmark reads what it has just written. Intermediate files are

- files that one app wrote and another read, in folders of mostly such files, because an app may also look at a few
  results of another;
- files that the run removes after reading each written byte at least `min_reuse` times;
- many small files, `min_files` or more of an app, that the run creates and removes and whose I/O time is metadata.

Empty files are locks and signals, which must be visible to all.
"""

from __future__ import annotations

import math
import posixpath
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.advisors import rule
from vani.advisors.burst_buffer.staging_lines import Plan, lines, name_of, place, shell_path
from vani.advisors.commands import comment, launcher_name, quoted_path
from vani.advisors.data_files import data_files, extent, folder_of, is_checkpoint
from vani.advisors.gains import staging_gain
from vani.models import staging
from vani.models.run_time import of_files_s, seconds
from vani.units import counted, format_bytes, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System


Numbered = tuple[int, "FileEntity"]
"""The index of a file in the profile, and the file."""


# More paths do not help a reader, and the folders contain all of them.
SHOWN = 100

# More lines do not help either: users with more folders move the parent folder.
FOLDERS = 20


class IntermediateFiles(rule.Rule):
    """Files that the run makes, and that are not needed afterwards, are on the file system.

    Looks at
        Files that one app writes and another reads, in folders of mostly such files; files that the run removes in the
        end, if it reads them repeatedly, or makes so many small ones that most of their time is metadata. Their share
        of the I/O time, their size per node, their users, and the space in storage of the node.
    Why
        They cross the network twice and wait for servers that all jobs share, although their consumer
        runs on their producer's node, or could. On the node, small accesses cost a call, not a message.
    Recommends
        A folder on the node for them, set in the program's arguments or by a link in place of the old folder. When the
        job's script ends, the folder replaces the link and gets the remaining files. With one node this always works.
        With several, it works if a file's reader runs on its writer's node (WFL001 places them so), or on a burst
        buffer that all nodes of the job see.
    Stays silent when
        Nothing is written and read again; the files read again are checkpoints by their names, empty files (locks),
        results of which an app reads only some, or what the same app wrote and keeps, or reads back once (a check, a
        restart, a benchmark); such files have less than `min_share` of the I/O time; they are already near; their sizes
        are not known; they fit nowhere, or not on the nodes of their users; processes of several nodes use one file at
        the same time and no burst buffer is shared.
    Source
        Vani paper, section V-B (Montage: intermediate files have 95 % of the I/O time, 800 MB per node fit in shared
        memory, 3.9 to 8 times as fast).
    Example
        Montage on 32 nodes: `proj`, `diff` and `corr` go to `/dev/shm`, 800 MB per node; the mosaic stays on GPFS.
    """

    id = "BB002"
    settles = "location"
    sources = ("Vani paper, section V-B",)

    # Removing less than a twentieth of the I/O time does not show between runs (see MAT001). Montage: 95 %.
    min_share = 0.05
    # Checks and benchmarks write once and read back once, and data sieving may double that (our choice).
    min_reuse = 3
    # Less time is within the variation between repetitions (as for severities, our choice).
    min_reuse_s = 1.0
    # Our choice: with 1 ms per open or removal, a usual round trip to a loaded server, fewer take a tenth of a second.
    min_files = 100
    # At half, finding the data takes longer than moving it (as in BB001).
    metadata_share = 0.5
    # A folder with more bytes of results than of intermediate files is a folder of results (our choice).
    handed_share = 0.5
    # In practice, 10 to 20 % of a node's memory stay free while the program runs (page cache counts as used).
    spare = 0.2
    # By default, a tmpfs may take half of the memory (tmpfs(5)).
    memory_share = 0.5

    def check(self, profile: Profile, system: System) -> rule.Verdict:
        passing = own_files(profile, self)
        if isinstance(passing, str):
            return passing
        far = [(i, f) for i, f in passing if not staging.is_near(f.path, profile, system)]
        if not far:
            return "the intermediate files are already near the nodes"
        listed = sum(seconds(file.io.time_s.total) for file in profile.files)
        all_s = max(listed, seconds(profile.dataset.io.time_s.total))
        share = sum(seconds(file.io.time_s.total) for _, file in far) / all_s if all_s else 0.0
        if share < self.min_share:
            return (
                f"files that are written and read again have {format_share(share)} of the I/O time, "
                f"less than {format_share(self.min_share)}"
            )
        sized = [extent(file) for _, file in far]
        if all(size is None for size in sized):
            return "the size of the intermediate files is not known; supply a trace with offsets"
        nodes = profile.job.nodes or 1
        crossing = [file.path for _, file in far if _crosses(file, profile)]
        total = _scaled(sum(size or 0 for size in sized), len(far), profile)
        per_node = _on_fullest_node(far, total, nodes, profile)
        tier = staging.choose(
            staging.tiers(profile, system, spare=self.spare, memory_share=self.memory_share),
            total=total,
            nodes=nodes,
            shared=bool(crossing),
            per_node=per_node,
        )
        if isinstance(tier, str):
            crossed = f"{crossing[0]} is used by processes of several nodes at the same time: " if crossing else ""
            return crossed + tier
        return [self._finding(far, tier, total, per_node, share, profile, system)]

    def _finding(
        self,
        far: Sequence[Numbered],
        tier: staging.Tier,
        total: int,
        per_node: int,
        share: float,
        profile: Profile,
        system: System,
    ) -> rule.Finding:
        nodes = profile.job.nodes or 1
        top = staging.common_folder(file.path for _, file in far)
        moved = {file.path for _, file in far}
        folders = _whole_folders(moved, profile)
        per_node = total if tier.is_shared else per_node
        plan = Plan(
            name=name_of(top, "intermediate"),
            folders=tuple(folders),
            total=total,
            per_node=per_node,
            nodes=profile.job.nodes,
            launcher_name=launcher_name(profile, system),
            shared=tier.is_shared and nodes > 1,
        )
        order = sorted(far, key=lambda pair: -seconds(pair[1].io.time_s.total))
        recommended: dict[str, rule.Value] = {
            "directory": posixpath.commonpath([place(tier, plan, folder) for folder in folders])
            if folders
            else posixpath.join(tier.dir or tier.name, plan.name),
            "bytes_per_node": per_node,
            "files": [file.path for _, file in order[:SHOWN]],
        }
        evidence = [
            figure
            for index, file in order[:5]
            for figure in rule.figures(file, f"files[{index}]", "path", "role", "io.time_s.total")
        ]
        for number, edge in enumerate((profile.workflow.app_dependencies or [])[:5]):
            evidence += rule.figures(edge, f"workflow.app_dependencies[{number}]", "producer", "consumer")
        evidence += rule.known_figures(profile, "", "job.nodes")
        evidence += [rule.Evidence(name, value) for name, value in tier.evidence]
        spent = of_files_s([file for _, file in far], profile, "total")
        gain = self._gain(far, tier, spent, profile, system)
        count = _scaled(len(far), len(far), profile)
        per = "" if nodes == 1 or tier.is_shared else " per node"
        size = "" if tier.capacity is None else f" of the {format_bytes(tier.capacity)} that may be used there"
        reason = (
            f"{counted(count, 'file')} in {top}, which the run makes for itself, with "
            f"{format_share(share)} of its I/O time (they cost the run {format_seconds(spent)}), need "
            f"{format_bytes(per_node)}{per}{size}: keep them in {tier.name}."
        )
        if any(file.role == "intermediate" for _, file in far):
            reason += " What of them is needed after the run has to be copied back before the job ends."
        own = all(file.processes == 1 for _, file in far)
        if not own and not tier.is_shared:
            reason += _where_read(far, nodes, profile)
        if tier.because:
            reason += f" Note: {tier.because}."
        # A trace does not show on which node the reader of a file runs.
        sure = 0.9 if (nodes == 1 and profile.job.nodes) or own or tier.is_shared else 0.6
        return rule.Finding(
            target=rule.Target("dataset", top, None),
            reason=reason,
            confidence=round(sure * tier.certainty, 2),
            touched_s=spent,
            recommended=recommended,
            current={"directory": top},
            evidence=evidence,
            gain=gain,
            apply=[*lines(tier, plan), *_rest(order, folders, tier, plan, moved, profile)],
            files=frozenset(moved),
            # A program may choose the folder of temporary files by this variable (POSIX).
            settings=[rule.TunableSetting("environment", [{"TMPDIR": tier.plain_dir}])]
            if tier.plain_dir is not None and all(file.role == "temporary" for _, file in far)
            else (),
        )

    def _gain(
        self,
        far: Sequence[Numbered],
        tier: staging.Tier,
        spent: float,
        profile: Profile,
        system: System,
    ) -> rule.Gain | rule.Perhaps | str:
        nodes = profile.job.nodes or 1
        io = [file.io for _, file in far]
        disk, _ = staging.file_system_of((file for _, file in far), system)
        read, written = sum(stats.bytes.read or 0 for stats in io), sum(stats.bytes.written or 0 for stats in io)
        metadata, operations = sum(stats.ops.metadata for stats in io), sum(stats.ops.all for stats in io)
        now = staging.present_s(disk, profile, system, read=read, written=written, metadata=metadata, nodes=nodes)
        at_once = staging.concurrency(profile.dataset.io)
        local_s = staging.local_s(
            tier, read=read, written=written, operations=operations, nodes=nodes, concurrency=at_once
        )
        back = sum(extent(file) or 0 for _, file in far if file.role == "intermediate")
        rate = staging.write_rate(disk, profile)
        after = None if local_s is None or (back and not rate) else local_s + (back / rate if rate else 0.0)
        method = f"in {tier.name}, and copied back"
        if local_s is not None and local_s >= spent:
            if not system.generic and not any(system.file_system_for(file.path) for _, file in far):
                why = "the traced disk, as fast as a node's memory, is not on"
                return rule.Perhaps(f"{why} {system.name}: measure there")
            method = "the file system answered as fast as the node would"
            return rule.Gain("io_time_s", spent, spent, spent, spent, method)
        gain = staging_gain("io_time_s", spent, now, after, method, generic=system.generic)
        if isinstance(gain, str) and any(len(file.apps) > 1 for _, file in far):
            return f"{gain}; Montage was 3.9 to 8 times as fast with such files in memory of its nodes (Vani paper)"
        return gain


def _scaled(value: int, listed: int, profile: Profile) -> int:
    """A figure of the listed files, scaled to all files of their kind."""
    if profile.lists_all_files:
        return value
    roles = profile.dataset.roles or {}
    return round(value * max(1.0, (roles.get("intermediate", 0) + roles.get("temporary", 0)) / listed))


def _crosses(file: FileEntity, profile: Profile) -> bool:
    """True if simultaneous processes that must be on several nodes use the file."""
    nodes = profile.job.nodes or 1
    apps = [app for app in profile.apps if app.name in file.apps]
    if nodes == 1 or len(apps) < max(1, len(file.apps)) or any(app.instances > 1 for app in apps):
        # Instances of an app run one after another, and any number of them may use the same node.
        return False
    return file.processes > sum(math.ceil(app.processes / nodes) for app in apps)


def _on_fullest_node(far: Sequence[Numbered], total: int, nodes: int, profile: Profile) -> int:
    """Bytes on the fullest node: an even share, or everything that an app with few processes uses."""
    listed = sum(extent(file) or 0 for _, file in far)
    most = total / nodes
    for app in profile.apps:
        used = sum(extent(file) or 0 for _, file in far if app.name in file.apps)
        if listed:
            most = max(most, total * used / listed / min(nodes, max(1, app.processes)))
    return math.ceil(most)


def _where_read(far: Sequence[Numbered], nodes: int, profile: Profile) -> str:
    """The condition under which a reader finds the file, in words."""
    used = {name for _, file in far for name in file.apps}
    gather = [app.name for app in profile.apps if app.name in used and app.processes == 1 and len(used) > 1]
    if profile.job.nodes is None:
        text = (
            " The number of nodes is not known; with several, a file's reader must run on the node of its "
            "writer."
        )
    elif nodes > 1:
        text = " This works if a file's reader runs on the node of its writer."
    else:
        return ""
    if gather:
        text += (
            f" {', '.join(gather[:3])}, of one process, find{'s' if len(gather) == 1 else ''} only what was written "
            "on the same node."
        )
    return text


def _whole_folders(moved: set[str], profile: Profile) -> list[str]:
    """Folders that contain only intermediate files and results and can be moved as a whole; none is inside another."""
    roles: defaultdict[str, set[str]] = defaultdict(set)
    for file in profile.files:
        folder = folder_of(file.path)
        role = "moved" if file.path in moved else "result" if file.role == "output" else "other"
        roles[folder].add(role)
        # Subfolders move with their parents.
        while folder not in ("/", ".", ""):
            folder = posixpath.dirname(folder)
            roles[folder].add(f"below:{role}")
    folders_moved = []
    for folder in sorted(roles, key=lambda folder: folder.split("/")):
        counts = roles[folder]
        if (
            "moved" in counts
            and not counts & {"other", "below:other", "below:result"}
            and folder not in ("/", ".")
        ):
            folders_moved.append(folder)
    most: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for file in profile.files:
        most[folder_of(file.path)][file.path not in moved] += extent(file) or 0
    # A folder with more bytes of results than of intermediate files stays.
    lines_after: list[str] = []
    for folder in folders_moved:
        # Sorted by path components, so that a folder follows its parent directly.
        inside = lines_after and (folder + "/").startswith(lines_after[-1] + "/")
        if most[folder][0] >= most[folder][1] and not inside:
            lines_after.append(folder)
    above = (
        posixpath.commonpath(lines_after)
        if lines_after and all(folder.startswith("/") for folder in lines_after)
        else "/"
    )
    unlisted = set() if profile.lists_all_files else (profile.dataset.roles or {"input": 1}).keys()
    is_all = roles[above] == {"below:moved"} and unlisted <= {"intermediate", "temporary"}
    if len(lines_after) > 1 and above.count("/") > 1 and is_all:
        # There is nothing else: one link for everything also covers later subfolders.
        return [above]
    return sorted(sorted(lines_after, key=lambda folder: -most[folder][0])[:FOLDERS])


def _rest(
    order: Sequence[Numbered],
    folders: Sequence[str],
    tier: staging.Tier,
    plan: Plan,
    moved: set[str],
    profile: Profile,
) -> list[str]:
    """Lines for files whose folder stays and for results whose folder moves."""
    lines: list[str] = []
    single = [file.path for _, file in order if not any(file.path.startswith(f"{folder}/") for folder in folders)]
    if single:
        shown = ", ".join(single[:10]) + (f" and {len(single) - 10} more" if len(single) > 10 else "")
        lines += comment(f"their folder contains other files, too, so name these in {plan.name} by hand: {shown}")
    for folder in folders:
        results = [
            file
            for file in profile.files
            if file.path not in moved and file.path.startswith(f"{folder}/") and file.role == "output"
        ]
        old, new = quoted_path(folder), shell_path(place(tier, plan, folder))
        # If a link replaces the folder, removing the link restores everything.
        if results and tier.is_shared and old is not None and new is not None:
            lines += comment(
                f"at the end, if the results there are needed ({counted(len(results), 'file')} that no process read):"
            )
            lines.append(f"mkdir -p {old} && cp -R -p {new}/. {old}/")
    return lines


def own_files(profile: Profile, by: IntermediateFiles) -> list[Numbered] | str:
    """Find intermediate files, or return a sentence on why there are none."""
    inner = [
        (item.index, item.file)
        for item in data_files(profile, lambda file: file.role in ("intermediate", "temporary"))
    ]
    if not inner:
        return "the run reads nothing that it wrote, and removes nothing"
    # A restart in the same run makes a checkpoint look intermediate, but it must survive the node (BB003).
    passing = [(i, f) for i, f in inner if not is_checkpoint(f.path)]
    if not passing:
        return "the files that the run writes and rereads are checkpoints by name, which must survive"
    filled = [(i, f) for i, f in passing if not _is_empty(f)]
    if not filled:
        return "the files that the run writes and rereads, or removes, are empty, such as locks"
    own = {
        index: (index, file)
        for part in (
            _handed_on(filled, profile, by),
            _read_often(filled, profile, by),
            _storms(filled, profile, by),
        )
        for index, file in part
    }
    if not own:
        return (
            "the run rereads only results, or what it has just written: no file "
            "is passed between apps, or read repeatedly and then removed"
        )
    return [own[index] for index in sorted(own)]


def _is_empty(file: FileEntity) -> bool:
    moved = (file.io.bytes.read, file.io.bytes.written)
    return not file.size and all(amount == 0 for amount in moved)


def _handed_on(files: Sequence[Numbered], profile: Profile, by: IntermediateFiles) -> list[Numbered]:
    edges = profile.workflow.app_dependencies
    pairs = {(e.producer, e.consumer) for e in edges or () if e.producer != e.consumer}

    def is_handed(file: FileEntity) -> bool:
        used = set(file.apps)
        return len(used) > 1 and (edges is None or any(used >= set(pair) for pair in pairs))

    handed = [(i, f) for i, f in files if is_handed(f)]
    chosen = {index for index, _ in handed}
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for index, file in enumerate(profile.files):
        if file.writers or index in chosen:
            counts[folder_of(file.path)][index not in chosen] += extent(file) or 0
    return [
        (i, f)
        for i, f in handed
        for own, other in [counts[folder_of(f.path)]]
        if own >= by.handed_share * (own + other)
    ]


def _read_often(files: Sequence[Numbered], profile: Profile, by: IntermediateFiles) -> list[Numbered]:
    again = [
        (i, f)
        for i, f in files
        if f.role == "temporary" and (f.io.bytes.read or 0) >= by.min_reuse * max(1, f.io.bytes.written or 0)
    ]
    return again if of_files_s([f for _, f in again], profile, "total") >= by.min_reuse_s else []


def _storms(files: Sequence[Numbered], profile: Profile, by: IntermediateFiles) -> list[Numbered]:
    removed: defaultdict[str, list[Numbered]] = defaultdict(list)
    for index, file in files:
        if file.role == "temporary" and file.apps:
            removed[file.apps[0]].append((index, file))
    listed = Counter(file.role for file in profile.files)["temporary"]
    scale = 1.0
    if not profile.lists_all_files and listed:
        scale = max(1.0, (profile.dataset.roles or {}).get("temporary", 0) / listed)
    storms = []
    for group in removed.values():
        time = sum(seconds(f.io.time_s.total) for _, f in group)
        metadata = sum(seconds(f.io.time_s.metadata) for _, f in group)
        if len(group) * scale >= by.min_files and time and metadata >= by.metadata_share * time:
            storms += group
    return storms
