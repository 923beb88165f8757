"""A month of jobs in the form of `sacct`, with known curves, to rehearse the hook.

Five families of applications: `ceiling` gains from each I/O node, `step` only from the second, `direct` loses with
any, `flat` does not depend on them, `unknown` has no curve. `python -m tests.plan.month_of_jobs FOLDER JOBS [SEED]`
writes one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from vani.centre.history.accounting import FIELDS

__all__ = ["CURVES", "write_month"]

CURVES = {
    "ceiling": {0: 2e8, 1: 5e8, 2: 1e9, 4: 2e9, 8: 4e9},
    "step": {0: 3e8, 1: 3e8, 2: 1.5e9, 4: 1.6e9, 8: 1.6e9},
    "direct": {0: 2e9, 1: 4e8, 2: 5e8, 4: 6e8, 8: 7e8},
    "flat": {0: 6e8, 1: 6.2e8, 2: 6.3e8, 4: 6.3e8, 8: 6.3e8},
    "unknown": None,
}
_NODES = (8, 16, 32)
_BEGIN = 1_793_491_200
_MONTH_S = 30 * 86400


def write_month(folder: Path, jobs: int, seed: int = 1) -> tuple[Path, Path, dict[str, float]]:
    """Write sacct.csv and a folder of known jobs; return both, and the I/O time of each job in seconds."""
    random = np.random.default_rng([seed, jobs])
    known = folder / "known"
    known.mkdir(parents=True, exist_ok=True)
    for name, curve in CURVES.items():
        if curve is None:
            continue
        items = [{"io_nodes": n, "bandwidth": rate, "deviation": 0.1 * rate} for n, rate in curve.items()]
        documents = [{"name": name, "nodes": nodes, "processes": 32 * nodes, "curve": items} for nodes in _NODES]
        (known / f"{name}.yaml").write_text(json.dumps({"schema": "vani.jobs/1", "jobs": documents}))
    names, lines, io_s = list(CURVES), ["|".join(FIELDS)], {}
    for number in range(jobs):
        name, nodes = names[random.integers(len(names))], _NODES[random.integers(len(_NODES))]
        started = _BEGIN + int(random.integers(_MONTH_S))
        elapsed = int(random.lognormal(8, 1))
        job = str(5_000_000 + number)
        io_s[job] = float(elapsed * random.uniform(0.05, 0.5))
        account, qos = f"project{random.integers(5)}", ("normal", "urgent")[int(random.integers(10) == 0)]
        state = ("COMPLETED", "FAILED")[int(random.integers(20) == 0)]
        facts = (job, f"u{random.integers(50)}", account, qos, "batch", name, nodes, state, started - 60, started, elapsed)
        lines.append("|".join(map(str, facts)))
    sacct = folder / "sacct.csv"
    sacct.write_text("\n".join(lines) + "\n")
    return sacct, known, io_s


if __name__ == "__main__":
    write_month(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
