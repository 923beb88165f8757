"""Lines that a user pastes into a shell: paths quoted, text as comments."""

from __future__ import annotations

import json
import shlex

__all__ = ["comment", "quoted_path", "text_literal"]


def quoted_path(path: str) -> str | None:
    """A path as one word of POSIX sh that no command takes for an option.

    None for a path with control characters or bytes that are not text: sh has no printable way to write
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
