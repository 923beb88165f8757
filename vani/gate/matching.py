"""Profiles as trees of plain values: entities are identified by name, and paths of attributes are looked up."""

import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

from vani.errors import DocumentError
from vani.gate import attribute as attributes
from vani.gate.tolerance import Dimension, Quantity
from vani.schema.profile import Profile
from vani.schema.saved_profile import Column, SavedProfile

Tree = dict[str, Any]

SHORT_BYTES: Final = 1_000_000
"""Longest profile that is validated and compared as a whole."""


@dataclass(frozen=True)
class Figures:
    """A profile as a tree, and its origin."""

    tree: Tree
    path: str
    sha256: str
    version: str
    model: Profile
    """The profile as a model. If it is long, only with the files of most I/O time."""
    listed: int
    """Number of files that the profile lists."""


def read_figures(content: bytes, where: str, columns: Collection[Column], *, model_files: int = 1) -> Figures:
    """Parse a profile. If it is long, only some attributes of its files are read.

    Parameters
    ----------
    columns
        Attributes of files to read in addition to their paths.
    model_files
        Number of files in `Figures.model` for a long profile.

    Raises
    ------
    DocumentError
        The text is not a valid profile. In a long profile, unused attributes of files are not checked.
    """
    saved = SavedProfile(content, where)
    part = saved.most_important(model_files if len(content) > SHORT_BYTES else None)
    tree = part.profile.model_dump(by_alias=True)
    if part.positions is not None:
        tree["files"] = saved.file_columns(columns)
    version = part.profile.generator.version
    return Figures(tree, where, saved.sha256, version, part.profile, len(tree["files"]))


def lists_all_files(tree: Mapping[str, Any]) -> bool:
    """Whether a profile tree lists every file of its data set."""
    total = tree.get("dataset", {}).get("files")
    return isinstance(total, int) and len(tree.get("files", ())) >= total


def path_text(path: str | Path) -> str:
    """A path as text for any document. Bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


IDENTITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "files": ("path",),
    "apps": ("name",),
    "phases": ("app", "index"),
    "interfaces": ("app", "layer"),
    "traces": ("path",),
    "app_dependencies": ("producer", "consumer"),
    "folders": ("path",),
    "patterns": ("pattern",),
}
"""Attributes that identify the entities of each list. Entries of other lists are identified by position."""

_PATHS: Final = (("path",), ("pattern",))

Identity = tuple[Hashable, ...]


def stripped(path: str, strip: Iterable[str]) -> str:
    """`path` without the first pattern that matches its leading folders. The result is never empty.

    `/scratch/job*` turns `/scratch/job123/out/x.h5` into `out/x.h5`: a `*` does not match a slash.
    """
    parts = path.split("/")
    for pattern in strip:
        pattern_parts = pattern.rstrip("/").split("/")
        if len(pattern_parts) < len(parts) and all(map(fnmatchcase, parts, pattern_parts)):
            return "/".join(parts[len(pattern_parts) :]) or path
    return path


class Names:
    """Identities of the entities in trees.

    `aliases` maps names of apps to the names that they replace.
    """

    def __init__(self, strip: Sequence[str] = (), aliases: Mapping[str, str] | None = None) -> None:
        self.strip = tuple(strip)
        self.aliases = dict(aliases or {})
        self.places: dict[tuple[Any, ...], tuple[Any, list[Any]]] = {}
        """Cache of the places that a path reaches, by tree and path (`vani.gate.matching`)."""
        self._known: dict[int, tuple[Any, list[Identity], dict[Identity, Any]]] = {}

    def identities(self, key: str, entities: Sequence[Any]) -> list[Identity]:
        """A unique identity for each entity of the list `key`.

        If stripping would make two paths equal, both stay whole. Duplicates are numbered.
        """
        return self._looked_up(key, entities)[0]

    def find(self, key: str, entities: Sequence[Any], identity: Identity) -> Any:
        """The entity with this identity, or None."""
        return self._looked_up(key, entities)[1].get(identity)

    def _looked_up(self, key: str, entities: Sequence[Any]) -> tuple[list[Identity], dict[Identity, Any]]:
        known = self._known.get(id(entities))
        if known is None:
            identities = self._identities(key, entities)
            # Keep a reference to the list, so that no other list gets its id.
            by_identity = dict(zip(identities, entities, strict=True))
            known = self._known[id(entities)] = entities, identities, by_identity
        return known[1], known[2]

    def _identities(self, key: str, entities: Sequence[Any]) -> list[Identity]:
        names = IDENTITIES.get(key)
        if names is None or not all(isinstance(entity, dict) for entity in entities):
            return [(position,) for position in range(len(entities))]
        plain: list[Identity] = [tuple(entity.get(name) for name in names) for entity in entities]
        if self.aliases and names not in _PATHS:
            plain = [tuple(self.aliases.get(str(part), part) for part in identity) for identity in plain]
        if names in _PATHS and self.strip:
            short = [(stripped(str(path), self.strip),) for (path,) in plain]
            often = Counter(short)
            plain = [s if often[s] == 1 else p for s, p in zip(short, plain, strict=True)]
        seen: Counter[Identity] = Counter()
        numbered: list[Identity] = []
        for identity in plain:
            seen[identity] += 1
            numbered.append(identity if seen[identity] == 1 else (*identity, seen[identity]))
        return numbered


def aliases_of(tree: Mapping[str, Any], other_trees: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names of apps in other trees that mean one in `tree`: if every tree has a single app, it is the same app.

    An app without a name is named after its trace, which may differ from run to run.
    """
    own_names = _app_names(tree)
    aliases: dict[str, str] = {}
    for other in other_trees:
        other_names = _app_names(other)
        if len(own_names) != 1 or len(other_names) != 1:
            return {}
        if other_names[0] != own_names[0]:
            aliases[other_names[0]] = own_names[0]
    return aliases


