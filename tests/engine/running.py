"""Whether processes that a test knows of still run."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_running"]


def is_running(process: int) -> bool:
    """Whether it does; one that has ended and is still in the table does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
