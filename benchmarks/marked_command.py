"""Runs `vani ARGUMENTS` and writes down when each stage of the engine began: `... MARKS profile TRACE ...`.

One line per stage: the monotonic clock, which all processes of a machine share, and the stage's name. The command is
the real one; only the engine tells what it does.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

__all__ = ["main"]

_AFTER = {"decode": "manifest", "survey": "between passes", "measure": "between passes", "overlap": "finish"}


def _marked(method: Callable[..., Any], marks: TextIO, running: list[str]) -> Callable[..., Any]:
    """Mark the outermost call: the engine's methods call each other."""

    def mark(stage: str) -> None:
        print(f"{time.monotonic()!r} {stage}", file=marks, flush=True)

    @functools.wraps(method)
    def wrapped(self: Any, *arguments: Any, stage: str = "", **options: Any) -> Any:
        if running:
            return method(self, *arguments, stage=stage, **options)
        running.append(stage)
        mark(stage or "tasks")
        try:
            return method(self, *arguments, stage=stage, **options)
        finally:
            running.clear()
            mark(_AFTER.get(stage, "between passes"))

    return wrapped


def main(arguments: list[str]) -> None:
    """Run the command line behind the name of the file of marks."""
    from vani.cli.main import main as vani_main  # noqa: PLC0415 - its imports belong to the first stage
    from vani.engine.run import Engine  # noqa: PLC0415

    with Path(arguments[0]).open("w", encoding="utf-8") as marks:
        running: list[str] = []
        for name in ("map", "reduce"):
            setattr(Engine, name, _marked(getattr(Engine, name), marks, running))
        sys.argv = ["vani", *arguments[1:]]
        vani_main()


if __name__ == "__main__":
    main(sys.argv[1:])
