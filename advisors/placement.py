"""File systems: what the trace recorded about them, which of them contains a path, and which targets are slow.

File systems that the trace recorded override a description of the same folders. A run that was faster than a
description refutes its rates.

Layouts of files are what a site recommends or sets on its Lustre, and the pieces that hints and alignments must
match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from vani.advisors.data_files import Item, extent
from vani.advisors.rule import Answer, Evidence, Layouts, Rule, Verdict
from vani.errors import InputError
from vani.models.calibration import certainty
from vani.models.pfl import parse_options
from vani.models.run_time import seconds
from vani.units import MiB, counted, format_count, format_rate

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Mount, Profile, TargetUse
    from vani.schema.system import FileSystem, Forwarding, Rates, StripingRule, System


_CACHED_PER_NODE: Final = 512 * MiB
"""Bytes per node that Lustre's clients may still have in memory when the last write returns: OPRAEL's eight nodes
write up to that much at memory speed."""


def with_observed_rates(system: System, profile: Profile) -> System:
    """A copy of the machine whose targets and file systems are at least as fast as the run's files on them.

    A file on n targets that moves at some rate shows that a target gives at least an nth of it and the file system all
    of it. Only rates that the description has are corrected, and only upwards: a run may be slow for many reasons. The
    time is that in which any process was in such a call on the file, as in the rules. The rate excludes bytes that
    clients may have kept in memory, bytes that were read twice, and reads of files that the run wrote.

    Parameters
    ----------
    system
        Description to correct; it is not modified.
    """
    disks = [_with_observed(disk, system, profile) for disk in system.file_systems]
    if disks == system.file_systems:
        return system
    return system.model_copy(update={"file_systems": disks})


def _with_observed(disk: FileSystem, system: System, profile: Profile) -> FileSystem:
    if disk.type != "lustre":
        return disk
    files = [file for file in profile.files if file.stripe_count and system.file_system_for(file.path) is disk]
    target: dict[str, float] = {}
    whole: dict[str, float] = {}
    for kind in ("read", "write"):
        for file in files:
            rate = _rate(file, kind, profile)
            whole[kind] = max(whole.get(kind, 0.0), rate)
            target[kind] = max(target.get(kind, 0.0), rate / (file.stripe_count or 1))
    return disk.model_copy(
        update={
            "bandwidth_per_target": _raised(disk.bandwidth_per_target, target),
            "max_bandwidth": _raised(disk.max_bandwidth, whole),
        }
    )


def _raised(rates: Rates, observed: dict[str, float]) -> Rates:
    faster = {
        kind: rate for kind, rate in observed.items() if (known := getattr(rates, kind)) is not None and rate > known
    }
    return rates.model_copy(update=faster) if faster else rates


def _rate(file: FileEntity, kind: str, profile: Profile) -> float:
    """Lower bound of the bytes per second at which the file's targets moved it."""
    seconds: float | None = getattr(file.io.busy_s, kind)
    if not seconds:
        return 0.0
    nodes = min(profile.job.nodes or file.processes, file.processes)
    written = (file.io.bytes.written or 0) - nodes * _CACHED_PER_NODE
    read = (file.io.footprint.read or 0) if not file.writers else 0
    return max(0.0, (written if kind == "write" else read) / seconds)


_WITH_RULES: Final = ("lustre", "gpfs", "beegfs", "ceph", "daos", "fuse.daos", "dfuse")
"""Types with settings for which there are rules."""
_OF_ONE_NODE: Final = ("btrfs", "ext2", "ext3", "ext4", "overlay", "ramfs", "squashfs", "tmpfs", "xfs", "zfs")
"""Types that belong to a single node and have no settings for parallel I/O."""


def recorded_mount(path: str, profile: Profile, system: System) -> Mount | None:
    """The longest recorded mount that contains `path`.

    None if that is `/` and the description has a mount below it, because the recorded table may be of another node.
    """
    holding = [m for m in profile.storage.mounts or () if f"{path}/".startswith(f"{m.dir.rstrip('/')}/")]
    mount = max(holding, key=lambda mount: len(mount.dir), default=None)
    if mount is None or mount.dir != "/":
        return mount
    described = system.file_system_for(path)
    return mount if described is None or described.mounts == ["/"] else None


