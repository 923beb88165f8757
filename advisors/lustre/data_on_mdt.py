"""LUS006: small files that could lie on the metadata target."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.commands import quoted_path
from vani.advisors.data_files import SHOWN, extent
from vani.advisors.placement import places
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Verdict, seconds
from vani.advisors.site_layouts import keeps_own_layout
from vani.models.pfl import STRIPE_UNIT, Component, Layout
from vani.models.run_time import of_files_s
from vani.units import GiB, format_bytes, format_count, format_share, lfs_size

if TYPE_CHECKING:
    from vani.advisors.placement import Lustre
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import FileSystem, System


class DataOnMDT(Rule):
    """Many small files cost a trip to a target each, where the metadata target could hold them.

    Looks at
        Folders on Lustre with at least `min_files` files that the run writes, at least `min_share` of which have at
        most the size that the file system allows on its metadata targets; how much room there is on these, and
        how busy they are.
    Why
        Opening and reading a small file asks two servers, one for its name and one for its bytes. With its bytes
        beside its name one answer brings both, without a lock on a target.
    Recommends
        A first component on the metadata target, as small as `min_share` of the files allow, the rest of a file
        on one target (`lfs setstripe -E SIZE -L mdt -E -1 -c 1`); with the bytes that it takes there.
    Stays silent when
        No folder has many small files; the largest component allowed there, the room or the load of the metadata
        targets is not known; Data-on-MDT is off; they have too little room (the files may take `max_room`) or are
        too busy (above `max_load`); the data is not on Lustre; the site asks not to override its layout.
    Source
        Lustre manual, chapter 20. All 19 submissions to IO500 that set a layout for mdtest (files of 3,901 bytes)
        use it. lfs-setstripe(1): multiples of 64 KiB, first component only.
    Example
        960 files of 40 KB each, on a file system that allows 1 MiB: `lfs setstripe -E 64K -L mdt -E -1 -c 1 DIR`,
        which takes 38 MB of the metadata targets.
    """

    id = "LUS006"
    name = "data-on-mdt"
    family = "lustre"
    needs = ("files",)
    settles = "layout"
    sources = ("Lustre manual, chapter 20", "lfs-setstripe(1)")

    # A trip less per file is milliseconds: below a hundred files they do not show (general knowledge).
    min_files = 100
    # Each larger file leaves its head on the metadata target for nothing: ours, one in ten.
    min_share = 0.9
    # Share of the free room of the metadata targets that one data set may take: ours. When they are full, nobody
    # can make files.
    max_room = 0.01
    # Share of the metadata servers' operations in use: from half on, bytes would wait behind names (ours).
    max_load = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:
        folders: defaultdict[str, list[tuple[int, FileEntity]]] = defaultdict(list)
        for index, file in enumerate(profile.files):
            if file.role != "input" and file.writers and extent(file) is not None:
                folders[posixpath.dirname(file.path)].append((index, file))
        many = {folder: files for folder, files in folders.items() if len(files) >= self.min_files}
        if not many:
            return self.nothing(
                f"no folder has {self.min_files} files or more of known size that the run writes"
            )
        under, found, reasons = places(profile, system), [], []
        for folder, files in many.items():
            verdict = self._judge(folder, files, under(folder), profile)
            found.append(verdict) if isinstance(verdict, Finding) else reasons.append(verdict)
        return found or self.nothing("; ".join(dict.fromkeys(reasons)))

    def _judge(
        self, folder: str, files: list[tuple[int, FileEntity]], place: Lustre | str, profile: Profile
    ) -> Finding | str:
        if isinstance(place, str):
            return place
        disk = place.figures
        if kept := keeps_own_layout(disk):
            return kept
        sizes = sorted(extent(file) or 0 for _, file in files)
        if sizes[int(self.min_share * (len(sizes) - 1))] > GiB:
            return "most files of the folders with many are large"
        if disk is None or disk.dom_size is None:
            return (
                "how much of a file may lie on the metadata target is not known; supply `dom_size` (the site tells: "
                "lod.*.dom_stripesize) in --system"
            )
        if disk.dom_size < STRIPE_UNIT:
            return "Data-on-MDT is off on this file system"
        wanted = sizes[int(self.min_share * (len(sizes) - 1))]
        size = max(STRIPE_UNIT, -(-wanted // STRIPE_UNIT) * STRIPE_UNIT)
        if size > disk.dom_size:
            return (
                f"most files have more than the {lfs_size(disk.dom_size)} that may lie on the metadata target"
            )
        taken = sum(min(one, size) for one in sizes)
        if (why := self._no_room(disk, taken)) is not None:
            return why
        return self._finding(folder, files, size, taken, place, disk, profile)

    def _no_room(self, disk: FileSystem, taken: int) -> str | None:
        if disk.metadata_free is None or disk.metadata_load is None:
            return (
                "room and load of the metadata targets are not known; supply `metadata_free` (`lfs df`) and "
                "`metadata_load` (the site tells) in --system"
            )
        if taken > self.max_room * disk.metadata_free:
            return (
                f"the files would take {format_bytes(taken)} of the metadata targets, which have "
                f"{format_bytes(disk.metadata_free)} left"
            )
        if disk.metadata_load > self.max_load:
            return f"the metadata servers are busy ({format_share(disk.metadata_load)})"
        return None

    def _finding(
        self,
        folder: str,
        files: list[tuple[int, FileEntity]],
        size: int,
        taken: int,
        place: Lustre,
        disk: FileSystem,
        profile: Profile,
    ) -> Finding:
        layout = Layout((Component(size, None, on_mdt=True), Component(None, 1)))
        files = sorted(files, key=lambda one: -seconds(one[1].io.busy_s.total))
        span = max((seconds(file.last_s) for _, file in files), default=0.0) - min(
            seconds(file.first_s) for _, file in files
        )
        # Flushing brings the same bytes to disk, wherever that is.
        total = sum(seconds(file.io.time_s.total) for _, file in files)
        flushing = sum(file.io.time_s.sync or 0.0 for _, file in files) / total if total else 0.0
        spent = min(span, of_files_s([file for _, file in files], profile, "total"))
        spent *= 1 - min(1.0, flushing)
        load = disk.metadata_load or 0.0
        quoted = quoted_path(folder or ".")
        few = f"at least {format_share(self.min_share)} of them with {lfs_size(size)}iB or less"
        reason = (
            f"{format_count(len(files))} files in {folder or '.'}, {few}: beside their names they take "
            f"{format_bytes(taken)} of the metadata targets ({format_bytes(disk.metadata_free)} free, "
            f"{format_share(load)} busy), and opening and reading one saves a trip."
        )
        if place.because:
            reason += f" Note: {place.because}."
        return Finding(
            target=Target("directory", folder or ".", files[0][1].apps[0] if files[0][1].apps else None),
            reason=reason,
            confidence=round(0.6 * place.certainty, 2),
            touched_s=spent,
            recommended={"mdt_component": size, "stripe_count": 1},
            current={"stripe_count": disk.stripe_count},
            evidence=[
                Evidence("files[]", len(files)),
                *(Evidence(f"files[{index}].size", extent(file)) for index, file in files[:SHOWN]),
                Evidence(f"{place.prefix}.dom_size", disk.dom_size),
                Evidence(f"{place.prefix}.metadata_free", disk.metadata_free),
                Evidence(f"{place.prefix}.metadata_load", load),
            ],
            gain=Gain(
                metric="io_time_s",
                before_s=spent,
                after_s=spent * (1 + load) / 2 if load < 1 else spent,
                best_s=spent / 2,
                worst_s=spent,
                method="trips per file, two without and one with its bytes beside its name, the saved one shared with "
                "what the metadata servers do already; low: no gain",
            )
            if spent
            else None,
            apply=[f"lfs setstripe {layout.to_options()} {quoted}"] if quoted else [],
            files=frozenset(file.path for _, file in files),
        )