def _app_names(tree: Mapping[str, Any]) -> list[str]:
    apps = tree["apps"] if isinstance(tree.get("apps"), list) else []
    return [str(app.get("name")) for app in apps if isinstance(app, Mapping)]


def label(key: str, identity: Identity) -> str:
    """`[path="/scratch/x.h5"]`, or `[3]` for an entry identified by position; `#2` marks the second of a name."""
    names = IDENTITIES.get(key)
    if names is None or len(identity) < len(names):
        return f"[{identity[0]}]"
    parts = (
        f"{name}={attributes.quoted(value) if isinstance(value, str) else value}"
        for name, value in zip(names, identity, strict=False)
    )
    again = f"#{identity[-1]}" if len(identity) > len(names) else ""
    return f"[{', '.join(parts)}]{again}"


Value = int | float | str | bool | None
Trail = tuple[str | Identity, ...]
"""Keys, and identities of list entities: a path that means the same in any profile."""

_LARGEST: Final = 1e300
_EXACT: Final = 1 << 62
_TARGETS: Final = ("path", "name", "app")


class Match(NamedTuple):
    """A value that a path matches."""

    trail: Trail
    full_trail: Trail
    """The trail with unstripped paths."""
    entity: Any
    """The innermost list entity on the path, or None."""
    value: Value
    leaf: attributes.Leaf

    @property
    def target(self) -> str | None:
        """The file or app that the value belongs to."""
        if not isinstance(self.entity, dict):
            return None
        return next((self.entity[name] for name in _TARGETS if isinstance(self.entity.get(name), str)), None)

    @property
    def attribute(self) -> str:
        """Path with the entities' full names, which leads only to this value."""
        return trail_text(self.full_trail)

    @property
    def against(self) -> str:
        """Path with stripped names, which is the same in every run."""
        return trail_text(self.trail)


