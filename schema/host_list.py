"""Lists of hosts as Slurm writes them: `n[1-64]`, `r[1-2]n[01-16,20],login1`.

Lists are stored as ranges of numbers, so the nodes of a machine of any size take only a few ranges.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from vani.errors import InputError

MAX_HOSTS: Final = 10_000_000
_MAX_RANGES: Final = 100_000
_MAX_WRITTEN_OUT: Final = 1_000_000
_MAX_DIGITS: Final = 18

_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9,-]+\])+")
_PARTS = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PIECES = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


class _TooManyError(ValueError):
    """A list of more hosts or ranges than any machine has."""


@dataclass(frozen=True)
class HostRange:
    """Hosts whose names differ in a number of `width` digits, from `low` to `high`; width 0: a name without one."""

    prefix: str
    low: int
    high: int
    width: int
    suffix: str

    def __len__(self) -> int:
        return self.high - self.low + 1

    def names(self) -> Iterator[str]:
        """Each name."""
        if not self.width:
            return iter([self.prefix])
        return (f"{self.prefix}{n:0{self.width}d}{self.suffix}" for n in range(self.low, self.high + 1))

    def part(self, begin: int, end: int) -> "HostRange":
        """The hosts from `begin` up to `end`, which is not among them, counted from 0."""
        return HostRange(self.prefix, self.low + begin, self.low + end - 1, self.width, self.suffix)

    def is_followed_by(self, other: "HostRange") -> bool:
        """Whether the two ranges can be joined: 8 to 9 and 10 to 12 can, 08 to 09 and 010 to 012 cannot."""
        if not self.width or (self.prefix, self.suffix, self.high + 1) != (
            other.prefix,
            other.suffix,
            other.low,
        ):
            return False
        return other.width == self.width or (
            other.width == self.width + 1 and other.low == 10**self.width and not self.has_padding
        )

    @property
    def has_padding(self) -> bool:
        """Whether the first number has leading zeros."""
        return self.width > 1 and self.low < 10 ** (self.width - 1)


@dataclass(frozen=True)
class HostList:
    """Hosts in the order of a list."""

    ranges: tuple[HostRange, ...]

    @classmethod
    def parse(cls, text: str) -> "HostList":
        """Read a list.

        Raises
        ------
        ValueError
            Not a list of hosts, more than `MAX_HOSTS`, or a repeated host; the message states which.
        """
        parts = _PARTS.findall(text)
        # Only commas may separate the parts; anything else is an unpaired bracket.
        if not parts or ",".join(parts) != text:
            raise ValueError("a list of hosts as Slurm writes it: n[1-64],login1")
        ranges: list[HostRange] = []
        total = 0
        for part in parts:
            if _HOST.fullmatch(part) is None:
                raise ValueError(f"names of letters, digits, dots and dashes, not {part[:40]!r}")
            for host_range in _ranges_of(part):
                total += len(host_range)
                if total > MAX_HOSTS or len(ranges) >= _MAX_RANGES:
                    raise _TooManyError(f"at most {MAX_HOSTS:,} hosts in {_MAX_RANGES:,} ranges")
                ranges.append(host_range)
        twin = first_twin([(host_range, 0) for host_range in ranges])
        if twin is not None:
            raise ValueError(f"each host once, not {twin[0]!r} again")
        return cls(tuple(ranges))

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    def names(self) -> Iterator[str]:
        """Each name, in order."""
        return (name for host_range in self.ranges for name in host_range.names())

    def part(self, begin: int, end: int) -> "HostList":
        """The hosts from `begin` up to `end`, which is not among them, counted from 0."""
        starts = accumulate(map(len, self.ranges), initial=0)
        return HostList(
            tuple(
                host_range.part(max(begin - start, 0), min(end - start, len(host_range)))
                for host_range, start in zip(self.ranges, starts, strict=False)
                if start + len(host_range) > begin and start < end
            )
        )

    def __str__(self) -> str:
        """The list in Slurm's short form, with hosts in the same order."""
        texts: list[str] = []
        group: list[HostRange] = []
        for host_range in self.ranges:
            if group and (not host_range.width or _place(host_range) != _place(group[-1])):
                texts.append(_text(group))
                group = []
            group.append(host_range)
        return ",".join([*texts, _text(group)] if group else texts)


def expand(text: str) -> list[str]:
    """Write out a list of hosts, in its order.

    Raises
    ------
    InputError
        Not such a list, a host named twice, or more than a million hosts.
    """
    try:
        hosts = HostList.parse(text)
        if len(hosts) > _MAX_WRITTEN_OUT:
            raise _TooManyError
    except ValueError as error:
        is_long = isinstance(error, _TooManyError)
        raise InputError(
            f"describes more than {_MAX_WRITTEN_OUT:,} hosts" if is_long else "is not a list of hosts",
            where=repr(text if len(text) <= 40 else f"{text[:37]}..."),
            todo="write it as Slurm does: n[1-64,70],login1",
        ) from error
    return list(hosts.names())


