"""The shared cases, which may be packed."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest


def unpacked(path: Path, folder: Path) -> Path:
    """The trace at `path`, unpacked into `folder` if it is an archive or compressed; skips where there is none."""
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    if path.suffix == ".tgz":
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
        return folder / path.stem
    if path.suffix == ".gz":
        plain = folder / path.stem
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        return plain
    return path
