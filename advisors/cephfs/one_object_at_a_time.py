"""CEP002: processes of several nodes that write into one object of a CephFS at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.cephfs import CephRule, Proposal
from vani.advisors.data_files import Item
from vani.advisors.rule import Evidence, Perhaps
from vani.models.striping import STRIPE_UNIT, ObjectLayout, neighbour_distance
from vani.units import counted, format_bytes, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import Profile


class OneObjectAtATime(CephRule):
    """Processes of several nodes write a shared file piece by piece, all into the same object at a time.

    Looks at
        Shared files that several processes of at least `min_nodes` nodes write to a CephFS, the distance between the
        offsets that they write at the same moment, and the stripe count and object size.
    Why
        With a stripe count of 1, one object contains neighbouring pieces, so one OSD serves all processes while the
        others wait. The client of a single node gathers writes and hides this; clients that share a file may not.
    Recommends
        A stripe unit of one piece and as many stripes as there are processes, at most one per OSD. The object size
        stays.
    Stays silent when
        The layout is the default; the job has fewer nodes, or their number is not known; the stripe count is above 1;
        the pieces of all processes reach into the next object; their distance is not known.
    Source
        Ceph documentation, Architecture, Data striping: units of one write to several objects are written in parallel.
        Measured with two clients on 8 OSDs (collective calls, 4 new files each): 6.0 s with a count of 1, 4.4 s with 8.
    Example
        16 processes of 4 nodes write pieces of 1 MiB in turn to a folder with `stripe_count=1 object_size=67108864`, on
        12 OSDs: `setfattr -n ceph.dir.layout -v 'stripe_unit=1048576 stripe_count=12 object_size=67108864' DIR`.
    """

    id = "CEP002"
    sources = ("Ceph documentation, Architecture",)

    # Several clients that write one file lose the right to buffer (Ceph documentation, Capabilities in CephFS).
    min_nodes = 2

    def proposal(self, item: Item, now: ObjectLayout, targets: int | None, profile: Profile) -> Proposal | str:
        nodes, writers = profile.job.nodes, item.file.writers
        if nodes is None:
            return "the number of nodes is not known; supply it (--job)"
        if nodes < self.min_nodes or writers < self.min_nodes:
            return f"the files are written by fewer than {int(self.min_nodes)} nodes, whose clients gather writes"
        if now.count > 1:
            return f"the files already go round {now.count} objects"
        distance = neighbour_distance(item.file, writers, reads=False)
        if distance is None:
            return "the offsets that processes write at the same moment are not known"
        if distance * writers > now.size:
            return "the processes write into several objects at a time"
        unit = STRIPE_UNIT
        while 2 * unit <= distance and now.size % (2 * unit) == 0:
            unit *= 2
        count = min(writers, targets or writers)
        return Proposal(
            [ObjectLayout(unit, count, now.size)],
            f"{counted(writers, 'process')} of {counted(nodes, 'node')} write {{}} in pieces of "
            f"{format_bytes(distance)}, all into one object of {lfs_size(now.size)} at a time. With {count} stripes, "
            "they write into as many objects.",
            Perhaps("clients may gather the pieces: a run with the new layout shows it"),
            [*item.figures("writers", "stride"), Evidence("job.nodes", nodes)],
        )
