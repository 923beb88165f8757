"""Files that a run creates for itself and, according to its profile, does not need afterwards.

Rereading a file does not make it intermediate: a restart reads a checkpoint, a check reads its result, and a
benchmark reads what it has just written. Intermediate files are

- files that one app wrote and another read, in folders of mostly such files, because an app may also look at a few
  results of another;
- files that the run removes after reading each written byte at least `min_reuse` times;
- many small files, `min_files` or more of an app, that the run creates and removes and whose I/O time is metadata.

Empty files are locks and signals, which must be visible to all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.data_files import data_files, extent, folder_of, is_checkpoint
from vani.advisors.rule import seconds
from vani.models.run_time import of_files_s

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile

Numbered = tuple[int, "FileEntity"]
"""The index of a file in the profile, and the file."""


@dataclass(frozen=True)
class Limits:
    """Thresholds of the rule (see the module)."""

    min_reuse: float
    min_reuse_s: float
    min_files: float
    metadata_share: float
    handed_share: float


def own_files(profile: Profile, by: Limits) -> list[Numbered] | str:
    """Find intermediate files, or return a sentence on why there are none."""
    inner = [
        (item.index, item.file)
        for item in data_files(profile, lambda file: file.role in ("intermediate", "temporary"))
    ]
    if not inner:
        return "the run reads nothing that it wrote, and removes nothing"
    # A restart in the same run makes a checkpoint look intermediate, but it must survive the node (BB003).
    passing = [(i, f) for i, f in inner if not is_checkpoint(f.path)]
    if not passing:
        return "the files that the run writes and rereads are checkpoints by name, which must survive"
    filled = [(i, f) for i, f in passing if not _is_empty(f)]
    if not filled:
        return "the files that the run writes and rereads, or removes, are empty, such as locks"
    own = {
        index: (index, file)
        for part in (
            _handed_on(filled, profile, by),
            _read_often(filled, profile, by),
            _storms(filled, profile, by),
        )
        for index, file in part
    }
    if not own:
        return (
            "the run rereads only results, or what it has just written: no file "
            "is passed between apps, or read repeatedly and then removed"
        )
    return [own[index] for index in sorted(own)]


def _is_empty(file: FileEntity) -> bool:
    moved = (file.io.bytes.read, file.io.bytes.written)
    return not file.size and all(amount == 0 for amount in moved)


def _handed_on(files: Sequence[Numbered], profile: Profile, by: Limits) -> list[Numbered]:
    edges = profile.workflow.app_dependencies
    pairs = {(e.producer, e.consumer) for e in edges or () if e.producer != e.consumer}

    def is_handed(file: FileEntity) -> bool:
        used = set(file.apps)
        return len(used) > 1 and (edges is None or any(used >= set(pair) for pair in pairs))

    handed = [(i, f) for i, f in files if is_handed(f)]
    chosen = {index for index, _ in handed}
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for index, file in enumerate(profile.files):
        if file.writers or index in chosen:
            counts[folder_of(file.path)][index not in chosen] += extent(file) or 0
    return [
        (i, f)
        for i, f in handed
        for own, other in [counts[folder_of(f.path)]]
        if own >= by.handed_share * (own + other)
    ]


def _read_often(files: Sequence[Numbered], profile: Profile, by: Limits) -> list[Numbered]:
    again = [
        (i, f)
        for i, f in files
        if f.role == "temporary" and (f.io.bytes.read or 0) >= by.min_reuse * max(1, f.io.bytes.written or 0)
    ]
    return again if of_files_s([f for _, f in again], profile, "total") >= by.min_reuse_s else []


def _storms(files: Sequence[Numbered], profile: Profile, by: Limits) -> list[Numbered]:
    removed: defaultdict[str, list[Numbered]] = defaultdict(list)
    for index, file in files:
        if file.role == "temporary" and file.apps:
            removed[file.apps[0]].append((index, file))
    listed = Counter(file.role for file in profile.files)["temporary"]
    scale = 1.0
    if not profile.lists_all_files and listed:
        scale = max(1.0, (profile.dataset.roles or {}).get("temporary", 0) / listed)
    storms = []
    for group in removed.values():
        time = sum(seconds(f.io.time_s.total) for _, f in group)
        metadata = sum(seconds(f.io.time_s.metadata) for _, f in group)
        if len(group) * scale >= by.min_files and time and metadata >= by.metadata_share * time:
            storms += group
    return storms
