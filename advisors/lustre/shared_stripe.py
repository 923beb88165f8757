"""LUS002: on how many Lustre targets large shared files lie, and in stripes of which size."""

from __future__ import annotations

import math
import posixpath
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.base import Evidence, Finding, Gain, Rule, Target, Value, Verdict
from vani.advisors.commands import comment, lfs_size, quoted_path
from vani.advisors.models import striping
from vani.advisors.models.placement import Lustre, lustre_under
from vani.units import KiB, MiB, format_bytes, format_rate

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile, Sizes
    from vani.schema.system import System

# A recommendation that lists more files than this is no first screen; the command covers all of them.
SHOWN = 10


@dataclass(frozen=True)
class Layout:
    """What a file gets, and what it is thought to have; None is unknown, -1 targets are all."""

    count: int
    size: int
    default_count: int | None
    default_size: int | None

    @property
    def changes(self) -> bool:
        return (self.count, self.size) != (self.default_count, self.default_size)


@dataclass(frozen=True)
class Case:
    """One file and the layout that it should have."""

    index: int
    file: FileEntity
    reads: bool
    parallelism: int
    offered: float
    target_rate: float
    layout: Layout
    has_distance: bool
    place: Lustre

    @property
    def busy_s(self) -> float:
        return self.file.io.busy_s.read if self.reads else self.file.io.busy_s.write


