"""LUS006: small files that could be on the metadata target."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from vani.advisors.commands import comment, quoted_path
from vani.advisors.folder_table import Folders, at_most, beyond, folder_table, folders_of, is_written, room_of
from vani.advisors.placement import Lustre, keeps_own_layout, places
from vani.advisors.rule import Answer, Finding, Gain, Rule, Verdict, figures
from vani.models.pfl import Component, Layout
from vani.models.striping import STRIPE_UNIT
from vani.units import GiB, format_bytes, format_count, format_share, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import Folder, Profile
    from vani.schema.system import FileSystem, System

# More commands do not help: one for the parent folder, whose layout is inherited, is enough.
_COMMANDS = 10


class DataOnMDT(Rule):
    """Many small files cost a trip to a target each, where the metadata target could store them.

    Looks at
        Folders on Lustre over all files of the run, not only the listed ones: at least `min_files` files that the run
        writes, at least `min_share` of which have at most the size that the file system allows on its metadata
        targets; how much room there is on these, and how busy they are.
    Why
        Opening and reading a small file needs two servers, one for its name and one for its bytes. With its bytes
        next to its name one answer brings both, without a lock on a target.
    Recommends
        A first component on the metadata target, just large enough for `min_share` of the files, and the rest of a file
        on one target (`lfs setstripe -E SIZE -L mdt -E -1 -c 1`); also the bytes that it takes there. If the room or
        load of the metadata targets is not known, the confidence is lower.
    Stays silent when
        No folders have many small files; the largest component allowed there is not known; Data-on-MDT is off; the
        metadata targets have too little room (the files may take `max_room`, or `unknown_room` if the free space is not
        known) or are too busy (above `max_load`); the data is not on Lustre; the site asks not to override its layout.
    Source
        Lustre manual, chapter 20. All 19 submissions to IO500 that set a layout for mdtest (files of 3,901 bytes)
        use it. lfs-setstripe(1): multiples of 64 KiB, first component only.
    Example
        960 files of 40 KB each, on a file system that allows 1 MiB: `lfs setstripe -E 64K -L mdt -E -1 -c 1 DIR`,
        which takes 38 MB of the metadata targets.
    """

    id = "LUS006"
    needs = ("workflow.io.time_s.total", folder_table)
    settles = "layout"
    sources = ("Lustre manual, chapter 20", "lfs-setstripe(1)")

    # One trip less per file saves milliseconds, which do not show with fewer files (general knowledge).
    min_files = 100
    # Our choice: one in ten. Each larger file puts its head on the metadata target for nothing.
    min_share = 0.9
    # Our choice: largest share of the metadata targets' free space for one data set. When they are full, no user can
    # create files.
    max_room = 0.01
    # If the free space is unknown: a thousandth of the smallest metadata target of a bundled machine (1.6 TiB).
    unknown_room = 1_600_000_000
    # Largest share of the metadata servers' operations in use: above half, bytes would wait behind names (our choice).
    max_load = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:
        table = folders_of(profile, system)
        written = [row for row in table.rows if is_written(row[1]) and _known(row[1])]
        if sum(_known(folder) for _, folder in written) < self.min_files:
            left_out = beyond(profile)
            return f"no folder has {self.min_files} files or more of known size that the run writes" + (
                f", of those that the profile has ({format_count(left_out)} files are in others)"
                if left_out
                else ""
            )
        under = places(profile, system)
        answers: list[Answer] = []
        on: defaultdict[str, list[tuple[int, Folder]]] = defaultdict(list)
        disks: dict[str, Lustre] = {}
        for row in written:
            place = under(row[1].path)
            if isinstance(place, str):
                answers.append(place)
            else:
                on[place.prefix].append(row)
                disks[place.prefix] = place
        answers += [self._judge(Folders(tuple(rows)), disks[prefix], profile) for prefix, rows in on.items()]
        return self.among(answers)

    def _judge(self, folders: Folders, place: Lustre, profile: Profile) -> Finding | str:
        disk = place.figures
        if own_layout := keeps_own_layout(disk):
            return own_layout
        if self._share(folders, GiB) < self.min_share:
            return "most files of the folders with many are large"
        if disk is None or disk.dom_size is None:
            return (
                "the part of a file allowed on the metadata target is not known; supply `dom_size` (ask the site: "
                "lod.*.dom_stripesize) in --system"
            )
        if disk.dom_size < STRIPE_UNIT:
            return "Data-on-MDT is off on this file system"
        # Folders of larger files keep their layout.
        folders = folders.those(
            [at for at, folder in folders.rows if self._share_of(folder, disk.dom_size) >= self.min_share]
        )
        if folders.known < self.min_files:
            return f"most files have more than the {lfs_size(disk.dom_size)} allowed on the metadata target"
        size = next(
            folder
            for folder in self._sizes(folders, disk.dom_size)
            if self._share(folders, folder) >= self.min_share
        )
        room = sum(room_of(folder.sizes, size) for _, folder in folders.rows if folder.sizes is not None)
        if (why := self._no_room(disk, room)) is not None:
            return why
        return self._finding(folders, size, room, place, disk, profile)

    def _sizes(self, folders: Folders, most: int) -> list[int]:
        """Possible sizes of the first component, the smallest first: whole units, up to what the file system allows."""
        sizes = [STRIPE_UNIT, most]
        for _, folder in folders.rows:
            if folder.sizes is not None:
                sizes += [size for size in (folder.sizes.p90, folder.sizes.max) if size is not None]
        units = {max(1, -(-size // STRIPE_UNIT)) * STRIPE_UNIT for size in sizes}
        return sorted({min(size, most // STRIPE_UNIT * STRIPE_UNIT) for size in units})

    def _share(self, folders: Folders, size: int) -> float:
        known = folders.known
        return (
            sum(at_most(folder.sizes, size) for _, folder in folders.rows if folder.sizes is not None) / known
            if known
            else 0.0
        )

    def _share_of(self, folder: Folder, size: int) -> float:
        sizes = folder.sizes
        return at_most(sizes, size) / sizes.known if sizes is not None and sizes.known else 0.0

    def _no_room(self, disk: FileSystem, room: int) -> str | None:
        if disk.metadata_free is None and room > self.unknown_room:
            return (
                f"the files would take {format_bytes(room)} of the metadata targets, whose room is not known; supply "
                "`metadata_free` (`lfs df`) in --system"
            )
        if disk.metadata_free is not None and room > self.max_room * disk.metadata_free:
            return (
                f"the files would take {format_bytes(room)} of the metadata targets, which have "
                f"{format_bytes(disk.metadata_free)} left"
            )
        if disk.metadata_load is not None and disk.metadata_load > self.max_load:
            return f"the metadata servers are busy ({format_share(disk.metadata_load)})"
        return None

    def _finding(
        self, folders: Folders, size: int, room: int, place: Lustre, disk: FileSystem, profile: Profile
    ) -> Finding:
        layout = Layout((Component(size, None, on_mdt=True), Component(None, 1)))
        # Flushing writes the same bytes to disk in either place.
        spent = folders.total_s(profile)
        load = self.max_load if disk.metadata_load is None else disk.metadata_load
        few = f"at least {format_share(self.min_share)} of them with {lfs_size(size)}iB or less"
        free = "room unknown" if disk.metadata_free is None else f"{format_bytes(disk.metadata_free)} free"
        busy = "load unknown" if disk.metadata_load is None else f"{format_share(load)} busy"
        reason = (
            f"{folders.words()}, {few}: next to their names they take {format_bytes(room)} or less of the metadata "
            f"targets ({free}, {busy}), and opening and reading one saves a trip."
        )
        if disk.metadata_free is None or disk.metadata_load is None:
            reason += " Ask the site before many files go there."
        known = (disk.metadata_free is not None) + (disk.metadata_load is not None)
        return Finding(
            target=folders.target(profile),
            reason=reason + place.note,
            # Free space and load, if unknown, may each forbid it (our choice).
            confidence=round((0.4 + 0.1 * known) * place.certainty, 2),
            touched_s=spent,
            recommended={"mdt_component": size, "stripe_count": 1},
            current={"stripe_count": disk.stripe_count},
            evidence=[
                *folders.evidence("sizes.known", "sizes.p90"),
                *figures(disk, place.prefix, "dom_size", "metadata_free", "metadata_load"),
            ],
            gain=Gain(
                metric="io_time_s",
                before_s=spent,
                after_s=spent * (1 + load) / 2 if load < 1 else spent,
                best_s=spent / 2,
                worst_s=spent,
                method="trips per file, two without and one with its bytes next to its name, the saved one shared with "
                "the present work of the metadata servers (half, where that is not known); low: no gain",
            )
            if spent
            else None,
            apply=_commands(folders, layout),
            files=folders.listed(profile),
        )


def _known(folder: Folder) -> int:
    return folder.sizes.known if folder.sizes is not None else 0


def _commands(folders: Folders, layout: Layout) -> list[str]:
    """A line for each folder, or, if there are many, one for their parent, whose layout new folders inherit."""
    paths = [folder.path for _, folder in folders.rows]
    if len(paths) > _COMMANDS and folders.path not in {".", "/"}:
        paths = [folders.path]
    evidence = [
        f"lfs setstripe {layout.to_options()} {word}"
        for path in paths[:_COMMANDS]
        if (word := quoted_path(path))
    ]
    return evidence or comment("a path with control characters is left out: type it yourself")
