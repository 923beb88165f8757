"""The shared cases, which may be packed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import first_advice


def unpacked(path: Path, folder: Path) -> Path:
    """The trace at `path`, unpacked into `folder` if it is an archive or compressed; skips where there is none."""
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return first_advice.unpacked(path, folder)