def as_recorded(system: System, profile: Profile) -> System:
    """The machine with file systems corrected by the trace: their types, numbers of targets, and rates as lower bounds.

    A file system of another type in the same folder is appended without figures, so that paths in the description
    stay valid.
    """
    systems = list(system.file_systems)
    differ = False
    for mount in profile.storage.mounts or ():
        described = system.file_system_for(mount.dir)
        if described is None and (mount.type in ("lustre", "gpfs") or system.burst_buffer_for(mount.dir)):
            # The description does not name the folder, but it may still be on one of its file systems.
            continue
        if described is None or not _is_same(described.type, mount.type):
            differ = True
            systems = [_without(disk, mount.dir) for disk in systems]
            systems.append(_bare(mount))
            continue
        number = system.file_systems.index(described)
        update: dict[str, object] = {"mounts": [*systems[number].mounts, mount.dir]}
        if system.generic and mount.targets:
            differ = differ or mount.targets != described.targets
            update["targets"] = mount.targets
        systems[number] = systems[number].model_copy(update=update)
    recorded = system.model_copy(update={"file_systems": systems}) if differ else system
    return with_observed_rates(recorded, profile)


def notes_on_mounts(system: System | None, profile: Profile) -> list[str]:
    """Sentences on differences between trace and description, and on file systems that get only generic advice."""
    notes = []
    for mount in profile.storage.mounts or ():
        described = None if system is None else system.file_system_for(mount.dir)
        if described is not None and system is not None and not _is_same(described.type, mount.type):
            notes.append(
                f"{mount.dir} is {mount.type} in the trace's mount table and {described.type} in {system.name}: the "
                "trace takes precedence."
            )
        elif described is not None and system is not None and mount.targets and mount.targets != described.targets:
            had = format_count(described.targets) if described.targets else "not stated"
            notes.append(
                f"{mount.dir} has {format_count(mount.targets)} storage targets in the trace, {had} in {system.name}"
                + (": the trace takes precedence." if system.generic else ".")
            )
        if mount.type not in (*_WITH_RULES, *_OF_ONE_NODE):
            notes.append(
                f"Vani has no settings for {mount.type} ({mount.dir}): advice for files there is generic and concerns "
                "the program only."
            )
    for before, observed in _corrected(system, profile):
        faster = [
            f"{format_rate(getattr(observed, kind))} in {kind}s, {format_rate(getattr(before, kind))}"
            for kind in ("read", "write")
            if getattr(observed, kind) != getattr(before, kind)
        ]
        if faster and system is not None:
            rates = " and ".join(faster)
            notes.append(f"A storage target reached {rates} in {system.name}: the trace takes precedence.")
    return list(dict.fromkeys(notes))


def _corrected(system: System | None, profile: Profile) -> list[tuple[Rates, Rates]]:
    """Rates of a target of each file system, as described and as corrected by the trace."""
    if system is None:
        return []
    observed = with_observed_rates(system, profile)
    return [
        (described.bandwidth_per_target, corrected.bandwidth_per_target)
        for described, corrected in zip(system.file_systems, observed.file_systems, strict=True)
    ]


def _is_same(described: str, recorded: str) -> bool:
    """True if both are the same type. The kernel's names may include a version, as in nfs4."""
    return recorded.rstrip("0123456789") == described.lower().rstrip("0123456789")


def _without(disk: FileSystem, folder: str) -> FileSystem:
    if folder not in disk.mounts:
        return disk
    return disk.model_copy(update={"mounts": [mount for mount in disk.mounts if mount != folder]})


def _bare(mount: Mount) -> FileSystem:
    from vani.schema.system import FileSystem  # noqa: PLC0415 - `vani explain` loads no pydantic

    return FileSystem(name=mount.dir, type=mount.type, mounts=[mount.dir], targets=mount.targets)


SUPPLY = ("state where the data is: --system NAME (generic-lustre, generic-gpfs or a machine) or --job job.yaml")


@dataclass(frozen=True)
class Lustre:
    """A Lustre file system that contains a path.

    `figures` are the description's; None without a description. `certainty`, 0..1, is a factor on a rule's confidence,
    and `because` its reason as part of a sentence, if the machine's figures do not show it.
    """

    figures: FileSystem | None
    prefix: str
    certainty: float
    because: str

    @property
    def note(self) -> str:
        """A sentence with `because`, to end a reason."""
        return f" Note: {self.because}." if self.because else ""

    def default(self, name: str, value: int | None) -> Evidence:
        """The default that new files get: the site's composite layout if there is one, else this value."""
        pfl = self.figures.site_pfl if self.figures is not None else None
        return Evidence(f"{self.prefix}.site_pfl", pfl) if pfl else Evidence(f"{self.prefix}.{name}", value)


