"""Recorder built with DAOS: an extra flag in metadata of the same size, and calls of libdfs and libdaos."""

from itertools import product
from pathlib import Path

import pytest
from reading import read_trace

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.readers.recorder.reader import RecorderReader

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
FLAGS_AT = {"3.0": 4, "3.x-mt": 20}
"""Eight flags in the metadata of a build without DAOS: six of layers, then those of threads and depths."""
OPEN, WRITE, CLOSE = ("open", ("/s/f", "66", "438")), ("write", ("/s/f", "%p", "100")), ("close", ("/s/f",))
DFS = [
    # As in lib/recorder-daos.c: handles are pointers, and only dfs_read reports how much it moved.
    ("dfs_open", ("%p", "%p", "file", "33188", "66", "0", "1048576", "%p", "%p")),
    ("dfs_write", ("%p", "%p", "%p", "0", "%p")),
    ("dfs_read", ("%p", "%p", "%p", "0", "4096", "%p")),
    ("daos_cont_close", ("7", "%p")),
]


def calls_of(*names):
    return [
        Call(name, args, start=1000 * number, end=1000 * number + 500)
        for number, (name, args) in enumerate(names)
    ]


def built_with_daos(folder, layout, *names, daos, thread, depth):
    write_trace(folder, [calls_of(*names)], layout=layout, store_thread=thread, store_depth=depth)
    file, at = folder / "recorder.mt", FLAGS_AT[layout]
    data = bytearray(file.read_bytes())
    data[at + 6 : at + 9] = bytes([daos, thread, depth])
    file.write_bytes(data)


@pytest.mark.parametrize("layout", FLAGS_AT)
@pytest.mark.parametrize(("daos", "thread", "depth"), list(product([False, True], repeat=3)))
def test_flags_after_the_daos_flag_keep_their_positions(tmp_path, layout, daos, thread, depth):
    # If the last flag is 0, functions of DAOS show that there is one more.
    built_with_daos(tmp_path, layout, OPEN, *DFS, CLOSE, daos=daos, thread=thread, depth=depth)
    metadata = RecorderReader(tmp_path).metadata
    assert (metadata.layers_traced["daos"], metadata.stores_thread, metadata.stores_depth) == (daos, thread, depth)


@pytest.mark.parametrize("layout", FLAGS_AT)
def test_daos_flag_exists_only_with_daos(tmp_path, layout):
    write_trace(tmp_path, [calls_of(OPEN, WRITE, CLOSE)], layout=layout, store_thread=False)
    metadata = RecorderReader(tmp_path).metadata
    assert "daos" not in metadata.layers_traced
    assert (metadata.stores_thread, metadata.stores_depth) == (False, True)


@pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here")
def test_flag_suffices_to_reveal_a_build_with_daos():
    reader = RecorderReader(CASES / "daos-3.0-recorder")
    assert (reader.metadata.layers_traced["daos"], reader.metadata.stores_depth) == (True, True)
    assert reader.metadata.stores_thread is False
    without = read_trace(CASES / "h5many-recorder")
    assert read_trace(CASES / "daos-3.0-recorder").calls == without.calls


def test_daos_calls_leave_the_verdict_open(tmp_path):
    built_with_daos(tmp_path, "3.0", OPEN, WRITE, *DFS, CLOSE, daos=True, thread=True, depth=True)
    profile = vani.profile(tmp_path)
    assert (profile.workflow.io.ops.metadata, profile.workflow.io.bytes.total) == (2, 100)
    (entry,) = profile.unseen
    assert (entry.kind, entry.count) == ("other_api", 4)
    assert profile.verdict.matters == "open"
