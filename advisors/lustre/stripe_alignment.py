"""LUS001: transfers of shared files that cross the borders of stripes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vani.advisors.commands import command_lines
from vani.advisors.data_files import extent, folder_of, large_shared_files, only
from vani.advisors.placement import FolderRule, Lustre, keeps_own_layout, present_stripes, site_rule
from vani.advisors.rule import Evidence, Finding, Perhaps, Verdict, figures
from vani.models.run_time import of_files_s
from vani.models.striping import STRIPE_UNIT
from vani.units import KiB, MiB, format_bytes, format_share, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System


class StripeAlignment(FolderRule):
    """Transfers of a shared file cross stripe borders, because neither size is a multiple of the other.

    Looks at
        Shared files on Lustre of at least `min_bytes` with two writers or more, where at least `min_share` of the
        writes have one size of at least `min_transfer`, and the default stripe size.
    Why
        A write that crosses a border is sent in two parts to two targets, and two processes then write into one
        stripe: the lock on it moves back and forth between their nodes.
    Recommends
        The smallest stripe size that is a multiple of that transfer size and of 64 KiB, from 512 KiB to `max_size`; the
        stripe count stays. New files inherit it from their folder.
    Stays silent when
        No large file is written by several processes, or none of them in writes of one usual size; the sizes
        fit; no stripe size up to `max_size` fits (the program should then round its records up); the default stripe
        size is not known, or the data is not on Lustre; the site asks not to override its layout.
    Source
        Lustre manual, section 19.2 ("a multiple of the write() size"), and lfs-setstripe(1): a multiple of 64
        KiB.
    Example
        32 processes write one file in records of 1.5 MiB over stripes of 1 MiB: `lfs setstripe -S 1536K DIR`.
    """

    id = "LUS001"
    settles = "layout"
    sources = ("Lustre manual, section 19.2", "lfs-setstripe(1)")

    # As in LUS002: twice max_dirty_mb, the client's buffer per target (general knowledge).
    min_bytes = 64 * MiB
    # The client gathers smaller writes into RPCs of 1 MiB before it sends them (Lustre manual, section 19.2).
    min_transfer = 64 * KiB
    # Our choice: with fewer of one size, no stripe size fits most writes.
    min_share = 0.5
    # Xie et al., footnote 6: stripes above 32 MB hurt.
    max_size = 32 * MiB
    # Lustre manual, section 19.2: the smallest stripe size that makes sense.
    min_stripe_size = 512 * KiB

    def check(self, profile: Profile, system: System) -> Verdict:
        large = large_shared_files(profile, int(self.min_bytes))
        if isinstance(large, str):
            return large
        usual = [(i, f, size) for i, f in large if (size := self._usual(f)) is not None]
        if not usual:
            return (
                f"no large shared file is written in pieces of one size of {lfs_size(int(self.min_transfer))}iB or more"
            )
        return self.on_lustre(((folder_of(row[1].path), row) for row in usual), profile, system)

    def _usual(self, file: FileEntity) -> int | None:
        sizes = file.io.transfer_size.write
        if sizes is None or not sizes.common:
            return None
        size, count = sizes.common[0]
        return size if size >= self.min_transfer and count >= self.min_share * file.io.ops.write else None

    def judge(self, part: tuple[int, FileEntity, int], place: Lustre, profile: Profile) -> Finding | str:
        (index, file, transfer), disk = part, place.figures
        if (own_layout := keeps_own_layout(disk)) and not site_rule(extent(file) or 0, place):
            return own_layout
        _, current = present_stripes(file, disk)
        if not current:
            return "the default stripe size is not known; supply it (`lfs getstripe -d`) in --system"
        if transfer % current == 0 or current % transfer == 0:
            return "the usual writes of the large shared files fit the stripes"
        step = math.lcm(transfer, STRIPE_UNIT)
        size = step * math.ceil(self.min_stripe_size / step)
        if size > self.max_size:
            return (
                f"no stripe size up to {lfs_size(int(self.max_size))}iB fits writes of {transfer} bytes: "
                "round the records up in the program (LUS004 where they are small)"
            )
        crossing = min(1.0, transfer / current)
        folder = folder_of(file.path)
        reason = (
            f"{file.writers} processes write {file.path} in pieces of {format_bytes(transfer)} over stripes of "
            f"{lfs_size(current)}: about {format_share(crossing)} of them cross a border. Stripes of {lfs_size(size)} "
            "contain whole pieces."
        )
        return Finding(
            **only(file),
            reason=reason + place.note,
            confidence=round(0.6 * place.certainty, 2),
            touched_s=of_files_s([file], profile, "write_synced"),
            recommended={"stripe_size": size},
            current={"stripe_size": current},
            evidence=[
                *figures(file, f"files[{index}]", "path", "writers"),
                Evidence(f"files[{index}].io.transfer_size.write.common", transfer),
                Evidence(f"files[{index}].stripe_size", current)
                if file.stripe_count is not None and file.stripe_size is not None
                else place.default("stripe_size", current),
            ],
            gain=Perhaps("the cost of locks that move was not measured on this machine: try it (`vani tune`)"),
            apply=command_lines(f"lfs setstripe -S {lfs_size(size)}", folder),
        )
