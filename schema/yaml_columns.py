"""Attributes of the files of a long profile in YAML as Vani writes it, without parsing the rest.

Keys stand in the order of the model, at the depths that `yaml/layout.py` says.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Any, Final

from vani.errors import DocumentError
from vani.schema.columns_of_files import Column, columns_in_order
from vani.schema.json_reading import parse_json
from vani.schema.yaml.layout import BARE, DASH, STEP, WORDS
from vani.schema.yaml.read import parse

__all__ = ["ENTRY", "as_json", "files_span", "yaml_columns", "yaml_values"]

ENTRY: Final = f"\n{DASH}path: ".encode()
_ITEM: Final = f"\n{DASH}".encode()
_LIST: Final = b"\nfiles:"
_BEHIND: Final = b"\nexcluded:"
_PATH: Final = re.compile(ENTRY[:-1] + rb"([^\n]*)")
_FLAT: Final = re.compile(rb" \{[a-z_]+: [-0-9a-z.+]+(?:, [a-z_]+: [-0-9a-z.+]+)*\}")
_AT_ONCE: Final = 50_000
"""A mapping of more keys than twice that is refused."""


def files_span(content: bytes) -> tuple[int, int] | None:
    """Where the entries of `files` begin and end, each with the line break before it; None where none are found."""
    begin = content.find(_LIST + ENTRY)
    if begin < 0:
        return None
    # From the end: behind the files comes little.
    end = content.rfind(_BEHIND, begin + 1)
    return (begin + len(_LIST), end) if end >= 0 else None


def yaml_columns(
    content: bytes, wanted: Collection[Column], *, without: Collection[str] = ()
) -> dict[Column, list[bytes]] | None:
    """Texts behind the keys of all files, by column; None where the text is of another form, or has not all of them.

    Parameters
    ----------
    wanted
        `("path",)` and other columns, at most two keys deep.
    without
        Keys of files that none may have.
    """
    span = files_span(content)
    if span is None:
        return None
    columns: dict[Column, list[bytes]] = {("path",): _PATH.findall(content, *span)}
    entries = len(columns["path",])
    if content.count(_ITEM, *span) != entries:
        return None
    ordered = [column for column in columns_in_order() if column in wanted and column != ("path",)]
    found = [
        of_file or of_io for of_file, of_io in _lines(tuple(ordered), tuple(without)).findall(content, *span)
    ]
    if len(found) != entries * len(ordered):
        return None
    for place, column in enumerate(ordered):
        begin = f"{column[-1]}:".encode()
        texts = found[place :: len(ordered)]
        # Most texts are those of other files, too.
        behind = {text: text[len(begin) :] for text in dict.fromkeys(texts) if text.startswith(begin)}
        try:
            columns[column] = [behind[text] for text in texts]
        except KeyError:
            return None
    return columns


def yaml_values(texts: list[bytes]) -> list[Any]:
    """Plain values of the texts behind a key.

    Raises
    ------
    DocumentError, UnicodeDecodeError
        A text is no value.
    """
    plain = [text[1:].decode() for text in texts]
    if all(map(BARE.fullmatch, plain)) and WORDS.keys().isdisjoint(plain):
        return plain
    flat = as_json(texts)
    if flat is not None:
        return list(parse_json(flat.decode(), ""))
    values: list[Any] = []
    for begin in range(0, len(texts), _AT_ONCE):
        some = texts[begin : begin + _AT_ONCE]
        tree: Any = parse("".join(f"k{i}:{text.decode()}\n" for i, text in enumerate(some)), "")
        if not isinstance(tree, dict) or len(tree) != len(some):
            raise DocumentError("is not what Vani writes")
        values += tree.values()
    return values


def as_json(texts: list[bytes]) -> bytes | None:
    """Names and numbers between braces as a list of JSON, from which they differ by quotes; None for other texts."""
    if not all(map(_FLAT.fullmatch, texts)):
        return None
    joined = b",".join(text[1:] for text in texts)
    return b"[" + joined.replace(b"{", b'{"').replace(b": ", b'": ').replace(b", ", b', "') + b"]"


@cache
def _lines(ordered: tuple[Column, ...], without: tuple[str, ...]) -> re.Pattern[bytes]:
    """What finds the keys, of files or of their `io`, each with all that is below it."""
    of_file = [column[0] for column in ordered if len(column) == 1] + [*without]
    of_io = [column[1] for column in ordered if len(column) == 2]
    found = []
    for names, depth in ((of_file, STEP), (of_io, 2 * STEP)):
        deeper = rf"\n {{{depth + 1},}}[^\n]*"
        # Lists stand as deep as their key, and never behind a value on its line.
        below = rf" [^\n]*(?:{deeper})*|(?:{deeper}|\n {{{depth}}}-(?= |\n)[^\n]*)+"
        # Without a key of a kind, a group that fits nothing.
        found.append(rf"((?:{'|'.join(names) or '(?!)'}):(?:{below}))")
    # In one pass: what all lines within entries begin with is found fast.
    return re.compile(rf"\n {{{STEP}}}(?:{found[0]}| {{{STEP}}}{found[1]})".encode())
