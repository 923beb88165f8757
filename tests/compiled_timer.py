"""The timer that `vani tune` compiles in each session, compiled once: a second for each test of a session."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from vani.kernels.build import compile_units

__all__ = ["compile_once"]


def compile_once(command: Sequence[str], units: Sequence[Path], library: Path, more_flags: Sequence[str] = ()) -> None:
    """Do what `compile_units` does; the second time for the same sources, copy the first result."""
    library.write_bytes(_compiled(tuple(command), tuple(units), library.name, tuple(more_flags)))


@cache
def _compiled(command: tuple[str, ...], units: tuple[Path, ...], name: str, more_flags: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, name)
        compile_units(command, units, library, more_flags)
        return library.read_bytes()
