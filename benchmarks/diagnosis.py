"""`python -m benchmarks.diagnosis`: precision, recall and F1 of Vani's diagnosis on labelled runs, beside its peers.

It needs `../shared/data/diagnosis-labels`, whose scripts write the logs and score, and takes half a minute. Names are
turned into dimensions by `diagnosis_dimensions.yaml`; recommendations are left out. DIOBench is printed in two halves
by a checksum of the configuration, so that repetitions stay together. No threshold was chosen on either: who changes
one looks at the first half and shows the second.
"""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from types import ModuleType

import yaml

import vani
from vani.advisors.diagnosis import diagnosis
from vani.errors import VaniError

__all__ = ["DIMENSIONS", "LABELS", "dimensions", "half_of", "main", "write_diagnoses"]

LABELS = Path(__file__).resolve().parents[2] / "shared" / "data" / "diagnosis-labels"
DIMENSIONS = Path(__file__).with_name("diagnosis_dimensions.yaml")
_NOT_REBUILT = "no"


def dimensions() -> dict[str, list[str]]:
    """Dimensions of the labelled sets by name of a pattern."""
    return dict(yaml.safe_load(DIMENSIONS.read_text(encoding="utf-8")))


def half_of(configuration: str) -> int:
    """0 or 1: the half that runs of a configuration belong to."""
    return zlib.crc32(configuration.encode()) % 2


def write_diagnoses(logs: Path, folder: Path) -> int:
    """Write the names that the diagnosis gives each log of a folder, in the form of advice; number of logs read."""
    number = 0
    for log in sorted(logs.glob("*.txt")):
        try:
            profile = vani.profile(log)
        except VaniError as error:
            print(f"{log.name}: {error}", file=sys.stderr)
            continue
        observations = [{"pattern": entry.pattern} for entry in diagnosis(profile)]
        (folder / f"{log.stem}.yaml").write_text(yaml.safe_dump({"diagnosis": observations}), encoding="utf-8")
        number += 1
    return number


def main() -> int:
    """Print the tables; status 2 where the labelled runs are not here."""
    if not LABELS.is_dir():
        print(f"there are no labelled runs at {LABELS}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        logs, folder = Path(name, "logs"), Path(name, "diagnoses")
        folder.mkdir()
        subprocess.run([sys.executable, LABELS / "make_logs.py", logs], check=True, stdout=subprocess.DEVNULL)
        print(f"{write_diagnoses(logs, folder)} logs")
        _print_scores(_score(), folder)
    return 0


def _score() -> ModuleType:
    """The labelled set's own script, with Vani's names."""
    spec = importlib.util.spec_from_file_location("diagnosis_score", LABELS / "score.py")
    assert spec is not None
    assert spec.loader is not None
    score = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(score)
    score.RULES["names"] = {name.replace("_", "-"): named for name, named in dimensions().items()}
    return score


def _print_scores(score: ModuleType, folder: Path) -> None:
    with (LABELS / "diobench" / "labels.csv").open(encoding="utf-8") as file:
        configurations = {row["run"]: row["config"] for row in csv.DictReader(file)}
    runs = [run for run in score.diobench(LABELS / "diobench", folder) if run.group != _NOT_REBUILT]
    for half, title in enumerate(("first half", "second half")):
        score.table(f"DIOBench, {title}", [run for run in runs if half_of(configurations[run.name]) == half])
    score.table("DIOBench, both", runs)
    score.table("TraceBench, IO500", list(score.tracebench(LABELS / "tracebench-io500.yaml", folder)))
    score.warn()


if __name__ == "__main__":
    sys.exit(main())
