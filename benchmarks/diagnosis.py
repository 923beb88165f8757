"""`python -m benchmarks.diagnosis`: precision, recall and F1 of Vani's diagnosis on labelled runs, next to its peers.

It needs `../shared/data/diagnosis-labels`, whose scripts write the logs and compute the scores, and takes a minute.
`diagnosis_dimensions.yaml` maps names to dimensions. Results are printed without and with recommendations. DIOBench
is printed in two halves, assigned by a checksum of the configuration so that repetitions stay together: a change to
a definition is developed on the first half and judged on the second. `docs/diagnosis.md` has the reasons, and the
labels with which Vani disagrees.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

import vani
from benchmarks.data import DATA, markdown, rows_of
from vani.advisors.judge import advise_document
from vani.errors import VaniError
from vani.systems import load_system

LABELS = DATA / "diagnosis-labels"
DIMENSIONS = Path(__file__).with_name("diagnosis_dimensions.yaml")
MACHINE = "generic-lustre"
_NOT_REBUILT = "no"
_PEERS = {"wisio": "WisIO", "ioagent": "IOAgent", "drishti": "Drishti", "ion": "ION", "iosage": "IOSage"}


def dimensions() -> dict[str, list[str]]:
    """Dimensions of the labelled sets by pattern name."""
    return dict(yaml.safe_load(DIMENSIONS.read_text(encoding="utf-8")))


def half_of(configuration: str) -> int:
    """The half, 0 or 1, to which runs of a configuration belong."""
    return zlib.crc32(configuration.encode()) % 2


def write_diagnoses(logs: Path, folder: Path) -> int:
    """Write the diagnosis of each log in a folder, in the form of advice; return the number of logs read.

    The folder's `with-advice` contains the same with the recommendations for `MACHINE`.
    """
    number, system = 0, load_system(MACHINE)
    both = folder / "with-advice"
    both.mkdir()
    for log in sorted(logs.glob("*.txt")):
        try:
            advice = advise_document(vani.profile(log), system)
        except VaniError as error:
            print(f"{log.name}: {error}", file=sys.stderr)
            continue
        named = {"diagnosis": [{"pattern": seen.pattern} for seen in advice.diagnosis or ()]}
        rules = [{"rule": given.rule, "severity": given.severity} for given in advice.recommendations]
        for place, content in ((folder, named), (both, named | {"recommendations": rules})):
            (place / f"{log.stem}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        number += 1
    return number


def main() -> int:
    """Print the tables; return status 2 if the labelled runs are missing."""
    if not LABELS.is_dir():
        print(f"there are no labelled runs at {LABELS}", file=sys.stderr)
        return 2
    score, sets, with_advice = _judged()
    advised = {f"{title}, with recommendations": runs for title, runs in with_advice.items()}
    for title, runs in {**sets, **advised}.items():
        score.table(title, runs)
    score.warn()
    return 0


def tables() -> dict[str, list[str]]:
    """The tables as lines of Markdown, for docs/accuracy.md."""
    score, sets, with_advice = _judged()
    diobench = {title.removeprefix("DIOBench, "): runs for title, runs in sets.items() if "DIOBench" in title}
    both, io500 = "DIOBench, both", "TraceBench, IO500"
    f1 = [_figures(score, with_advice[title], "vani", "overall")[3] for title in (both, io500)]
    return {"diagnosis": [
        *_table(score, diobench, sets[both], ["wisio", "ioagent"]),
        "",
        *_table(score, {"IO500": sets[io500]}, sets[io500], ["drishti", "ion", "iosage"]),
        f"\nOf {sum(run.healthy for run in sets[both])} healthy runs of DIOBench {_silent(sets[both])} get no problem. "
        f"With the recommendations on {MACHINE}, of severity low or more, these are "
        f"{_silent(with_advice[both])}, and F1 is {f1[0]:.2f} on DIOBench and {f1[1]:.2f} on IO500.",
    ]}  # fmt: skip


def _silent(runs: list[Any]) -> int:
    """Number of healthy runs for which no pattern is named."""
    return sum(run.healthy and not run.found["vani"] - run.unjudged for run in runs)


def _table(score: ModuleType, sets: dict[str, list[Any]], all_runs: list[Any], peers: Sequence[str]) -> list[str]:
    """Precision, recall and F1 of Vani in each set, and F1 of the peers in all runs."""
    titles = [f"{title}: labels | Vani: precision, recall, **F1**" for title in sets]
    titles += [f"{_PEERS[peer]}: F1 of {sum(peer in run.found for run in all_runs)} runs" for peer in peers]
    rows = []
    for name in (*score.DIMENSIONS, "overall"):
        if name == "overall" or any(name in run.truth for run in all_runs):
            cells = [name.replace("_", " ")]
            for runs in sets.values():
                labels, precision, recall, f1 = _figures(score, runs, "vani", name)
                cells += [f"{labels}", f"{precision:.2f}, {recall:.2f}, **{f1:.2f}**"]
            rows.append([*cells, *(f"{_figures(score, all_runs, peer, name)[3]:.2f}" for peer in peers)])
    head = " | ".join(["", *titles]).split(" | ")
    return markdown(head, rows, left=len(head))


def _figures(score: ModuleType, runs: list[Any], tool: str, dimension: str) -> tuple[int, float, float, float]:
    """Number of labels, precision, recall and F1 of a tool in a dimension, or overall."""
    counts = score.count(runs, tool)
    rows = counts.values() if dimension == "overall" else [counts[dimension]]
    right, wrong, missed = (sum(column) for column in zip(*rows, strict=True))
    return right + missed, *score.figures(right, wrong, missed)


def _judged() -> tuple[ModuleType, dict[str, list[Any]], dict[str, list[Any]]]:
    """The scoring script, and runs with their diagnosis by title, without and with recommendations."""
    score = _score()
    with tempfile.TemporaryDirectory() as name:
        logs, folder = Path(name, "logs"), Path(name, "diagnoses")
        folder.mkdir()
        subprocess.run([sys.executable, LABELS / "make_logs.py", logs], check=True, stdout=subprocess.DEVNULL)
        write_diagnoses(logs, folder)
        return score, _sets(score, folder), _sets(score, folder / "with-advice")


def _sets(score: ModuleType, folder: Path) -> dict[str, list[Any]]:
    """The runs of each half of DIOBench, of both halves, and of IO500, with the patterns named in a folder."""
    configurations = {row["run"]: row["config"] for row in rows_of(LABELS / "diobench" / "labels.csv")}
    runs = [run for run in score.diobench(LABELS / "diobench", folder) if run.group != _NOT_REBUILT]
    halves = [[run for run in runs if half_of(configurations[run.name]) == half] for half in (0, 1)]
    io500 = list(score.tracebench(LABELS / "tracebench-io500.yaml", folder))
    titles = ("DIOBench, first half", "DIOBench, second half", "DIOBench, both", "TraceBench, IO500")
    return dict(zip(titles, (*halves, runs, io500), strict=True))


def _score() -> ModuleType:
    """The labelled set's own scoring script, with Vani's names."""
    spec = importlib.util.spec_from_file_location("diagnosis_score", LABELS / "score.py")
    score = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(score)
    score.RULES["names"] = {name.replace("_", "-"): named for name, named in dimensions().items()}
    return score


if __name__ == "__main__":
    sys.exit(main())