def trail_text(trail: Trail) -> str:
    """A trail as text of a path."""
    text, key = "", ""
    for step in trail:
        if isinstance(step, tuple):
            text += label(key, step)
        else:
            key = step
            text += f".{attributes.key_text(step)}"
    return text.removeprefix(".")


def matches(leaf: attributes.Leaf, tree: Mapping[str, Any], names: Names, where: str) -> Iterator[Match]:
    """Every place that a leaf's path reaches; none for a list without matching entries.

    A null on the path is a match without a value.

    Raises
    ------
    DocumentError
        A value has the wrong type, in parts of a long profile that were not checked when it was read.
    """
    # The attributes of a kind of entity share the path to the entities, which is followed once.
    last = max((i for i, step in enumerate(leaf.steps) if not isinstance(step, attributes.Key)), default=-1) + 1
    known = names.places.get((id(tree), leaf.steps[:last]))
    if known is None:
        # Keep a reference to the tree, so that no other tree gets its id.
        known = names.places[(id(tree), leaf.steps[:last])] = (tree, _reached(tree, leaf.steps[:last], names))
    keys = tuple(step.name for step in leaf.steps[last:] if isinstance(step, attributes.Key))
    absent = 0 if leaf.in_table else None
    places = _below(known[1], keys, drop_null=False, absent=absent) if keys else known[1]
    numeric = leaf.dimension not in ("text", "flag") and not leaf.entities
    for node, trail, full_trail, entity in places:
        is_right = numeric and type(node) is int and node < _EXACT
        value = node if is_right else _checked(node, leaf, full_trail, where)
        yield Match(trail, full_trail, entity, value, leaf)


def find(trail: Trail, tree: Any, names: Names, *, absent: Value = None) -> tuple[bool, Value]:
    """Look up a trail: True and the value (None if null or missing), or False if an entity on the path is missing.

    `absent` is the value if only the last key is missing.
    """
    key = ""
    table: Any = None
    for step in trail:
        table = tree
        if isinstance(step, str):
            key = step
            tree = tree.get(step) if type(tree) is dict else None
        else:
            tree = names.find(key, tree, step) if type(tree) is list else None
            if tree is None:
                return False, None
    if tree is None and type(table) is dict:
        tree = absent
    return True, tree if isinstance(tree, str) or number(tree) is not None else None


def number(value: object) -> int | float | None:
    """The value if it is a usable number, otherwise None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -_LARGEST < value < _LARGEST else None


def aggregated(attribute: attributes.Attribute, matched: Sequence[Match]) -> tuple[Value, Dimension]:
    """The aggregate of all known values and its dimension. Without values it is None, or 0 for a count."""
    values = [match.value for match in matched if match.leaf.entities or match.value is not None]
    dimension: Dimension = matched[0].leaf.dimension if matched else "count"
    if attribute.aggregate == "count":
        return len(values), "count"
    numbers = [value for value in values if isinstance(value, (int, float))]
    if not numbers:
        return None, dimension
    if attribute.aggregate == "sum":
        return sum(numbers) if all(isinstance(n, int) for n in numbers) else math.fsum(numbers), dimension
    if attribute.aggregate == "mean":
        return math.fsum(numbers) / len(numbers), "number" if dimension == "count" else dimension
    chosen: Callable[[Sequence[int | float]], int | float] = min if attribute.aggregate == "min" else max
    return chosen(numbers), dimension


def why_null(leaf: attributes.Leaf, provenance: Mapping[str, str]) -> str:
    """Reason for a null, from the profile's provenance or else the description in the schema."""
    keys = leaf.dotted.split(".")
    for names in (keys, keys[1:]):
        for length in range(len(names), 0, -1):
            why = provenance.get(".".join(names[:length]))
            if why:
                return why
    _, null, description = leaf.description.partition("null")
    return f"null{description}" if null else "it is null in the profile"