class StripeCount(Rule):
    """A large shared file lies on too few Lustre targets, or in stripes that its processes collide in.

    Looks at
        Shared files on Lustre of at least `min_bytes`: how many processes read or write them, how fast one of
        them goes, the distance between the offsets that they access at the same moment (from the stride, or
        from the block of each process), the usual transfer size, and the machine's targets.
    Why
        A file is no faster than the targets that it lies on, however many processes use it. Where stripes do
        not match what neighbouring processes access at the same time, all of them queue at one target while
        the others are idle.
    Recommends
        The stripe count of AIOT's equation 3 (bandwidth that the processes offer / bandwidth of one target),
        capped where twice the targets would give less than `knee_gain` more, rounded up to a power of two,
        and never more than the file system has or the site allows. The stripe size is the distance between
        neighbouring processes' simultaneous offsets, a multiple of 64 KiB; where that is not known, a
        multiple of the transfer size. New files get it from their folder (`lfs setstripe`), existing inputs
        are copied into it (`lfs migrate`). Where the site has a composite layout of its own, only the site's
        own rules are followed.
    Stays silent when
        No file is shared, or none of them large; the data is not on Lustre, or nobody knows where it is; the
        default layout is already the recommended one; the site asks not to override its layout.
    Source
        AIOT, equation 3 and figure 10. Lustre manual, section 19.2, and lfs-setstripe(1). Knee and rates:
        OPRAEL's measured sweep (see `advisors/models/striping.py`). Variation between runs: Xie et al.,
        section IV-D.
    Example
        128 processes on 8 nodes write one file of 32 GiB in blocks of 256 MiB on targets of 0.83 GB/s:
        `lfs setstripe -c 16 -S 256M DIR`. Measured there (medians): 659 MiB/s on 1 target, 3206 on 16, 3447 on 32.
    """

    id = "LUS002"
    name = "stripe-count"
    family = "lustre"
    needs = ("files",)
    settles = "layout"
    sources = ("AIOT eq. 3", "Lustre manual, section 19.2", "lfs-setstripe(1)")

    # Below two times max_dirty_mb, the 32 MiB that a Lustre client keeps per target before it must send
    # (general knowledge: typical default), writes end in the client's memory and no layout shows.
    min_bytes = 64 * MiB
    # Lustre manual, section 19.2: 512 KiB is the smallest stripe size that makes sense, since RPCs are 1 MiB.
    min_stripe_size = 512 * KiB
    # Xie et al., footnote 6: stripes of 1 to 32 MB made no difference, larger ones hurt. Only for guesses
    # from the transfer size: a distance that is known keeps one process per stripe, however large.
    max_guessed_size = 32 * MiB
    # OPRAEL sweep, 32 GiB, medians: 8 to 16 targets gave 20 % more, 16 to 32 gave 7.5 %; the model's figures are 24 %
    # and 14 %.
    knee_gain = 0.15
    # Bytes per second of one process whose transfers are large, where the measured rate is lower: it was
    # measured on too few targets, perhaps. OPRAEL: one process writes 0.3 GB/s.
    process_rate = 300_000_000
    # Transfers below half an RPC of 1 MiB wait for the network, not for targets: their measured rate stands.
    large_transfer = 512 * KiB
    # Bytes per second of one node: OPRAEL, 8 nodes offer 4000 MiB/s in the fit of the model.
    node_rate = 524_000_000
    # Processes per node where the number of nodes is unknown: OPRAEL's 128 on 8.
    processes_per_node = 16
    # Bytes per second of one target where no machine is described: 350 to 500 MB/s are typical of disks
    # (Swinburne's user guide), 0.66 GB/s were measured by OPRAEL.
    target_rate = 500_000_000

    def check(self, profile: Profile, system: System) -> Verdict:
        shared = [(i, f) for i, f in enumerate(profile.files) if f.access == "shared" and f.processes > 1]
        if not shared:
            return self.nothing("no file is shared by several processes")
        large = [(i, f) for i, f in shared if (_extent(f) or 0) >= self.min_bytes]
        if not large:
            if all(_extent(f) is None for _, f in shared):
                return self.nothing(
                    "files[].io.footprint and files[].size of the shared files are not known; "
                    "supply a trace with offsets"
                )
            return self.nothing(
                f"no shared file has {lfs_size(int(self.min_bytes))}iB or more: "
                "the layout of smaller ones does not show"
            )
        cases: list[Case] = []
        reasons: list[str] = []
        for index, file in large:
            case = self._judge(index, file, profile, system)
            cases.append(case) if isinstance(case, Case) else reasons.append(case)
        if not cases:
            return self.nothing("; ".join(dict.fromkeys(reasons)))
        groups: defaultdict[tuple[object, ...], list[Case]] = defaultdict(list)
        for case in cases:
            existing = case.file.role == "input"
            groups[posixpath.dirname(case.file.path), case.layout, existing].append(case)
        return [self._finding(group) for group in groups.values()]

    def _judge(self, index: int, file: FileEntity, profile: Profile, system: System) -> Case | str:
        place = lustre_under(file.path, profile, system)
        if isinstance(place, str):
            return place
        reads = (file.io.bytes.read or 0) > (file.io.bytes.written or 0)
        parallelism = max(1, file.readers if reads else file.writers)
        if parallelism < 2:
            return "each large shared file is moved by one process: more targets serve many"
        disk = place.figures
        if disk is not None and disk.site_pfl and not self._site_rule(file, place):
            return f"{disk.name} has a composite layout of its own, and the site asks to leave it as it is"
        rates = disk.bandwidth_per_target if disk else None
        target_rate = (rates and (rates.read if reads else rates.write)) or self.target_rate
        offered = self._offered(file, profile, place, reads=reads, parallelism=parallelism)
        size, has_distance = self._stripe_size(file, reads=reads, parallelism=parallelism)
        rate = self._process_rate(file, reads=reads)
        count = min(
            striping.equation_3_count(rate, parallelism, target_rate),
            striping.knee(offered, target_rate, self.knee_gain),
        )
        limits = [n for n in (disk.targets, disk.max_stripe_count) if n] if disk else []
        # A file of three stripes lies on three targets, whatever its stripe count.
        limits.append(math.ceil((_extent(file) or size) / size))
        # 2000 is Lustre's own limit (lfs-setstripe(1)).
        count = min(striping.power_of_two(count), *limits, 2000)
        layout = Layout(count, size, disk.stripe_count if disk else None, disk.stripe_size if disk else None)
        rule = self._site_rule(file, place)
        if rule is not None:
            layout = Layout(rule[0], rule[1] or size, layout.default_count, layout.default_size)
        elif layout.default_count is not None and not 0 < layout.default_count < count:
            # The default has as many targets or more (-1 is all): fewer is not this rule's question.
            layout = Layout(layout.default_count, size, layout.default_count, layout.default_size)
        if not layout.changes:
            return "the default layout of the file system already fits the large shared files"
        return Case(index, file, reads, parallelism, offered, target_rate, layout, has_distance, place)

    def _process_rate(self, file: FileEntity, *, reads: bool) -> float:
        """Bytes per second of one process: equation 3's "I/O bandwidth of a single process"."""
        moved, time = (
            (file.io.bytes.read, file.io.time_s.read)
            if reads
            else (file.io.bytes.written, file.io.time_s.write)
        )
        measured = moved / time if moved and time else 0.0
        sizes = _sizes(file, reads=reads)
        is_large = sizes is None or sizes.p50 is None or sizes.p50 >= self.large_transfer
        rate = max(measured, self.process_rate) if is_large or not measured else measured
        # Writes that end in the client's memory are measured at its speed, and no process sends more than its
        # node.
        return min(rate, float(self.node_rate))

    def _offered(
        self, file: FileEntity, profile: Profile, place: Lustre, *, reads: bool, parallelism: int
    ) -> float:
        """What all clients can send together, in bytes per second."""
        nodes = profile.job.nodes or math.ceil(parallelism / self.processes_per_node)
        most = place.figures.max_bandwidth if place.figures else None
        whole = (most and (most.read if reads else most.write)) or math.inf
        processes = self._process_rate(file, reads=reads) * parallelism
        return float(min(processes, max(1, nodes) * self.node_rate, whole))

    def _stripe_size(self, file: FileEntity, *, reads: bool, parallelism: int) -> tuple[int, bool]:
        """The stripe size in bytes, and whether the processes' simultaneous offsets gave it."""
        pattern, bytes_, footprint = file.io.access_pattern, file.io.bytes, file.io.footprint
        run = None
        if pattern is not None:
            # The pattern is that of both directions together, so the runs are, too.
            run = striping.mean_run(
                moved=bytes_.total,
                distinct=(footprint.read or 0) + (footprint.written or 0),
                operations=file.io.ops.read + file.io.ops.write,
                jumps=pattern.sequential + pattern.random,
                streams=file.readers + file.writers,
            )
        distance = striping.step_distance(
            stride=file.stride,
            shares=(pattern.consecutive, pattern.strided, pattern.random) if pattern else None,
            footprint=footprint.read if reads else footprint.written,
            processes=parallelism,
            mean_run=run,
        )
        if distance is not None:
            return striping.whole_stripes(distance, int(self.min_stripe_size)), True
        sizes = _sizes(file, reads=reads)
        usual = sizes.common[0][0] if sizes and sizes.common else None
        if not usual or usual % striping.STRIPE_UNIT:
            return MiB, False  # Lustre's own default: no size is aligned with such transfers.
        return striping.whole_stripes(usual, MiB, int(self.max_guessed_size)), False

    @staticmethod
    def _site_rule(file: FileEntity, place: Lustre) -> tuple[int, int | None] | None:
        """Stripe count and size that the site tells users to set for files of this size."""
        rules = place.figures.striping_rules if place.figures else []
        below = [rule for rule in rules if rule.above <= (_extent(file) or 0)]
        if not below:
            return None
        rule = max(below, key=lambda rule: rule.above)
        return rule.stripe_count, rule.stripe_size

    def _finding(self, group: Sequence[Case]) -> Finding:
        group = sorted(group, key=lambda case: -case.busy_s)
        first = group[0]
        layout, place = first.layout, first.place
        folder = posixpath.dirname(first.file.path) or "."
        single = len(group) == 1
        app = first.file.apps[0] if first.file.apps else None
        current: dict[str, Value] = {"stripe_count": layout.default_count, "stripe_size": layout.default_size}
        return Finding(
            target=Target("file", first.file.path, app) if single else Target("directory", folder, app),
            reason=self._sentence(group),
            confidence=round(place.certainty * (0.8 if first.has_distance else 0.6), 2),
            touched_s=sum(case.busy_s for case in group),
            recommended={"stripe_count": layout.count, "stripe_size": layout.size},
            current=current,
            evidence=_evidence(group),
            gain=self._gain(group),
            apply=_commands(group, folder),
            files=frozenset(case.file.path for case in group),
        )

    def _sentence(self, group: Sequence[Case]) -> str:
        first, layout = group[0], group[0].layout
        verb = "read" if first.reads else "write"
        what = first.file.path if len(group) == 1 else f"{len(group)} files like {first.file.path}"
        sizes = format_bytes(_extent(first.file))
        has = (
            "" if layout.default_count is None else f", and new files lie on {_targets(layout.default_count)}"
        )
        why = (
            "the distance between what neighbours access at the same time"
            if first.has_distance
            else "a multiple of the usual transfer"
        )
        text = (
            f"{first.parallelism} processes {verb} {what} ({sizes}){has}: {_targets(layout.count)} of "
            f"{format_rate(first.target_rate)} carry what they offer, in stripes of "
            f"{lfs_size(layout.size)}, {why}."
        )
        if first.place.because:
            text += f" Note: {first.place.because}."
        if self._gain(group) is None:
            text += " For an expected gain, supply the default stripe count (`lfs getstripe -d`) in --system."
        return text

    def _gain(self, group: Sequence[Case]) -> Gain | None:
        """Seconds while some process moves bytes of these files; None where the count stays or is unknown."""
        first = group[0]
        before, after = first.layout.default_count, first.layout.count
        busy = sum(case.busy_s for case in group)
        if before is None or before < 1 or after <= before or not busy:
            return None
        least, expected, most = striping.speedups(before, after, first.target_rate, first.offered)
        return Gain(
            metric="read_time_s" if first.reads else "write_time_s",
            before_s=busy,
            after_s=busy / expected,
            best_s=busy / most,
            worst_s=busy / least,
            method="1 / B(c) = 1 / (c * target) + 1 / clients, fitted to OPRAEL's stripe sweep, target "
            f"{format_rate(first.target_rate)}, clients {format_rate(first.offered)}; from the default of "
            f"{_targets(before)}",
        )


