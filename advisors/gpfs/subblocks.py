"""GPF003: small files that fill little of the subblocks that GPFS gives them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.folder_table import Folders, folders_of, room_of
from vani.advisors.placement import SUPPLY, gpfs_under
from vani.advisors.rule import Answer, Evidence, Finding, Rule, Verdict
from vani.models.calibration import certainty
from vani.units import GiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Folder, Profile
    from vani.schema.system import System

# Half a subblock is less than a hundredth of a file of this many.
_ENOUGH = 64


class Subblocks(Rule):
    """Small files fill little of the subblocks that GPFS gives them.

    Looks at
        Folders on GPFS, over all files of the run and not only the listed ones, with files that the run makes and keeps
        and whose sizes are known: how much of their last subblocks they leave empty, at least `min_waste` together and
        at least `min_share` of their space. Folders whose median file has at most `in_inode` are left out.
    Why
        GPFS gives space in subblocks. A file of 20 KB on a file system with subblocks of 256 KiB takes 13 times its
        size of the user's quota.
    Recommends
        Fewer and larger files: an archive or a container format (HDF5) of many subblocks each; or a file system with
        smaller subblocks, if the site has one (since release 5, 8 KiB for blocks up to 4 MiB).
    Stays silent when
        The files waste little, or are removed; their sizes or the size of a subblock are not known; the data is not on
        GPFS.
    Source
        IBM Storage Scale, Concepts, Planning and Installation Guide: block size and subblocks; data in inodes of 4 KiB.
    Example
        100,000 files of 20 KB on subblocks of 256 KiB take 26 GB for 2 GB.
    """

    id = "GPF003"
    needs = ("folders",)
    needs_times = False
    settles = "files"
    sources = ("IBM Storage Scale: block size and subblocks",)

    # A user's quota is terabytes, so less than a gibibyte is not noticed (our choice).
    min_waste = GiB
    # Below half, the files take less than twice their size (our choice).
    min_share = 0.5
    # An inode of 4 KiB, the default since release 4, stores about 3.5 KiB of data itself.
    in_inode = 3584

    def check(self, profile: Profile, system: System) -> Verdict:
        table = folders_of(profile, system)
        remaining = [row for row in table.rows if row[1].creates and 2 * (row[1].removes or 0) < row[1].files]
        sized = [row for row in remaining if row[1].sizes is not None and row[1].sizes.known]
        if not sized and table.rows and all(row[1].creates is None for row in table.rows):
            return "which files were made and kept is not known; Recorder records it"
        if not sized:
            return "the run makes and keeps no files of known size"
        on: defaultdict[tuple[str, int], list[tuple[int, Folder]]] = defaultdict(list)
        answers: list[Answer] = []
        for row in sized:
            place = gpfs_under(f"{row[1].path}/x", profile, system)
            if isinstance(place, str):
                answers.append(place)
            elif place[1] is None or not place[1].subblock_size:
                answers.append(
                    f"the size of a subblock is not known; {SUPPLY}, or set subblock_size in it (`mmlsfs FS -f`)"
                )
            else:
                on[place[0], place[1].subblock_size].append(row)
        answers += [
            self._judge(Folders(tuple(rows)), where, subblock, profile, system)
            for (where, subblock), rows in on.items()
        ]
        return self.among(answers)

    def _judge(
        self, folders: Folders, where: str, subblock: int, profile: Profile, system: System
    ) -> Finding | str:
        allocated = used = 0
        wasting: list[int] = []
        for position, folder in folders.rows:
            sizes = folder.sizes
            if sizes is None or sizes.p50 is None or sizes.p50 <= self.in_inode:
                continue
            # The smaller of the bound from the bins and the bytes written, which exceed it if files are rewritten.
            room = room_of(sizes, sizes.max or 0)
            bytes_ = min(folder.bytes.written or room, room)
            least = -(-bytes_ // (sizes.known * subblock)) * subblock * sizes.known
            allocated, used = allocated + least, used + bytes_
            if least - bytes_ >= self.min_share * least:
                wasting.append(position)
        waste = allocated - used
        if not allocated or waste < self.min_waste or waste < self.min_share * allocated:
            return (
                f"the files leave about {format_bytes(max(0, waste))} of their subblocks of {format_bytes(subblock)} "
                f"empty, {format_share(waste / allocated if allocated else 0.0)} of their space"
            )
        wasteful = folders.those(wasting) if wasting else folders
        enough = _ENOUGH * subblock
        return Finding(
            target=wasteful.target(profile),
            reason=f"{wasteful.words()} take about {format_bytes(allocated)} for {format_bytes(used)}: each is given "
            f"whole subblocks of {format_bytes(subblock)}. Files of {format_bytes(enough)} or more waste next to "
            "nothing. This is about space: no seconds are promised.",
            confidence=round(0.6 * certainty(system), 2),
            touched_s=0.0,
            recommended={"file_bytes": enough},
            current={"bytes_taken": allocated, "bytes_used": used, "files": wasteful.files},
            evidence=[
                *wasteful.evidence("sizes.known", "sizes.p50"),
                Evidence(f"{where}.subblock_size", subblock),
            ],
            apply=f"in the program: files of {format_count(enough)} bytes or more (HDF5, or an archive made by tar) in "
            "place of many small ones",
            files=wasteful.listed(profile),
        )
