"""Paths of the repository and its traces.

They are not in `conftest`, because which module of that name tests import depends on the folders that run.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["ROOT", "TRACES"]

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "tests" / "data" / "traces"
