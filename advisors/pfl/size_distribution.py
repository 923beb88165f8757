"""PFL001: files of very different sizes in one folder, whose layout should grow with them."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from vani.advisors.commands import command_lines
from vani.advisors.data_files import SHOWN, app_of, extent
from vani.advisors.movers import movers_of, nodes_between
from vani.advisors.placement import FolderRule, Lustre, keeps_own_layout, site_rule, targets_text
from vani.advisors.rule import Evidence, Finding, Gain, Perhaps, Target, Verdict
from vani.models import stripe_count
from vani.models.calibration import SPREAD
from vani.models.pfl import CONFIGURATION_1, CONFIGURATION_2, Layout, layout_for_sizes, usage
from vani.models.run_time import of_files_s, seconds_of
from vani.models.striping import neighbour_distance
from vani.units import GiB, MiB, counted, format_bytes, format_count

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import FileSystem, StripeCurve, System


class SizeDistribution(FolderRule):
    """Files of one folder differ so much in size that no single stripe count fits all of them.

    Looks at
        Folders on Lustre with at least `min_files` files of known size that the run writes, the largest of at least
        `min_largest` and `min_spread` times the median, and the machine's targets, nodes and rates.
    Why
        A folder has one default layout. With few stripes its large files are slow and fill single targets; with many,
        each small file costs objects on all of them. A composite layout gives a file more stripes as it grows.
    Recommends
        Components that end at 4 times the end of the one before, the first at the median size (a power of two, 1 MiB
        to 1 GiB) with one stripe, so that the total of stripes is proportional to the size; it stops growing at what
        LUS002 would give the largest file, and the last component reaches to the end of the file. As
        `lfs setstripe -E`, as YAML template and as Tarazu's .ini, next to Tarazu's two configurations.
    Stays silent when
        No folder has enough files of known size, or a large one among them, or they are similar; the number of targets
        is not known; the data is not on Lustre; the site asks not to override its layout.
    Source
        Lustre manual, progressive file layouts, as quoted by Tarazu (section 2.3): few stripes for small files, a total
        proportional to the size, and one last component when the targets are reached. Tarazu, table 8 and figure 12.
        lfs-setstripe(1).
    Example
        200 files of 2 MiB and one of 40 GiB on 32 targets:
        `lfs setstripe -E 2M -c 1 -S 1M -E 8M -c 3 -S 1M -E -1 -c 16 -S 1M DIR`, 128 processes on 8 nodes writing the
        largest.
    """

    id = "PFL001"
    settles = "layout"
    sources = ("Lustre manual, progressive file layouts", "Tarazu, section 2.3 and table 8", "lfs-setstripe(1)")

    # Our choice: rules for single files are better for fewer files.
    min_files = 8
    # Tarazu, table 8: the second component begins at 128 MiB and the last at 2 GiB. Below 1 GiB, one target of 0.5 GB/s
    # takes at most two seconds.
    min_largest = GiB
    # Tarazu, table 8: the ends of components grow by a factor of 4, and two such steps justify two layouts.
    min_spread = 16
    # As in LUS002, if the number of nodes is unknown.
    processes_per_node = 1

    def check(self, profile: Profile, system: System) -> Verdict:
        folders: defaultdict[str, list[tuple[int, FileEntity]]] = defaultdict(list)
        for index, file in enumerate(profile.files):
            if file.role != "input" and file.writers and extent(file):
                folders[posixpath.dirname(file.path)].append((index, file))
        enough = {folder: files for folder, files in folders.items() if len(files) >= self.min_files}
        if not enough:
            return f"no folder has {self.min_files} files or more of known size that the run writes"
        mixed = {folder: files for folder, files in enough.items() if self._is_mixed(files)}
        if not mixed:
            return (
                f"no folder has files of {format_bytes(self.min_largest)} or more among files "
                f"{self.min_spread} times smaller: one stripe count fits all"
            )
        return self.on_lustre(((folder, (folder, files, system)) for folder, files in mixed.items()), profile, system)

    def _is_mixed(self, files: list[tuple[int, FileEntity]]) -> bool:
        sizes = sorted(extent(file) or 0 for _, file in files)
        median, largest = sizes[len(sizes) // 2], sizes[-1]
        return largest >= self.min_largest and largest >= self.min_spread * median

    def judge(
        self, part: tuple[str, list[tuple[int, FileEntity]], System], place: Lustre, profile: Profile
    ) -> Finding | str:
        (folder, files, system), disk = part, place.figures
        largest = max(files, key=lambda file: extent(file[1]) or 0)[1]
        if (own_layout := keeps_own_layout(disk)) and not site_rule(extent(largest) or 0, place):
            return own_layout
        if own_layout:
            return "the site has its own rules for large files: see LUS002"
        if disk is None or not disk.targets:
            return "the number of targets is not known; supply it (`lfs df`) in --system"
        most = min(n for n in (disk.targets, disk.max_stripe_count) if n)
        movers = movers_of(largest, profile, reads=False)
        nodes = nodes_between(
            largest, movers, profile, system, per_node=max(1, int(self.processes_per_node)), reads=False
        )[1]
        distance = None if movers.collective else neighbour_distance(largest, movers.processes, reads=False)
        curve = stripe_count.nearest_curve(
            disk.stripe_curves,
            nodes=nodes,
            collective=movers.collective,
            reads=False,
            strided=distance is not None and distance < MiB,
        )
        usual = stripe_count.COLLECTIVE_PER_NODE if movers.collective else stripe_count.PER_NODE
        width = stripe_count.wanted_targets(
            nodes=nodes,
            most=min(most, movers.processes) if movers.collective else most,
            per_node=usual if curve is None else stripe_count.measured_per_node(curve),
            least=min(stripe_count.LEAST, movers.processes) if curve is None else 1,
        )
        width = stripe_count.neat(width, most)
        layout = layout_for_sizes([extent(file) or 0 for _, file in files], most, most=width)
        return self._finding(folder, files, layout, place, disk, curve, profile)

    def _finding(
        self,
        folder: str,
        files: list[tuple[int, FileEntity]],
        layout: Layout,
        place: Lustre,
        disk: FileSystem,
        curve: StripeCurve | None,
        profile: Profile,
    ) -> Finding:
        files = sorted(files, key=lambda file: -(extent(file[1]) or 0))
        sizes = [extent(file) or 0 for _, file in files]
        gain = _gain(files, layout, disk, curve, profile)
        reason = (
            f"{format_count(len(files))} files in {folder or '.'} have a median size of "
            f"{format_bytes(sizes[len(sizes) // 2])}, and the largest has {format_bytes(sizes[0])}. "
            "A layout that grows with the file gives small ones one stripe and the largest "
            f"{usage(layout, sizes[0], disk.targets).allocated} in all, its last part on "
            f"{targets_text(layout.components[-1].count or 1)}."
        )
        return Finding(
            target=Target("directory", folder or ".", app_of(files[0][1])),
            reason=reason + place.note,
            confidence=round(0.6 * place.certainty, 2),
            touched_s=of_files_s([file for _, file in files], profile, "write_synced"),
            recommended={
                "layout": layout.to_options(),
                "yaml": layout.to_yaml(),
                "tarazu_ini": layout.to_ini(),
                "compared": _compared(layout, sizes, disk.targets or 1),
            },
            current={"layout": disk.site_pfl} if disk.site_pfl else {"stripe_count": disk.stripe_count},
            evidence=[
                Evidence("files[]", len(files)),
                *(Evidence(f"files[{index}].size", extent(file)) for index, file in files[:SHOWN]),
                Evidence(f"{place.prefix}.targets", disk.targets),
            ],
            gain=gain or None,
            apply=command_lines(f"lfs setstripe {layout.to_options()}", folder or "."),
            files=frozenset(file.path for _, file in files),
        )


def _gain(
    files: list[tuple[int, FileEntity]], layout: Layout, disk: FileSystem, curve: StripeCurve | None, profile: Profile
) -> Gain | Perhaps | str:
    """The gain from the default count to the mean width over each file's bytes, on this machine's curve."""
    # Going from one composite layout to another would need each file's widths before and after.
    default = None if disk.site_pfl else disk.stripe_count
    before = of_files_s([file for _, file in files], profile, "write_synced")
    if default is None or default < 1:
        return "supply the default stripe count (`lfs getstripe -d`) in --system"
    if curve is None:
        return Perhaps(stripe_count.UNMEASURED)
    old = new = 0.0
    widest = 1.0
    for _, file in files:
        busy = seconds_of(file.io.busy_s, "write_synced")
        if not busy or not file.io.bytes.written:
            continue
        size = extent(file) or 1
        width = max(1, round(size / usage(layout, size, disk.targets).fullest))
        expected = stripe_count.speedup(curve.points, default, width, file.io.bytes.written / busy)
        if expected is None:
            return Perhaps(f"no number of targets near {default:,} and {width:,} was measured on this machine")
        old, new, widest = old + busy, new + busy / expected[0], max(widest, expected[1])
    if not before or not old:
        return ""
    after, spread = before * new / old, max(widest, SPREAD)
    return Gain(
        metric="write_time_s",
        before_s=before,
        after_s=after,
        best_s=after / spread,
        worst_s=after * spread,
        method=f"file by file from {targets_text(default)} on this machine's curve of {counted(curve.nodes, 'node')}",
    )


def _compared(layout: Layout, sizes: list[int], targets: int) -> list[dict[str, str | int | float | bool | None]]:
    """Stripes and fullest objects, of the largest and of all files, for this layout and Tarazu's configurations."""
    components: list[dict[str, str | int | float | bool | None]] = []
    alike = Counter(sizes)
    for name, part in (
        ("this layout", layout),
        ("Tarazu's configuration 1", CONFIGURATION_1),
        ("Tarazu's configuration 2", CONFIGURATION_2),
    ):
        largest = usage(part, sizes[0], targets)
        components.append(
            {
                "layout": name,
                "stripes_of_all_files": sum(
                    files * usage(part, size, targets).allocated for size, files in alike.items()
                ),
                "stripes_of_the_largest": largest.allocated,
                "fullest_stripe_mib": round(largest.fullest / MiB, 1),
                "more_stripes_than_targets": part.stripes > targets,
            }
        )
    return components
