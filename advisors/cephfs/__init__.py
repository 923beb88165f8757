"""Rules about files on a CephFS.

The default layout needs no advice: it spreads a file over the OSDs in objects of 4 MiB. In measured sweeps (8 OSDs; 6
new files per layout, because a hash places objects) the best of eight other layouts was at most 1.22 times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.commands import command_lines, quoted_path
from vani.advisors.data_files import Group, Item, by_folder, data_files, listed
from vani.advisors.placement import disk_under
from vani.advisors.rule import Answer, Evidence, Finding, Perhaps, Rule, TunableSetting, Verdict
from vani.models.calibration import certainty
from vani.models.run_time import seconds
from vani.models.striping import CEPH_DEFAULT, ObjectLayout

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import FileSystem, System


@dataclass(frozen=True)
class Proposal:
    """Layouts for the files of a folder, the recommended one first, with the reason and the kind of gain."""

    layouts: Sequence[ObjectLayout]
    reason: str
    gain: str | Perhaps
    evidence: Sequence[Evidence] = ()


class CephRule(Rule):
    """A rule that changes the layout of new files in a folder on a CephFS."""

    settles = "layout"

    def check(self, profile: Profile, system: System) -> Verdict:
        written = data_files(profile, lambda file: file.writers > 0 and file.role != "input")
        groups = by_folder(written, profile)
        return self.among((self._judge(group, profile, system) for group in groups), "no file is written")

    def proposal(self, item: Item, now: ObjectLayout, targets: int | None, profile: Profile) -> Proposal | str:
        """Better layouts than `now` for a file, or why there is none; `targets` is the number of OSDs if known."""
        raise NotImplementedError

    def _judge(self, group: Group, profile: Profile, system: System) -> Answer:
        item = max(group.items, key=lambda item: seconds(item.io.time_s.total))
        place = disk_under("ceph", "CephFS", item.path, profile, system)
        if isinstance(place, str):
            return place
        where, disk = place
        known = _layout(item, where, disk)
        if known is None:
            return "the layout of the files is not known: trace with `vani trace`, or describe the machine (--system)"
        now, evidence = known
        if now == CEPH_DEFAULT:
            return "the files have the default layout of CephFS, which spreads them over the OSDs"
        targets = None if disk is None else disk.targets
        better = self.proposal(item, now, targets, profile)
        if isinstance(better, str):
            return better
        best = better.layouts[0]
        keys = {"stripe_unit": "unit", "stripe_count": "count", "object_size": "size"}
        values = [{"command": layout.command} for layout in better.layouts]
        evidence = [*item.figures("path"), *evidence, *better.evidence]
        return Finding(
            **group.affected,
            reason=better.reason.format(listed(group.folder, group.items)),
            confidence=round(0.5 * certainty(system), 2),
            touched_s=group.wall_s("write_synced"),
            recommended={key: getattr(best, name) for key, name in keys.items()},
            current={key: getattr(now, name) for key, name in keys.items()},
            evidence=[*evidence, Evidence(f"{where}.targets", targets)] if targets else evidence,
            gain=better.gain,
            apply=command_lines(best.command, group.folder, "new files get it; only users with the flag p may set it"),
            settings=[TunableSetting("layout", values, group.folder)] if quoted_path(group.folder) else (),
        )


def _layout(item: Item, where: str, disk: FileSystem | None) -> tuple[ObjectLayout, list[Evidence]] | None:
    """A file's layout: its own, or the default of the file system."""
    names = ("stripe_size", "stripe_count", "object_size")
    for source, place in ((item.file, item.where), (disk, where)):
        values: list[int] = [getattr(source, name, None) or 0 for name in names]
        if all(values):
            figures = [Evidence(f"{place}.{name}", value) for name, value in zip(names, values, strict=True)]
            return ObjectLayout(*values), figures
    return None
