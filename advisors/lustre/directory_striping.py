"""LUS007: many files made in one folder, all by one metadata target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment, quoted_path
from vani.advisors.data_files import SERVED, share_of
from vani.advisors.folder_table import Folders, folder_table, folders_of
from vani.advisors.placement import FolderRule, Lustre
from vani.advisors.rule import Evidence, Finding, Gain, Verdict
from vani.units import format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class DirectoryStriping(FolderRule):
    """Metadata operations take much of the I/O time, and most files are in one folder, on one metadata target.

    Looks at
        Runs in which requests to a metadata server (open, close, stat, folders, remove, rename) take at least
        `min_metadata_share` of the I/O time; folders on Lustre, over all files of the run and not only the listed ones,
        with at least `min_files` files made by several processes, and the number of metadata targets.
    Why
        All names of a folder are on one metadata target unless the folder is striped: processes that make and
        open files there queue for it while the other metadata targets are idle.
    Recommends
        A striped folder over as many metadata targets as there are, at most one per `files_per_target` files
        (`lfs mkdir -c`, which is `lfs setdirstripe -c`). A folder gets its stripes when it is made: the run's folder
        must be created again, and files inside it are not moved.
    Stays silent when
        Metadata takes little of the I/O time (without flushing and seeks); no folder has many files, or one
        process makes them all; there is one metadata target, or their number is not known; folders are not known; the
        data is not on Lustre.
    Source
        Lustre manual, section 14.4 (striped directories), and lfs-setdirstripe(1). A striped folder costs more to list
        and to remove, hence the minimum number of files.
    Example
        1,280 processes make 40,000 files in one folder on a file system of 16 metadata targets:
        `lfs mkdir -c 16 DIR.striped`.
    """

    id = "LUS007"
    needs = ("workflow.io.time_share",)
    settles = "directory"
    sources = ("Lustre manual, section 14.4", "lfs-setdirstripe(1)")

    # Below half of the I/O time, striping the folder saves less than half (our choice).
    min_metadata_share = 0.5
    # A metadata target creates about 10,000 files per second (mdtest in IO500 submissions with one target), so fewer
    # files take a tenth of a second.
    min_files = 1_000
    # Our choice: with fewer files, a stripe costs more in listing than it saves.
    files_per_target = 250

    def check(self, profile: Profile, system: System) -> Verdict:
        io = profile.workflow.io
        metadata = io.time_share.metadata * share_of([io], SERVED) if io.time_share else 0.0
        if metadata < self.min_metadata_share:
            return f"what metadata servers answer takes {format_share(metadata)} of the I/O time"
        if (why := folder_table(profile, system)) is not None:
            return why
        table = folders_of(profile, system)
        many = [row for row in table.rows if row[1].files >= self.min_files]
        if not many:
            # The table always includes the folders with most files.
            return f"no folder has {format_count(int(self.min_files))} files or more"
        makers = [row for row in many if row[1].makers is None or row[1].makers > 1]
        if not makers:
            return "one process makes all files of each folder that has many"
        return self.on_lustre(((row[1].path, (Folders((row,)), metadata)) for row in makers), profile, system)

    def judge(self, part: tuple[Folders, float], place: Lustre, profile: Profile) -> Finding | str:
        (folder, metadata), disk = part, place.figures
        if disk is None or disk.metadata_targets is None:
            return "the number of metadata targets is not known; supply it (`lfs df`) in --system"
        if disk.metadata_targets < 2:
            return "there is only one metadata target"
        stripes = max(2, min(disk.metadata_targets, folder.files // max(1, int(self.files_per_target))))
        # At worst, no time is saved. On average, half of it is spent at the server and the rest on the network.
        before = folder.metadata_s(profile)
        gain = Gain(
            metric="metadata_time_s",
            before_s=before,
            after_s=before * (1 + 1 / stripes) / 2,
            best_s=before / stripes,
            worst_s=before,
            method=f"queueing at one metadata target against {stripes}: high, all of the time is queueing there; "
            "middle, half of it; low, none",
        )
        share, kinds = profile.workflow.io.time_share, profile.workflow.io.metadata_kinds
        new_folder = quoted_path(f"{folder.path.rstrip('/')}.striped")
        reason = (
            f"What metadata servers answer takes {format_share(metadata)} of the I/O time, and "
            f"{format_count(folder.files)} files are in {folder.path}, whose names one metadata target keeps: "
            f"{stripes} of {disk.metadata_targets} can share them."
        )
        return Finding(
            target=folder.target(profile),
            reason=reason + place.note,
            confidence=round(0.5 * place.certainty, 2),
            touched_s=before,
            recommended={"directory_stripe_count": stripes},
            current={"directory_stripe_count": None},
            evidence=[
                Evidence("workflow.io.time_share.metadata", share.metadata if share else None),
                *(
                    Evidence(f"workflow.io.metadata_kinds.{kind}.time_s", getattr(kinds, kind).time_s)
                    for kind in (SERVED if kinds is not None else ())
                ),
                *folder.evidence("makers", "metadata_time_s"),
                Evidence(f"{place.prefix}.metadata_targets", disk.metadata_targets),
            ],
            gain=gain if before else None,
            apply=[
                *comment("a folder is striped when it is made: make a new one and let the run use it"),
                f"lfs mkdir -c {stripes} {new_folder}",
            ]
            if new_folder
            else comment("a path with control characters is left out: type it yourself"),
            files=folder.listed(profile),
        )
