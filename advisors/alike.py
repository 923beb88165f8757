"""Files that a profile does not list but that share a name pattern with listed ones.

The list of files ends at a hundred, so a rule's sums over it would cover only a hundred files. Each listed file
therefore represents a part of its pattern: the parts of all listed files of a pattern add up exactly to the figures in
`profile.patterns`. If all files of a run are listed, each part is one file.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.rule import Evidence

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, NamePattern, Profile

_SHOWN: Final = 3
_WILD: Final = re.compile(r"%d|%0([0-9]+)d|\*\*|\*")


@dataclass(frozen=True)
class Part:
    """The part of its pattern that a listed file represents, as factors on its own figures."""

    folder: str | None = None
    """Deepest folder that contains all files of the pattern."""
    pattern: int | None = None
    """Index of the pattern in the profile."""
    files: float = 1.0
    reads: float = 1.0
    writes: float = 1.0
    opens: float = 1.0
    read: float = 1.0
    """Factor on the bytes read."""
    written: float = 1.0
    time: float = 1.0
    metadata_time: float = 1.0
    flushes: float = 1.0


ALONE: Final = Part()
"""A file that represents only itself."""


def parts_of(profile: Profile) -> list[Part]:
    """The part of each listed file, in profile order."""
    if not profile.patterns:
        return [ALONE] * len(profile.files)
    patterns = _Patterns(profile.patterns)
    members: defaultdict[int, list[int]] = defaultdict(list)
    for position, file in enumerate(profile.files):
        number = patterns.of(file.path)
        if number is not None:
            members[number].append(position)
    parts = [ALONE] * len(profile.files)
    for number, positions in members.items():
        pattern = profile.patterns[number]
        part = _part(number, pattern, [profile.files[position] for position in positions])
        for position in positions:
            parts[position] = part
    return parts


def pattern_evidence(parts: Sequence[Part], profile: Profile) -> list[Evidence]:
    """Number of files in the patterns that some listed files represent, or of all files if there are no patterns."""
    numbers = dict.fromkeys(part.pattern for part in parts if part.pattern is not None)
    if not numbers or not profile.patterns:
        return [Evidence("dataset.files", profile.dataset.files)]
    return [
        Evidence(f"patterns[{number}].{attribute}", getattr(profile.patterns[number], attribute))
        for number in list(numbers)[:_SHOWN]
        for attribute in ("pattern", "files")
    ]


def folder_of_pattern(pattern: str) -> str:
    """The deepest folder that contains all files of a pattern; `.` for bare names."""
    wild = _WILD.search(pattern)
    return posixpath.dirname(pattern[: wild.start()] if wild else pattern) or "."


def _part(number: int, pattern: NamePattern, files: Sequence[FileEntity]) -> Part:
    if pattern.files <= len(files):
        return Part(folder_of_pattern(pattern.pattern), number)
    io = [file.io for file in files]
    return Part(
        folder_of_pattern(pattern.pattern),
        number,
        files=pattern.files / len(files),
        reads=_factor(pattern.reads, [stats.ops.read for stats in io]),
        writes=_factor(pattern.writes, [stats.ops.write for stats in io]),
        flushes=_factor(pattern.flushes, [stats.ops.sync for stats in io]),
        opens=_factor(pattern.opens, [file.opens for file in files]),
        read=_factor(pattern.bytes.read, [stats.bytes.read for stats in io]),
        written=_factor(pattern.bytes.written, [stats.bytes.written for stats in io]),
        time=_factor(pattern.time_s, [stats.time_s.total for stats in io]),
        metadata_time=_factor(pattern.metadata_time_s, [stats.time_s.metadata for stats in io]),
    )


def _factor(whole: float | None, parts: Sequence[float | None]) -> float:
    listed = sum(part or 0.0 for part in parts)
    return max(1.0, whole / listed) if whole and listed else 1.0


class _Patterns:
    """Finds the pattern of a path. If several match, it is the one with most literal characters."""

    def __init__(self, patterns: Sequence[NamePattern]) -> None:
        self._single = {pattern.pattern: n for n, pattern in enumerate(patterns) if pattern.files == 1}
        several = [(n, pattern.pattern) for n, pattern in enumerate(patterns) if pattern.files > 1]
        several.sort(key=lambda row: -len(_WILD.sub("", row[1])))
        self._several = [(n, _WILD.split(text, 1)[0], _expression(text)) for n, text in several]

    def of(self, path: str) -> int | None:
        """Index of the path's pattern; None if the profile does not list it."""
        if path in self._single:
            return self._single[path]
        for number, begin, expression in self._several:
            if path.startswith(begin) and expression.fullmatch(path):
                return number
        return None


def _expression(pattern: str) -> re.Pattern[str]:
    text, at = "", 0
    for wild in _WILD.finditer(pattern):
        text += re.escape(pattern[at : wild.start()])
        digits = f"[0-9]{{{wild[1]},}}" if wild[1] else "[0-9]+"
        text += ".*" if wild[0].startswith("*") else digits
        at = wild.end()
    return re.compile(text + re.escape(pattern[at:]), re.DOTALL)
