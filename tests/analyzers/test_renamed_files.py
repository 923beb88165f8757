"""A file that is renamed stays the file that it was: what links processes does not end with a name."""

from __future__ import annotations

import vani
from benchmarks.recorder_writer import Call, write_trace


def at(ms: int) -> dict[str, int]:
    return {"start": ms * 10_000, "end": ms * 10_000 + 1000}


def test_a_checkpoint_that_is_renamed_before_another_app_reads_it_links_the_two(tmp_path):
    sim = [
        Call("open", ("/d/chk.tmp", "577", "420"), **at(1)),
        Call("write", ("/d/chk.tmp", "%p", "4096"), **at(2)),
        Call("close", ("/d/chk.tmp",), **at(3)),
        Call("rename", ("/d/chk.tmp", "/d/chk"), **at(4)),
    ]
    post = [
        Call("open", ("/d/chk", "0"), **at(1)),
        Call("read", ("/d/chk", "%p", "4096"), **at(2)),
        Call("close", ("/d/chk",), **at(3)),
    ]
    write_trace(tmp_path / "w" / "1-sim", [sim], layout="3.0", start_unix=1.7e9)
    write_trace(tmp_path / "w" / "2-post", [post], layout="3.0", start_unix=1.7e9 + 10)
    profile = vani.profile(tmp_path / "w", store=tmp_path / "s")
    (link,) = profile.workflow.app_dependencies
    assert (link.producer, link.consumer, link.files) == ("sim", "post", 1)
    assert (link.bytes_written, link.bytes_read) == (4096, 4096)
    assert {f.path: f.role for f in profile.files} == {"/d/chk.tmp": "intermediate", "/d/chk": "intermediate"}


def test_a_read_before_the_first_write_of_another_trace_is_reported(tmp_path):
    calls = {
        "1-late": [Call("open", ("/d/x", "577", "420"), **at(1)), Call("write", ("/d/x", "%p", "8"), **at(2))],
        "2-early": [Call("open", ("/d/x", "0"), **at(1)), Call("read", ("/d/x", "%p", "8"), **at(2))],
    }
    for name, start in (("1-late", 1.7e9 + 5), ("2-early", 1.7e9)):
        write_trace(tmp_path / "w" / name, [calls[name]], layout="3.0", start_unix=start)
    profile = vani.profile(tmp_path / "w", store=tmp_path / "s")
    assert not profile.workflow.app_dependencies
    assert "up to 5 s before" in profile.provenance["workflow.app_dependencies"]
