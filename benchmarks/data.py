"""The measurements next to the repository, read as rows and groups of rows, and printed as tables."""

from __future__ import annotations

import argparse
import csv
import gzip
import inspect
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import vani
from vani.render.table import table
from vani.schema.profile import Profile

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
DATA = SHARED / "data"

Row = dict[str, str]
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def rows_of(path: Path) -> Iterator[Row]:
    """Rows of a CSV file, plain or compressed by gzip."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace", newline="") as file:
        yield from csv.DictReader(file)


def grouped(path: Path, key: Callable[[Row], Key | None], value: Callable[[Row], Value]) -> dict[Key, list[Value]]:
    """Values of the rows of a CSV file by key; a row whose key is None is left out."""
    found: defaultdict[Key, list[Value]] = defaultdict(list)
    for row in rows_of(path):
        if (at := key(row)) is not None:
            found[at].append(value(row))
    return dict(found)


def seconds(work: Callable[[], object], times: int) -> list[float]:
    """Processor seconds of each of several runs."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return found


def aiio(job: str) -> Profile:
    """The profile of a job in AIIO's logs."""
    return vani.profile(next((DATA / "aiio-darshan").glob(f"*id{job}-*.darshan")))


def print_table(title: str, head: Sequence[object], rows: Iterable[Sequence[object]], left: int = 1) -> None:
    """Print a title and aligned columns, of which the first ones are flush left."""
    cells = [tuple(map(str, row)) for row in (head, *rows)]
    print(f"\n{title}")
    for line in table(cells[0], cells[1:], left=left, all_rows=True):
        print(f"  {line}")


def no_measurements() -> bool:
    """Whether the measurements are missing, which it prints."""
    if not DATA.exists():
        print(f"No measurements: {DATA.name} is not beside the repository")
    return not DATA.exists()


def markdown(head: Sequence[object], rows: Iterable[Sequence[object]], left: int = 1, last: int = 0) -> list[str]:
    """Lines of a Markdown table, of which the first and the last columns are flush left."""
    under = ["---"] * left + ["---:"] * (len(head) - left - last) + ["---"] * last
    return [f"| {' | '.join(map(str, row))} |" for row in (head, under, *rows)]


def run(function: Callable[..., object], arguments: Sequence[str] | None = None) -> None:
    """Call a function with options from the command line: `sets=5` is `--sets 5`, `fast=False` is `--fast`."""
    parser = _parser(function)
    for name, one in inspect.signature(function).parameters.items():
        typed = {"nargs": "*"} if one.default == () else {"type": type(one.default)}
        kind = {"action": "store_true"} if one.default is False else {"default": one.default, **typed}
        parser.add_argument(f"--{name.replace('_', '-')}", **kind)
    function(**vars(parser.parse_args(arguments)))


def print_parts(parts: Mapping[str, Callable[[], None]], arguments: Sequence[str] | None = None) -> None:
    """Print all tables of a benchmark, or those that the command line names."""
    parser = _parser(next(iter(parts.values())))
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(parts)}; all by default")
    asked = parser.parse_args(arguments).parts
    if unknown := set(asked) - set(parts):
        parser.error(f"no part {min(unknown)!r}; there are {', '.join(parts)}")
    for number, part in enumerate(asked or parts):
        print(end="\n" if number else "", flush=True)
        parts[part]()


def _parser(function: Callable[..., object]) -> argparse.ArgumentParser:
    module = inspect.getmodule(function)
    kind = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=module and module.__doc__, formatter_class=kind)
