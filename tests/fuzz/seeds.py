"""Inputs to damage: valid ones of every kind that Vani reads, small enough for thousands of attempts."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vani
from tests.traces.darshan_writer import POSIX, Log, Record, log_bytes
from tests.traces.recorder_writer import Call, write_trace
from vani import centre
from vani.schema.document import dumps
from vani.schema.tuned import Candidate, Setting, Tuned, TunedRun

__all__ = ["KINDS", "Seed", "seeds"]

TESTS = Path(__file__).resolve().parents[1]
KINDS = (
    "recorder", "parquet", "store", "document", "plan", "darshan", "strace", "model", "dftracer", "otf2", "results",
    "centre", "tuned",
)  # fmt: skip

_MAX_BYTES = 100_000
_BOMB = 8 << 20
"""Bytes of content of a compressed bomb: larger ones would take most of the time."""
_CENTRE = b"""darshan = "."
jobs = "jobs.txt"
history = "history.sqlite"
system = "generic-lustre"
every_s = 3600.0
address = "127.0.0.1"
port = 0
names = ["localhost"]
open = false
[file_system]
mount = "/lustre"
targets = 16
stripe_count = 4
stripe_size = 1048576
"""
_LAYOUTS = ("2.3", "2.4", "2.5p", "2.5g", "3.0", "3.x-mt", "3.x-dat", "3.x-mt2", "3.x-dat2")
_ROWS = 60
_PLANS = TESTS.parent / "examples" / "plan"
_SNAPSHOT = b"""schema: vani.snapshot/1
time: 2026-01-01T00:00:00Z
oss:
- {name: oss0, cpu: 0.2, memory: 0.3}
ost:
- {index: 0, oss: oss0, size: 10737418240, used: 1024, load: 0.1, state: ok}
- {index: 1, oss: oss0, size: 10737418240, used: 0, state: offline}
forwarding:
- {name: fwd1, peak: {iobw: 2.5e9, iops: 3e5, mdops: 2e4}, load: 0.1, state: ok}
- {name: fwd2, state: degraded}
- {name: fwd3, state: offline}
- {name: fwd4}
- {name: fwd5}
- {name: fwd6}
- {name: fwd7}
- {name: fwd8}
- {name: fwd9}
- {name: fwd10}
- {name: fwd11}
- {name: fwd12}
storage:
- {name: sn1, ost: [0, 1]}
reach: {fwd1: [sn1], fwd2: [sn1], fwd3: []}
mds: {cpu: 0.4, memory: 0.3}
"""


_PRINTED = b"""# darshan log version: 3.41
# exe: /opt/ior -w
# start_time: 1725936007
# nprocs: 4
# run time: 10.5
# mount entry:\t/lustre\tlustre
""" + b"".join(
    f"POSIX\t{rank}\t17\tPOSIX_{counter}\t{value}\t/lustre/out\t/lustre\tlustre\n".encode()
    for rank in (-1, 0)
    for counter, value in {
        "OPENS": 4, "WRITES": 8, "READS": 2, "BYTES_WRITTEN": 8192, "BYTES_READ": 2048, "MAX_BYTE_WRITTEN": 8191,
        "SIZE_WRITE_100_1K": 8, "ACCESS1_ACCESS": 1024, "ACCESS1_COUNT": 8, "F_WRITE_TIME": "2.500",
        "F_OPEN_START_TIMESTAMP": "0.1", "F_CLOSE_END_TIMESTAMP": "9.5",
    }.items()
)  # fmt: skip
"""Two records as darshan-parser prints them."""
_TRACED = b"".join(
    f"{pid} {1700000000 + number / 1000:.6f} {call} <0.000040>\n".encode()
    for number, (pid, call) in enumerate(
        (pid, call)
        for pid in (100, 101)
        for call in (
            'execve("/opt/app", ["app"], 0x7ffd /* 40 vars */) = 0',
            f'openat(AT_FDCWD</home/me>, "/lustre/out.{pid}", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3</lustre/out.{pid}>',
            f'write(3</lustre/out.{pid}>, ""..., 4096) = 4096',
            f'pwrite64(3</lustre/out.{pid}>, ""..., 512, 8192) = 512',
            f"lseek(3</lustre/out.{pid}>, -512, SEEK_END) = 8192",
            f'read(3</lustre/out.{pid}>, ""..., 4096) = 512',
            f"fsync(3</lustre/out.{pid}>) = 0",
            f"close(3</lustre/out.{pid}>) = 0",
            'newfstatat(AT_FDCWD</home/me>, "gone", 0x7ffc, 0) = -1 ENOENT (No such file or directory)',
            'rename("/lustre/a", "/lustre/b") = 0',
        )
    )
)
"""Calls of two processes as strace prints them."""


@dataclass(frozen=True)
class Seed:
    """A valid input: its files by their path below a folder."""

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


def _plans() -> list[Seed]:
    """Jobs, the state of a machine, and a plan of each kind made from them."""
    found = []
    for name in ("six-jobs", "no-curves"):
        jobs = _PLANS / f"{name}.yaml"
        plans = {"forward": centre.plan_forward(jobs, io_nodes=12, compare=True)}
        if name == "six-jobs":
            plans["replay"] = centre.plan_replay(jobs, io_nodes=12, nodes=96, poll=10, compare=True)
        found += [
            Seed(
                "plan",
                f"{name} {kind}",
                {
                    "jobs.yaml": jobs.read_bytes().replace(b"597.2e6", b"597.2e6, deviation: 60e6"),
                    "now.yaml": _SNAPSHOT,
                    "plan.yaml": plan.to_yaml().encode(),
                },
            )
            for kind, plan in plans.items()
        ]
    return found


def _tuned() -> bytes:
    """The state of a session with a run."""
    setting = Candidate(rule="R", name="r", reason="", expected=None, setting=Setting(layout="-c 8"))
    run = TunedRun(number=1, candidates=[], folder="f", outcome="ended", seconds=10.0)
    session = Tuned(
        version="1", begun="2026-03-03T00:00:00+00:00", host="n1", command=["a"], data="/d", fresh="subfolder",
        most_runs=5, candidates=[setting], runs=[run],
    )  # fmt: skip
    return dumps(session).encode()


def _bombs(work: Path) -> list[Seed]:
    """Megabytes of content that compress to little, for each format that is compressed."""
    line = _PRINTED.splitlines(keepends=True)[-1]
    printed = gzip.compress(_PRINTED + line * (_BOMB // 4 // len(line)))
    records = [Record(POSIX, "/lustre/out", 0, {"WRITES": 1, "BYTES_WRITTEN": 8})] * (_BOMB // 720)
    log = log_bytes(Log("/opt/ior", 4, 1_700_000_000, 50.0, records=records), level=9)
    event = {"id": 1, "name": "write", "cat": "POSIX", "pid": 7, "tid": 7, "ts": 1_000_000, "dur": 5, "ph": 1}
    events = json.dumps(event | {"args": {"hhash": "aa", "ret": 4096}}, separators=(",", ":")).encode() + b"\n"
    calls = [Call("write", ("/s/own", "%p", "4096"), start=1000 * i, end=1000 * i + 400) for i in range(20_000)]
    write_trace(work / "bomb", [calls], layout="3.0")
    row = pq.read_table(TESTS / "data" / "parquet" / "cm1-lassen" / "part.0.parquet").slice(5, 1)
    table = pa.concat_tables([row] * 50_000).combine_chunks()
    (work / "bomb.parquet").mkdir(parents=True)
    pq.write_table(table, work / "bomb.parquet" / "part.0.parquet", compression="zstd")
    return [
        Seed("darshan", "printed bomb", {"trace": printed}),
        Seed("darshan", "bomb", {"trace": log}),
        Seed("dftracer", "bomb", {"run-app.pfw.gz": gzip.compress(events * (_BOMB // len(events)))}),
        _of_folder("recorder", "bomb", work / "bomb"),
        _of_folder("parquet", "bomb", work / "bomb.parquet"),
    ]


def _otf2(folder: Path) -> list[Seed]:
    """An archive of two processes, where OTF2 is installed."""
    try:
        from tests.otf2_archives import archive, opened, operation  # noqa: PLC0415 - an extra
    except pytest.skip.Exception:
        return []
    with archive(folder, processes=2) as a:
        for process in range(2):
            location, handle = a.locations[process, 0], a.handle(f"/s/{process}")
            opened(location, 1, handle)
            operation(location, 10, 5, handle, "write", [4096, 512], offset={a.offset: 0})
            operation(location, 20, 5, handle, "read", [8])
    return [_of_folder("otf2", "two processes", folder)]


@cache
def seeds(work: Path) -> tuple[Seed, ...]:
    """All seeds; those that have to be generated are written below `work`."""
    found = []
    for layout in _LAYOUTS:
        write_trace(work / layout, [_calls(rank) for rank in range(2)], layout=layout)  # type: ignore[arg-type]
        found.append(_of_folder("recorder", layout, work / layout))
    for place in sorted((TESTS / "data" / "traces").iterdir()):
        if place.is_dir():
            real = _of_folder("recorder", place.name, place)
            if sum(map(len, real.files.values())) < _MAX_BYTES:
                found.append(real)
    found.append(_parquet(work / "parquet"))
    for name in ("3.0", "2.5p"):
        vani.convert(work / name, work / f"{name}.store")
        found.append(_of_folder("store", name, work / f"{name}.store"))
    for name in ("v3-posix-mix-4r", "v2-posix-mix-nonmpi", "v3-workflow-montage"):
        golden = TESTS / "golden" / f"{name}.yaml"
        if golden.is_file():
            found.append(Seed("document", name, {"p.yaml": golden.read_bytes()}))
    found += _plans()
    for log in sorted((TESTS / "data" / "darshan").glob("*.darshan")):
        if log.stat().st_size < _MAX_BYTES:
            found.append(Seed("darshan", log.stem, {"trace": log.read_bytes()}))
    found.append(Seed("darshan", "printed", {"trace": _PRINTED}))
    found.append(Seed("strace", "two processes", {"trace": _TRACED}))
    found += _bombs(work)
    for name in ("ior.json", "io500/ior-easy-write.txt", "io500/mdtest-easy-stat.txt"):
        found.append(Seed("results", name, {Path(name).name: (TESTS / "data" / "results" / name).read_bytes()}))
    found.append(_of_folder("dftracer", "loader", TESTS / "data" / "dftracer" / "loader-3p"))
    found += _otf2(work / "otf2")
    found.append(Seed("centre", "all keys", {"centre.toml": _CENTRE}))
    found.append(Seed("tuned", "one run", {"tuned.yaml": _tuned()}))
    writes = (TESTS.parent / "examples" / "model" / "oprael-writes.csv").read_bytes()
    found.append(Seed("model", "writes", {"writes.csv": b"".join(writes.splitlines(keepends=True)[:80])}))
    for made in work.iterdir():
        shutil.rmtree(made, ignore_errors=True)
    return tuple(found)
