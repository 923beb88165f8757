"""Answers of the server behind `vani mcp` as text of bounded size, and the folders that it may read.

Answers have one `key: value` per line. A key is the path in the document, with list positions:
`apps[0].io.bytes.read`. The reason follows each null, and provenance notes follow the value they describe, so that an
assistant can quote them instead of inventing them.

An assistant can be tricked into naming any path, for example by a file name in a trace. So each path is resolved,
with all its symbolic links, before it is opened, and so are the links inside a trace.
"""

import json
import math
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from vani.errors import InputError, TraceError, nearest, one_line, os_errors_as
from vani.gate.attribute import key_text
from vani.readers.open import format_of
from vani.render.report.unknowns import unknowns
from vani.schema.profile import Profile
from vani.schema.settings import PathLike
from vani.schema.syntax import first_bytes
from vani.schema.syntax.yaml_text import rounded
from vani.units import format_bytes

MAX_BYTES: Final = 64 << 10
"""Maximum size of an answer in bytes."""

_LONGEST_VALUE: Final = 2000
_NOTES: Final = 12 << 10
_ROOM: Final = 2 << 10
"""Bytes reserved for the lines about omissions."""
_FIRST: Final = 5
_SUMMARY: Final = ("verdict", "unseen", "traces", "job", "workflow", "apps", "interfaces", "dataset")
_DETAILS: Final = re.compile(
    r"\.(functions|metadata_kinds|histogram|common|hints|footprint|ops_share|time_share|busy_s|balance|timeline"
    r"|size_distribution|past_end|process_dependencies|distribution|data_representation)\b"
)
_POSITION: Final = re.compile(r"\[\d*\]")

Line = tuple[str, Any]
"""A key and its value, which becomes text only when the line is printed."""


def profile_answer(profile: Profile, head: Sequence[str], keys: Sequence[str] | None = None) -> str:
    """List the values of a profile with their keys.

    Parameters
    ----------
    head
        First lines.
    keys
        Key prefixes (`workflow.io`, `files[0]`, `files[].io.bytes`); all values below them are listed. None gives a
        summary.

    Raises
    ------
    InputError
        No key starts with any of `keys`.
    """
    tree = profile.model_dump(by_alias=True)
    provenance, bounds = tree.pop("provenance"), tree.pop("bounds", {})
    lines = list(_lines(tree))
    chosen = _summary(lines, len(profile.apps)) if keys is None else _chosen(lines, keys)
    reasons = unknowns(profile)
    shown = (f"{_shown(key)}: {_explained(key, value, reasons, bounds)}" for key, value in chosen)
    text = _fitting(shown, MAX_BYTES - _NOTES - _ROOM - _length(head))
    about = {_plain(key) for key, value in chosen[: len(text)] if value is not None}
    notes = [(f"provenance.{key}", why) for key, why in provenance.items() if _is_about(key, about)]
    note_text = _fitting((f"{_shown(key)}: {_value(why)}" for key, why in notes), _NOTES)
    left = [*_left_out(chosen[len(text) :]), *_left_out(notes[len(note_text) :])]
    if keys is None:
        left.append(_more(tree, len(lines) - len(chosen)))
    return "\n".join(map(one_line, [*head, *text, *note_text, *left]))


def document_answer(tree: Mapping[str, Any], head: Sequence[str] = ()) -> str:
    """Values of any other document with their keys, in document order; a row without nested lists takes one line."""
    lines = list(_lines(tree, rows=True))
    text = _fitting((f"{_shown(key)}: {_value(value)}" for key, value in lines), MAX_BYTES - _ROOM - _length(head))
    return "\n".join(map(one_line, [*head, *text, *_left_out(lines[len(text) :], todo="")]))


def shortened_text(text: str) -> str:
    """A text cut to `MAX_BYTES` at a line end, with the number of lines left out."""
    lines = text.splitlines()
    fit = _fitting(lines, MAX_BYTES - _ROOM)
    more = [f"Left out: {len(lines) - len(fit):,} more lines."] if len(fit) < len(lines) else []
    return "\n".join([*fit, *more])


