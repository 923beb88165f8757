"""A rewritten trace is another trace, whatever its times; one that changes while it is read is refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import vani
from vani.cli import counted as quick
from vani.cli.main import main
from vani.errors import TraceError
from vani.readers.open import open_trace
from vani.readers.parquet.wisio import WisIOReader
from vani.readers.recorder.reader import RecorderReader
from vani.store import write

DATA = Path(__file__).resolve().parents[1] / "data"
TRACE = DATA / "traces" / "v2-ipc-mpiio-mix-4r"
OTHER = DATA / "traces" / "v3-noipc-rawts-ior-4r"
PARQUET = next(
    p for p in sorted((DATA / "parquet").iterdir()) if (p / "_parquet").is_dir() or any(p.glob("*.parquet"))
)
CHANGED = "changed while it was read; run this again when nothing writes to the trace any more"


@pytest.fixture
def trace(tmp_path) -> Path:
    return shutil.copytree(TRACE, tmp_path / "T")


def overwrite(file: Path, at: int) -> None:
    """Change a byte in place and restore the file's modification time, like `rsync -a --inplace`."""
    before = file.stat()
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte[0] ^ 1]))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(file: Path, at: int) -> None:
    """Replace the file, with all times that a user can set, like `rsync -a`."""
    shutil.copy2(file, file.with_suffix(".new"))
    overwrite(file.with_suffix(".new"), at)
    file.with_suffix(".new").replace(file)


@pytest.mark.parametrize("change", [overwrite, replace])
def test_file_changed_at_equal_time_is_decoded_again(trace, tmp_path, change):
    times = trace / "0.ts"
    times.write_bytes(times.read_bytes().ljust(3 * 4096, b"\0"))
    before = times.stat()
    digest = open_trace(trace).digest()
    change(times, 2 * 4096)
    assert (times.stat().st_size, times.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert open_trace(trace).digest() != digest


def test_numbers_match_the_present_trace(trace, tmp_path):
    first = vani.profile(trace, store=tmp_path / "S")
    twin = shutil.copytree(trace, tmp_path / "twin")
    times = trace / "1.ts"
    before = times.stat()
    # The last call of rank 1 ends later.
    content = bytearray(times.read_bytes())
    content[-1] ^= 0x01
    times.write_bytes(content)
    (twin / "1.ts").write_bytes(content)
    os.utime(times, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = vani.profile(trace, store=tmp_path / "S")
    assert second.workflow == vani.profile(twin, store=tmp_path / "fresh").workflow
    assert second.workflow != first.workflow


def test_reading_a_trace_does_not_change_it(trace, tmp_path):
    digest = open_trace(trace).digest()
    vani.profile(trace, store=tmp_path / "S")
    vani.profile(trace, quick=True)
    assert open_trace(trace).digest() == digest
    assert not open_trace(trace).changed()


@pytest.fixture
def rewritten(monkeypatch, trace):
    """The trace is rewritten as soon as its first calls are decoded."""
    decode = RecorderReader.batches

    def slowly(self, ranks, piece, **more):
        for number, batch in enumerate(decode(self, ranks, piece, **more)):
            if not number and self.path.name == trace.name:
                shutil.copy2(trace / "0.ts", trace / "3.ts")
            yield batch

    monkeypatch.setattr(RecorderReader, "batches", slowly)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_trace_rewritten_while_being_read_is_refused(trace, tmp_path, rewritten, scheduler):
    with pytest.raises(TraceError, match=CHANGED):
        vani.profile(trace, store=tmp_path / "S", scheduler=scheduler)
    assert list((tmp_path / "S").iterdir()) == []


def test_changed_trace_gives_one_line_and_no_output(trace, tmp_path, rewritten, capsys):
    with pytest.raises(SystemExit) as done:
        main(["profile", str(trace), "-q", "--store", str(tmp_path / "S"), "-o", str(tmp_path / "p.yaml")])
    assert done.value.code == 2
    assert capsys.readouterr().err == f"vani: {trace}: {CHANGED}\n"
    assert not (tmp_path / "p.yaml").exists()


def test_no_store_is_made_of_two_states(trace, tmp_path, rewritten):
    with pytest.raises(TraceError, match=CHANGED):
        vani.convert(trace, tmp_path / "S")
    assert not (tmp_path / "S").exists()


def test_changed_trace_is_named_among_several(trace, tmp_path, rewritten):
    profile = vani.profile(OTHER, trace, store=tmp_path / "S")
    assert [t.path for t in profile.traces] == [str(OTHER)]
    (told,) = (why for why in profile.provenance.values() if CHANGED in why)
    assert str(trace) in told


def test_trace_that_changed_is_reported_as_changed_rather_than_damaged(trace, tmp_path, monkeypatch):
    def torn(task, reader):
        (trace / "0.ts").unlink()
        raise TraceError("0.ts is cut short", where=trace)

    monkeypatch.setattr(write, "decode_part", torn)
    with pytest.raises(TraceError, match=CHANGED):
        vani.profile(trace, store=tmp_path / "S")


def test_tables_that_change_before_reading_are_reported_as_changed(trace, tmp_path, monkeypatch):
    def torn(self):
        (trace / "0.ts").unlink()
        raise TraceError("0.cst is cut short", where=trace)

    monkeypatch.setattr(RecorderReader, "calls_per_rank", torn)
    with pytest.raises(TraceError, match=CHANGED):
        vani.profile(trace, store=tmp_path / "S")


def test_quick_profile_reads_one_state_too(trace, monkeypatch):
    count = quick._counted_once

    def then_changed(reader):
        counted = count(reader)
        shutil.copy2(trace / "0.cfg", trace / "9.cfg")
        return counted

    monkeypatch.setattr(quick, "_counted_once", then_changed)
    with pytest.raises(TraceError, match=CHANGED):
        vani.profile(trace, quick=True)


def test_converted_traces_meet_the_same_expectations(tmp_path, monkeypatch):
    folder = shutil.copytree(PARQUET, tmp_path / "P")
    file = next(p for p in sorted(folder.rglob("*.parquet")))
    kind = type(open_trace(folder))
    decode = kind.batches

    def rewriting(self, ranks, piece):
        overwrite(file, file.stat().st_size // 2)
        overwrite(file, file.stat().st_size // 2)
        yield from decode(self, ranks, piece)

    monkeypatch.setattr(kind, "batches", rewriting)
    assert issubclass(kind, WisIOReader) or kind.__name__ == "Recorder2ParquetReader"
    with pytest.raises(TraceError, match=CHANGED):
        vani.profile(folder, store=tmp_path / "S")


def test_unreadable_file_is_named_when_a_store_is_requested(trace, monkeypatch):
    opened = Path.open

    def refusing(self, *args, **rest):
        if self.name == "2.ts":
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args, **rest)

    # Root may read everything, so the system's refusal is simulated.
    monkeypatch.setattr(Path, "open", refusing)
    reader = open_trace(trace)
    with pytest.raises(TraceError, match=r"2\.ts: cannot be read \(Permission denied\)"):
        reader.digest()
    assert not reader.changed()
