"""Timelines for Perfetto contain every call once, with time, file, bytes and offset, on a track on which it nests."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import vani
from vani.calls import CALLS
from vani.cli.main import commands
from vani.errors import InputError
from vani.readers.open import open_workload
from vani.readers.trace_reader import Piece
from vani.render.events import Lanes, Process

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
TRACE = TRACES / "v3-posix-mix-4r"


def calls_of(trace: Path) -> Counter[tuple[object, ...]]:
    """(rank, function, start, duration, file, bytes, offset) of every call, from the reader itself."""
    calls: Counter[tuple[object, ...]] = Counter()
    for reader in open_workload([trace]).readers:
        functions = dict(zip(*reader.functions().select(["func", "name"]).to_pydict().values(), strict=True))
        files = dict(zip(*reader.files().select(["file", "path"]).to_pydict().values(), strict=True))
        for batch in reader.batches(range(reader.ranks), Piece()):
            for row in batch.to_pylist():
                calls[
                    row["rank"], functions[row["func"]], row["start_ns"], row["duration_ns"], files.get(row["file"]),
                    row["bytes"], row["offset"],
                ] += 1  # fmt: skip
    return calls


def of_json(text: bytes) -> Counter[tuple[object, ...]]:
    document = json.loads(text)
    assert set(document) == {"otherData", "displayTimeUnit", "traceEvents"}
    calls: Counter[tuple[object, ...]] = Counter()
    for event in document["traceEvents"]:
        assert event["ph"] in "MX"
        if event["ph"] == "X":
            args = event["args"]
            calls[
                event["pid"] - 1, event["name"], round(event["ts"] * 1000), round(event["dur"] * 1000),
                args.get("file"), args.get("bytes"), args.get("offset"),
            ] += 1  # fmt: skip
            assert args["kind"] == event["cat"].split(",")[1]
    return calls


@pytest.mark.parametrize("name", ["v3-posix-mix-4r", "v3-tid-ptr-posix-mix-2r"])
def test_slice_shows_a_calls_attributes(name, tmp_path):
    wanted = calls_of(TRACES / name)
    made = vani.events(TRACES / name, tmp_path / "run.json")
    assert (made.calls, made.problems) == (sum(wanted.values()), [])
    assert of_json((tmp_path / "run.json").read_bytes()) == wanted


def test_compressed_timeline_has_the_same_events(tmp_path):
    vani.events(TRACE, tmp_path / "a.json")
    vani.events(TRACE, tmp_path / "a.json.gz")
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == (tmp_path / "a.json").read_bytes()


def test_traces_of_a_workflow_have_their_own_processes(tmp_path):
    coupled = Path(__file__).resolve().parents[2] / "examples" / "coupled"
    made = vani.events(coupled, tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_bytes())["traceEvents"]
    named = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert len(named) == len(set(named)) or made.processes == len(named)
    starts = {reader.path.name: reader.start_unix_s for reader in open_workload([coupled]).readers}
    first = defaultdict(lambda: float("inf"))
    for event in events:
        if event["ph"] == "X":
            first[event["pid"]] = min(first[event["pid"]], event["ts"] / 1e6)
    assert max(first.values()) >= max(starts.values()) - min(starts.values())


intervals = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(0, 1)), max_size=12)


@settings(deadline=None)
@given(st.lists(intervals, max_size=3))
def test_calls_of_one_track_nest(batches):
    lanes = Lanes()
    events, wanted = [], Counter()
    for some in batches:
        rows = [dict.fromkeys(CALLS.names, 0) | {"start_ns": s, "duration_ns": d, "thread": t} for s, d, t in some]
        slices = lanes.slices(pa.RecordBatch.from_pylist(rows, schema=CALLS), {0: Process(1, "p")})
        start, length = (np.asarray(slices.columns[name]) for name in ("start_ns", "duration_ns"))
        for track in set(slices.track.tolist()):
            mine = np.flatnonzero(slices.track == track)
            open_until: list[int] = []
            for begin, end in zip(start[mine], start[mine] + length[mine], strict=True):
                while open_until and open_until[-1] <= begin:
                    open_until.pop()
                assert not open_until or end <= open_until[-1]
                open_until.append(end)
        events += list(zip(start.tolist(), length.tolist(), strict=True))
        wanted.update((s, d) for s, d, _ in some)
    assert Counter(events) == wanted


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([str(TRACE), "-o", "run.txt"], "run.txt: is not the name of a timeline; use a name that ends in .json or .json.gz"),
        ([str(TRACE)], "no destination is given; name a folder STORE, or a timeline with -o run.json"),
        ([str(TRACE), "store", "-o", "run.json"], "-o: a timeline is not a store; leave STORE out"),
        ([str(TRACE), "--call-sites", "-o", "run.json"], "leave --call-sites out"),
        ([str(TRACES / "v3-killed-2r"), "-o", "run.json"], "aborted run"),
    ],
)
def test_input_without_a_timeline_is_refused_without_output(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        CliRunner().invoke(commands, ["convert", *arguments], standalone_mode=False, catch_exceptions=False)
    assert said in str(error.value)
    assert list(tmp_path.iterdir()) == []
