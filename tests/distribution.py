"""Installs distributions like pip, without an index and without a separate environment."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

__all__ = ["declared", "install"]


def install(project: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the wheel of a hatchling project and unpack it into the folder `site`."""
    from hatchling.build import build_wheel  # noqa: PLC0415 - its plug-ins take a moment

    site.mkdir(parents=True, exist_ok=True)
    with monkeypatch.context() as patch:
        patch.chdir(project)
        # Wheels contain file times, and zip has none before 1980.
        patch.setenv("SOURCE_DATE_EPOCH", os.environ.get("SOURCE_DATE_EPOCH", "1000000000"))
        wheel = site / build_wheel(str(site))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    wheel.unlink()


def declared(site: Path, entry_points: dict[str, dict[str, str]], name: str = "vani-declared") -> None:
    """Write to `site` the entry points of a distribution as pip would, without any code."""
    info = site / f"{name.replace('-', '_')}-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = []
    for group, points in entry_points.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
