"""Identities that match the entities of two profiles: files by path, apps by name, phases by app and index.

Parts of paths that differ from run to run, such as a job's folder, can be stripped (`[check.paths] strip`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from vani.gate.attribute import quoted

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
        known = self._known.get(id(entities))
        return (known[2] if known is not None else self._looked_up(key, entities)[1]).get(identity)

    def _looked_up(self, key: str, entities: Sequence[Any]) -> tuple[list[Identity], dict[Identity, Any]]:
        known = self._known.get(id(entities))
        if known is None:
            identities = self._identities(key, entities)
            # Keep a reference to the list, so that no other list gets its id.
            known = self._known[id(entities)] = (
                entities,
                identities,
                dict(zip(identities, entities, strict=True)),
            )
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
    apps = tree.get("apps")
    return (
        [str(app.get("name")) for app in apps if isinstance(app, Mapping)] if isinstance(apps, list) else []
    )


def label(key: str, identity: Identity) -> str:
    """`[path="/scratch/x.h5"]`, or `[3]` for an entry identified by position; `#2` marks the second of a name."""
    names = IDENTITIES.get(key)
    if names is None or len(identity) < len(names):
        return f"[{identity[0]}]"
    parts = (
        f"{name}={quoted(value) if isinstance(value, str) else value}"
        for name, value in zip(names, identity, strict=False)
    )
    again = f"#{identity[-1]}" if len(identity) > len(names) else ""
    return f"[{', '.join(parts)}]{again}"
