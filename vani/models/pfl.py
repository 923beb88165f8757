"""Composite (progressive) Lustre layouts: their limits, their text, and the stripes of a file.

The limits come from lfs-setstripe(1) and the Lustre manual (table 4 and chapter 20). A layout can be written as
options of `lfs setstripe`, as a YAML template for `lfs setstripe --yaml`, and as Tarazu's .ini (Tarazu, figure 12).

A layout is derived from file sizes as follows (Lustre manual, progressive file layouts, as quoted by Tarazu,
section 2.3): small files have few stripes; the number of stripes grows in proportion to the file size until it
reaches the number of targets; a last component on all targets extends to the end of the file.

Tarazu's own layouts (table 8), and the configuration of its clients (figure 12) come last.
"""

import configparser
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vani.errors import InputError
from vani.models.striping import LARGEST_STRIPE, STRIPE_UNIT
from vani.units import GiB, MiB, TiB, counted, lfs_size, parse_bytes

MAX_STRIPES: Final = 2000
"""Most objects of a file over all components (160 on an ldiskfs metadata target without ea_inode)."""

MAX_DOM: Final = GiB
_POOL: Final = re.compile(r"[A-Za-z0-9_.-]{1,15}")
# lfs-setstripe(1): one extended attribute stores all components of a layout. Practical layouts are far shorter.
_MAX_COMPONENTS: Final = 64
# OST indexes are 16 bits, and 0xffff means any.
_MAX_OSTS: Final = 0xFFFF


@dataclass(frozen=True)
class Component:
    """One part of a file, from the end of the previous component to `end` (None: the end of the file).

    `count` is -1 for all targets and None for Data-on-MDT or if inherited. A `size` of None is inherited.
    With `overstripe`, `count` may exceed the number of targets. A self-extending component grows by `extension` bytes.
    `osts` are the indexes of its targets in stripe order; None: Lustre chooses.
    """

    end: int | None
    count: int | None = 1
    size: int | None = None
    on_mdt: bool = False
    overstripe: bool = False
    pool: str | None = None
    extension: int | None = None
    osts: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Layout:
    """Components in file order. The first begins at 0, the last has no end.

    Raises
    ------
    InputError
        Lustre would refuse the layout, or files with it could not grow.
    """

    components: tuple[Component, ...]
    max_stripes: int = MAX_STRIPES

    def __post_init__(self) -> None:
        if not 1 <= len(self.components) <= _MAX_COMPONENTS:
            raise _refused(f"has {counted(len(self.components), 'component')}", f"give 1 to {_MAX_COMPONENTS}")
        start, size = 0, None
        for number, part in enumerate(self.components, start=1):
            last = number == len(self.components)
            size = part.size if part.size is not None else size
            _check(part, f"component {number}", start, size, first=number == 1, last=last)
            start = part.end or start
        if self.stripes > self.max_stripes:
            raise _refused(
                f"has {counted(self.stripes, 'stripe')}", f"at most {self.max_stripes} over all components"
            )

    @property
    def stripes(self) -> int:
        """Stripes of a file that reaches the last component. "All targets" and Data-on-MDT count as one."""
        return sum(max(1, part.count or 1) for part in self.components)

    def starts(self) -> list[int]:
        """Offset at which each component begins."""
        return [0, *(part.end or 0 for part in self.components[:-1])]

    def to_options(self) -> str:
        """The options of `lfs setstripe`. A single component gives a plain layout."""
        plain = len(self.components) == 1 and not self.components[0].on_mdt
        return " ".join(_options(part, plain=plain) for part in self.components)

    def to_yaml(self) -> str:
        """The template for `lfs setstripe --yaml=FILE NEW`.

        It is the output of `lfs getstripe --yaml` without objects, identifiers and generations, which belong to a file.
        """
        lines = ["lcm_mirror_count:  1", f"lcm_entry_count:   {len(self.components)}"]
        inherited = MiB
        for index, (start, part) in enumerate(zip(self.starts(), self.components, strict=True)):
            inherited = part.size or inherited
            size = part.end if part.on_mdt else inherited
            lines += [
                f"component{index}:",
                f"  lcme_id:             {index + 1}",
                "  lcme_mirror_id:      0",
                f"  lcme_flags:          {'init' if index == 0 else 0}",
                f"  lcme_extent.e_start: {start}",
                f"  lcme_extent.e_end:   {'EOF' if part.end is None else part.end}",
                "  sub_layout:",
                f"    lmm_stripe_count:  {0 if part.on_mdt else part.count}",
                f"    lmm_stripe_size:   {size}",
                f"    lmm_pattern:       {_pattern(part)}",
                "    lmm_stripe_offset: -1",
                *([f"    lmm_pool:          {part.pool}"] if part.pool else []),
            ]
        return "\n".join(lines) + "\n"

    def to_ini(self) -> str:
        """The configuration of Tarazu's clients (figure 12). -1 is the end of the file.

        Raises
        ------
        InputError
            The format cannot express the layout: it has Data-on-MDT or inherited counts.
        """
        if any(part.on_mdt or part.count is None for part in self.components):
            raise InputError(
                "Tarazu's .ini has no Data-on-MDT and no inherited counts", todo="leave that component out"
            )
        lines = ["[Client]", f"Buckets = {len(self.components)}"]
        for number, part in enumerate(self.components, start=1):
            end = "-1" if part.end is None else _end(part.end)
            lines += ["", f"[Bucket_{number}]", f"Extent = {end}", f"Stripe = {part.count}"]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Usage:
    """A file's stripes in the components that it reaches, those of them with bytes, and the bytes of the fullest."""

    allocated: int
    used: int
    fullest: int


