"""Advice as plain text, with the width of a letter."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Final

from rich.console import Console

from vani.render.advice import screen

if TYPE_CHECKING:
    from vani.schema.advice import Advice

_WIDTH: Final = 80


def render(advice: Advice, **_: object) -> str:
    """Write the screen without colours, for a file or another program."""
    text = StringIO()
    screen.render(advice, None, Console(file=text, width=_WIDTH, color_system=None, force_terminal=False))
    return text.getvalue()
