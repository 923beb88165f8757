"""Patterns of names: `*` is any text, also over `/`; `?` one character; `[abc]`, `[a-z]`, `[!a]` one of a set.

Upper and lower case differ, and the whole name must fit. A literal `*`, `?` or `[` is written `[*]`, `[?]`, `[[]`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

__all__ = ["fits"]


def fits(pattern: str, name: str) -> bool:
    """Whether the whole of `name` fits `pattern`.

    fnmatch commits to the first place where what follows a `*` fits, so that no pattern takes longer than the
    product of both lengths.
    """
    return fnmatchcase(name, pattern)
