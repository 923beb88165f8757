"""How many pieces of the work of `vani profile` compiled kernels do, and how many they leave to numpy."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest.mock import patch

import vani
from vani.kernels.library import times_used

__all__ = ["kernel_pieces"]


def kernel_pieces(trace: Path, folder: Path) -> dict[str, list[int]]:
    """Profile a trace in this process, which alone can count, with nothing left of runs before.

    Returns
    -------
    dict
        Per kernel that had work, how many pieces it did, and how many it declined; empty without kernels.
    """
    before = times_used()
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="kernels-") as cache,
        patch.dict(os.environ, VANI_CACHE=cache),
    ):
        vani.profile(trace)
    found = {
        name: [now - then for now, then in zip(counts, before.get(name, (0, 0)), strict=True)]
        for name, counts in times_used().items()
    }
    return {name: counts for name, counts in found.items() if any(counts)}
