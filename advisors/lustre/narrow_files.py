"""LUS003: many files of one process each, striped over several targets."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.commands import command_lines
from vani.advisors.data_files import SERVED, SHOWN, app_of, extent, share_of
from vani.advisors.placement import FolderRule, Lustre, default_stripes, keeps_own_layout
from vani.advisors.rule import Evidence, Finding, Target, Verdict
from vani.models.run_time import of_files_s
from vani.units import GiB, format_count

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System


class NarrowFiles(FolderRule):
    """Many files of one process each are striped over several targets, where one target per file is enough.

    Looks at
        Files on Lustre that one process writes, by folder: how many there are, how large the largest is, and the
        default stripe count.
    Why
        Many files spread over all targets by themselves. Stripes make each create, stat and unlink ask several
        servers, put the bytes of many processes on each target at once, and let a file fail with any of them.
    Recommends
        One stripe for the folder's new files (`lfs setstripe -c 1`).
    Stays silent when
        There are fewer than `min_files` such files in a folder, or fewer than the file system has targets; each node
        of the job writes only one of them (see LUS010); one of them has more than `max_bytes`; the default is one
        stripe already, or is not known; the data is not on Lustre; the site asks not to override its layout.
    Source
        Lustre manual, section 19.2 ("as few objects as will meet the need"). Of 19 layouts for ior-easy (a file per
        process) that submissions to IO500 set, half have one stripe. NERSC and LUMI recommend the same.
    Example
        1,280 processes write a checkpoint file each of 630 MB where the default is 4 stripes:
        `lfs setstripe -c 1 DIR`.
    """

    id = "LUS003"
    settles = "layout"
    sources = ("Lustre manual, section 19.2", "lfs-setstripe(1)")

    # Fewer files may leave targets idle even on small machines (general knowledge: 8 to 48 targets).
    min_files = 32
    # NERSC: a file of one process stays on one target up to 1 TB. A single process fills at most a few targets, but the
    # file must fit on one, so ours is a tenth of that.
    max_bytes = 100 * GiB

    def check(self, profile: Profile, system: System) -> Verdict:
        folders: defaultdict[str, list[tuple[int, FileEntity]]] = defaultdict(list)
        for index, file in enumerate(profile.files):
            if file.access == "file_per_process" and file.writers == 1 and file.role != "input":
                folders[posixpath.dirname(file.path)].append((index, file))
        many = {folder: files for folder, files in folders.items() if len(files) >= self.min_files}
        if not many:
            return f"no folder has {self.min_files} files or more that one process each writes"
        return self.on_lustre(((row[0], row) for row in many.items()), profile, system)

    def judge(
        self, part: tuple[str, list[tuple[int, FileEntity]]], place: Lustre, profile: Profile
    ) -> Finding | str:
        (folder, files), disk = part, place.figures
        if own_layout := keeps_own_layout(disk):
            return own_layout
        largest = max((extent(file) or 0 for _, file in files), default=0)
        known = [file.stripe_count for _, file in files if file.stripe_count is not None]
        count = max(known) if known else default_stripes(disk, largest)[0]
        if count is None:
            return "the default stripe count is not known; supply it (`lfs getstripe -d`) in --system"
        if count == 1:
            return "the files have one stripe already" if known else "new files have one stripe already"
        targets = None if disk is None else disk.targets
        if targets and len(files) < targets:
            return "there are fewer files than targets: stripes let them use more of these"
        if profile.job.nodes and len(files) <= profile.job.nodes:
            return "each node writes one of the files, for which one target may be too few: see LUS010"
        if largest > self.max_bytes:
            return "the largest file of one process may not fit on one target"
        reason = (
            f"{format_count(len(files))} files in {folder or '.'} are written by one process each, and "
            f"{'they' if known else 'new files'} are on {'all' if count < 0 else count} targets: with one stripe "
            "each they still use all targets, and each create, stat and unlink needs one server. No model gives the "
            "cost of a stripe there: for an expected gain, supply a trace of the same run in a folder with one stripe."
        )
        return Finding(
            target=Target("directory", folder or ".", app_of(files[0][1])),
            reason=reason + place.note,
            confidence=round(0.7 * place.certainty, 2),
            touched_s=of_files_s([file for _, file in files], profile, "metadata")
            * share_of((file.io for _, file in files), SERVED),
            recommended={"stripe_count": 1},
            current={"stripe_count": count},
            evidence=[
                Evidence("files[]", len(files)),
                *(Evidence(f"files[{index}].path", file.path) for index, file in files[:SHOWN]),
                self._target_evidence(count, known, files, place),
                Evidence(f"{place.prefix}.targets", targets),
            ],
            apply=command_lines("lfs setstripe -c 1", folder or "."),
            files=frozenset(file.path for _, file in files),
        )

    @staticmethod
    def _target_evidence(count: int, known: list[int], files: list[tuple[int, FileEntity]], place: Lustre) -> Evidence:
        """The number of targets of the files, as evidence."""
        if known:
            index = next(index for index, file in files if file.stripe_count == count)
            return Evidence(f"files[{index}].stripe_count", count)
        return place.default("stripe_count", count)
