"""Files that belong together by their names: 10,000 files `out_00000`, `out_00001`, ... form one pattern, `out_%05d`.

Only names are examined, so a pattern is a guess about how a program names its files, good enough for a table:
every file is in exactly one pattern, and only sums are computed from patterns. Files belong together

- if they are installed Python software below one `lib/pythonX.Y` (or one `site-packages`): `/env/lib/python3.11/**`;
- otherwise, if their paths differ only in numbers and in digests (runs of 8 or more hexadecimal digits, such as in a
  UUID), and there are at least `NUMBERED_LEAST` of them: `%05d`, `%d` and `*`;
- otherwise, if they are in one folder with one suffix, and there are at least `FOLDER_LEAST` of them: `/folder/*.npy`.

All others are patterns of a single file. Arrow processes all paths at once, because a run may have millions.
"""

from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.columns import distinct, scalar, to_arrow, to_numpy

NUMBERED_LEAST: Final = 3
"""Two files are easier to read as two rows than as one row that must be expanded."""

FOLDER_LEAST: Final = 20
"""Files without a common pattern are merged into one row only if they would fill the screen."""

# Python's installation layout (sysconfig, schemes posix_prefix and venv), and that of `pip install --target`.
_INSTALLED: Final = r"(?s)^(.*?/lib(?:64)?/python[0-9][0-9.]*|.*?/(?:site|dist)-packages)/.*$"
# A digest alternates between digits and letters; eight digits alone are a number, and so is `e00012345`.
_MIXED: Final = r"(?i)(^|[^0-9a-z])[0-9a-f]*([0-9][a-f]+[0-9]|[a-f][0-9]+[a-f])"
# Includes the two-digit folders before digests in hashed stores, such as those of git and caches.
_DIGEST: Final = r"(?i)(^|[^0-9a-z])(?:[0-9a-f]{2}/)*[0-9a-f]{8,}(?:-[0-9a-f]{4,})*"
_IN_FOLDER: Final = r"(?s)^(.*/)?[^/]*?(\.[A-Za-z][A-Za-z0-9_]{0,9})?$"

Ints = NDArray[np.int64]


class NamePatterns:
    """Patterns of paths.

    Parameters
    ----------
    paths
        Strings without nulls, shape (n,).
    apart
        Numbers from 0, shape (n,): paths with different numbers are never in one pattern.
    """

    def __init__(self, paths: pa.Array, apart: Ints | None = None) -> None:
        self._texts = _without_digests(_installed(paths))
        apart = np.zeros(len(paths), np.int64) if apart is None else apart
        numbered, several = _codes(_without_numbers(self._texts), apart, NUMBERED_LEAST)
        rest = np.flatnonzero(~several)
        foldered, many = _codes(
            pc.replace_substring_regex(pc.take(paths, to_arrow(rest)), _IN_FOLDER, r"\1*\2"), apart[rest], FOLDER_LEAST
        )
        codes = np.where(several, numbered, -1)
        codes[rest[many]] = foldered[many] + codes.max(initial=-1) + 1
        single = rest[~many]
        codes[single] = np.arange(len(single)) + codes.max(initial=-1) + 1
        self._foldered = np.zeros(len(paths), np.bool_)
        self._foldered[rest[many]] = True
        self._paths = paths
        kinds = distinct(codes)
        self.codes: Ints = np.searchsorted(kinds, codes)
        """Pattern of each path, from 0; shape (n,)."""
        self.count = len(kinds)

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        """Indices of paths, pattern by pattern, and the start of each pattern."""
        order = np.argsort(self.codes, kind="stable")
        return order, np.searchsorted(self.codes[order], np.arange(self.count + 1))

    def members(self, code: int) -> Ints:
        """Indices of a pattern's paths, ascending."""
        order, bounds = self._order
        members: Ints = order[bounds[code] : bounds[code + 1]]
        return members

    def name(self, code: int) -> str:
        """The pattern as text; the path itself if there is only one file."""
        members = self.members(code)
        if len(members) < NUMBERED_LEAST:
            return str(self._paths[int(members[0])].as_py())
        if self._foldered[members[0]]:
            first = self._paths.slice(int(members[0]), 1)
            return str(pc.replace_substring_regex(first, _IN_FOLDER, r"\1*\2")[0].as_py())
        return _numbers_as_written(pc.take(self._texts, to_arrow(members)))


