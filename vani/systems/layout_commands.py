"""Commands that set layouts of new files, by family of file systems, and the attributes that they give to files."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from vani.units import parse_bytes


@dataclass(frozen=True)
class Family:
    """Layouts of a type of file system other than Lustre: a command, to which the folder is appended.

    `apply.sh` has two functions for each: `KIND_of` prints the present values of a folder, and `set_KIND` sets values
    or restores those.

    Attributes
    ----------
    programs
        Programs that set the layout; one of them is enough.
    command
        Pattern of the command, with its values as groups.
    readers
        Commands that print the present values; the first one that is installed counts.
    forms
        Pattern of each value in that output.
    has
        Sentence about the present values.
    """

    kind: str
    noun: str
    programs: tuple[str, ...]
    command: str
    readers: tuple[str, ...]
    forms: tuple[str, ...]
    has: str


# doc.beegfs.io, Striping; `daos filesystem get-attr`; docs.ceph.com, File layouts.
FAMILIES: Final = (
    Family(
        "pattern", "pattern", ("beegfs-ctl", "beegfs"),
        r"beegfs-ctl --setpattern --numtargets=([0-9]+) --chunksize=([0-9]+[kKMG]?)",
        ("beegfs-ctl --getentryinfo", "beegfs entry info --retro --verbose"),
        (r"targets: desired: *([0-9]+)", r"Chunksize: *([0-9]+[kKMG]?)"), "it has {} targets, chunks of {}",
    ),
    Family(
        "class", "object class", ("daos",), r"daos filesystem set-attr --oclass ([A-Z][A-Z0-9_]*) --path",
        ("daos filesystem get-attr --path",), (r"Object Class = *(\w+)",), "it is {}",
    ),
    Family(
        "stripes", "layout", ("setfattr",),
        r"setfattr -n ceph\.dir\.layout -v stripe_unit=([0-9]+) stripe_count=([0-9]+) object_size=([0-9]+)",
        ("getfattr --absolute-names --only-values -n ceph.dir.layout",),
        (r"stripe_unit=([0-9]+)", r"stripe_count=([0-9]+)", r"object_size=([0-9]+)"),
        "it has a stripe unit of {}, {} stripes, objects of {}",
    ),
)  # fmt: skip


def family_of(words: Sequence[str]) -> tuple[Family, tuple[str, ...]] | None:
    """The family of a command without its folder, and the values in it; None for all other commands."""
    matches = ((family, re.fullmatch(family.command, " ".join(words))) for family in FAMILIES)
    return next(((family, match.groups()) for family, match in matches if match), None)


def requested(layout: str) -> dict[str, int]:
    """Attributes that a layout of Lustre or CephFS gives to files, as in a profile; of a composite one, `components`.

    Raises
    ------
    ValueError
        A quote is open, or a value is no number.
    """
    words = shlex.split(layout)
    if components := sum(word in ("-E", "--component-end") for word in words):
        return {"components": components}
    pairs = [*pairwise(words), *re.findall(r"\b(stripe_unit|stripe_count|object_size)=(\d{1,18})", layout)]
    wanted = {_ATTRIBUTES[name]: value for name, value in pairs if name in _ATTRIBUTES}
    return {name: -1 if value == "-1" else parse_bytes(value) for name, value in wanted.items()}


_ATTRIBUTES: Final = {
    **dict.fromkeys(("-c", "-C", "--stripe-count", "stripe_count"), "stripe_count"),
    **dict.fromkeys(("-S", "--stripe-size", "stripe_unit"), "stripe_size"),
    "object_size": "object_size",
}