def usage(layout: Layout, size: int, targets: int | None = None, sizes: Sequence[int] | None = None) -> Usage:
    """Stripes and bytes of a file of `size` bytes.

    `targets` is the number of all targets. `sizes`, one per component, override the layout's stripe sizes. Without a
    stripe size, Lustre's default of 1 MiB applies.
    """
    allocated = used = fullest = 0
    stated = MiB
    for index, (start, part) in enumerate(zip(layout.starts(), layout.components, strict=True)):
        stated = part.size or stated
        if start >= size and index > 0:
            break
        count = _count(part, targets)
        stripe = (sizes[index] if sizes else None) or (part.end if part.on_mdt and part.end else stated)
        length = max(0, min(size, part.end or size) - start)
        rounds, rest = divmod(length, stripe * count)
        allocated += count
        used += count if rounds else math.ceil(rest / stripe)
        fullest = max(fullest, rounds * stripe + min(rest, stripe))
    return Usage(allocated, used, fullest)


def layout_for_sizes(
    sizes: Sequence[int],
    targets: int,
    *,
    smallest: int = MiB,
    largest_first: int = GiB,
    growth: int = 4,
    most: int | None = None,
    stripe_size: int = MiB,
    max_stripes: int = MAX_STRIPES,
) -> Layout:
    """Derive a layout from the file sizes of a data set.

    Parameters
    ----------
    sizes
        Bytes of each file. The median and the largest determine the layout.
    smallest, largest_first
        Bounds of the end of the first component, which keeps files up to the median on one target.
    growth
        Factor from the end of one component to the next, and between the total numbers of stripes up to there, so
        that the total is proportional to the size.
    most
        Most stripes of the last component, as many as one file can use; None: all targets.

    Raises
    ------
    InputError
        No sizes, or no targets.
    """
    if not sizes or targets < 1:
        raise InputError("a layout needs sizes of files and targets", todo="supply both")
    ordered = sorted(sizes)
    median, largest = ordered[len(ordered) // 2], ordered[-1]
    end = min(max(_power_of_two(median), smallest), largest_first)
    end = math.ceil(end / stripe_size) * stripe_size
    widest = max(1, min(targets, most or targets, max_stripes))
    components = [Component(end, 1, stripe_size)]
    total, first = 1, end
    while end * growth < largest and total * growth < widest:
        end, count = end * growth, total * (growth - 1)
        components.append(Component(end, count, stripe_size))
        total += count
    proportional = math.ceil(largest / first)
    last = min(widest, max(components[-1].count or 1, proportional))
    components.append(Component(None, max(1, min(last, max_stripes - total)), stripe_size))
    return Layout(tuple(components), max_stripes)


def parse_options(text: str) -> Layout:
    """Parse `lfs setstripe` options of a composite layout, such as `-E 1G -c 1 -E -1 -c 8`.

    Raises
    ------
    InputError
        The options do not describe a composite layout, or Lustre refuses it.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise InputError(f"{text!r} are not options of `lfs setstripe`", todo="close the quotes") from None
    parts: list[dict[str, str]] = []
    for option, value in zip(words[::2], words[1::2], strict=False):
        name = _LONG.get(option, option)
        if name == "-E":
            parts.append({})
        if not parts or name not in _READ or len(words) % 2:
            raise InputError(
                f"{text!r} are not options of a composite layout",
                todo="write `-E END -c COUNT -E -1 -c COUNT`",
            )
        parts[-1][name] = value
    components: list[Component] = []
    for part in parts:
        components.append(_read_component(part, components[-1] if components else None, text))
    return Layout(tuple(components))


_LONG: Final[Mapping[str, str]] = {
    "--component-end": "-E",
    "--stripe-count": "-c",
    "--overstripe-count": "-C",
    "--stripe-size": "-S",
    "--pool": "-p",
    "--layout": "-L",
    "--ext-size": "-z",
}
_READ: Final = frozenset(_LONG.values())


def _refused(what: str, todo: str) -> InputError:
    return InputError(f"the layout {what}", todo=todo)


def _check(part: Component, name: str, start: int, size: int | None, *, first: bool, last: bool) -> None:
    if (part.end is None) != last:
        what = "does not reach the end of the file" if last else "has no end, but is not the last"
        raise _refused(f"is not the layout of a whole file: {name} {what}", "end the last with -E -1, and only it")
    if part.end is not None and part.end <= start:
        raise _refused(f"has {name} end at {part.end}, not behind {start}", "let the ends grow")
    if part.end is not None and part.end % STRIPE_UNIT:
        raise _refused(f"has {name} end at {part.end}", "take a multiple of 64 KiB")
    if part.size is not None and (part.size % STRIPE_UNIT or not STRIPE_UNIT <= part.size <= LARGEST_STRIPE):
        raise _refused(
            f"has stripes of {counted(part.size, 'byte')} in {name}",
            "take a multiple of 64 KiB from 64K to below 4G",
        )
    if part.pool is not None and not _POOL.fullmatch(part.pool):
        raise _refused(f"names the pool {part.pool!r}", "a pool has up to 15 letters, digits, `_`, `-` and `.`")
    if part.extension is not None and (part.extension <= 0 or part.extension % STRIPE_UNIT):
        raise _refused(f"extends {name} by {counted(part.extension, 'byte')}", "take a multiple of 64 KiB")
    if part.on_mdt:
        _check_dom(part, name, first=first)
        return
    count = part.count
    if count is not None and count != -1 and not 1 <= count <= MAX_STRIPES:
        raise _refused(
            f"has {counted(count, 'stripe')} in {name}", f"take 1 to {MAX_STRIPES}, or -1 for all targets"
        )
    if part.osts is not None:
        _check_osts(part.osts, count, name, overstripe=part.overstripe)
    # Lustre's check LSE_ALIGN_END: a component ends between two stripes. The end of a self-extending one moves.
    if part.end is not None and size is not None and part.extension is None and part.end % size:
        raise _refused(
            f"has {name} end at {part.end}, inside a stripe of {counted(size, 'byte')}",
            "take a multiple of the stripe size",
        )


def _check_osts(osts: tuple[int, ...], count: int | None, name: str, *, overstripe: bool) -> None:
    if count != len(osts):
        raise _refused(f"lists {counted(len(osts), 'OST')} for {name}", f"list as many as stripes: {count}")
    if len(set(osts)) != len(osts) and not overstripe:
        raise _refused(f"lists an OST twice for {name}", "list each once, or overstripe")
    if not all(0 <= index < _MAX_OSTS for index in osts):
        raise _refused(f"lists an OST that cannot be for {name}", f"take indexes of 0 to {_MAX_OSTS - 1}")


def _check_dom(part: Component, name: str, *, first: bool) -> None:
    if not first:
        raise _refused(f"has {name} on the metadata target", "only the first may be there")
    if part.end is None or part.end > MAX_DOM:
        length = "the whole file" if part.end is None else counted(part.end, "byte")
        raise _refused(f"has {length} on the metadata target", "give it an end of 64K to 1G")
    if part.count is not None or part.overstripe or part.size not in {None, part.end}:
        raise _refused(f"has stripes in {name}, which is on the metadata target", "leave them out")


def _options(part: Component, *, plain: bool) -> str:
    words = [] if plain else ["-E", "-1" if part.end is None else _end(part.end)]
    if part.on_mdt:
        return " ".join([*words, "-L", "mdt"])
    if part.count is not None:
        words += ["-C" if part.overstripe else "-c", str(part.count)]
    if part.size is not None:
        words += ["-S", lfs_size(part.size)]
    if part.extension is not None:
        words += ["-z", _end(part.extension)]
    if part.pool is not None:
        words += ["-p", part.pool]
    if part.osts is not None:
        words += ["-o", ",".join(map(str, part.osts))]
    return " ".join(words)


def _end(size: int) -> str:
    return f"{size // TiB}T" if size % TiB == 0 else lfs_size(size)


def _pattern(part: Component) -> str:
    if part.on_mdt:
        return "mdt"
    return "raid0,overstriped" if part.overstripe else "raid0"


def _count(part: Component, targets: int | None) -> int:
    """Number of targets of a component. "All targets" counts as one if their number is unknown."""
    if part.on_mdt or part.count is None:
        return 1
    return max(1, targets or 1) if part.count == -1 else part.count


def _power_of_two(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def _read_component(part: Mapping[str, str], before: Component | None, text: str) -> Component:
    try:
        end = None if part["-E"] in {"-1", "eof", "EOF"} else parse_bytes(part["-E"])
        if part.get("-L") == "mdt":
            return Component(end, None, on_mdt=True)
        count = part.get("-C", part.get("-c"))
        inherited = before.count if before is not None else None
        return Component(
            end,
            int(count) if count is not None else inherited,
            parse_bytes(part["-S"]) if "-S" in part else None,
            overstripe="-C" in part,
            pool=part.get("-p", before.pool if before else None),
            extension=parse_bytes(part["-z"]) if "-z" in part else None,
        )
    except ValueError as error:
        raise InputError(f"{text!r} are not options of `lfs setstripe` ({error})") from None


CONFIGURATION_1: Final = Layout(
    (Component(128 * MiB, 1), Component(512 * MiB, 3), Component(2 * GiB, 8), Component(None, 16))
)
"""Tarazu, table 8, configuration 1: 28 stripes."""

CONFIGURATION_2: Final = Layout((Component(128 * MiB, 1), Component(2 * GiB, 12), Component(None, 32)))
"""Tarazu, table 8, configuration 2: 45 stripes, more than the 35 targets of its testbed."""


def parse_buckets(text: str, where: str) -> Layout:
    """Parse a layout from `[Client] Buckets = n` and `[Bucket_i] Extent, Stripe`. An extent of -1 ends with the file.

    Raises
    ------
    InputError
        The text is not such a configuration, or Lustre refuses the layout. The message contains `where`.
    """
    parser = configparser.ConfigParser(inline_comment_prefixes=("#", ";"), interpolation=None)
    try:
        parser.read_string(text)
        number = parser.getint("Client", "Buckets")
        if not 1 <= number <= _MAX_COMPONENTS:
            raise InputError(f"has {number:,} buckets", where=where, todo=f"give 1 to {_MAX_COMPONENTS}")
        parts = [_bucket(parser, f"Bucket_{bucket}") for bucket in range(1, number + 1)]
    except (configparser.Error, ValueError) as error:
        problem = str(error).replace("\n", " ")
        raise InputError(
            f"is not a configuration of Tarazu ({problem})",
            where=where,
            todo="give [Client] Buckets = n, then [Bucket_1] Extent = 128M, Stripe = 1, ... and Extent = -1 last",
        ) from None
    try:
        return Layout(tuple(parts))
    except InputError as error:
        raise InputError(error.what, where=where, todo=error.todo) from None


def _bucket(parser: configparser.ConfigParser, name: str) -> Component:
    end = parser.get(name, "Extent").strip()
    return Component(None if end == "-1" else parse_bytes(end), parser.getint(name, "Stripe"))