def _installed(paths: pa.Array) -> pa.Array:
    """Replace paths of installed software with the folder in which it is installed."""
    return _replaced(paths, _INSTALLED, r"\1/**")


def _without_digests(paths: pa.Array) -> pa.Array:
    """Replace digests with stars, if most paths that would then look alike contain a digest.

    One digest in ten looks like a number, so its siblings decide.
    """
    mixed = to_numpy(pc.match_substring_regex(paths, _MIXED))
    if not mixed.any():
        return paths
    shortened = _replaced(paths, _DIGEST, r"\1*")
    changed = to_numpy(pc.not_equal(shortened, paths))
    code, _ = _codes(_without_numbers(shortened), np.zeros(len(paths), np.int64), 1)
    digests = 2 * np.bincount(code, mixed & changed) >= np.bincount(code)
    return pc.if_else(to_arrow((digests[code] & changed).astype(np.uint8)).cast(pa.bool_()), shortened, paths)


def _replaced(paths: pa.Array, what: str, by: str) -> pa.Array:
    """Like `replace_substring_regex`, but first checks for matches, which takes a tenth of the time."""
    matching = pc.match_substring_regex(paths, what)
    rows = np.flatnonzero(to_numpy(matching))
    if not len(rows):
        return paths
    replaced = pc.replace_substring_regex(pc.take(paths, to_arrow(rows)), what, by)
    return pc.replace_with_mask(paths, matching, replaced)


def _without_numbers(paths: pa.Array) -> pa.Array:
    """Replace each number in paths with a zero."""
    return pc.replace_substring_regex(paths, "[0-9]+", "0")


def _codes(keys: pa.Array, apart: Ints, least: int) -> tuple[Ints, NDArray[np.bool_]]:
    """A number for each distinct key (and value of `apart`), and a mask of keys with `least` rows; shape (n,)."""
    codes = to_numpy(pc.dictionary_encode(keys).indices).astype(np.int64)
    if apart.any():
        codes = codes * (int(apart.max()) + 1) + apart
        codes = np.searchsorted(distinct(codes), codes)
    return codes, (np.bincount(codes) >= least)[codes]


def _numbers_as_written(texts: pa.Array) -> str:
    """Merge texts that differ only in numbers: `%05d` for numbers padded to five digits with zeros, `%d` for unpadded
    numbers, `*` for those that no printf writes; a number that all texts share is kept."""
    # Each ends with a slash, so that no number continues in the next text.
    column = pc.binary_join_element_wise(texts, scalar(""), scalar("/")).cast(pa.large_string())
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int64, len(column) + 1, 8 * column.offset)
    letters = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    letters = letters[bounds[0] : bounds[-1]]
    is_digit = np.zeros(len(letters) + 2, np.bool_)
    np.less(letters - np.uint8(ord("0")), 10, out=is_digit[1:-1])
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1])
    starts, lengths = edges[::2].reshape(len(column), -1), (edges[1::2] - edges[::2]).reshape(len(column), -1)
    first = letters[: bounds[1] - bounds[0] - 1].tobytes()
    pieces, at = list[str](), 0
    for place, (start, length) in enumerate(zip(starts[0].tolist(), lengths[0].tolist(), strict=True)):
        number = _number(letters, starts[:, place], lengths[:, place])
        pieces += [first[at:start].decode(), first[start : start + length].decode() if number is None else number]
        at = start + length
    return "".join([*pieces, first[at:].decode()])


def _number(letters: NDArray[np.uint8], start: Ints, length: Ints) -> str | None:
    """Format of the numbers with the given starts and lengths; None if all are equal."""
    low, high = int(length.min()), int(length.max())
    if low == high:
        digits: NDArray[Any] = letters[start[:, None] + np.arange(low)]
        if (digits == digits[0]).all():
            return None
    padded = (letters[start] == ord("0")) & (length > 1)
    if not padded.any():
        return "%d"
    # Like printf: a number that is longer than its width has no leading zeros.
    return f"%0{low}d" if low > 1 and not padded[length > low].any() else "*"
