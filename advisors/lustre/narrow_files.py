"""LUS003: many files of one process each, striped over several targets."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.base import Evidence, Finding, Gain, Rule, Target, Verdict
from vani.advisors.commands import comment, quoted_path
from vani.advisors.models import contention
from vani.advisors.models.contention import Burst
from vani.advisors.models.layout_choice import SHOWN, extent, keeps_own_layout, places
from vani.units import GiB, format_count, format_seconds

if TYPE_CHECKING:
    from vani.advisors.models.placement import Lustre
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System


class NarrowFiles(Rule):
    """Many files of one process each are striped over several targets, where one target per file would do.

    Looks at
        Files on Lustre that one process writes, by folder: how many there are, how large the largest is, and the
        default stripe count.
    Why
        Many files spread over all targets by themselves. Stripes make each create, stat and unlink ask several
        servers, put the bytes of many processes on each target at once, and let a file fail with any of them.
    Recommends
        One stripe for the folder's new files (`lfs setstripe -c 1`).
    Stays silent when
        There are fewer than `min_files` such files in a folder, or fewer than the file system has targets; one of
        them has more than `max_bytes`; the default is one stripe already, or is not known; the data is not on Lustre;
        the site asks not to override its layout.
    Source
        Lustre manual, section 19.2 ("as few objects as will meet the need"). Of 19 layouts for ior-easy (a file per
        process) that submissions to IO500 set, half have one stripe. NERSC and LUMI tell users the same.
    Example
        1,280 processes write a checkpoint file each of 630 MB where the default is 4 stripes:
        `lfs setstripe -c 1 DIR`.
    """

    id = "LUS003"
    name = "narrow-files"
    family = "lustre"
    needs = ("files",)
    settles = "layout"
    sources = ("Lustre manual, section 19.2", "lfs-setstripe(1)")

    # Fewer files than this may leave targets idle even on small machines (general knowledge: 8 to 48 targets).
    min_files = 32
    # NERSC: files of one process stay on one target unless they have more than 1 TB. A single process fills no
    # more than a few targets, but the file must find room on one: a tenth of that is ours.
    max_bytes = 100 * GiB

    def check(self, profile: Profile, system: System) -> Verdict:
        folders: defaultdict[str, list[tuple[int, FileEntity]]] = defaultdict(list)
        for index, file in enumerate(profile.files):
            if file.access == "file_per_process" and file.writers == 1 and file.role != "input":
                folders[posixpath.dirname(file.path)].append((index, file))
        many = {folder: files for folder, files in folders.items() if len(files) >= self.min_files}
        if not many:
            return self.nothing(f"no folder has {self.min_files} files or more that one process each writes")
        under, found, reasons = places(profile, system), [], []
        for folder, files in many.items():
            verdict = self._judge(folder, files, under(folder), profile, system)
            found.append(verdict) if isinstance(verdict, Finding) else reasons.append(verdict)
        return found or self.nothing("; ".join(dict.fromkeys(reasons)))

    def _judge(
        self,
        folder: str,
        files: list[tuple[int, FileEntity]],
        place: Lustre | str,
        profile: Profile,
        system: System,
    ) -> Finding | str:
        if isinstance(place, str):
            return place
        disk = place.figures
        if kept := keeps_own_layout(disk):
            return kept
        if disk is None or disk.stripe_count is None:
            return "the default stripe count is not known; supply it (`lfs getstripe -d`) in --system"
        if disk.stripe_count == 1:
            return "new files have one stripe already"
        if disk.targets and len(files) < disk.targets:
            return "there are fewer files than targets: stripes let them use more of these"
        largest = max((extent(file) or 0 for _, file in files), default=0)
        if largest > self.max_bytes:
            return "the largest file of one process may not fit on one target"
        quoted = quoted_path(folder or ".")
        gain = _gain(files, disk.stripe_count, place, profile, system)
        reason = (
            f"{format_count(len(files))} files in {folder or '.'} are written by one process each, and new files "
            f"lie on {'all' if disk.stripe_count < 0 else disk.stripe_count} targets: with one stripe each they still "
            "use all targets, and each create, stat and unlink asks one server."
        )
        if gain is None:
            reason += (
                " For an expected gain, supply operations per second of the metadata servers (metadata_ops_per_s) "
                "and the targets' rate in --system."
            )
        if place.because:
            reason += f" Note: {place.because}."
        return Finding(
            target=Target("directory", folder or ".", files[0][1].apps[0] if files[0][1].apps else None),
            reason=reason,
            confidence=round(0.7 * place.certainty, 2),
            touched_s=sum(file.io.busy_s.total for _, file in files),
            recommended={"stripe_count": 1},
            current={"stripe_count": disk.stripe_count},
            evidence=[
                Evidence("files[]", len(files)),
                *(Evidence(f"files[{index}].path", file.path) for index, file in files[:SHOWN]),
                Evidence(f"{place.prefix}.stripe_count", disk.stripe_count),
                Evidence(f"{place.prefix}.targets", disk.targets),
            ],
            gain=gain,
            apply=[f"lfs setstripe -c 1 {quoted}"]
            if quoted
            else comment("a path with control characters is left out: type it yourself"),
            files=frozenset(file.path for _, file in files),
        )


def _gain(
    files: list[tuple[int, FileEntity]], count: int, place: Lustre, profile: Profile, system: System
) -> Gain | None:
    """Metadata time shrinks with the servers that each operation asks; data spreads over targets by chance.

    An operation on a file of w stripes asks the metadata server and w targets' servers, side by side: at best
    it takes half as long with one stripe, at worst as long.
    """
    path = contention.path_of(system, place.figures)
    metadata = sum(file.io.busy_s.metadata for _, file in files)
    metadata = min(metadata, profile.workflow.io.busy_s.metadata)
    if isinstance(path, str) or path.metadata_per_s is None or not metadata:
        return None
    moved = float(sum(extent(file) or 0 for _, file in files))
    nodes = profile.job.nodes or 1
    wide = count if count > 0 else path.targets or 1
    before = Burst(bytes=moved, nodes=nodes, processes=len(files), files=len(files), stripe_count=wide)
    narrow = Burst(bytes=moved, nodes=nodes, processes=len(files), files=len(files))
    # Fewer, larger pieces fall less evenly on the targets: that is lost.
    lost = contention.predict(narrow, path).seconds - contention.predict(before, path).seconds
    after = metadata * (1 + 1 / wide) / 2 + max(0.0, lost)
    return Gain(
        metric="metadata_time_s",
        before_s=metadata,
        after_s=min(metadata, after),
        best_s=metadata / 2,
        worst_s=metadata,
        method="requests per metadata operation, 1 + stripes side by side, less what uneven targets cost by the "
        f"contention model ({format_seconds(max(0.0, lost))}); low: nothing",
    )