def lustre_under(path: str, profile: Profile, system: System, *, but: str = "not Lustre") -> Lustre | str:
    """Find the Lustre file system that contains `path`, or return a sentence on why there is none.

    Mounts recorded in the trace decide first, then those of the system, then what `vani collect` found for the
    profile, then a generic description that the user chose, and last `lustre` in the first folders of the path, which
    is only a hint. `but` is the wording for a file system of another type.
    """
    mount = recorded_mount(path, profile, system)
    if mount is not None and mount.type != "lustre":
        return f"the data is on {mount.dir}, which is {mount.type} by the trace's mount table, {but}"
    file_system = system.file_system_for(path)
    if file_system is not None and file_system.type == "lustre":
        prefix = f"system.file_systems[{system.file_systems.index(file_system)}]"
        return Lustre(file_system, prefix, *_sure(system))
    if file_system is not None:
        return f"the data is on {file_system.name}, which is {file_system.type}, {but}"
    near = system.burst_buffer_for(path)
    if near is not None:
        return f"the data is on {near.name}, a burst buffer, not on Lustre"
    return _without_mount(path, profile, system)


def places(profile: Profile, system: System) -> Callable[[str], Lustre | str]:
    """`lustre_under` with a cache by folder, because all files of a folder are on one file system."""
    return cache(lambda folder: lustre_under(folder, profile, system))


class FolderRule(Rule):
    """A rule that judges folders on Lustre, or files in them, one by one."""

    def on_lustre(self, parts: Iterable[tuple[str, Any]], profile: Profile, system: System) -> Verdict:
        """The verdict over parts, each with its folder; those elsewhere have a reason."""
        under = places(profile, system)
        placed = ((under(folder), part) for folder, part in parts)
        return self.among(
            place if isinstance(place, str) else self.judge(part, place, profile) for place, part in placed
        )

    def judge(self, part: Any, place: Lustre, profile: Profile) -> Answer:
        """Judge a part on this Lustre."""
        raise NotImplementedError


def gpfs_under(path: str, profile: Profile, system: System) -> tuple[str, FileSystem | None] | str:
    """The GPFS that contains `path`, as its path in the system and its figures; a sentence if there is none."""
    return disk_under("gpfs", "GPFS", path, profile, system)


def disk_under(
    kind: str, name: str, path: str, profile: Profile, system: System
) -> tuple[str, FileSystem | None] | str:
    """The file system of type `kind` that contains `path`, with its path in the system; a sentence if there is none.

    `name` is the type's name in the sentence.
    """
    mount = recorded_mount(path, profile, system)
    if mount is not None and mount.type != kind:
        return f"the data is on {mount.dir}, which is {mount.type} by the trace's mount table, not {name}"
    file_system = system.file_system_for(path)
    shared = profile.storage.shared
    if mount is not None and file_system is not None and file_system.type == kind:
        return f"system.file_systems[{system.file_systems.index(file_system)}]", file_system
    if file_system is not None and not (system.generic and shared.type is not None):
        if file_system.type != kind:
            return f"the data is on {file_system.type}, not on {name}"
        return f"system.file_systems[{system.file_systems.index(file_system)}]", file_system
    if system.burst_buffer_for(path) is not None:
        return f"the data is on a burst buffer, not on {name}"
    if shared.type is not None and (shared.dir is None or path.startswith(shared.dir.rstrip("/") + "/")):
        if shared.type.lower() != kind:
            return f"the data is on {shared.type}, not on {name}"
        figures = system.file_system(kind)
        number = system.file_systems.index(figures) if figures is not None else 0
        return f"system.file_systems[{number}]", figures
    return f"the type of the file system is not known; {SUPPLY}"


