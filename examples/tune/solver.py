"""A stand-in for an MPI program that writes checkpoints: with more aggregators it waits less for storage.

It looks for hints where ROMIO does, in the file that ROMIO_HINTS names, and prints them as ROMIO_PRINT_HINTS=1 does.
"""

import os
import sys
import time
from pathlib import Path

folder = Path(sys.argv[1])
hints = {}
if "ROMIO_HINTS" in os.environ:
    hints = dict(line.split() for line in Path(os.environ["ROMIO_HINTS"]).read_text().splitlines())
for name, value in hints.items():
    print(f"key = {name:<25} value = {value}")
aggregators = int(hints.get("cb_nodes", 0))
for step in range(4):
    (folder / f"checkpoint-{step}").write_bytes(bytes(1 << 16))
    time.sleep(0.4 / (1 + aggregators))
