"""LUS010: a few files of one process each, on how many Lustre targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.advisors.commands import command_lines, quoted_path
from vani.advisors.data_files import SHOWN, Item, app_of, data_files, extent, files_of, folder_of
from vani.advisors.movers import moved_in
from vani.advisors.placement import FolderRule, Lustre, keeps_own_layout, own_stripes, present_stripes
from vani.advisors.rule import Evidence, Finding, Perhaps, Target, TunableSetting, Verdict
from vani.advisors.small_requests import SMALL, sizes_of, small_share
from vani.models import stripe_count
from vani.models.run_time import of_files_s
from vani.units import MiB, counted, format_bytes, format_count, format_rate

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class WideFiles(FolderRule):
    """A few large files of one process each are on so few Lustre targets that most targets are idle.

    Looks at
        Files on Lustre that one process each writes, fewer at the same time than there are targets: their bytes, the
        nodes, the usual request, flushes, and the number of targets of each file.
    Why
        With one stripe each, eight files keep eight targets busy, and a file is no faster than its target.
    Recommends
        Stripes for the folder's new files, which give the files of a node together as many targets as LUS002 gives a
        shared file: `per_node` targets for each node of the job. A curve of this machine (`vani systems detect
        --sweep`) takes the place of this rule. The stripe size stays.
    Stays silent when
        At least as many files are written at the same time as there are targets (see LUS003), unless each node of the
        job writes one; only one file is written; the files are small, their requests are, or most writes are flushed
        one by one; each node already moves `enough` bytes per second; they are on half as many targets already;
        targets or stripes are not known; the site asks not to override its layout.
    Source
        LUS002's rule, judged with IOR on two file systems of ARCHER (docs/accuracy.md), the only machine with such
        measurements, with one process on each node. Lustre manual, section 19.2.
    Example
        8 processes on 8 nodes write files of 8 GiB each, on 56 targets: `lfs setstripe -c 16 DIR`. Measured there: 3.1
        GiB/s with one stripe each, 4.9 GiB/s with 56.
    """

    id = "LUS010"
    settles = "layout"
    sources = ("Lustre manual, section 19.2", "lfs-setstripe(1)")

    # As in LUS002, for all files written at the same time: the clients' memory absorbs less.
    min_bytes = 64 * MiB
    # A client sends requests of up to 4 MiB, and each target should get at least one.
    min_part = 4 * MiB
    # As in LUS002.
    per_node = stripe_count.PER_NODE
    # Bytes per second and node of independent calls from which on more targets gained nothing, as in LUS002.
    enough = stripe_count.ENOUGH
    # With more flushes or small requests, their number and not the targets determines the time.
    max_small_share = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:
        own = data_files(
            profile, lambda file: file.access == "file_per_process" and file.writers == 1 and file.role != "input"
        )
        large = [item for item in own if (extent(item.file) or 0) >= 2 * self.min_part]
        if not large:
            return f"no file of one process has {format_bytes(2 * self.min_part)} or more"
        at_once = _at_once(large, profile)
        if at_once == 1:
            return "files of one process each are written one after another"
        moved = sum(extent(item.file) or 0 for item in large) / len(large) * at_once
        if moved < self.min_bytes:
            least = format_bytes(self.min_bytes)
            return f"the files that are written at the same time have less than {least}"
        folders: defaultdict[str, list[Item]] = defaultdict(list)
        for item in large:
            folders[item.part.folder or folder_of(item.file.path)].append(item)
        parts = ((folder, (folder, items, at_once)) for folder, items in folders.items())
        return self.on_lustre(parts, profile, system)

    def judge(self, part: tuple[str, Sequence[Item], int], place: Lustre, profile: Profile) -> Finding | str:
        (folder, items, at_once), disk = part, place.figures
        first = items[0]
        if own_layout := keeps_own_layout(disk):
            return own_layout
        if disk is None or not disk.targets:
            return "the number of targets is not known; supply it (`lfs df`) in --system"
        now = present_stripes(first.file, disk)[0]
        if now is None:
            return "the default stripe count is not known; supply it (`lfs getstripe -d`) in --system"
        known_nodes = profile.job.nodes
        if at_once >= disk.targets and at_once > (known_nodes or 0):
            return (
                "at least as many files are written at the same time as there are targets, and no job says that each "
                "node writes one: see LUS003"
            )
        nodes = min(at_once, known_nodes or at_once)
        curve = stripe_count.nearest_curve(disk.stripe_curves, nodes=nodes, collective=False, reads=False, own=True)
        if (why := self._why_not(items, at_once, nodes, is_measured=curve is not None)) is not None:
            return why
        smallest = min(extent(item.file) or 1 for item in items)
        measured = None if curve is None else stripe_count.measured_per_node(curve)
        wanted = (
            stripe_count.own_targets(nodes=nodes, files=at_once, most=disk.targets, per_node=float(self.per_node))
            if measured is None
            else max(1, int(measured * nodes) // at_once)
        )
        most = min(disk.targets, smallest // max(1, int(self.min_part)), disk.max_stripe_count or disk.targets)
        count = stripe_count.neat(min(wanted, most), most)
        if now < 0 or count < 2 * now:
            return "the files of one process each are on about as many targets as their nodes keep busy"
        writers = f" by {counted(nodes, 'node')}" if known_nodes else ""
        reason = (
            f"{counted(at_once, 'file')} of one process each are written at the same time{writers}, and "
            f"{'they' if own_stripes(first.file) else 'new files'} are on {counted(now, 'target')} each: with "
            f"{format_count(count)} each, a node's files are on as many of the {format_count(disk.targets)} targets as "
            "a shared file would be. "
            "Stripes make each create and unlink ask more servers."
        )
        reason += (
            " Only one other machine was measured with such files."
            if measured is None
            else " This number was enough in measurements on this machine."
        )
        if not known_nodes:
            reason += " A node for each file is assumed: fewer need fewer targets, so supply the nodes with --job."
        where = f"{first.where}.stripe_count" if own_stripes(first.file) else f"{place.prefix}.stripe_count"
        return Finding(
            target=Target("directory", folder, app_of(first.file)),
            reason=reason + place.note,
            confidence=round((0.6 if known_nodes else 0.4) * place.certainty, 2),
            touched_s=of_files_s([item.file for item in items], profile, "write_synced"),
            recommended={"stripe_count": count},
            current={"stripe_count": now},
            evidence=[
                Evidence("files[]", files_of(items)),
                *(Evidence(f"{item.where}.path", item.file.path) for item in items[:SHOWN]),
                *([Evidence("job.nodes", known_nodes)] if known_nodes else []),
                Evidence(where, now),
                Evidence(f"{place.prefix}.targets", disk.targets),
            ],
            gain=Perhaps("more targets may also be slower: try it (`vani tune`)"),
            apply=command_lines(f"lfs setstripe -c {count}", folder),
            files=frozenset(item.file.path for item in items),
            settings=[TunableSetting("layout", [{"options": f"-c {count}"}], folder)] if quoted_path(folder) else (),
        )

    def _why_not(self, items: Sequence[Item], at_once: int, nodes: int, *, is_measured: bool) -> str | None:
        """The reason why the files do not wait for targets; None if they may."""
        ops = [item.file.io.ops for item in items]
        flushes, writes = sum(each.sync for each in ops), sum(each.write for each in ops)
        mean = sum(extent(item.file) or 0 for item in items) / len(items)
        busy = sum(moved_in(item.file, reads=False)[1] for item in items) / len(items)
        each = mean * at_once / busy / nodes if busy else 0.0
        if each >= self.enough and not is_measured:
            return (
                f"each node already moves {format_rate(each)} of these files: where that was measured, more targets "
                "gained nothing"
            )
        if writes and flushes >= self.max_small_share * writes:
            return "most writes are flushed one by one, which more targets do not change"
        small = [small_share(sizes_of(item.file.io, reads=False), SMALL) or 0.0 for item in items]
        if sum(small) >= self.max_small_share * len(small):
            return "most requests are small, which more targets do not change"
        return None


def _at_once(items: Sequence[Item], profile: Profile) -> int:
    """Most files in use at the same time; one per process if not all files are listed."""
    files = files_of(items)
    if files > len(items):
        names = {name for item in items for name in item.file.apps}
        return min(files, sum(app.processes for app in profile.apps if app.name in names) or files)
    times = [(item.file.first_s, item.file.last_s) for item in items]
    if any(first is None or last is None for first, last in times):
        return files
    # At the same time, ends sort before beginnings.
    events = sorted([(last or 0.0, -1) for _, last in times] + [(first or 0.0, 1) for first, _ in times])
    most = now = 0
    for _, step in events:
        now += step
        most = max(most, now)
    return max(1, most)
