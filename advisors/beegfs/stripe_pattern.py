"""BEE001: large shared files on few targets of a BeeGFS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import command_lines, quoted_path
from vani.advisors.data_files import Group, Item, by_folder, data_files, extent, listed
from vani.advisors.placement import disk_under
from vani.advisors.rule import Answer, Evidence, Finding, Rule, TunableSetting, Verdict
from vani.models.calibration import certainty
from vani.units import GiB, KiB, MiB, format_bytes, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import FileSystem, System

# BeeGFS's smallest chunk (STRIPEPATTERN_MIN_CHUNKSIZE), and the largest that its documentation names without caution.
_LEAST = 64 * KiB
_MOST = 8 * MiB


class StripePattern(Rule):
    """A large shared file is on few targets of a BeeGFS, though many processes use it.

    Looks at
        Shared files on BeeGFS of at least `min_bytes` that several processes read or write, the nodes of the job (or
        its processes, if unknown), and the number of targets of the file system and of a file.
    Why
        A file's chunks go round its targets, four by default. If more nodes write than these can serve, they wait while
        the other targets are idle.
    Recommends
        As many targets as there are nodes, at most all; chunks as large as the usual request, a power of two
        (`beegfs-ctl --setpattern --numtargets=N --chunksize=SIZE DIR`, with BeeGFS 8 `beegfs entry set`). New files
        inherit it from their folder. The site must allow users to set it (sysAllowUserSetPattern, off by default).
    Stays silent when
        No large file is shared; a file has at least half of the targets that its nodes can use; the number of targets
        is not known; the data is not on BeeGFS according to the machine's description or `vani collect`.
    Source
        BeeGFS documentation, Striping (doc.beegfs.io); its metadata server accepts chunks that are powers of two from
        64 KiB on, and users' patterns if sysAllowUserSetPattern is set.
    Example
        16 nodes write one file of 64 GiB in requests of 1 MiB on a BeeGFS of 32 targets:
        `beegfs-ctl --setpattern --numtargets=16 --chunksize=1M DIR`.
    """

    id = "BEE001"
    settles = "layout"
    sources = ("BeeGFS documentation, Striping",)

    # Up to a few GiB, few targets perform equally well (shared/data/oprael-tianhe-ior, on Lustre with 1 and 4 GiB).
    min_bytes = 4 * GiB
    # BeeGFS's default number of targets of a file.
    usual_targets = 4
    # Least factor whose gain shows between repeated runs (our choice).
    least_factor = 2.0

    def check(self, profile: Profile, system: System) -> Verdict:
        large = data_files(profile, lambda file: file.access == "shared" and (extent(file) or 0) >= self.min_bytes)
        if not large:
            return f"no file of {lfs_size(int(self.min_bytes))}iB or more is shared by processes"
        return self.among(self._judge(group, profile, system) for group in by_folder(large, profile))

    def _judge(self, group: Group, profile: Profile, system: System) -> Answer:
        first = group.of(group.items[:1])
        place = disk_under("beegfs", "BeeGFS", first.items[0].path, profile, system)
        if isinstance(place, str):
            return place
        where, disk = place
        if disk is None or not disk.targets:
            return "the number of targets is not known; supply `targets` (`beegfs-ctl --listtargets`)"
        targets, users = disk.targets, max(item.file.processes for item in group.items)
        now = disk.stripe_count or int(self.usual_targets)
        now = targets if now < 0 else now
        stripes = min(targets, users, profile.job.nodes or users)
        if stripes < self.least_factor * now:
            return f"{stripes} targets would be used, and a file has {now}"
        chunk = _chunk(group.items, disk)
        longest = max(extent(item.file) or 0 for item in group.items)
        sure = (0.6 if disk.stripe_count and profile.job.nodes else 0.4) * certainty(system)
        return Finding(
            **group.affected,
            reason=f"{users} processes use {listed(group.folder, group.items)}, {format_bytes(longest)} long, on {now} "
            f"of {targets} targets: {stripes} can serve them. The trace cannot show the gain: a run with the new "
            "pattern shows it.",
            confidence=round(sure, 2),
            touched_s=group.wall_s("read") + group.wall_s("write_synced"),
            recommended={"targets": stripes, "chunk_size": chunk},
            current={"targets": now, "chunk_size": disk.stripe_size},
            evidence=[
                *first.figures("path", "processes"),
                Evidence("job.nodes", profile.job.nodes),
                Evidence(f"{where}.targets", targets),
            ],
            apply=command_lines(
                _pattern(stripes, chunk), group.folder,
                f"with BeeGFS 8: beegfs entry set --num-targets={stripes} --chunk-size={lfs_size(chunk)}iB {{}}\n"
                "new files get it; if it is refused, the site has not set sysAllowUserSetPattern: ask",
            ),
            settings=[TunableSetting("layout", _worth_trying(stripes, now, targets, chunk), group.folder)]
            if quoted_path(group.folder)
            else (),
        )


def _pattern(targets: int, chunk: int) -> str:
    return f"beegfs-ctl --setpattern --numtargets={targets} --chunksize={lfs_size(chunk)}"


def _worth_trying(targets: int, now: int, most: int, chunk: int) -> list[dict[str, str]]:
    """Patterns with as many targets as there are nodes, twice as many and half as many."""
    numbers = dict.fromkeys(n for n in (targets, min(2 * targets, most), targets // 2) if n > now)
    return [{"command": _pattern(n, chunk)} for n in numbers]


def _chunk(items: list[Item], disk: FileSystem) -> int:
    """The largest power of two up to the usual request, but at least the present chunk size."""
    least = max(_LEAST, disk.stripe_size or MiB)
    sizes = [
        size.p50
        for item in items
        for size in (item.file.io.transfer_size.write, item.file.io.transfer_size.read)
        if size is not None and size.p50
    ]
    usual = min(sizes, default=0)
    return max(least, min(_MOST, 1 << max(0, usual.bit_length() - 1)))
