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

from vani import api
from vani.calls import CALLS
from vani.cli.main import commands
from vani.errors import InputError
from vani.readers.open import open_workload
from vani.readers.trace_reader import Piece
from vani.render.events import Process
from vani.render.events.slices import Lanes

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


def of_protobuf(content: bytes) -> Counter[tuple[object, ...]]:
    """Packets decoded by Perfetto's own classes and combined like in its loader: by time, a stack per track."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace()
    trace.ParseFromString(content)
    owner, names, words, rank, events = {}, {}, {}, {}, []
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("process"):
                rank[track.uuid] = track.process.pid - 1
            owner[track.uuid] = track.thread.pid - 1 if track.HasField("thread") else rank.get(track.parent_uuid)
        for word in packet.interned_data.event_names:
            names[word.iid] = word.name
        for word in packet.interned_data.debug_annotation_string_values:
            words[word.iid] = word.str.decode()
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    begin = min(time for time, _ in events)
    stacks, calls = defaultdict(list), Counter()
    for time, event in sorted(events, key=lambda pair: pair[0]):
        if event.type == event.TYPE_SLICE_BEGIN:
            args = {one.name_iid: words[one.string_value_iid] if one.string_value_iid else one.int_value for one in event.debug_annotations}
            stacks[event.track_uuid].append((owner[event.track_uuid], names[event.name_iid], time - begin, *(args.get(n) for n in (1, 2, 3))))
        else:
            rank_of, name, start, *arguments = stacks[event.track_uuid].pop()
            calls[(rank_of, name, start, time - begin - start, *arguments)] += 1
    assert not any(stacks.values())
    return calls


@pytest.mark.parametrize("name", ["v3-posix-mix-4r", "v3-tid-ptr-posix-mix-2r"])
def test_each_call_is_a_slice_with_its_time_file_bytes_and_offset(name, tmp_path):
    wanted = calls_of(TRACES / name)
    made = api.events(TRACES / name, tmp_path / "run.json")
    assert (made.calls, made.problems) == (sum(wanted.values()), [])
    assert of_json((tmp_path / "run.json").read_bytes()) == wanted
    api.events(TRACES / name, tmp_path / "run.pftrace")
    first = min(start for _, _, start, *_ in wanted)
    found = of_protobuf((tmp_path / "run.pftrace").read_bytes())
    assert found == Counter({(r, f, s - first, *rest): n for (r, f, s, *rest), n in wanted.items()})


def test_compressed_timelines_hold_the_same(tmp_path):
    for kind in ("json", "pftrace"):
        api.events(TRACE, tmp_path / f"a.{kind}")
        api.events(TRACE, tmp_path / f"a.{kind}.gz")
        assert gzip.decompress((tmp_path / f"a.{kind}.gz").read_bytes()) == (tmp_path / f"a.{kind}").read_bytes()


def test_traces_of_a_workflow_have_processes_of_their_own_by_their_stored_start(tmp_path):
    coupled = Path(__file__).resolve().parents[2] / "examples" / "coupled"
    made = api.events(coupled, tmp_path / "run.json")
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
def test_calls_are_placed_on_tracks_that_nest(batches):
    lanes = Lanes()
    events, wanted = [], Counter()
    for some in batches:
        rows = [dict.fromkeys(CALLS.names, 0) | {"start_ns": s, "duration_ns": d, "thread": t} for s, d, t in some]
        slices = lanes.slices(pa.RecordBatch.from_pylist(rows, schema=CALLS), {0: Process(1, "p")})
        start, length = (np.asarray(slices.columns[name]) for name in ("start_ns", "duration_ns"))
        for track in set(slices.track.tolist()):
            stack: list[int] = []
            mine = [(c, b) for c, b in zip(slices.edges, slices.is_begin, strict=True) if slices.track[c] == track]
            times = [start[c] if b else start[c] + length[c] for c, b in mine]
            assert times == sorted(times)
            for call, is_begin in mine:
                if is_begin:
                    stack.append(call)
                else:
                    assert stack.pop() == call
        events += list(zip(start.tolist(), length.tolist(), strict=True))
        wanted.update((s, d) for s, d, _ in some)
    assert Counter(events) == wanted


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([str(TRACE), "-o", "run.txt"], "run.txt: is not the name of a timeline; use a name that ends in .pftrace, .json"),
        ([str(TRACE)], "no destination is given; name a folder STORE, or a timeline with -o run.pftrace"),
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
