"""Machine descriptions: bundled ones by name, and users' own that may build on them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError, InputError, nearest
from vani.schema.document import read_text, read_tree, validate
from vani.schema.system import System

_FOLDER: Final = Path(__file__).parent
_MAX_BASES: Final = 10
_NAMED: Final = ("file_systems", "burst_buffers")
"""Lists whose entries are identified by name rather than position."""

Tree = dict[str, Any]


def known_systems() -> list[str]:
    """Names of the bundled machines, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def load_system(name_or_path: str | Path) -> System:
    """Load a bundled machine by name, or a machine from a YAML file.

    A file with `base: lassen` (a bundled name, or a path relative to the file's folder) needs only what differs.
    Mappings are merged key by key, and so are file systems and burst buffers of the same name. New ones come
    first. Other lists replace those of the base. The source of a figure that the file sets is the file.

    Raises
    ------
    InputError
        There is no bundled machine or file of that name.
    DocumentError
        The file is not a valid machine, or its bases are circular.
    """
    path = _find(str(name_or_path), Path())
    text = read_text(path)
    tree = _with_base(read_tree(text, System, where=str(path)), path, _MAX_BASES)
    return validate(tree, System, text=text, where=str(path))


def system_of(system: str | Path | System | None) -> System | None:
    """The machine itself, or the one with a bundled name or at a path; None if unknown."""
    return load_system(system) if isinstance(system, (str, Path)) else system


def files_of_system(name_or_path: str | Path) -> list[Path]:
    """The files that `load_system` would read, of the machine and its bases, without bundled ones.

    Raises
    ------
    InputError
        There is no such machine, or a file cannot be read.
    """
    name, folder = str(name_or_path), Path()
    files: list[Path] = []
    while name not in known_systems() and len(files) <= _MAX_BASES:
        path = _find(name, folder)
        files.append(path)
        base = read_tree(read_text(path), System, where=str(path)).get("base")
        if not isinstance(base, str):
            break
        name, folder = base, path.parent
    return files


def _find(name: str, folder: Path) -> Path:
    if name in known_systems():
        return _FOLDER / f"{name}.yaml"
    path = folder / name
    if not path.exists():
        raise no_such_system(name)
    return path


def no_such_system(name: str) -> InputError:
    """The error for a name that is neither a bundled machine nor a file."""
    known = known_systems()
    todo = nearest(name.lower(), known, f"known are {', '.join(known)}; or name a YAML file")
    return InputError(f"no machine and no file is called {name!r}", todo=todo)


def _with_base(tree: Tree, path: Path, bases_left: int) -> Tree:
    """Merge `tree`, the document at `path`, with all its bases."""
    name = tree.get("base")
    if not isinstance(name, str):
        return tree
    if not bases_left:
        raise DocumentError("its bases are circular", where=path, todo="end them in a bundled machine")
    try:
        file = _find(name, path.parent)
    except InputError as error:
        raise DocumentError(f"base: {error.what}", where=path, todo=error.todo) from None
    text = read_text(file)
    base = _with_base(read_tree(text, System, where=str(file)), file, bases_left - 1)
    validate(base, System, text=text, where=str(file))
    own = tree.get("sources")
    merged = _merge({key: value for key, value in base.items() if key != "sources"}, tree)
    if own is not None and not isinstance(own, dict):
        return merged
    sources = _moved(base.get("sources") or {}, base, merged)
    sources |= dict.fromkeys(_figures(tree), path.name)
    return {**merged, "sources": sources | (own or {})}


def _merge(base: Tree, top: Tree) -> Tree:
    merged = dict(base)
    for key, value in top.items():
        below = base.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merged[key] = _merge(below, value)
        elif key in _NAMED and isinstance(value, list) and isinstance(below, list):
            merged[key] = _merge_named(below, value)
        else:
            merged[key] = value
    return merged


def _merge_named(base: list[Any], top: list[Any]) -> list[Any]:
    """The entries of `top` in their order, so that errors name the right lines, then the others of `base`."""
    names = {_name(entry): entry for entry in base}
    merged = [
        _merge(names[_name(entry)], entry) if isinstance(entry, dict) and _name(entry) in names else entry
        for entry in top
    ]
    taken = {_name(entry) for entry in top}
    return merged + [entry for entry in base if _name(entry) not in taken]


def _name(entry: object) -> str | None:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else None


def _moved(sources: Mapping[str, str], base: Tree, merged: Tree) -> dict[str, str]:
    """The base's sources, keyed by the positions of its entries after merging."""
    moved = {}
    for path, source in sources.items():
        match = re.match(r"(\w+)\[(\d+)\]", path)
        if match is None or match[1] not in _NAMED:
            moved[path] = source
            continue
        entries, index = merged[match[1]], int(match[2])
        if not isinstance(entries, list) or index >= len(base[match[1]]):
            continue
        name = _name(base[match[1]][index])
        names = [_name(entry) for entry in entries]
        if name in names:
            moved[f"{match[1]}[{names.index(name)}]{path[match.end() :]}"] = source
    return moved


def _figures(tree: object, path: str = "") -> Iterator[str]:
    """Paths of everything that `tree` sets, except keys that describe the document itself."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if path or key not in ("schema", "base", "name", "description", "sources"):
                yield from _figures(value, f"{path}.{key}" if path else key)
    elif isinstance(tree, list) and path in _NAMED:
        for index, value in enumerate(tree):
            yield from _figures(value, f"{path}[{index}]")
    else:
        yield path
