"""The permitted differences of a quick profile are defined next to the tests of analyzers."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "analyzers"))
