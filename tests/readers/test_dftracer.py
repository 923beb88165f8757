"""Traces of DFTracer: a real one, counted line by line independently of Vani, and lines written by hand."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import vani
from vani.calls import CALLS, Layer
from vani.errors import TraceError, UnknownFormatError
from vani.readers import open_trace
from vani.readers.dftracer.reader import DFTracerReader
from vani.readers.trace_reader import Piece

LOADER = Path(__file__).parent.parent / "data" / "dftracer" / "loader-3p"
PREFIX = ("/scratch/loader/", "/opt/")
"""Folders of the real run's data files; /dev/null and /etc do not count."""


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def read(reader) -> tuple[pa.Table, Piece]:
    piece = Piece()
    return pa.Table.from_batches(list(reader.batches(range(reader.ranks), piece)), schema=CALLS), piece


def event(number: int, name: str, ts: int, dur: int = 5, cat: str = "POSIX", pid: int = 7, **args) -> dict:
    own = {"id": number, "name": name, "cat": cat, "pid": pid, "tid": pid, "ts": ts, "dur": dur, "ph": 1}
    return own | {"args": {"hhash": "aa", **args}}


def named(key: str, name: str, kind: str = "FH") -> dict:
    return {
        "name": kind,
        "cat": "dftracer",
        "pid": 7,
        "tid": 7,
        "ph": 4,
        "args": {"name": name, "value": key},
    }


HOST = named("aa", "node1", "HH")


def write(folder: Path, *events: dict, name: str = "run-app.pfw", spaced: bool = False) -> Path:
    separators = None if spaced else (",", ":")
    (folder / name).write_text("".join(json.dumps(one, separators=separators) + "\n" for one in events))
    return folder


def opened_and(*events: dict) -> tuple[dict, ...]:
    return HOST, named("f1", "/s/data"), event(1, "open", 1_000_000, flags=0, fhash="f1"), *events


def test_a_real_run_is_what_its_lines_say():
    events = [one for path in LOADER.iterdir() for one in lines(path)]
    names = {e["args"]["value"]: e["args"]["name"] for e in events if e["name"] == "FH"}
    calls = [e for e in events if e["ph"] == 1 and names.get(e["args"].get("fhash"), "").startswith(PREFIX)]
    read_, written = (
        sum(max(0, e["args"]["ret"]) for e in calls if e["name"] in which)
        for which in (("read", "pread64"), ("write", "pwrite64"))
    )
    profile = vani.profile(LOADER)
    trace, io = profile.traces[0], profile.workflow.io
    assert (trace.tool, trace.app, trace.ranks, trace.complete) == ("dftracer", "loader.py", 3, True)
    assert (io.bytes.read, io.bytes.written) == (read_, written)
    assert io.ops.sync == sum(e["name"] == "fsync" for e in calls)
    counts = Counter(f"{e['cat']}.{e['name']}" for e in events if e["cat"] == "data_loader")
    assert {name: trace.functions[name] for name in counts} == dict(counts)
    assert [(one.kind, one.files) for one in profile.unseen] == [
        ("memory_mapped", ["/scratch/loader/tokens.bin"])
    ]


def old(one: dict, *, texts: bool) -> dict:
    """An event in the spelling of DFTracer 1, or of DLIO Profiler, which wrote numbers as texts."""
    hashes = {k: int(v, 16) % 10**9 for k, v in one["args"].items() if k.endswith("hash")}
    if one["ph"] == 4 and one["name"] in ("FH", "HH", "SH"):
        hashes["value"] = int(one["args"]["value"], 16) % 10**9
    spelled = one | {"ph": {1: "X", 4: "M"}[one["ph"]], "args": one["args"] | hashes}
    if texts:
        spelled |= {key: str(spelled[key]) for key in ("id", "pid", "tid", "ts", "dur") if key in spelled}
        spelled["args"] |= {k: str(v) for k, v in spelled["args"].items() if k in ("ret", "count", "offset")}
    return spelled


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("spaced", [False, True])
def test_older_spellings_are_the_same_calls(tmp_path, texts, spaced):
    for path in LOADER.iterdir():
        write(tmp_path, *(old(one, texts=texts) for one in lines(path)), name=f"{path.stem}", spaced=spaced)
    now, before = open_trace(LOADER), open_trace(tmp_path)
    assert before.problems == []
    assert read(before)[0].drop_columns(["func", "file"]).equals(read(now)[0].drop_columns(["func", "file"]))
    assert sorted(before.files()["path"].to_pylist()) == sorted(now.files()["path"].to_pylist())


