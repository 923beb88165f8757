"""OSTs for new files: Tarazu's allocation (ACM Transactions on Storage, 2024)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vani.centre.papers.figures import rows, whole
from vani.centre.plan.place import place
from vani.centre.plan.placement.layouts import settable
from vani.centre.plan.schema.jobs import Creation, Jobs, PlannedJob
from vani.centre.plan.schema.plans import PlaceSettings
from vani.centre.plan.schema.snapshot import MOST_TARGETS, Server, Snapshot, Target
from vani.errors import InputError
from vani.models.striping import STRIPE_UNIT

_MOST_STRIPES: Final = 2_000


class TarazuExtent(NamedTuple):
    """A row of the interaction database (tables 1 and 2).

    `osts` are positions in the argument `osts` of `tarazu`, empty if there is no room.
    """

    file: int
    start: int
    end: int
    stripe_size: int
    osts: list[int]


class Tarazu(NamedTuple):
    """The extents of all files, in order.

    `ost_cost` is equation 4: the use of the fullest OST over the mean, including existing bytes. `least` is a lower
    bound for any choice. Both are None if nothing is placed.
    """

    extents: list[TarazuExtent]
    ost_cost: float | None
    least: float | None


def tarazu(
    files: Sequence[tuple[int, int | Iterable[tuple[int | None, int]]]],
    osts: ArrayLike,
    *,
    oss: Sequence[int] | None = None,
    oss_load: Sequence[float] | None = None,
    as_printed: bool = False,
) -> Tarazu:
    """Choose OSTs for every extent of every file so that the fullest OST is as empty as possible.

    A plain file gets one stripe of equal size on each of its OSTs (equations 2 and 3: an even multiple of AP = 64 KiB).
    An extent of a progressive layout (section 5.5.2) gets stripes of (end - start) / stripeCount. If Lustre refuses
    that size, it is the largest that Lustre accepts and that puts the same bytes on each OST.

    Parameters
    ----------
    files
        For each file its bytes and its layout: a stripeCount, or extents as pairs of (end in bytes, stripeCount). The
        end of the last is None, the end of the file.
    osts
        For each OST its capacity and available bytes (the paper's totalKbytes and kbytesAvail).
    oss
        For each OST its server, a number from 0; None if unknown.
    oss_load
        For each server ossLoad, 0 to 1, which only the printed algorithm uses; None: 0.
    as_printed
        Use the printed stripe sizes and Algorithm 1 as printed. Its costs do not grow with what it places, so it piles
        stripes up on the OSTs that are cheapest at first.

    Raises
    ------
    InputError
        A figure is invalid, or Lustre refuses a layout.

    Examples
    --------
    Figure 15: 16 files of 2 GiB on 8 of 35 OSTs each. The paper reports 1.08, which is below the possible minimum.

    >>> GiB = 1 << 30
    >>> plan = tarazu([(2 * GiB, 8)] * 16, [(10 * GiB, 10 * GiB)] * 35)
    >>> round(plan.ost_cost, 3), round(plan.least, 3)
    (1.094, 1.094)

    Table 1: Lustre refuses the third extent with the printed stripes of 192 MiB.

    >>> MiB = 1 << 20
    >>> layout = [(128 * MiB, 1), (512 * MiB, 3), (2 * GiB, 8), (None, 16)]
    >>> plan = tarazu([(8 * GiB, layout)], [(10 * GiB, 10 * GiB)] * 35, as_printed=True)
    >>> [extent.stripe_size for extent in plan.extents]
    [134217728, 134217728, 201326592, 402653184]
    >>> [extent.stripe_size for extent in tarazu([(8 * GiB, layout)], [(10 * GiB, 10 * GiB)] * 35).extents]
    [134217728, 134217728, 67108864, 402653184]
    """
    jobs = Jobs(jobs=[PlannedJob(name="files", nodes=1, creations=_creations(files, sets_sizes=not as_printed))])
    plan = place(
        jobs,
        _snapshot(osts, oss, oss_load),
        PlaceSettings(
            method="tarazu" if as_printed else "balanced",
            past_weight=1.0,
            ceiling=1.0,
            cpu_weight=1.0,
            memory_weight=0.0,
            turn="going-on",
            window=0.17,
            seed=0,
            seeds=1,
        ),
        where="files",
        where_snapshot="osts",
    )
    extents = [
        TarazuExtent(
            number,
            extent.start,
            extent.end,
            extent.stripe_size if as_printed else extent.set_stripe_size,
            list(extent.osts),
        )
        for number, file in enumerate(plan.files)
        for extent in file.extents
    ]
    return Tarazu(extents, plan.after.ost_cost if any(extent.osts for extent in extents) else None, plan.least)


def _creations(
    files: Sequence[tuple[int, int | Iterable[tuple[int | None, int]]]], *, sets_sizes: bool
) -> list[Creation]:
    if not len(files):
        raise InputError("is empty", where="files", todo="give the bytes and the stripeCount of one file at least")
    creations = []
    for number, file in enumerate(files):
        where = f"files[{number}]"
        try:
            size, layout = file
        except (TypeError, ValueError):
            raise InputError("is not a pair", where=where, todo="give (bytes, stripeCount)") from None
        size = whole(size, f"{where}: bytes")
        creations.append(
            Creation(path=f"/{number}", size=size, layout=_layout(layout, where, size if sets_sizes else None))
        )
    return creations


def _layout(layout: int | Iterable[tuple[int | None, int]], where: str, size: int | None) -> int | str:
    """The layout as options of `lfs setstripe`, with stripe sizes for a file of `size` bytes unless it is None."""
    if not isinstance(layout, Iterable):
        stripes = whole(layout, f"{where}: stripeCount", least=1, most=_MOST_STRIPES)
        return stripes if size is None else f"-c {stripes} -S {settable(max(1, size), stripes, None)}"
    words: list[str] = []
    start = 0
    for extent in layout:
        try:
            end, count = extent
        except (TypeError, ValueError):
            raise InputError("has an extent that is not a pair", where=where, todo="give (end, stripeCount)") from None
        stripes = whole(count, f"{where}: stripeCount", least=1, most=_MOST_STRIPES)
        end = None if end is None else whole(end, f"{where}: end", least=1)
        words.append(f"-E {-1 if end is None else end} -c {stripes}")
        last = max(size or 0, start + 1) if end is None else end
        # An end that Lustre refuses is reported when the layout is parsed.
        if size is not None and last > start and (end or 0) % STRIPE_UNIT == 0:
            words.append(f"-S {settable(last - start, stripes, end)}")
        start = last
    if not words:
        raise InputError("has no extent", where=where, todo="give (end, stripeCount), the last with the end None")
    return " ".join(words)


def _snapshot(osts: ArrayLike, oss: Sequence[int] | None, oss_load: Sequence[float] | None) -> Snapshot:
    table = rows(osts, ("bytes", "available"), "osts")
    if len(table) > MOST_TARGETS:
        raise InputError(f"has {len(table):,} OSTs", where="osts", todo=f"Lustre has {MOST_TARGETS:,} at most")
    wrong = np.flatnonzero((table[:, 1] > table[:, 0]) | (table[:, 0] < 1))
    if len(wrong):
        size, available = table[wrong[0]].tolist()
        raise InputError(
            f"has {available:,.0f} of {size:,.0f} bytes available", where=f"osts[{wrong[0]}]", todo="give at most all"
        )
    servers = [None] * len(table) if oss is None else [whole(number, "oss") for number in oss]
    if len(servers) != len(table):
        raise InputError(f"has {len(servers):,} entries", where="oss", todo=f"give one for each of {len(table):,} OSTs")
    loads = [] if oss_load is None else rows([[load] for load in oss_load], ("ossLoad",), "oss_load")[:, 0].tolist()
    known = sorted({number for number in servers if number is not None})
    if loads and (max(loads) > 1 or len(loads) <= max(known, default=len(loads))):
        raise InputError("has no load from 0 to 1 for some server", where="oss_load", todo="give one for each server")
    return Snapshot(
        oss=[Server(name=str(number), cpu=loads[number] if loads else 0.0) for number in known],
        ost=[
            Target(
                index=index,
                oss=None if server is None else str(server),
                size=int(size),
                used=int(size) - int(available),
            )
            for index, ((size, available), server) in enumerate(zip(table.tolist(), servers, strict=True))
        ],
    )