def _without_mount(path: str, profile: Profile, system: System) -> Lustre | str:
    """The assumed file system of a path outside all mounts of the description."""
    figures = system.file_system("lustre")
    prefix = f"system.file_systems[{system.file_systems.index(figures)}]" if figures else "system"
    shared = profile.storage.shared
    if shared.type is not None and _holds(shared.dir, path):
        if shared.type.lower() != "lustre":
            return f"the data is on {shared.type}, not on Lustre"
        typical = (0.7, "the figures of its targets are typical")
        return Lustre(figures, prefix, *(_sure(system) if figures else typical))
    if system.generic and figures is not None:
        return Lustre(figures, prefix, *_sure(system))
    if system.generic and system.file_systems:
        return f"the data is on {system.file_systems[0].type}, not on Lustre"
    if any("lustre" in part.lower() for part in path.split("/")[:4]):
        return Lustre(figures, prefix, 0.5, "only the path suggests that this is Lustre: check with `lfs df`")
    return f"the type of the file system is not known; {SUPPLY}"


def _sure(system: System) -> tuple[float, str]:
    # The first lines of advice already name a generic machine.
    return certainty(system), ""


def _holds(folder: str | None, path: str) -> bool:
    # Without a folder, the profile means the shared file system with the data.

    return folder is None or path == folder or path.startswith(folder.rstrip("/") + "/")


# Our choice: a factor of 1.3 is common between repetitions (Xie et al., section IV-D), and targets share servers.
_MIN_RATIO: Final = 5.0
# Our choice: a median over fewer means nothing.
_MIN_TARGETS: Final = 4
# Our choice: a single file may wait for its own process.
_MIN_FILES: Final = 2
# As for the severities in `vani.advisors.judge`.
_MIN_LONGER_S: Final = 1.0


@dataclass(frozen=True)
class SlowTarget:
    """A target with slow reads or writes, and its times in seconds."""

    where: str
    """Path of the target in the profile."""
    mount: Mount
    use: TargetUse
    kind: str
    """`read` or `write`."""
    own_s: float
    median_s: float
    """Median over all targets."""
    next_s: float
    """Time of the slowest other target."""


def slow_targets(profile: Profile) -> list[SlowTarget]:
    """The slow target of each file system that has one.

    Its files take at least `_MIN_RATIO` times as long as those on the next slowest target, and are at most twice as
    large.
    """
    rows = ((f"storage.mounts[{i}]", mount) for i, mount in enumerate(profile.storage.mounts or ()))
    return [slow for where, mount in rows if (slow := _slowest(where, mount)) is not None]


def _slowest(where: str, mount: Mount) -> SlowTarget | None:
    uses = mount.slowest_targets or []
    if (mount.used_targets or 0) < _MIN_TARGETS or len(uses) < _MIN_TARGETS:
        return None
    slow = []
    for kind in ("read", "write"):
        own = max(range(len(uses)), key=lambda i: getattr(uses[i], f"{kind}_s"))
        use, rest = uses[own], [*uses[:own], *uses[own + 1 :]]
        own_s, median_s = getattr(use, f"{kind}_s"), seconds(getattr(mount, f"median_{kind}_s"))
        next_s = max(getattr(other, f"{kind}_s") for other in rest)
        is_far = own_s >= _MIN_RATIO * max(median_s, next_s) and own_s - median_s >= _MIN_LONGER_S
        size = sum(other.bytes for other in rest) / sum(other.files for other in rest)
        if is_far and use.files >= _MIN_FILES and use.bytes <= 2 * size * use.files:
            slow.append(SlowTarget(f"{where}.slowest_targets[{own}]", mount, use, kind, own_s, median_s, next_s))
    return max(slow, key=lambda target: target.own_s - target.median_s, default=None)


def site_rule(size: int, place: Lustre) -> StripingRule | None:
    """The site's rule for users' files of this size; None if there is none."""
    rules = place.figures.striping_rules if place.figures else []
    return max((rule for rule in rules if rule.above <= size), key=lambda rule: rule.above, default=None)


def default_stripes(disk: FileSystem | None, size: int) -> tuple[int | None, int | None]:
    """Default stripe count (-1: all targets) and stripe size in bytes of a file of `size` bytes.

    For a composite layout, those of the component in which the file ends, which is the last for a large file. None if
    the description lacks them, and for a file on the metadata target.
    """
    if disk is None:
        return None, None
    if disk.site_pfl:
        try:
            parts = parse_options(disk.site_pfl).components
        except InputError:
            # PFL002 reports the fault.
            return None, None
        fitting = next((part for part in parts if part.end is None or size <= part.end), parts[-1])
        return fitting.count, fitting.size
    return disk.stripe_count, disk.stripe_size


def present_stripes(file: FileEntity, disk: FileSystem | None) -> tuple[int | None, int | None]:
    """Stripe count (-1: all targets) and stripe size of a file: recorded ones, or else the defaults."""
    own = own_stripes(file)
    return default_stripes(disk, extent(file) or 0) if own is None else own


