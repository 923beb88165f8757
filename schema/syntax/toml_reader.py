"""TOML text to plain trees, with the line of every key, which the standard library's parser does not report."""

from __future__ import annotations

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
_HEADER: Final = re.compile(r"""(\[\[?)((?:"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[^\]"'\n])+)\]""")
_NAME: Final = r"""(?:"(?:\\.|[^"\\\n])*+"|'[^'\n]*+'|[A-Za-z0-9_-]++)"""
_KEYS: Final = re.compile(rf"({_NAME}(?:[ \t]*+\.[ \t]*+{_NAME})*+)[ \t]*+=")
_PART: Final = re.compile(r""""((?:\\.|[^"\\])*)"|'([^']*)'|([A-Za-z0-9_-]+)""")
# Parts of a value: strings first, since they may contain any of the others.
_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'|#[^\n]*|[\[{]|[\]}]|\n",
    re.DOTALL,
)


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
    line, counted = 1, 0
    for path, offset in _places(text):
        line, counted = line + text.count("\n", counted, offset), offset
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], line)
    return lines


def _places(text: str) -> Iterator[tuple[tuple[int | str, ...], int]]:
    """Every header and key of a valid TOML text: its path and its offset in the text."""
    table: tuple[int | str, ...] = ()
    counts: dict[tuple[int | str, ...], int] = {}
    at = 0
    while at < len(text):
        if text[at] in " \t\r\n\ufeff":
            at += 1
            continue
        header = _HEADER.match(text, at)
        if header is not None:
            names = _parts(header[2])
            table = _below(names if header[1] == "[" else names[:-1], counts)
            if header[1] == "[[" and names:
                table = (*table, names[-1])
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            yield table, at
            at = header.end()
        elif (keys := _KEYS.match(text, at)) is not None:
            yield (*table, *_parts(keys[1])), at
            at = keys.end()
        at = _end_of_line(text, at)


def _below(names: tuple[str, ...], counts: dict[tuple[int | str, ...], int]) -> tuple[int | str, ...]:
    """The path of a table; a name shared by several tables means the last of them."""
    path: tuple[int | str, ...] = ()
    for name in names:
        path = (*path, name)
        if path in counts:
            path = (*path, counts[path])
    return path


def _parts(dotted: str) -> tuple[str, ...]:
    parts = []
    for match in _PART.finditer(dotted):
        quoted, literal, bare = match.groups()
        parts.append(tomllib.loads(f'k = "{quoted}"')["k"] if quoted is not None else literal or bare or "")
    return tuple(parts)


def _end_of_line(text: str, at: int) -> int:
    """Position after the line on which the value at `at` ends."""
    depth = 0
    while (token := _TOKEN.search(text, at)) is not None:
        at = token.end()
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        elif token[0] == "\n" and depth <= 0:
            return at
    return len(text)


TOML: Final = Syntax(parse, line_of, "{} = {}")