def first_twin(ranges: Iterable[tuple[HostRange, int]]) -> tuple[str, int, int] | None:
    """The first name that two ranges share, with the marks of both; None if all names differ."""
    alike: defaultdict[tuple[str, int, str], list[tuple[int, int, int]]] = defaultdict(list)
    for host_range, mark in ranges:
        affixes = host_range.prefix, host_range.width, host_range.suffix
        alike[affixes].append((host_range.low, host_range.high, mark))
    for (prefix, width, suffix), spans in alike.items():
        spans.sort()
        for (_, high, mark), (low, _, other) in pairwise(spans):
            if low <= high:
                name = next(HostRange(prefix, low, low, width, suffix).names())
                return name, min(mark, other), max(mark, other)
    return None


def _ranges_of(part: str) -> Iterator[HostRange]:
    """The ranges of one name with brackets; a bracket before the last is written out."""
    pieces = [(inside, fixed) for inside, fixed in _PIECES.findall(part)]
    last = max((n for n, (inside, _) in enumerate(pieces) if inside), default=None)
    heads = [""]
    for inside, fixed in pieces[:last]:
        tails = [fixed] if fixed else [str(name) for span in _numbers(inside) for name in _digits(*span)]
        if len(heads) * len(tails) > _MAX_RANGES:
            raise _TooManyError(f"at most {_MAX_RANGES:,} ranges")
        heads = [head + tail for head in heads for tail in tails]
    if last is None:
        yield _plain(heads[0])
        return
    suffix = "".join(fixed for _, fixed in pieces[last + 1 :])
    spans = list(_numbers(pieces[last][0]))
    for head in heads:
        for low, high, width in spans:
            if re.search("[0-9]", suffix):
                # The names differ in a number that is not the last one, so each name is listed separately.
                yield from (_plain(head + text + suffix) for text in _digits(low, high, width))
            else:
                yield from _numbered(head, low, high, width, suffix)


def _numbers(inside: str) -> Iterator[tuple[int, int, int]]:
    """First number, last number and minimum number of digits of each range in brackets."""
    for text in inside.split(","):
        match = _RANGE.fullmatch(text)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or high < low:
            raise ValueError(f"ranges of numbers that ascend, not [{text[:40]}]")
        if high - low >= MAX_HOSTS:
            raise _TooManyError(f"at most {MAX_HOSTS:,} hosts")
        yield low, high, len(match[1])


def _digits(low: int, high: int, width: int) -> list[str]:
    if high - low >= _MAX_RANGES:
        raise _TooManyError(f"at most {_MAX_RANGES:,} ranges")
    return [str(n).zfill(width) for n in range(low, high + 1)]


def _plain(name: str) -> HostRange:
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return HostRange(name, 0, 0, 0, "")
    return next(_numbered(match[1], int(match[2]), int(match[2]), len(match[2]), match[3]))


def _numbered(prefix: str, low: int, high: int, width: int, suffix: str) -> Iterator[HostRange]:
    """One range per number of digits, including digits at the end of the prefix, so that each name has a unique form.
    """
    head = re.search("[0-9]*$", prefix)
    digits = head[0] if head else ""
    while low <= high:
        size = max(width, len(str(low)))
        end = min(high, 10**size - 1)
        if len(digits) + size > _MAX_DIGITS:
            raise ValueError(f"numbers of at most {_MAX_DIGITS} digits")
        first = int(digits + str(low).zfill(size))
        yield HostRange(prefix[: len(prefix) - len(digits)], first, first + end - low, len(digits) + size, suffix)
        low = end + 1


def _place(host_range: HostRange) -> tuple[str, str]:
    return (host_range.prefix, host_range.suffix) if host_range.width else ("", host_range.prefix)


def _text(group: list[HostRange]) -> str:
    """Text of ranges with a common prefix and suffix."""
    first = group[0]
    if not first.width:
        return first.prefix
    spans: list[tuple[HostRange, HostRange]] = []
    for host_range in group:
        if spans and spans[-1][1].is_followed_by(host_range):
            spans[-1] = (spans[-1][0], host_range)
        else:
            spans.append((host_range, host_range))
    inside = ",".join(
        str(begin.low).zfill(begin.width)
        + (f"-{str(end.high).zfill(end.width)}" if end.high > begin.low else "")
        for begin, end in spans
    )
    alone = inside.isdecimal()
    return first.prefix + (inside if alone else f"[{inside}]") + first.suffix