def _lines(tree: Any, key: str = "", *, rows: bool = False) -> Iterator[Line]:
    if isinstance(tree, Mapping) and tree:
        for name, value in tree.items():
            yield from _lines(value, f"{key}.{key_text(str(name))}" if key else key_text(str(name)), rows=rows)
    elif isinstance(tree, list) and any(isinstance(entry, Mapping) for entry in tree):
        for place, entry in enumerate(tree):
            inside = f"{key}[{place}]"
            is_row = rows and all(not isinstance(value, (Mapping, list)) for value in entry.values())
            yield from [(inside, entry)] if is_row else _lines(entry, inside, rows=rows)
    else:
        yield key, tree


def _value(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        # Rounded as in profile.yaml, so that the two can be compared character by character.
        value = rounded(value)
    elif isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(name)}: {_value(entry)}' for name, entry in value.items())}}}"
    return _text(value)


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[:_LONGEST_VALUE]} ... ({len(text) - _LONGEST_VALUE:,} letters left out)"


def _summary(lines: Iterable[Line], apps: int) -> list[Line]:
    """Lines for an overview; with a single app and all files, only the workflow's I/O is shown."""
    again = ("dataset.io.", "apps[0].io.") if apps == 1 else ("dataset.io.",)
    return [
        (key, value)
        for key, value in lines
        if key.startswith(_SUMMARY)
        and not key.startswith(again)
        and not _DETAILS.search(key)
        and all(int(place) < _FIRST for place in re.findall(r"\[(\d+)\]", key))
    ]


def _chosen(lines: Sequence[Line], keys: Sequence[str]) -> list[Line]:
    chosen: dict[str, Any] = {}
    for begin in map(str.strip, keys):
        name: Callable[[str], str] = _any if "[]" in begin else str
        matches = [(key, value) for key, value in lines if _is_below(name(key), begin)]
        if not matches:
            known = dict.fromkeys(_plain(key).partition(".")[0] for key, _ in lines)
            raise InputError(f"no key begins with {begin[:200]!r}", where="keys", todo=nearest(begin, known))
        chosen |= matches
    return list(chosen.items())


def _any(key: str) -> str:
    return _POSITION.sub("[]", key)


def _plain(key: str) -> str:
    return _POSITION.sub("", key)


def _is_below(key: str, begin: str) -> bool:
    return key.startswith(begin) and key[len(begin) : len(begin) + 1] in ("", ".", "[")


def _explained(key: str, value: Any, reasons: Mapping[str, str], bounds: Mapping[str, Sequence[float]]) -> str:
    if value is None:
        why = reasons.get(_any(key))
        return "null" if why is None else f"null ({why})"
    limits = bounds.get(key) or bounds.get(_plain(key))
    text = _value(value)
    return text if limits is None else f"{text} (at least {_value(limits[0])}, at most {_value(limits[1])})"


def _is_about(note: str, keys: Iterable[str]) -> bool:
    return any(f".{note}." in f".{key}." for key in keys)


