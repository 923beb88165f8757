"""File names in strace output: split, joined to their folders, and assigned codes."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.columns import scalar, to_numpy
from vani.readers.paths import PathTable

# A quoted name, in which strace escapes quotes and backslashes.
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_FIRST = (
    r"^(?:(?:AT_FDCWD|-?\d+)(?:<(?P<dir>[^<>]*)(?:<[^<>]*>)?>(?:\(deleted\))?)?(?:, )?)?"
    r'(?:"(?P<name>(?:[^"\\]|\\.)*)")?'
)
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}
_BETWEEN = "\n"
"""A character that is in no line."""


def plain(escaped: str) -> str:
    r"""A name without strace's escapes: `\303\251` becomes é, `\n` a line feed."""
    if "\\" not in escaped:
        return escaped
    raw = _ESCAPE.sub(_unescaped, escaped.encode())
    return raw.decode("utf-8", "replace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    if escape[:1].isdigit():
        return bytes([int(escape, 8) & 255])
    return _LETTERS.get(escape, escape)


def named_first(args: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Path of the descriptor at the beginning of a call's arguments, and the name after it; empty if missing."""
    fields = pc.extract_regex(args, _FIRST)
    return pc.struct_field(fields, "dir"), pc.struct_field(fields, "name")


class Spellings:
    """Assigns codes to files as they are spelled: a folder and a name in it, either of which may be empty."""

    def __init__(self, paths: PathTable) -> None:
        self._paths = paths
        self._known: dict[str, int] = {_BETWEEN: -1}

    def codes(self, folder: pa.Array, name: pa.Array) -> NDArray[np.int32]:
        """Codes, shape (n,); -1 if nothing is named. Each distinct spelling in a block is looked up once."""
        both = pc.dictionary_encode(pc.binary_join_element_wise(folder, name, scalar(_BETWEEN)))
        lookup = np.array([self._code(spelling) for spelling in both.dictionary.to_pylist()], np.int32)
        codes: NDArray[np.int32] = lookup[to_numpy(both.indices)] if len(both) else np.zeros(0, np.int32)
        return codes

    def _code(self, spelling: str) -> int:
        code = self._known.get(spelling)
        if code is None:
            code = self._paths.code(joined(*spelling.split(_BETWEEN)))
            self._known[spelling] = code
        return code


def joined(folder: str, name: str) -> str:
    """The path of a name in a folder."""
    if not folder or name.startswith("/"):
        return plain(name)
    return plain(f"{folder.rstrip('/')}/{name}" if name else folder)
