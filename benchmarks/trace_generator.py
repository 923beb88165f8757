"""`python -m benchmarks.trace_generator OUT --calls 1e8 ...`: generates the benchmarks' traces for other uses."""

from __future__ import annotations

import sys

from tests.traces.trace_generator import main

if __name__ == "__main__":
    sys.exit(main())