def own_stripes(file: FileEntity) -> tuple[int, int] | None:
    """Recorded stripe count and stripe size of a file; None unless the profile has both."""
    if file.stripe_count is None or file.stripe_size is None:
        return None
    return file.stripe_count, file.stripe_size


def settable(layer: Forwarding | None, setting: str, *, what: str, routers: str) -> Forwarding | str:
    """The layer, if the site can set something on its forwarding nodes; otherwise the reason why it cannot."""
    if layer is None or not layer.compute_nodes_per_io_node:
        return "the machine has no forwarding layer with a known ratio"
    if layer.kind == "lnet_routers":
        return f"LNet routers hand requests on and {routers}"
    if setting in layer.site_can_set:
        return layer
    return f"that the site can set how {what} is not in the system description (forwarding.site_can_set)"


def keeps_own_layout(disk: FileSystem | None) -> str | None:
    """The reason not to set layouts, if the site's description requests that; otherwise None.

    A composite default layout alone is no reason: only the description's author knows the site's rules.
    """
    if disk is None or disk.layout_policy != "keep":
        return None
    has = "has its own composite layout" if disk.site_pfl else "has a default layout"
    return f"{disk.name} {has}, and the site asks to leave it unchanged; {exception()}"


_VARIATION: Final = 0.3
"""In half of Titan's samples, repetitions of the same write differ by more than this share (Xie et al., section
IV-D)."""


def exception() -> str:
    """Words for the circumstances that justify a layout other than the site's."""
    return (
        "an exception needs five runs or more with either layout whose medians differ by more than "
        f"{_VARIATION:.0%}, and the site's consent"
    )


def targets_text(count: int) -> str:
    """A stripe count in words."""
    if count < 1:
        return "all targets"
    return counted(count, "target")


@dataclass(frozen=True)
class Pieces:
    """Pieces of `size` bytes (a stripe, a block of GPFS) on `targets` targets; None: on all of them."""

    kind: Literal["lustre", "gpfs"]
    size: int
    targets: int | None
    because: str
    evidence: tuple[Evidence, ...]
    certainty: float


def pieces_of(items: Sequence[Item], profile: Profile, system: System, layouts: Layouts) -> Pieces | str:
    """Pieces of the first of these files, which share a folder; a sentence if they are unknown.

    On Lustre, a layout recommended for one of them replaces the default, because users follow both recommendations.
    """
    path = items[0].file.path
    gpfs = gpfs_under(path, profile, system)
    if not isinstance(gpfs, str):
        where, disk = gpfs
        if disk is None or not disk.block_size:
            return f"the block size of GPFS is not known; {SUPPLY}, or set block_size in it"
        block = Evidence(f"{where}.block_size", disk.block_size)
        return Pieces("gpfs", disk.block_size, None, "the block of GPFS", (block,), certainty(system))
    place = lustre_under(path, profile, system, but="neither Lustre nor GPFS")
    if isinstance(place, str):
        return place
    paths = {item.file.path for item in items}
    disk = place.figures
    if recommended := next((stripes for path, stripes in layouts.items() if path in paths), None):
        because = f"the stripes that {recommended.rule} recommends"
        return Pieces(
            "lustre", recommended.size, _targets(recommended.count, disk), because, recommended.evidence, 0.9
        )
    if (own := own_stripes(items[0].file)) is not None:
        figures = tuple(
            Evidence(f"{items[0].where}.{name}", value)
            for name, value in zip(("stripe_count", "stripe_size"), own, strict=True)
        )
        return Pieces("lustre", own[1], own[0], "the stripes that the file has", figures, 0.9)
    if disk is None or not disk.stripe_size or disk.stripe_count is None:
        return "the default stripe count and size are not known (`lfs getstripe -d`); set them in --system"
    evidence = tuple(
        Evidence(f"{place.prefix}.{name}", getattr(disk, name)) for name in ("stripe_count", "stripe_size")
    )
    count = _targets(disk.stripe_count, disk)
    return Pieces("lustre", disk.stripe_size, count, "the default stripes", evidence, place.certainty)


def _targets(count: int, disk: FileSystem | None) -> int | None:
    """Number of targets for a stripe count, where -1 means all; None if unknown."""
    return count if count > 0 else disk.targets if disk else None
