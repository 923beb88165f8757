"""BB001: inputs that are worth copying near the nodes before the program reads them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vani.advisors import rule
from vani.advisors.burst_buffer.staging_lines import Plan, lines, name_of, place
from vani.advisors.commands import launcher_name
from vani.advisors.data_files import Item, PatternShare, data_files, files_of, folder_of, pattern_evidence
from vani.advisors.gains import staging_gain
from vani.models import staging
from vani.models.io_time import calls_s
from vani.models.run_time import files_share, seconds
from vani.units import KiB, MiB, format_bytes, format_count, format_number, format_share

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System

# The files with most I/O time are enough evidence.
SHOWN = 5


@dataclass(frozen=True)
class Inputs:
    """The inputs of a folder, including those that the profile does not list.

    They have `distinct` bytes. `read` bytes are read in total, and a node reads at most `touch` of them.
    """

    folder: str
    files: list[Item]
    count: int
    distinct: int
    read: int
    operations: float
    metadata_operations: float
    busy_s: float
    metadata: float
    transfer: int | None

    @property
    def reuse(self) -> float:
        return self.read / self.distinct if self.distinct else 0.0


class StageIn(rule.Rule):
    """Inputs that are read repeatedly, in small pieces or with much metadata are on the file system.

    Looks at
        Folders of inputs (files that are only read) with at least `min_bytes`, or more than `min_files` files: how
        often each byte is read, the usual size of a read, the share of metadata in their I/O time; how much of
        them a node reads at most, and what fits in storage near it.
    Why
        Each open, seek and small read of a shared file system is a message to a server that all jobs share.
        A copy on the node is made once, with large reads, and answers from memory or flash.
    Recommends
        Copy them near the nodes before the program starts, and let the program read the copy. If not all of them fit,
        each node copies only the part that it reads. The rule reports this only if copying and reading the copy take
        less time than reading took. The lines fit the machine's burst buffer: folder of the node, DataWarp, Slurm burst
        buffer, Rabbit, BeeOND, UnifyFS, GekkoFS.
    Stays silent when
        There are no inputs, or few and small ones (those are broadcast: POS001); they are read once, in large pieces;
        reads of them return no bytes; they are already near the nodes; they fit nowhere; copying takes longer than it
        saves; the bytes that were read are not known.
    Source
        Vani paper, section V-A (CosmoFlow: 1.5 TB of which each of 32 nodes stores 47 GB in unused memory, 2.2 to
        4.6 times as fast). Copying: mpiFileUtils. Stage decision: see `vani/models/staging.py`.
    Example
        CosmoFlow reads 49,664 HDF5 files of 32 MB, with 98 % of its I/O time in metadata: 47 GB per node are copied
        to `/dev/shm` and read there.
    """

    id = "BB001"
    settles = "location"
    sources = ("Vani paper, section V-A", "mpiFileUtils documentation")

    # POS001 (read-by-all) covers smaller inputs: it broadcasts up to 64 MiB in up to 16 files of a folder.
    min_bytes = 64 * MiB
    # See min_bytes.
    min_files = 16
    # Staging decision: copying once and reading once doubles the work of the file system.
    min_reuse = 2
    # Vani paper, figure 5 and section V-B: accesses below 4 KB made Montage slow. Its inputs, read once in pieces of
    # 64 KB, stayed where they were.
    small_read = 4 * KiB
    # At half, finding the data takes longer than moving it. CosmoFlow has 98 % (Vani paper, section V-A).
    metadata_share = 0.5
    # In practice, 10 to 20 % of a node's memory stay free while the program runs (page cache counts as used).
    spare = 0.2
    # By default, a tmpfs may take half of the memory (tmpfs(5)).
    memory_share = 0.5

    def check(self, profile: Profile, system: System) -> rule.Verdict:
        if not any(f.role == "input" and f.readers > 0 for f in profile.files):
            return "no file is only read"
        # Modules and configuration of the machine are not inputs to copy.
        inputs = data_files(profile, lambda file: file.role == "input" and file.readers > 0)
        far = [item for item in inputs if not staging.is_near(item.file.path, profile, system)]
        if not far:
            return "the inputs are already near the nodes, or belong to the machine"
        known = [
            item
            for item in _scaled(far, profile)
            if item.file.io.bytes.read is not None and _distinct(item.file) is not None
        ]
        if not known:
            return (
                "files[].io.footprint.read of the inputs is not known; supply a trace with offsets, or --job job.yaml"
            )
        groups = [folder for folder in _folders(known, profile) if folder.distinct]
        if not groups:
            return "no byte of the inputs is read: no data to copy"
        large = [group for group in groups if group.distinct >= self.min_bytes or group.count > self.min_files]
        if not large:
            return (
                f"the inputs are few and have less than {format_bytes(self.min_bytes)} in any folder: "
                "a copy on one process and a broadcast serve them better"
            )
        return self.among(self._judge(group, profile, system) for group in large)

    def _judge(self, inputs: Inputs, profile: Profile, system: System) -> rule.Finding | str:
        why = self._why(inputs)
        if why is None:
            return f"the inputs in {inputs.folder} are read once, in large pieces"
        nodes = profile.job.nodes or 1
        # A node needs at most the bytes that it reads. If each byte is read once, that is a part of the files.
        everywhere = nodes > 1 and inputs.read >= nodes * inputs.distinct
        touch = min(inputs.distinct, math.ceil(inputs.read / nodes))
        candidates = staging.tiers(profile, system, spare=self.spare, memory_share=self.memory_share)
        tier = staging.choose(candidates, total=inputs.distinct, nodes=nodes, shared=False, per_node=touch)
        if isinstance(tier, str) and touch > inputs.distinct / nodes:
            # Everything fits nowhere, but a part per node may fit, if the program can be made to read only that part.
            part = math.ceil(inputs.distinct / nodes)
            tier = staging.choose(candidates, total=inputs.distinct, nodes=nodes, shared=False, per_node=part)
            touch, everywhere = part, False
        if isinstance(tier, str):
            return tier
        disk, where = staging.file_system_of((item.file for item in inputs.files), system)
        copied = touch * nodes if not tier.is_shared else inputs.distinct
        after = self._staged_s(inputs, tier, staging.read_rate(disk, profile), copied, nodes, profile)
        spent = inputs.busy_s * files_share([item.file for item in inputs.files], profile)
        if after is not None and inputs.busy_s and after >= inputs.busy_s:
            return (
                f"copying the inputs in {inputs.folder} and reading them there would take {format_number(after)} s, "
                f"reading them as now takes {format_number(inputs.busy_s)} s"
            )
        metadata = inputs.metadata_operations
        now = staging.present_s(disk, profile, system, read=inputs.read, written=0, metadata=metadata, nodes=nodes)
        method = f"copied once and read from {tier.name}"
        gain = staging_gain("read_time_s", spent, now, after, method, generic=system.generic)
        if isinstance(gain, str) and tier.uses_memory:
            gain += "; CosmoFlow was 2.2 to 4.6 times as fast with its inputs in memory of its nodes (Vani paper)"
        plan = Plan(
            name=name_of(inputs.folder, "inputs"),
            folders=(inputs.folder,),
            total=copied,
            per_node=touch,
            nodes=profile.job.nodes,
            launcher_name=launcher_name(profile, system),
            stage_in=True,
            everywhere=everywhere,
            # Name few files, because the run does not read the other files in the folder.
            files=_few(inputs, int(self.min_files)),
        )
        is_part = nodes > 1 and not everywhere and not tier.is_shared
        recommended: dict[str, rule.Value] = {
            "directory": place(tier, plan, inputs.folder),
            "bytes_per_node": touch,
            "each_node_holds": "its part" if is_part else "all",
        }
        evidence = [
            figure
            for item in inputs.files[:SHOWN]
            for figure in rule.known_figures(item.file, item.where, "path", "io.bytes.read", "io.footprint.read")
        ]
        if inputs.count > len(inputs.files):
            evidence += pattern_evidence([item.part for item in inputs.files], profile)
        evidence += rule.known_figures(profile, "", "job.nodes")
        evidence += [rule.Evidence(name, value) for name, value in tier.evidence]
        if disk is not None and disk.max_bandwidth.read:
            evidence += rule.figures(disk, where, "max_bandwidth.read")
        single = inputs.count == 1
        return rule.Finding(
            target=rule.Target(
                "file" if single else "directory",
                inputs.files[0].file.path if single else inputs.folder,
                inputs.files[0].file.apps[0] if inputs.files[0].file.apps else None,
            ),
            reason=self._sentence(inputs, why, tier, touch, is_part=is_part, profile=profile),
            confidence=round(tier.certainty * (0.6 if is_part else 0.8), 2),
            touched_s=spent,
            recommended=recommended,
            current={"directory": inputs.folder},
            evidence=evidence,
            gain=gain,
            apply=lines(tier, plan),
            files=frozenset(item.file.path for item in inputs.files),
            settings=[rule.TunableSetting("stage_in", [{"near": tier.plain_dir}], inputs.folder)]
            if tier.plain_dir is not None and not is_part and not plan.files
            else (),
        )

    def _why(self, inputs: Inputs) -> str | None:
        if inputs.reuse >= self.min_reuse:
            return f"each byte is read {format_number(inputs.reuse)} times"
        if inputs.metadata >= self.metadata_share:
            return f"{format_share(inputs.metadata)} of their I/O time is metadata"
        if inputs.transfer is not None and inputs.transfer <= self.small_read:
            subject = "it is" if inputs.count == 1 else "they are"
            return f"{subject} read {format_bytes(inputs.transfer)} at a time"
        return None

    def _staged_s(
        self, inputs: Inputs, tier: staging.Tier, rate: float | None, copied: int, nodes: int, profile: Profile
    ) -> float | None:
        """Seconds to copy the inputs and read them on the tier; None if a rate is missing."""
        if rate is None:
            return None
        at_once = staging.concurrency(profile.dataset.io)
        read = staging.local_s(
            tier, read=inputs.read, written=0, operations=inputs.operations, nodes=nodes, concurrency=at_once
        )
        return None if read is None else copied / min(rate, tier.writes(nodes) or rate) + read

    def _sentence(
        self, inputs: Inputs, why: str, tier: staging.Tier, touch: int, *, is_part: bool, profile: Profile
    ) -> str:
        files_text = (
            f"{inputs.files[0].file.path} ({format_bytes(inputs.distinct)})"
            if inputs.count == 1
            else f"{format_count(inputs.count)} input files in {inputs.folder} ({format_bytes(inputs.distinct)})"
        )
        size = "" if tier.capacity is None else f" of the {format_bytes(tier.capacity)} that may be used there"
        per = "" if tier.is_shared or (profile.job.nodes or 1) == 1 else " per node"
        text = f"{files_text}: {why}. A copy in {tier.name} takes {format_bytes(touch)}{per}{size}."
        if is_part:
            text += " That is a part for each node: the program must read only its node's files."
        if profile.job.nodes is None:
            text += " The number of nodes is not known, so each is assumed to store all."
        if tier.because:
            text += f" Note: {tier.because}."
        return text


def _few(inputs: Inputs, most: int) -> tuple[str, ...]:
    """Names of the inputs if they are few, in one folder and all listed; otherwise empty."""
    paths = tuple(item.file.path for item in inputs.files)
    in_folder = all(folder_of(path) == inputs.folder for path in paths)
    return paths if len(paths) == inputs.count <= most and in_folder else ()


def _distinct(file: FileEntity) -> int | None:
    """Distinct bytes read, at most the size of the file; None if unknown."""
    size = file.io.footprint.read if file.io.footprint.read is not None else file.size
    return min(size, file.size) if size is not None and file.size else size


def _scaled(items: list[Item], profile: Profile) -> list[Item]:
    """Inputs in an older document without patterns: unlisted inputs are assumed to be like the listed ones."""
    if profile.patterns is not None or profile.lists_all_files:
        return items
    scale = max(1.0, (profile.dataset.roles or {}).get("input", 0) / len(items))
    part = PatternShare(files=scale, reads=scale, opens=scale, read=scale, time=scale, metadata_time=scale)
    return [replace(item, part=part) for item in items]


def _folders(items: list[Item], profile: Profile) -> list[Inputs]:
    """Inputs by folder, including similar unlisted ones, limited to the totals of the data set."""
    whole = profile.dataset.io
    overlap = min(1.0, seconds(whole.busy_s.total) / calls_s(whole)) if calls_s(whole) else 1.0
    by_folder: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_folder[item.part.folder or folder_of(item.file.path)].append(item)
    groups = []
    for folder, inside in by_folder.items():
        io = [(item.file.io, item.part) for item in inside]
        total = sum(seconds(stats.time_s.total) * part.time for stats, part in io)
        metadata = sum(seconds(stats.time_s.metadata) * part.metadata_time for stats, part in io)
        # Files are read in parallel: assume the data set's overall overlap for unlisted ones.
        listed_s = sum(seconds(stats.time_s.total) for stats, _ in io)
        busy = sum(seconds(stats.busy_s.total) for stats, _ in io) + overlap * max(0.0, total - listed_s)
        sizes = sorted(s.p50 for s in (stats.transfer_size.read for stats, _ in io) if s is not None and s.p50)
        operations = sum((s.ops.all - s.ops.write) * part.files for s, part in io)
        groups.append(
            Inputs(
                folder=folder,
                files=sorted(inside, key=lambda item: -seconds(item.file.io.busy_s.total)),
                count=files_of(inside),
                distinct=round(
                    _at_most(
                        sum((_distinct(item.file) or 0) * item.part.read for item in inside),
                        sum(_distinct(item.file) or 0 for item in inside),
                        whole.footprint.read,
                    )
                ),
                read=round(
                    _at_most(
                        sum((s.bytes.read or 0) * part.read for s, part in io),
                        sum(s.bytes.read or 0 for s, _ in io),
                        whole.bytes.read,
                    )
                ),
                operations=_at_most(
                    operations, sum(s.ops.all - s.ops.write for s, _ in io), whole.ops.all - whole.ops.write
                ),
                metadata_operations=sum(s.ops.metadata * part.files for s, part in io),
                busy_s=min(busy, whole.busy_s.total) if whole.busy_s.total else busy,
                metadata=min(1.0, metadata / total) if total else 0.0,
                transfer=sizes[len(sizes) // 2] if sizes else None,
            )
        )
    return sorted(groups, key=lambda group: -group.busy_s)


def _at_most(value: float, listed: float, whole: float | None) -> float:
    """A sum over all files, at most the data set's total and at least that of the listed files."""
    return value if whole is None else max(listed, min(value, whole))
