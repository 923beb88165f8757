"""CEP001: large files in a few objects of a CephFS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.cephfs import CephRule, Proposal
from vani.advisors.data_files import Item, extent
from vani.models.striping import CEPH_DEFAULT, ObjectLayout
from vani.units import MiB, counted, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import Profile


class FewObjects(CephRule):
    """A file has so few objects on a CephFS that most OSDs do not work for it.

    Looks at
        Files that the run writes to a CephFS, their stripe count and object size, and the number of OSDs.
    Why
        An object is on one OSD, and a file is no faster than the OSDs of its objects. A hash chooses the OSD of an
        object, so a few objects may even share one.
    Recommends
        The default layout of CephFS: objects of 4 MiB, each followed by the next one. Where these are fewer than
        `even_per_osd` per OSD, smaller ones, at least `least_object`, because many objects fill the OSDs more evenly.
    Stays silent when
        The layout is the default; the default would give the file fewer than `least_factor` times as many objects. At
        most `per_osd` objects per OSD count, or `enough` in all if the number of OSDs is not known.
    Source
        Ceph documentation, File layouts, and Architecture, Data striping. Measured on 8 OSDs of 16 MB/s with 6 new
        files per layout (examples/closed-loop/ceph): one object 4.6 s, the default 1.6 s, objects of 1 MiB 1.3 s.
    Example
        Four processes write one file of 64 MiB to a folder with `object_size=67108864`:
        `setfattr -n ceph.dir.layout -v 'stripe_unit=1048576 stripe_count=1 object_size=1048576' DIR` on 8 OSDs.
    """

    id = "CEP001"
    sources = ("Ceph documentation, File layouts", "Ceph documentation, Architecture")

    # Measured: 8 instead of 16 objects on 8 OSDs cost a factor of 1.2 (six files each), 4 objects 1.4 to 2.
    least_factor = 4.0
    # The default layout's objects per OSD in those sweeps.
    per_osd = 2
    # The same with 8 OSDs.
    enough = 16
    # Of balls thrown into 8 bins at random, the fullest has 2.1 times the mean with 2 per bin, 1.5 times with 8.
    even_per_osd = 8
    # Smaller ones were not measured, and each object costs a request and metadata.
    least_object = MiB

    def proposal(
        self, item: Item, now: ObjectLayout, targets: int | None, profile: Profile  # noqa: ARG002 - others use it
    ) -> Proposal | str:
        length = extent(item.file) or 0
        has, would_have = now.objects(length), CEPH_DEFAULT.objects(length)
        useful = min(would_have, int(self.per_osd) * targets if targets else int(self.enough))
        if useful < self.least_factor * has:
            return f"the files have {counted(has, 'object')} each, and {useful} would be enough"
        size = CEPH_DEFAULT.size
        while size >= 2 * self.least_object and length < self.even_per_osd * (targets or 0) * size:
            size //= 2
        layouts = [*dict.fromkeys((ObjectLayout(size, 1, size), CEPH_DEFAULT))]
        osds = "the OSDs" if targets is None else counted(targets, "OSD")
        only = "a single object, on one OSD," if has == 1 else f"{has} objects"
        return Proposal(
            layouts,
            f"{{}} ({lfs_size(length)}) is in {only} of up to {lfs_size(now.size)}. Of {lfs_size(size)}, "
            f"{layouts[0].objects(length)} objects would be spread over {osds}.",
            "no model of the rate of an OSD: a run with the new layout shows it",
        )
