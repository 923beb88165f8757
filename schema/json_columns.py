"""Attributes of the files of a long profile in JSON as Vani writes it, on one line, without parsing the rest.

Keys stand in the order of the model. No quote within a text is bare, so that no text looks like a key; which of two
equal keys is meant, what stands in front of it tells, or there are too many and nothing is found.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Final

from vani.schema.columns_of_files import Column, columns_in_order

__all__ = ["ENTRY", "files_span", "json_columns"]

ENTRY: Final = b'{"path":"'
_LIST: Final = b',"files":['
_BEHIND: Final = b'}],"excluded":'

# Braces in a text would end it too early: what is left then is no JSON, and refused.
_BRACES: Final = r"\{[^{}]*+(?:\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\}[^{}]*+)*+\}"
_TEXT: Final = r'"(?:[^"\\]|\\.)*+"'
_PLAIN: Final = rf"null|-?[0-9][-+0-9.e]*+|{_TEXT}|{_BRACES}"
# Calls have numbers of the same names.
_OF_IO: Final = rf"null|{_BRACES}"


def files_span(content: bytes) -> tuple[int, int] | None:
    """Where the first entry of `files` begins and the last one ends; None where none are found."""
    begin = content.find(_LIST + ENTRY)
    end = content.rfind(_BEHIND, begin + 1)
    return None if begin < 0 or end < 0 else (begin + len(_LIST), end + 1)


def json_columns(
    content: bytes, wanted: Collection[Column], *, without: Collection[str] = ()
) -> dict[Column, list[bytes]] | None:
    """Texts of the values of all files, by column; None where the text is of another form, or has not all of them.

    Parameters
    ----------
    wanted
        `("path",)` and other columns, at most two keys deep.
    without
        Keys of files that none may have.
    """
    span = files_span(content)
    if span is None or any(content.find(f'"{name}":'.encode(), *span) >= 0 for name in without):
        return None
    entries = content.count(b"}," + ENTRY, *span) + 1
    columns: dict[Column, list[bytes]] = {}
    for run in _runs(frozenset(wanted)):
        found = _pattern(run).findall(content, *span)
        if len(found) != entries:
            return None
        # A single group is found as it is, several in tuples.
        texts = map(list, zip(*found, strict=True)) if len(run) > 1 else [found]
        columns |= zip(run, texts, strict=True)
    return columns


@cache
def _runs(wanted: frozenset[Column]) -> list[list[Column]]:
    """The wanted columns; those that follow each other are found together."""
    runs: list[list[Column]] = [[]]
    for column in columns_in_order():
        if column in wanted:
            runs[-1].append(column)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _pattern(run: list[Column]) -> re.Pattern[bytes]:
    begin = {("path",): r"\{", ("io", "bytes"): r'"io":\{'}.get(run[0], "")
    keys = (f'"{column[-1]}":({_OF_IO if column[0] == "io" else _PLAIN})' for column in run)
    return re.compile((begin + ",".join(keys)).encode())