def _length(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _shown(key: str) -> str:
    return key[:_LONGEST_VALUE]


def _fitting(lines: Iterable[str], most: int) -> list[str]:
    """The first lines that fit into `most` bytes, on one line each; later ones are not generated."""
    fit: list[str] = []
    for line in map(one_line, lines):
        most -= len(line.encode()) + 1
        if most < 0:
            break
        fit.append(line)
    return fit


def _left_out(lines: Sequence[Line], todo: str = "; name beginnings of keys to get them") -> list[str]:
    if not lines:
        return []
    return [f"Left out: {len(lines):,} values from {lines[0][0][:200]} on, for the answer's length{todo}."]


def _more(tree: Mapping[str, Any], left_out: int) -> str:
    rows = [f"{name} ({len(value)})" for name, value in tree.items() if isinstance(value, list) and value]
    return (
        f"This is a summary without {left_out:,} values. Name beginnings of keys to get them, such as "
        f'keys=["workflow.io", "files[0]", "files[].io.bytes"]. Lists: {", ".join(rows)}.'
    )


MAX_SHOWN: Final = 300
"""Maximum number of entries to read; in a larger folder, the first by name."""
_SCHEMA: Final = re.compile(rb"""["']?schema["']?[ \t]*:[ \t]*["']?(vani\.[a-z]+/\d+)""")
_SQLITE: Final = b"SQLite format 3\0"
MAX_ENTRIES: Final = 100_000
"""Maximum number of files in a trace. Only a trace with more processes than that has more."""


class Folders:
    """Folders whose contents may be read.

    Parameters
    ----------
    folders
        At least one.

    Raises
    ------
    InputError
        One of them is not a folder.
    """

    def __init__(self, folders: Sequence[PathLike]) -> None:
        for folder in folders:
            if not Path(folder).is_dir():
                raise InputError("is not a folder", where=folder, todo="name folders with traces or profiles")
        self.roots: Final = [Path(folder).resolve() for folder in folders]

    def place(self, path: str) -> Path:
        """Resolve a path; a relative one is looked up in each folder.

        Raises
        ------
        InputError
            The path is outside all folders, or does not exist.
        """
        try:
            places = [root / path for root in self.roots] if path else []
            inside = [place for place in (place.resolve() for place in places) if self.contains(place)]
            for place in inside:
                if place.exists():
                    return place
        except (OSError, ValueError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or "no path"
            raise InputError(f"cannot be opened ({why})", where=path[:200], todo=self._todo()) from error
        # The answer must not reveal whether a path outside the folders exists.
        is_inside = bool(places) and len(inside) == len(places)
        what = "does not exist" if is_inside else "is outside the folders that this server reads"
        raise InputError(what, where=path[:200] or "the path", todo=self._todo())

    def contains(self, place: Path) -> bool:
        """Whether a resolved path is one of the folders or below one."""
        return any(place.is_relative_to(root) for root in self.roots)

    def size(self, place: Path, shown: str) -> int:
        """Size in bytes of a file, or of all files below a folder.

        Parameters
        ----------
        shown
            The path as the assistant gave it.

        Raises
        ------
        InputError
            A link points outside the folders, an entry is neither a file nor a folder, or there are more than
            `MAX_ENTRIES` files.
        """
        total = 0
        for number, entry in enumerate(_below(place)):
            if number >= MAX_ENTRIES:
                todo = "name a profile that `vani profile` wrote"
                raise InputError(f"has more than {MAX_ENTRIES:,} files", where=shown, todo=todo)
            if not self.contains(entry.resolve()):
                what = f"contains a link to outside the folders ({entry.name})"
                raise InputError(what, where=shown, todo="remove the link, or start the server with its folder, too")
            status = entry.stat()
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                what = f"{entry.name} is neither a file nor a folder"
                raise InputError(what, where=shown, todo="name a trace or a profile")
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
        return total

    def _todo(self) -> str:
        return f"name a path below {' or '.join(map(str, self.roots[:5]))}"


def _below(place: Path) -> Iterator[Path]:
    """A path and everything below it; each folder once, even if links point to it."""
    waiting, seen = [place], set()
    while waiting:
        path = waiting.pop()
        yield path
        if path.is_dir() and (resolved := path.resolve()) not in seen:
            seen.add(resolved)
            waiting += path.iterdir()


def contents_of(folder: Path, folders: Folders) -> Iterator[str]:
    """Yield a line for the folder, then one for each entry.

    Raises
    ------
    InputError
        It is not a folder, or cannot be listed.
    """
    if not folder.is_dir():
        raise InputError("is a file", where=folder, todo="name a folder")
    with os_errors_as(InputError, "cannot be listed", where=folder):
        entries = sorted(folder.iterdir())
    yield f"{folder}: {_kind(folder)}"
    for entry in entries[:MAX_SHOWN]:
        kind = _kind(entry) if folders.contains(entry.resolve()) else "a link to outside the folders"
        yield f"  {entry.name}: {kind}"
    if len(entries) > MAX_SHOWN:
        yield f"  and {len(entries) - MAX_SHOWN:,} more entries"


def _kind(path: Path) -> str:
    """The kind of an entry in a few words."""
    if not (path.is_file() or path.is_dir()):
        return "neither a file nor a folder"
    begin = first_bytes(path) or b""
    if (schema := _SCHEMA.search(begin)) is not None:
        return f"document {schema[1].decode()}, {format_bytes(path.stat().st_size)}"
    try:
        format_ = format_of(path, named=False)
    except TraceError:
        return "folder that cannot be listed"
    if format_ is not None:
        return f"trace ({format_.name})"
    if path.is_dir():
        return "folder"
    size = format_bytes(path.stat().st_size)
    return f"SQLite database, perhaps a history, {size}" if begin.startswith(_SQLITE) else f"file, {size}"
