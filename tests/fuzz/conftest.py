"""What a quick profile may say otherwise is told beside the tests of analyzers."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "analyzers"))
