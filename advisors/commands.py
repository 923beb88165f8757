"""Lines that a user pastes into a shell: paths quoted, sizes as `lfs` reads them."""

from __future__ import annotations

import json
import shlex

from vani.units import GiB, KiB, MiB

__all__ = ["comment", "lfs_size", "quoted_path", "text_literal"]


def quoted_path(path: str) -> str | None:
    """A path as one word of POSIX sh that no command takes for an option.

    None for a path that holds control characters or bytes that are no text: sh has no printable way to write
    it, and a file's name must never be able to write to a terminal.
    """
    if not path or not path.isprintable():
        return None
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def text_literal(text: str) -> str:
    """Text as a literal of C, Fortran-free Python and JSON alike: in double quotes, printable, one line."""
    return json.dumps(text)


def comment(text: str) -> list[str]:
    """Lines of text as comments of sh; none of them can end the comment."""
    lines = text.splitlines()
    return [f"# {''.join(c if c.isprintable() else '?' for c in line)}".rstrip() for line in lines]


def lfs_size(size: int) -> str:
    """Bytes as `lfs` reads them, exactly: `4M`, `640K`, where K, M and G are powers of 1024."""
    for unit, letter in ((GiB, "G"), (MiB, "M"), (KiB, "K")):
        if size and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)
