"""CEP003: stripe units of a CephFS that are far smaller than the writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.cephfs import CephRule, Proposal
from vani.advisors.data_files import Item
from vani.advisors.rule import Perhaps
from vani.models.striping import CEPH_DEFAULT, ObjectLayout
from vani.units import format_bytes, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import Profile


class SmallStripeUnit(CephRule):
    """The stripe unit of a CephFS cuts each write into many pieces.

    Looks at
        The usual size of the writes to files on a CephFS, their stripe unit and object size.
    Why
        A write that spans several units becomes a request to each of several OSDs, and is done when the slowest is. If
        a client can gather the pieces of an object, this costs nothing.
    Recommends
        The largest power of two up to the usual write, at most 4 MiB, as the unit. Stripe count and object size stay.
    Stays silent when
        The layout is the default; the usual write spans fewer than `least_pieces` units, or its size is not known; no
        larger unit divides the object size.
    Source
        Ceph documentation, File layouts (the object size is a multiple of the unit), and Architecture, Data striping.
        Measured with one FUSE client (examples/closed-loop/ceph), units of 64 KiB cost nothing that six new files show.
    Example
        Writes of 1 MiB to a folder with `stripe_unit=65536 stripe_count=8 object_size=67108864`:
        `setfattr -n ceph.dir.layout -v 'stripe_unit=1048576 stripe_count=8 object_size=67108864' DIR`.
    """

    id = "CEP003"
    sources = ("Ceph documentation, File layouts", "Ceph documentation, Architecture")

    # Our choice: fewer pieces hardly differ from one.
    least_pieces = 8

    def proposal(
        self, item: Item, now: ObjectLayout, targets: int | None, profile: Profile  # noqa: ARG002 - others use it
    ) -> Proposal | str:
        sizes = item.io.transfer_size.write
        if sizes is None or not sizes.p50:
            return "the size of the writes is not known"
        if sizes.p50 < self.least_pieces * now.unit:
            return f"the usual write of {format_bytes(sizes.p50)} spans few units of {lfs_size(now.unit)}"
        unit = now.unit
        while 2 * unit <= min(sizes.p50, CEPH_DEFAULT.unit) and now.size % (2 * unit) == 0:
            unit *= 2
        if unit == now.unit:
            return f"no larger unit divides the object size of {lfs_size(now.size)}"
        return Proposal(
            [ObjectLayout(unit, now.count, now.size)],
            f"Each write of {format_bytes(sizes.p50)} to {{}} spans {sizes.p50 // now.unit} units of "
            f"{lfs_size(now.unit)}. Units of {lfs_size(unit)} contain it.",
            Perhaps("a client may gather the pieces: a run with the new layout shows it"),
            item.figures("io.transfer_size.write.p50"),
        )
