"""LUS004: more writers than targets, whose small records are interleaved in one file."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from vani.advisors.commands import command_lines
from vani.advisors.data_files import folder_of, large_shared_files, only
from vani.advisors.placement import FolderRule, Lustre, keeps_own_layout, present_stripes
from vani.advisors.rule import Evidence, Finding, Perhaps, Verdict, figures
from vani.models.run_time import of_files_s
from vani.models.stripe_count import LUSTRE_MAX_STRIPES
from vani.units import MiB, format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import FileSystem, System


class Overstriping(FolderRule):
    """Many processes write small records between each other's in one file, more processes than targets.

    Looks at
        Shared files on Lustre of at least `min_bytes` with more writers than the file system has targets, whose
        writes are strided (at least `min_strided` of them) and at most `max_record` long.
    Why
        Locks are per object, and an object is on one target. Where records of many nodes are in one stripe, its
        lock travels with each record; more objects let more locks travel at a time, although the targets are the same.
    Recommends
        Several objects per target (`lfs setstripe -C`): as many as there are writers, a multiple of the targets,
        at most `per_target` on each and 2000 in all, with stripes of 1 MiB. Better still is to gather the records
        in the program (collective buffering), where that can be changed.
    Stays silent when
        No large file is written by more processes than there are targets, or not in small strided records; the
        targets, or whether Lustre is new enough (2.13), are not known, or it is too old; the data is not on Lustre;
        the site asks not to override its layout.
    Source
        lfs-setstripe(1). Layouts of 44 submissions to IO500 for ior-hard (records of 47,008 bytes): 16 overstripe,
        and its template takes four objects per target.
    Example
        256 processes on 16 nodes write records of 47,008 bytes into one file over 24 targets:
        `lfs setstripe -C 96 -S 1M DIR`.
    """

    id = "LUS004"
    settles = "layout"
    sources = ("lfs-setstripe(1)", "IO500 submissions, ior-hard")

    # As in LUS002: twice max_dirty_mb, the client's buffer per target (general knowledge).
    min_bytes = 64 * MiB
    # Records of half a stripe or less share it with another process (stripes of 1 MiB).
    max_record = 524_288
    # Nearly all, because headers are not strided (our choice; ior-hard has 1.0).
    min_strided = 0.8
    # IO500's template: `-C $((osts*4))` for ior-hard.
    per_target = 4

    def check(self, profile: Profile, system: System) -> Verdict:
        shared = large_shared_files(profile, int(self.min_bytes))
        if isinstance(shared, str):
            return shared
        small = [(i, f) for i, f in shared if self._is_interleaved(f)]
        if not small:
            return "no large shared file is written in small strided records"
        return self.on_lustre(((folder_of(row[1].path), row) for row in small), profile, system)

    def _is_interleaved(self, file: FileEntity) -> bool:
        sizes, pattern = file.io.transfer_size.write, file.io.access_pattern
        return (
            sizes is not None
            and sizes.p50 is not None
            and sizes.p50 <= self.max_record
            and pattern is not None
            and pattern.strided >= self.min_strided
        )

    def judge(self, part: tuple[int, FileEntity], place: Lustre, profile: Profile) -> Finding | str:
        (index, file), disk = part, place.figures
        if own_layout := keeps_own_layout(disk):
            return own_layout
        if disk is None or not disk.targets:
            return "the number of targets is not known; supply it (`lfs df`) in --system"
        if file.writers <= disk.targets:
            return "no more processes write than there are targets: a stripe for each is enough"
        if not _can_overstripe(disk):
            known = disk.overstriping is not None or disk.version is not None
            return (
                "Lustre is too old here for several objects per target (2.13 and later)"
                if known
                else "whether several objects per target are possible is not known; supply `overstriping` or the "
                "version of Lustre in --system"
            )
        most = min(int(self.per_target) * disk.targets, LUSTRE_MAX_STRIPES)
        rounds = max(1, min(math.ceil(file.writers / disk.targets), most // disk.targets))
        count = min(rounds * disk.targets, most)
        if disk.max_stripe_count:
            count = min(count, disk.max_stripe_count)
        if count <= disk.targets:
            return "the site allows no more stripes than targets"
        return self._finding(index, file, count, place, disk, profile)

    def _finding(
        self, index: int, file: FileEntity, count: int, place: Lustre, disk: FileSystem, profile: Profile
    ) -> Finding:
        sizes = file.io.transfer_size.write
        record = (sizes.p50 if sizes else None) or 1
        folder = folder_of(file.path)
        reason = (
            f"{file.writers} processes write {file.path} in records of {format_bytes(record)} between each other's, "
            f"on {disk.targets} targets: {count} objects let more of their locks travel at a time. Collective "
            "buffering, which gathers the records first, may save more."
        )
        return Finding(
            **only(file),
            reason=reason + place.note,
            confidence=round(0.5 * place.certainty, 2),
            touched_s=of_files_s([file], profile, "write_synced"),
            recommended={"overstripe_count": count, "stripe_size": MiB},
            current=dict(zip(("stripe_count", "stripe_size"), present_stripes(file, disk), strict=True)),
            evidence=[
                *figures(file, f"files[{index}]", "path", "writers", "io.transfer_size.write.p50", "stride"),
                Evidence(f"{place.prefix}.targets", disk.targets),
            ],
            gain=Perhaps("the cost of locks that move was not measured on this machine: try it (`vani tune`)"),
            apply=command_lines(f"lfs setstripe -C {count} -S 1M", folder),
        )


def _can_overstripe(disk: FileSystem) -> bool:
    if disk.overstriping is not None:
        return disk.overstriping
    version = re.search(r"(\d+)\.(\d+)", disk.version or "")
    return version is not None and (int(version[1]), int(version[2])) >= (2, 13)