def test_calls_are_ordered_by_start(tmp_path):
    step = event(4, "step", 1_000_000, 90, cat="compute")
    events = opened_and(
        event(2, "read", 1_000_000, 0, ret=10, count=10, fhash="f1"), event(3, "read", 1_000_050), step
    )
    reader = open_trace(write(tmp_path, *events))
    names = reader.functions()["name"].to_pylist()
    table, _ = read(reader)
    assert [names[code] for code in table["func"].to_pylist()] == ["compute.step", "open", "read", "read"]
    assert table["layer"].to_pylist() == [Layer.USER, Layer.POSIX, Layer.POSIX, Layer.POSIX]
    assert table["start_ns"].to_pylist() == [0, 0, 0, 50_000]
    assert table["offset"].to_pylist() == [None, None, 0, None]


def test_a_process_with_many_calls_is_delivered_in_pieces(monkeypatch):
    def of_libc():
        table, _ = read(open_trace(LOADER))
        return table.filter(pc.less_equal(table["layer"], int(Layer.STDIO)))

    whole = of_libc()
    monkeypatch.setattr("vani.readers.scanned.GROUP_ROWS", 100)
    monkeypatch.setattr(DFTracerReader, "_late", 50)
    assert of_libc().equals(whole)


def test_relative_names_begin_in_the_working_directory(tmp_path):
    start = event(1, "start", 999_000, cat="dftracer", ppid=1, cwd="d1")
    reader = open_trace(
        write(
            tmp_path,
            HOST,
            named("d1", "/s/run"),
            start,
            named("f1", "a/b"),
            event(2, "read", 10**6, ret=1, fhash="f1"),
        )
    )
    assert reader.files()["path"].to_pylist() == ["/s/run/a/b"]


def test_damaged_location_is_skipped_and_reported(tmp_path):
    trace = Path(shutil.copytree(LOADER, tmp_path / "trace"))
    app = next(trace.glob("*-app.pfw.gz"))
    app.write_bytes(app.read_bytes()[:-2000])
    (trace / "run-x-preload.pfw.gz").write_bytes(b"")
    (trace / "run-x.pfw.gz.zindex").write_bytes(b"no line")
    ((worker, _), *_) = [(path, lines(path)) for path in sorted(trace.glob("*-fork.pfw.gz"))]
    worker.write_bytes(worker.read_bytes() + gzip.compress(b'{"id":\n{}\n[1]\nno line\n'))
    problems = open_trace(trace).problems
    assert f"{app.name}: ends within its compressed data, what followed is missing" in problems
    assert f"{worker.name}: 3 lines left out, DFTracer writes none like it" in problems
    assert "run-x-preload.pfw.gz: left out, it is empty" in problems
    assert any("1 process has no end (of 3)" in problem for problem in problems)
    assert vani.profile(trace).traces[0].complete is False


def test_numbers_that_no_call_can_have_are_unknown(tmp_path):
    events = opened_and(
        event(2, "write", 1_000_010, count=2**64 - 1, fhash="f1"),
        event(3, "write", 1_000_020, ret=float("nan"), fhash="f1"),
        event(4, "pwrite64", 1_000_030, ret=8, offset=2**62, fhash="f1"),
        event(5, "read", 2**62, ret=8, fhash="f1"),
        event(6, "read", 1_000_040, ret=-1, count=8, fhash="f1"),
    )
    reader = open_trace(write(tmp_path, *events))
    table, piece = read(reader)
    assert table["bytes"].to_pylist() == [None, None, None, 8, None]
    assert table["offset"].to_pylist()[3] is None
    assert piece.bytes == 8
    assert reader.problems == ["1 event left out, without a process or a time of a run"]
    assert piece.problems == [f"calls of pwrite64 name an offset of {2**62}, which no file reaches: it is unknown"]


