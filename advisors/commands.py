"""Lines for a user to paste into a shell: paths are quoted, text becomes comments."""

from __future__ import annotations

import json
import shlex


def quoted_path(path: str) -> str | None:
    """A path as one word of POSIX sh that no command mistakes for an option.

    None for a path with control characters or bytes that are not text: sh has no printable form for it, and a file
    name must never be able to control a terminal.
    """
    if not path or not path.isprintable():
        return None
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def text_literal(text: str) -> str:
    """Text as a literal that is valid in C, Python and JSON: in double quotes, printable, on one line."""
    return json.dumps(text)


def comment(text: str) -> list[str]:
    """Text as comment lines of sh. Nothing in it can end the comment."""
    lines = text.splitlines()
    return [f"# {''.join(c if c.isprintable() else '?' for c in line)}".rstrip() for line in lines]
