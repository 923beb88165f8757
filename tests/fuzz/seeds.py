"""What is damaged: sound inputs of every kind that Vani reads, small enough for thousands of attempts."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq

import vani
from tests.traces.recorder_writer import Call, write_trace

__all__ = ["KINDS", "Seed", "seeds"]

TESTS = Path(__file__).resolve().parents[1]
KINDS = ("recorder", "parquet", "store", "document")

_MOST_BYTES = 100_000
_LAYOUTS = ("2.3", "2.4", "2.5p", "2.5g", "3.0", "3.x-mt", "3.x-dat", "3.x-mt2", "3.x-dat2")
_ROWS = 60


@dataclass(frozen=True)
class Seed:
    """One sound input: its files by their place below a folder."""

    kind: str
    name: str
    files: dict[str, bytes]

    def write(self, folder: Path) -> None:
        for name, content in self.files.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


def _of_folder(kind: str, name: str, folder: Path) -> Seed:
    return Seed(
        kind,
        name,
        {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()},
    )


def _calls(rank: int) -> list[Call]:
    own, shared = f"/s/own.{rank}", "/s/shared"
    plain = [
        ("open", (own, "577", "420")),
        *[("write", (own, "%p", "4096"))] * 5,
        ("fsync", (own,)),
        ("lseek", (own, "0", "0")),
        *[("read", (own, "%p", "2048"))] * 3,
        ("close", (own,)),
        ("open", (shared, "66", "420")),
        ("pwrite", (shared, "%p", "512", str(512 * rank))),
        ("ftruncate", (shared, "2048")),
        ("close", (shared,)),
        ("rename", (own, own + ".done")),
        ("mkdir", ("/s/folder", "511")),
    ]
    return [
        Call(function, args, start=1000 * i, end=1000 * i + 400) for i, (function, args) in enumerate(plain)
    ]


def _parquet(folder: Path) -> Seed:
    """The first rows of two parts of a real conversion."""
    for number in (0, 1):
        table = pq.read_table(TESTS / "data" / "parquet" / "cm1-lassen" / f"part.{number}.parquet")
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.slice(0, _ROWS), folder / f"part.{number}.parquet")
    return _of_folder("parquet", "cm1-lassen", folder)


@cache
def seeds(work: Path) -> tuple[Seed, ...]:
    """All seeds; those that have to be made are made below `work`."""
    found = []
    for layout in _LAYOUTS:
        write_trace(work / layout, [_calls(rank) for rank in range(2)], layout=layout)  # type: ignore[arg-type]
        found.append(_of_folder("recorder", layout, work / layout))
    for place in sorted((TESTS / "data" / "traces").iterdir()):
        if place.is_dir():
            real = _of_folder("recorder", place.name, place)
            if sum(map(len, real.files.values())) < _MOST_BYTES:
                found.append(real)
    found.append(_parquet(work / "parquet"))
    for name in ("3.0", "2.5p"):
        vani.convert(work / name, work / f"{name}.store")
        found.append(_of_folder("store", name, work / f"{name}.store"))
    for name in ("v3-posix-mix-4r", "v2-posix-mix-nonmpi", "v3-workflow-montage"):
        golden = TESTS / "golden" / f"{name}.yaml"
        if golden.is_file():
            found.append(Seed("document", name, {"p.yaml": golden.read_bytes()}))
    for made in work.iterdir():
        shutil.rmtree(made, ignore_errors=True)
    return tuple(found)