def test_missing_events_are_detected_by_their_numbers(tmp_path):
    reader = open_trace(write(tmp_path, HOST, named("f1", "/s/data"), event(5, "read", 10**6, ret=1, fhash="f1"),
                              event(7, "read", 10**6, ret=1, fhash="f1")))  # fmt: skip
    assert "5 events are missing, according to their numbers (of 7 in all)" in reader.problems[0]


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([event(1, "read", 1_000_000)], "DFTRACER_INC_METADATA=1"),
        ([event(1, "read", 1_000_000) | {"ph": 3}], "contains sums of calls"),
        ([], "contains no call"),
    ],
)
def test_a_trace_without_files_is_refused(tmp_path, events, words):
    with pytest.raises(TraceError, match=words):
        vani.profile(write(tmp_path, HOST, *events))


def test_an_index_alone_is_refused(tmp_path):
    (tmp_path / "run.pfw.gz.zindex").write_bytes(b"x")
    with pytest.raises(UnknownFormatError, match="index of DFTracer"):
        open_trace(tmp_path)


def test_processes_without_a_trace_are_unseen(tmp_path):
    waited = [event(n, "waitpid", 1_000_000 + n, ret=ret) for n, ret in ((2, 100), (3, 7), (4, -1))]
    profile = vani.profile(
        write(tmp_path, *opened_and(*waited, event(5, "read", 10**6 + 9, ret=5, fhash="f1")))
    )
    (missing,) = [one for one in profile.unseen if one.kind == "forked_processes"]
    assert (missing.count, missing.most_s) == (1, pytest.approx(7e-6))
    assert profile.verdict.matters == "open"


def test_workers_of_python_belong_to_the_program_that_began_them(tmp_path):
    commands = {
        "c1": "/usr/bin/python3;train.py",
        "c2": "/usr/bin/python3;-c;from multiprocessing.spawn import spawn_main;--multiprocessing-fork",
        "c3": "/usr/bin/python3;-c;from multiprocessing.resource_tracker import main",
        "c4": "/usr/bin/nvidia-smi",
    }
    events = [
        HOST,
        named("f1", "/s/data"),
        named("f2", "/etc/x.conf"),
        *(named(k, v, "SH") for k, v in commands.items()),
    ]
    for pid, key, file in ((7, "c1", "f1"), (8, "c2", "f1"), (9, "c3", "f2"), (10, "c4", "f2")):
        events.append(event(1, "start", pid, cat="dftracer", pid=pid, ppid=7 if pid > 7 else 1, cmd_hash=key))
        events.append(event(2, "read", 100 + pid, pid=pid, ret=10, fhash=file))
    profile = vani.profile(write(tmp_path, *events))
    assert [(app.name, app.processes) for app in profile.apps] == [("train.py", 2)]


def test_hashes_belong_to_the_process_that_defines_them(tmp_path):
    for pid, other in ((8, 9), (9, 8)):
        events = [
            HOST | {"pid": pid},
            named(f"{pid}", f"/s/out{pid}") | {"pid": pid},
            named(f"{other}", f"/s/log{pid}") | {"pid": pid},
            event(1, "write", 10**6, pid=pid, ret=pid, fhash=f"{pid}"),
            event(2, "write", 10**6 + 9, pid=pid, ret=1, fhash=f"{other}"),
        ]
        write(tmp_path, *events, name=f"run-{pid}.pfw")
    profile = vani.profile(tmp_path)
    assert profile.traces[0].problems == []
    assert {file.path: (file.io.bytes.written, file.processes) for file in profile.files} == {
        f"/s/{name}{pid}": (size, 1) for pid in (8, 9) for name, size in (("out", pid), ("log", 1))
    }


def test_hash_means_the_last_name_before_it(tmp_path):
    events = opened_and(
        event(2, "write", 10**6, ret=1, fhash="f1"),
        named("f1", "/s/second") | {"id": 3},
        event(4, "write", 10**6 + 9, ret=2, fhash="f1"),
        named("f1", "/s/third") | {"id": 5},
        event(6, "write", 10**6 + 19, ret=4, fhash="f1"),
    )
    table, _ = read(reader := open_trace(write(tmp_path, *events)))
    paths = reader.files()["path"].to_pylist()
    assert [paths[file] for file in table["file"].to_pylist()] == ["/s/data", "/s/data", "/s/second", "/s/third"]


