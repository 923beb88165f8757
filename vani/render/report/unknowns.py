"""Null attributes of a profile with their reasons: from `provenance`, or from what null means for the attribute."""

import re
import types
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from vani.schema.profile import IOStats, OpCounts, Profile

# Maximum number of entries to read per list; the reasons are the same for the others.
MAX_ENTRIES: Final = 1000

_ABSENT: Final = {
    "traces[].clock_skew_s": "without collective calls, or where their times prove nothing",
    "interfaces[].granularity.data": "without a transfer under the layer",
    "interfaces[].granularity.metadata": "without transfers much smaller than data transfers",
    "interfaces[].asked": "for posix and stdio, whose calls move what they request, and without data calls",
    "interfaces[].amplification": "where `asked` is not known",
    "interfaces[].amplification.read": "where none was requested, or the cause of reads is not recorded",
    "interfaces[].amplification.written": "where none was requested, or the cause of writes is not recorded",
    "interfaces[].amplification.total": "where the factor of a direction is not known",
    "interfaces[].access_pattern": "without data operations",
    "interfaces[].collective_share": "where the layer has no collective calls",
    "interfaces[].transfer": "where the layer has no choice of collective or independent calls, or no call shows it",
    "interfaces[].hints": "where the layer takes no hints, or no call of the trace sets one",
    "middleware.granularity.metadata": "without transfers much smaller than data transfers",
    "apps[].process_dependencies.edges_by_extents": "where extents were too many to keep",
    "files[].stride": "without strided operations",
    "files[].interface": "where the file was only opened",
    "phases[].frequency.size": "without data operations",
    **dict.fromkeys(
        (f"dataset.size_distribution.{part}" for part in ("min", "p50", "p90", "max")), "where no file's size is known"
    ),
    "interfaces[].data_representation.dims": "where no traced call of the layer shows the shape of the data",
    "interfaces[].data_representation.chunked": "where no traced call of the layer shows how data is stored",
}
"""Meaning of null if neither the schema nor provenance gives it."""

_OF_IO: Final = ("apps[].interface", "apps[].phase_gap_s", "dataset.size")
"""Attributes (or their prefixes) that an app or a data set without any call does not have."""

_OF_ANY_IO: Final = {
    "metadata_kinds": "without a metadata operation",
    "calls[].name": "in the row of all other functions together",
}
"""The same by the path after `io.` of any entity."""

_NULL: Final = re.compile(r"\b[Nn]ull:? ((?:if(?! unknown)|where|without|for|as|only|under)\b[^;.]*)")


_LEFT_OUT = (
    *("files[].stripe_count", "files[].stripe_size", "files[].components", "files[].object_size"),
    *("job.id", "job.user", "job.command"),
    *("files[].direct_opens", "files[].synchronous_opens", "files[].synchronous_writes", "files[].generations"),
    "dataset.compression",
    *("lookups[].search_path", "middleware.memory_used_share"),
)
"""Documents omit these if no source records them."""


def unknowns(profile: Profile) -> dict[str, str]:
    """The reasons of all null attributes, such as `job.nodes` or `files[].size`, in schema order.

    If some entries of a list have no such number, as phases without a read have no read bandwidth, and in others it is
    unknown, the others give the reason.
    """
    reasons: dict[str, str] = {}
    all_values = _Values(profile)
    for path, meaning in _nullable():
        values = all_values.at(path)
        nulls = [stats for value, stats in values if value is None]
        if not nulls:
            continue
        attribute = ".".join(path)
        if len(path) > 1 and path[0] in ("verdict", "unseen[]"):
            # These state themselves why a figure is missing.
            continue
        if attribute in _LEFT_OUT and attribute.replace("[]", "") not in profile.provenance:
            continue
        if all(stats is not None and _is_without(attribute, stats) for stats in nulls):
            reason = _OF_ANY_IO.get(_path_below_io(attribute)) or meaning or _ABSENT.get(attribute, "without I/O")
        else:
            reason = _reason(attribute, meaning, profile)
        reasons[attribute] = reason
    return reasons