def columns_of(leaves: Sequence[attributes.Leaf]) -> set[Column]:
    """Attributes of files that the paths read, including those in conditions."""
    columns: set[Column] = set()
    for leaf in leaves:
        if not leaf.steps or leaf.steps[0] != attributes.Key("files"):
            continue
        for step in leaf.steps:
            if isinstance(step, attributes.Where):
                columns |= {condition.keys for condition in step.conditions}
        keys = tuple(step.name for step in leaf.steps[1:] if isinstance(step, attributes.Key))
        if keys:
            columns.add(keys)
    return columns


class _Place(NamedTuple):
    node: Any
    trail: Trail
    full_trail: Trail
    entity: Any


def _reached(tree: Mapping[str, Any], steps: Sequence[attributes.Step], names: Names) -> list[_Place]:
    places = [_Place(tree, (), (), None)]
    for step in steps:
        if isinstance(step, attributes.Key):
            places = list(_below(places, (step.name,), drop_null=True))
        elif isinstance(step, attributes.AnyKey):
            places = [
                _Place(below, (*place.trail, name), (*place.full_trail, name), place.entity)
                for place in places
                if isinstance(place.node, dict)
                for name, below in place.node.items()
            ]
        else:
            places = [below for place in places for below in _entities(place, step, names)]
    return places


def _below(
    places: Sequence[_Place], keys: tuple[str, ...], *, drop_null: bool, absent: Value = None
) -> Iterator[_Place]:
    for node, trail, full_trail, entity in places:
        node_below: Any = node
        table: Any = None
        for key in keys:
            table = node_below
            node_below = node_below.get(key) if type(node_below) is dict else None
        if node_below is None and absent is not None and type(table) is dict:
            node_below = absent
        if node_below is not None or not drop_null:
            deeper = trail + keys
            yield _Place(node_below, deeper, deeper if full_trail is trail else full_trail + keys, entity)


def _entities(place: _Place, step: attributes.Index | attributes.Where, names: Names) -> Iterator[_Place]:
    node = place.node
    if not isinstance(node, list):
        return
    key = str(place.trail[-1])
    for position, (entity, identity) in enumerate(zip(node, names.identities(key, node), strict=True)):
        if isinstance(step, attributes.Index) and position != step.number:
            continue
        if isinstance(step, attributes.Where) and not all(_meets(condition, entity) for condition in step.conditions):
            continue
        trail = (*place.trail, identity)
        full = _full(key, entity, identity) if names.strip else identity
        yield _Place(entity, trail, trail if full is identity else (*place.full_trail, full), entity)


def _full(key: str, entity: Any, identity: Identity) -> Identity:
    """The identity with its unstripped path."""
    if IDENTITIES.get(key) != ("path",) or not isinstance(entity, dict):
        return identity
    return (entity.get("path"), *identity[1:])


def _meets(condition: attributes.Condition, entity: Any) -> bool:
    value = entity
    for key in condition.keys:
        value = value.get(key) if isinstance(value, dict) else None
    expected, operator = condition.value, condition.operator
    if value is None:
        return False
    if isinstance(expected, Quantity):
        compare = attributes.COMPARISONS["==" if operator == "=" else operator]
        return isinstance(value, (int, float)) and compare(value, expected.value)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if operator in ("~", "!~"):
        return fnmatchcase(text, expected) is (operator == "~")
    return (text == expected) is (operator == "=")


def _checked(value: Any, leaf: attributes.Leaf, trail: Trail, where: str) -> Value:
    if leaf.entities or value is None:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    kinds = {"text": str, "flag": bool}
    checked: Value = value
    if isinstance(value, kinds[leaf.dimension]) if leaf.dimension in kinds else number(value) is not None:
        return checked
    expected = {"text": "text", "flag": "true or false"}.get(leaf.dimension, "a number below 1e300")
    text = value if isinstance(value, str) else str(type(value).__name__)
    raise DocumentError(
        f"{trail_text(trail)} is {text[:40]!r}, not {expected}", where=where, todo="make the profile again"
    )