def test_file_opened_but_never_used_is_a_probe(tmp_path):
    events = opened_and(named("f2", "/s/used"), event(2, "open", 10**6, flags=0, fhash="f2"),
                        event(3, "close", 10**6 + 5, ret=0, fhash="f2"))  # fmt: skip
    profile = vani.profile(write(tmp_path, *events))
    assert [file.path for file in profile.files] == ["/s/used"]


def test_processes_of_torchrun_are_ranks_with_their_workers(tmp_path):
    commands = {"c1": "/usr/bin/python3;/opt/bin/torchrun;train.py", "c2": "/usr/bin/python3;-u;train.py"}
    events = [HOST, named("f1", "/s/data"), *(named(k, v, "SH") for k, v in commands.items())]
    # 10 and 20 are ranks, 11 and 12 workers of the first one.
    for pid, parent, key in ((7, 1, "c1"), (20, 7, "c2"), (10, 7, "c2"), (11, 10, "c2"), (12, 10, "c2")):
        events.append(event(1, "start", pid, cat="dftracer", pid=pid, ppid=parent, cmd_hash=key))
        events.append(event(2, "read", 100 + pid, pid=pid, ret=10, fhash="f1"))
    reader = open_trace(write(tmp_path, *events))
    assert (reader.layout, reader.app, reader.calls_per_rank().tolist()) == ("ranks", "train.py", [3, 1])
    assert read(reader)[0]["thread"].to_pylist() == [10, 11, 12, 20]


def test_non_utf_8_names_are_read(tmp_path):
    events = opened_and(event(2, "read", 10**6 + 9, ret=5, fhash="f1"), event(3, "STEP", 10**6, cat="app"))
    path = write(tmp_path, *events) / "run-app.pfw"
    path.write_bytes(path.read_bytes().replace(b"data", b"d\xe9").replace(b"STEP", b"s\xff"))
    reader = open_trace(tmp_path)
    assert reader.files()["path"].to_pylist() == ["/s/d\ufffd"]
    assert reader.functions()["name"].to_pylist() == ["open", "read", "app.s\ufffd"]
    assert reader.problems == []


def test_hosts_of_its_processes_are_the_nodes_of_the_job(tmp_path):
    other = event(9, "open", 1_000_000, pid=8, flags=0, fhash="f1") | {"args": {"hhash": "bb", "flags": 0, "fhash": "f1"}}
    events = [*opened_and(event(2, "write", 1_000_010, ret=10, fhash="f1")), named("bb", "node2", "HH"), other]
    moved = event(10, "write", 1_000_010, pid=8, ret=10, fhash="f1")
    moved["args"]["hhash"] = "bb"
    profile = vani.profile(write(tmp_path, *events, moved))
    assert (profile.workflow.processes, profile.job.nodes) == (2, 2)
    assert profile.provenance["job.nodes"] == "by the nodes that the logs name"
    assert vani.profile(LOADER).job.nodes == 1


def test_workers_with_the_process_id_of_their_rank_are_processes(tmp_path):
    """`initialize_log(process_id=rank)`, as DLIO Benchmark calls it in each worker, whose files have the same ids."""
    for worker in range(20):
        calls = [
            event(step, "read", 10**6 + 10 * step, pid=0, ret=100 * step, fname=f"/s/img_{worker}.npz") | {"tid": 500 + worker}
            for step in (1, 2, 3)
        ]
        write(tmp_path, *calls, name=f"trace-0-of-1-{500 + worker}.pfw")
    profile = vani.profile(tmp_path)
    assert (profile.workflow.processes, profile.workflow.io.bytes.read) == (20, 20 * 600)
    assert profile.traces[0].problems == []
    assert {file.processes for file in profile.files} == {1}


def test_second_file_of_a_process_continues_its_numbers(tmp_path):
    # The later part comes first in the order of names.
    for name, steps in (("a", (4, 5, 6)), ("b", (1, 2, 3))):
        calls = [event(step, "read", 10**6 + 10 * step, pid=7, ret=100, fname="/s/img.npz") for step in steps]
        write(tmp_path, *calls, name=f"{name}.pfw")
    assert vani.profile(tmp_path).workflow.processes == 1