def _is_without(attribute: str, stats: IOStats) -> bool:
    """Whether the block, or its entity, has no call that could give the attribute."""
    # Phases from heat maps have no counts.
    ops: OpCounts | None = stats.ops
    if ops is None:
        return False
    last = _path_below_io(attribute)
    if attribute.startswith(_OF_IO) or last in ("ops_share", "time_share"):
        return not ops.all
    if last == "access_pattern":
        return not ops.read + ops.write
    if last == "metadata_kinds":
        return not ops.metadata
    if last == "bandwidth.write_synced":
        return not (ops.write and ops.sync)
    if last == "calls[].name":
        return True
    of = {"bandwidth": ("read", "write"), "transfer_size": ("read", "write"), "past_end": ("read",)}
    name, _, side = last.partition(".")
    return side in of.get(name, ()) and not getattr(ops, side)


def _path_below_io(attribute: str) -> str:
    return attribute.rpartition(".io.")[2]


def _reason(attribute: str, meaning: str, profile: Profile) -> str:
    plain = attribute.replace("[]", "")
    exact = profile.provenance.get(attribute) or profile.provenance.get(plain)
    # `io.past_end` means that block of every entity; `interfaces` is about the list, not about nulls in it. A
    # write rate that is impossible stays so with the flushes after the writes.
    inside = f"{plain.replace('bandwidth.write_synced', 'bandwidth.write')}."
    inside = inside.partition(".")[1] + inside.partition(".")[2]
    blocks = [why for key, why in profile.provenance.items() if f".{key}." in inside]
    # `phases.io` covers all nulls in these blocks.
    for key, why in profile.provenance.items():
        if key.endswith(".io") and plain.startswith(f"{key}."):
            return why
    if meaning:
        # Provenance may instead give the source of other entries' values, which is not a reason.
        return f"{meaning} ({blocks[0]})" if blocks else meaning
    around = profile.provenance.get(plain.rpartition(".")[0]) if plain.count(".") > 1 else None
    return exact or _ABSENT.get(attribute) or next(iter(blocks), None) or around or "the profile gives no reason"


class _Values:
    """Values at attribute paths; common prefixes of paths are walked once.

    Each value comes with its block of I/O statistics; below a null there is none.
    """

    def __init__(self, profile: Profile) -> None:
        self._inside: dict[tuple[str, ...], list[tuple[Any, IOStats | None]]] = {(): [(profile, None)]}

    def at(self, path: tuple[str, ...]) -> list[tuple[Any, IOStats | None]]:
        """All values at a path, in document order."""
        *above, key = path
        name = key.removesuffix("[]")
        values = [(getattr(item, name), stats) for item, stats in self._in(tuple(above))]
        if name == key:
            return values
        return [(entry, stats) for entries, stats in values for entry in (entries or ())[:MAX_ENTRIES]]

    def _in(self, path: tuple[str, ...]) -> list[tuple[Any, IOStats | None]]:
        """Non-null values at a path, with the block of I/O statistics that contains them."""
        if path not in self._inside:
            self._inside[path] = [
                (item, _stats_of(item) or stats) for item, stats in self.at(path) if item is not None
            ]
        return self._inside[path]


def _stats_of(item: Any) -> IOStats | None:
    own = item if isinstance(item, IOStats) else getattr(item, "io", None)
    return own if isinstance(own, IOStats) else None


@cache
def _nullable() -> tuple[tuple[tuple[str, ...], str], ...]:
    """Paths of nullable attributes, with their descriptions."""
    return tuple(_below(Profile, ()))


def _below(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, field in model.model_fields.items():
        kinds = list(_kinds(field.annotation))
        here = (*path, name)
        if types.NoneType in kinds:
            yield here, _meaning(field.description or "", model.__doc__ or "")
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _below(kind, here)
            elif get_origin(kind) is list:
                for entry in _kinds(get_args(kind)[0]):
                    if isinstance(entry, type) and issubclass(entry, BaseModel):
                        yield from _below(entry, (*path, f"{name}[]"))


def _meaning(description: str, about: str) -> str:
    """Meaning of null for an attribute, in the words of the schema; empty if it means "not known"."""
    match = _NULL.search(description) or _NULL.search(about)
    return "" if match is None else match[1].strip()


def _kinds(annotation: Any) -> Iterable[Any]:
    """The types in a union, without pydantic's annotations."""
    if hasattr(annotation, "__metadata__"):
        return _kinds(get_args(annotation)[0])
    if isinstance(annotation, types.UnionType) or str(get_origin(annotation)) == "typing.Union":
        return [kind for part in get_args(annotation) for kind in _kinds(part)]
    return [annotation]
