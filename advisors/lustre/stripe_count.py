"""LUS002: the number of Lustre targets of large shared files, and their stripe size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vani.advisors.commands import command_lines, quoted_path
from vani.advisors.data_files import app_of, extent, folder_of
from vani.advisors.lustre import layout_choice, layout_text
from vani.advisors.lustre.layout_choice import Case, LayoutRule
from vani.advisors.movers import movers_of
from vani.advisors.rule import Finding, Stripes, Target, TunableSetting, Verdict
from vani.models.stripe_count import neat
from vani.units import MiB, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

UNEVEN: Final = 1.1
"""Greatest ratio of a file's bytes on the fullest target, which ends the write, to the mean (our choice)."""


class StripeCount(LayoutRule):
    """A large shared file is on too few Lustre targets, or in stripes where its processes collide.

    Looks at
        Shared files on Lustre of at least `min_bytes` that the run writes: how many nodes and processes write (or
        read) them, whether by collective calls, the distance between the offsets that they access at the same
        moment (from the stride, or from the block of each process, where the trace has offsets), the usual
        transfer size, and the number of targets.
    Why
        A file is no faster than its targets, however many processes use it. Where stripes do
        not match what neighbouring processes access at the same time, all of them queue at one target while
        the others are idle.
    Recommends
        `per_node` targets per node; for collective calls `collective_per_node`, but no more than there are processes.
        At least `least`, or `least_read` for a file that is mostly read, since readers do not wait for each other's
        locks; a power of two or three times one, and never more than the file system has or the site allows.
        A curve of this machine (`vani systems detect --measure --sweep`) takes the place of this fixed rule. A
        file with collective calls that is already on four times as many targets gets fewer. The stripe size follows the
        distance between neighbouring processes' simultaneous offsets, in sizes such as 1M, 4M and 16M, at most
        `max_stripe_size`, or is a part of it where a curve needs more targets; without offsets it stays. New files
        inherit it from their folder. Where the site asks to keep its layout (`layout_policy`), only its own rules are
        followed, including its pool.
    Stays silent when
        No shared file is large; all large ones are inputs (see LUS008); the data is not on Lustre, or its location is
        not known; the default layout is already the recommended one, or has 32 targets and nodes are unknown;
        each node already moves `enough` bytes per second (`collective_enough` in collective calls); the site asks not
        to override its layout.
    Source
        Targets per node: measured sweeps of five machines, each compared with other fixed rules
        (docs/accuracy.md). AIOT, equation 3 (with a node in place of a process) and figure 10. Lustre manual,
        section 19.2, and lfs-setstripe(1).
    Example
        128 processes on 8 nodes write one file of 32 GiB in blocks of 256 MiB on 32 targets of 0.78 GB/s:
        `lfs setstripe -c 16 -S 64M DIR`. Measured there (means): 648 MiB/s on 1 target, 3010 on 16, 3584 on 32.
    """

    id = "LUS002"
    settles = "layout"
    sources = ("AIOT eq. 3", "Lustre manual, section 19.2", "lfs-setstripe(1)")

    def check(self, profile: Profile, system: System) -> Verdict:
        # A single process that opens and writes a file for all is an aggregator of collective calls.
        shared = [
            (i, f)
            for i, f in enumerate(profile.files)
            if (f.access == "shared" and f.processes > 1) or movers_of(f, profile, reads=False).collective
        ]
        if not shared:
            return "no file is shared by several processes"
        large = [(i, f) for i, f in shared if (extent(f) or 0) >= self.min_bytes]
        if not large:
            if all(extent(f) is None for _, f in shared):
                return (
                    "files[].io.footprint and files[].size of the shared files are not known; "
                    "supply a trace with offsets"
                )
            return (
                f"no shared file has {lfs_size(int(self.min_bytes))}iB or more: "
                "the layout of smaller ones does not show"
            )
        outputs = [(i, f) for i, f in large if f.role != "input"]
        if not outputs:
            return "all large shared files existed before the run: see LUS008 (migrate-inputs)"
        groups = self.groups(outputs, profile, system)
        if isinstance(groups, str):
            return groups
        return [self._finding(group, profile) for group in groups]

    def _finding(self, group: Sequence[Case], profile: Profile) -> Finding:
        first = group[0]
        layout, place = first.layout, first.place
        folder = folder_of(first.file.path)
        app = app_of(first.file)
        gain = layout_choice.gain(group, profile)
        evidence = layout_text.evidence(group)
        machine = tuple(item for item in evidence if item.attribute.startswith("system."))
        return Finding(
            target=Target("file", first.file.path, app)
            if len(group) == 1
            else Target("directory", folder, app),
            reason=layout_text.sentence(group),
            confidence=round(place.certainty * (0.8 if first.size_from in ("distance", "site") else 0.6), 2),
            touched_s=layout_choice.spent_s(group, profile),
            recommended={"stripe_count": layout.count, "stripe_size": layout.size}
            | ({"pool": layout.pool} if layout.pool else {}),
            current={"stripe_count": layout.default_count, "stripe_size": layout.default_size},
            evidence=evidence,
            stripes=Stripes(self.id, layout.count, layout.size, machine),
            gain=gain or None,
            # A layout is fixed when a file is created, so the folder passes it on.
            apply=command_lines(f"lfs setstripe {layout.options}", folder),
            files=frozenset(case.file.path for case in group),
            settings=[TunableSetting("layout", _worth_trying(first), folder)] if quoted_path(folder) else (),
        )


def _worth_trying(case: Case) -> list[dict[str, str]]:
    """Options to try: the layout, one with twice and one with half as many targets; for a site's rule only the rule.

    A file with twice as many stripes gets smaller ones, halved as long as they fit what each process accesses and
    targets are evenly filled.
    """
    layout, figures = case.layout, case.place.figures
    options = [layout.options]
    limits = [n for n in (figures.targets, figures.max_stripe_count) if n] if figures and layout.rule is None else []
    if limits and layout.count > 0:
        more = neat(2 * layout.count, min(limits))
        size, bytes_ = layout.size, extent(case.file) or 0
        while (more * size > bytes_ or _fullest(bytes_ // size, more) > UNEVEN) and size % (2 * MiB) == 0:
            size //= 2
        options += [
            replace(layout, count=count, size=stripes).options
            for count, stripes in ((more, size), (layout.count // 2, layout.size))
            if count not in (0, layout.count, layout.default_count)
        ]
    return [{"options": words} for words in options]


def _fullest(stripes: int, targets: int) -> float:
    """Stripes on the fullest target over the mean."""
    return -(-stripes // targets) * targets / stripes
