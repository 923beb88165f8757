"""Where the repository lies, and its traces.

No part of `conftest`: which of the modules of that name tests get depends on the folders that run beside them.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["ROOT", "TRACES"]

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "tests" / "data" / "traces"
