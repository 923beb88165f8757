"""TOML text to plain trees, with the line of every key, which the standard library's parser does not report."""

import functools
import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

from vani.errors import DocumentError
from vani.schema.document import Syntax

MAX_CHARACTERS: Final = 1 << 20
"""Longer texts are refused: settings written by hand are shorter."""

MAX_PARTS: Final = 32
"""Most parts of a dotted key. Reading takes the square of their number, and no setting is so deep."""

_LONG_KEY: Final = re.compile(
    r"""(?:(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
    r"""(?:[ \t]*+\.[ \t]*+(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+'))"""
    f"{{{MAX_PARTS}}}"
)
_AT: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_CLOSES: Final = re.compile(r"""[\]}]|\"{3}|'{3}""")
"""Ends of values of several lines."""


def parse(text: str, where: str) -> dict[str, Any]:
    """Read TOML; every error begins with `where`.

    Raises
    ------
    DocumentError
        Not TOML, or too much of it; the message begins with `where:line`.
    """
    if len(text) > MAX_CHARACTERS:
        raise DocumentError("is longer than 1 MiB", where=where, todo="name a TOML file of settings")
    long_key = _LONG_KEY.search(text)
    if long_key is not None:
        number = text.count("\n", 0, long_key.start()) + 1
        what = f"a key has more than {MAX_PARTS} parts"
        raise DocumentError(what, where=f"{where}:{number}", todo="name a TOML file of settings")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = str(error)
        match = _AT.search(what)
        line = f":{match[1]}" if match is not None and match[1] else ""
        raise DocumentError(
            f"not TOML: {_AT.sub('', what)}", where=where + line, todo="see https://toml.io"
        ) from None
    except (RecursionError, ValueError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else f"not TOML: {error}"
        raise DocumentError(what, where=where, todo="see https://toml.io") from None


def line_of(text: str, path: tuple[int | str, ...]) -> int:
    """Find the line (from 1) of the key at `path`, or of the last part of `path` that has one; else 1."""
    lines = _lines(text)
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


@functools.lru_cache(maxsize=1)
def _lines(text: str) -> dict[tuple[int | str, ...], int]:
    """The line of every header and key; the first one of repeated keys, such as the parts of dotted keys."""
    lines: dict[tuple[int | str, ...], int] = {}
    table: tuple[int | str, ...] = ()
    counts: dict[tuple[int | str, ...], int] = {}
    statement: list[str] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        statement.append(line)
        if len(statement) > 1 and _CLOSES.search(line) is None:
            continue
        try:
            tree = tomllib.loads("\n".join(statement))
        except tomllib.TOMLDecodeError:
            continue  # A value does not end in this line.
        if statement[0].lstrip().startswith("["):
            table = _table_of(tree, counts)
            paths = [table]
        else:
            paths = [(*table, *path) for path in _paths(tree)]
        for path in paths:
            for length in range(1, len(path) + 1):
                lines.setdefault(path[:length], number - len(statement) + 1)
        statement = []
    return lines


def _table_of(header: Any, counts: dict[tuple[int | str, ...], int]) -> tuple[int | str, ...]:
    """The path of a header's table; a name shared by several tables means the last of them, or one more in `[[...]]`.
    """
    path: tuple[int | str, ...] = ()
    while header:
        if isinstance(header, list):
            counts[path] = counts.get(path, -1) + 1
            header = header[0]
        else:
            ((name, header),) = header.items()
            path = (*path, name)
        if path in counts and not isinstance(header, list):
            path = (*path, counts[path])
    return path


def _paths(tree: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in tree.items():
        yield (name,)
        if isinstance(value, dict):
            yield from ((name, *below) for below in _paths(value))


TOML: Final = Syntax(parse, line_of, "{} = {}")
