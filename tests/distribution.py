"""Installs an example as pip would, without an index and without an environment of its own."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

__all__ = ["install"]


def install(project: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the wheel of a hatchling project and unpack it into the folder `site`."""
    from hatchling.build import build_wheel  # noqa: PLC0415 - its plug-ins take a moment

    site.mkdir(parents=True, exist_ok=True)
    with monkeypatch.context() as patch:
        patch.chdir(project)
        # Wheels hold times of files, and zip knows none before 1980.
        patch.setenv("SOURCE_DATE_EPOCH", os.environ.get("SOURCE_DATE_EPOCH", "1000000000"))
        wheel = site / build_wheel(str(site))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    wheel.unlink()
