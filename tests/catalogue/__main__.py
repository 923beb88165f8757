"""`python -m tests.catalogue`: how right the catalogue of rules is about traces that are labelled.

Profiles every labelled trace of `shared`, asks for advice as users get it by default on each machine of the labels, and
prints precision and recall, and how much the ranges of expected gains hold. What is right is said in
`tests/catalogue/labels.yaml`, each label with its reason.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.models import print_coverage
from tests.catalogue.judged import find_traces, judge_traces
from tests.catalogue.labels import LABELS, read_labels
from tests.catalogue.report import as_json, as_text
from vani.atomic import write_text
from vani.errors import InputError, VaniError
from vani.systems import load_system

__all__ = ["SHARED", "main"]

SHARED = Path(__file__).resolve().parents[3] / "shared"
FOLDERS = ("traces", "traces-new", "traces-parquet")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.catalogue",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--machine",
        action="append",
        metavar="NAME|FILE",
        help="judge as on this machine instead of those of the labels; may be given several times",
    )
    parser.add_argument(
        "--traces",
        action="append",
        type=Path,
        metavar="DIR",
        help="folder of traces, instead of those of `shared` beside the repository; may be given several times",
    )
    parser.add_argument(
        "--labels", type=Path, default=LABELS, metavar="FILE", help="table of labels; by default ours"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every finding here, too")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge and print; return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        labels = read_labels(given.labels)
        machines = [(name, load_system(name)) for name in given.machine or labels.machines]
        traces = list(find_traces(_folders(given.traces)))
        if not any(place.name in labels.by_trace for place in traces):
            raise InputError(
                "none of the traces is labelled", todo="name a folder of labelled ones by --traces"
            )
        with tempfile.TemporaryDirectory(prefix="vani-catalogue-") as store:
            judged = judge_traces(labels, traces, machines, Path(store), progress=_progress)
        _progress("")
        if given.json is not None:
            write_text(given.json, json.dumps(as_json(labels, judged), indent=1) + "\n")
    except VaniError as error:
        _progress("")
        print(f"tests.catalogue: {error}", file=sys.stderr)
        return error.exit_code
    print(as_text(labels, judged, SHARED / "data" / "io500-trace-ds"))
    print()
    print_coverage(SHARED / "data")
    return 0


def _folders(given: Sequence[Path] | None) -> list[Path]:
    if given is None:
        folders = [folder for name in FOLDERS if (folder := SHARED / name).is_dir()]
        if not folders:
            raise InputError(
                "there are no shared traces beside the repository",
                todo="name a folder of labelled ones by --traces",
            )
        return folders
    for folder in given:
        if not folder.is_dir():
            raise InputError(
                "is not a folder of traces", where=folder, todo="name one that holds labelled traces"
            )
    return list(given)


def _progress(trace: str) -> None:
    """Show on a terminal which trace is at hand; nothing takes the line away."""
    if sys.stderr.isatty():
        print(f"\r\033[K{trace}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
