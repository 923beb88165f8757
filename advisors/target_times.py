"""Storage targets on which files take many times as long as on the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.rule import seconds

if TYPE_CHECKING:
    from vani.schema.profile import Mount, Profile, TargetUse

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
