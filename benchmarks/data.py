"""The measurements next to the repository, read as rows and groups of rows, and printed as tables."""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from vani.render.table import table

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


def print_parts(
    name: str, doc: str, parts: Mapping[str, Callable[[], None]], arguments: Sequence[str] | None = None
) -> None:
    """Print all tables of a benchmark, or those that the command line names."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=doc)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(parts)}; all by default")
    asked = parser.parse_args(arguments).parts
    if unknown := set(asked) - set(parts):
        parser.error(f"no part {min(unknown)!r}; there are {', '.join(parts)}")
    for number, part in enumerate(asked or parts):
        if number:
            print()
        parts[part]()