def _extent(file: FileEntity) -> int | None:
    """Bytes of the file as far as known: its size, or what was touched of it."""
    known = (file.size, file.io.footprint.read, file.io.footprint.written)
    return max((size for size in known if size is not None), default=None)


def _sizes(file: FileEntity, *, reads: bool) -> Sizes | None:
    return file.io.transfer_size.read if reads else file.io.transfer_size.write


def _targets(count: int) -> str:
    if count < 1:
        return "all targets"
    return "1 target" if count == 1 else f"{count} targets"


def _evidence(group: Sequence[Case]) -> list[Evidence]:
    found = []
    for case in group[:SHOWN]:
        where, file = f"files[{case.index}]", case.file
        size = "io.footprint.read" if case.reads else "io.footprint.written"
        footprint = file.io.footprint.read if case.reads else file.io.footprint.written
        found += [
            Evidence(f"{where}.path", file.path),
            Evidence(f"{where}.{size}", footprint),
            Evidence(f"{where}.{'readers' if case.reads else 'writers'}", case.parallelism),
        ]
        if file.stride is not None:
            found.append(Evidence(f"{where}.stride", file.stride))
        elif case.has_distance and file.io.access_pattern is not None:
            found.append(
                Evidence(f"{where}.io.access_pattern.consecutive", file.io.access_pattern.consecutive)
            )
    disk, prefix = group[0].place.figures, group[0].place.prefix
    if disk is not None:
        rate = disk.bandwidth_per_target.read if group[0].reads else disk.bandwidth_per_target.write
        direction = "read" if group[0].reads else "write"
        found += [
            Evidence(f"{prefix}.targets", disk.targets),
            Evidence(f"{prefix}.bandwidth_per_target.{direction}", rate),
        ]
    return found


def _commands(group: Sequence[Case], folder: str) -> list[str]:
    layout = group[0].layout
    options = f"-c {layout.count} -S {lfs_size(layout.size)}"
    hidden = comment("a path with control characters is left out: type it yourself")
    if group[0].file.role != "input":
        # A layout is fixed when a file is created, so the folder passes it on.
        quoted = quoted_path(folder)
        return [f"lfs setstripe {options} {quoted}"] if quoted else hidden
    paths = [quoted_path(case.file.path) for case in group]
    lines = [f"lfs migrate {options} {path}" for path in paths if path]
    return lines + (hidden if None in paths else [])
