"""Logs of every version and byte order are read as written, and damaged ones give one line."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from test_darshan_records import assert_same, pydarshan_records

from tests.traces.darshan_versions import VERSIONS, RandomLog, random_log
from vani.errors import InputError
from vani.readers.darshan.counters import counts_of
from vani.readers.darshan.log import open_log
from vani.readers.darshan.records import calls_of, read_records
from vani.readers.darshan.totals import read_totals

ZLIB, BZIP2, PLAIN = range(3)


def assert_read(path: Path, written: RandomLog) -> None:
    path.write_bytes(written.content)
    log = open_log(path)
    read = read_records(log)
    assert (read.exe, read.user, read.job_id, read.ranks) == (written.exe, 1234, 77, 7)
    assert (read.start_s, read.end_s) == (written.start_s, written.start_s + written.runtime_s)
    assert (list(read.mounts), read.metadata, list(read.partial)) == (written.mounts, written.metadata, written.partial)
    assert dict(zip(read.ids.tolist(), read.names, strict=True)) == written.names
    assert read.mixed == written.mixed
    assert read.modules.keys() == written.records.keys()
    for name, records in written.records.items():
        module = read.modules[name]
        assert list(zip(module.id.tolist(), module.rank.tolist(), strict=True)) == [record[:2] for record in records]
        for columns, at in ((module.counters, 2), (module.times, 3)):
            rows = np.stack(list(columns.values()), axis=1).tolist()
            assert rows == [record[at] for record in records], name
    if written.components:
        numbers = [read.layouts[name].tolist() for name in read.layouts if name not in ("id", "OSTS")]
        assert list(zip(read.layouts["id"].tolist(), (list(row) for row in zip(*numbers, strict=True)), strict=True)) == written.components
        assert set(zip(read.targets["id"].tolist(), read.targets["target"].tolist(), strict=True)) == written.targets
    for module, records in written.calls.items():
        calls, hosts = calls_of(log, module)
        every = [call for record in records for call in record[3]]
        assert list(zip(*(calls[name].tolist() for name in ("offset", "length", "start", "end")), strict=True)) == every
        assert hosts == [record[2] for record in records]
        heads = list(zip(*(calls[name].tolist() for name in ("id", "rank", "writes")), strict=True))
        assert heads == [(record[0], record[1], record[4]) for record in records]
    if written.heat:
        rows = zip(*(read.heat[name].tolist() for name in ("id", "rank", "width", "read", "write")), strict=True)
        assert list(rows) == written.heat


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.sampled(4)
def test_a_log_is_read_as_it_was_written(tmp_path, monkeypatch, version, order):
    for compression in (ZLIB, BZIP2, PLAIN):
        assert_read(tmp_path / "a.darshan", random_log(version, order, compression, seed=compression))
    # Pieces of regions may end anywhere, and large files are read in pieces.
    monkeypatch.setattr("vani.readers.darshan.regions._AT_ONCE", 100)
    for chunk, compression in ((97, ZLIB), (1000, BZIP2), (8, PLAIN)):
        monkeypatch.setattr("vani.readers.darshan.regions._CHUNK", chunk)
        assert_read(tmp_path / "a.darshan", random_log(version, order, compression, seed=chunk))


@pytest.mark.slow
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("version", VERSIONS)
def test_many_logs_are_read_as_they_were_written(tmp_path, version, order):
    for seed in range(100):
        assert_read(tmp_path / "a.darshan", random_log(version, order, seed % 3, seed))


@pytest.mark.skipif(importlib.util.find_spec("darshan") is None, reason="PyDarshan is not installed")
@pytest.mark.parametrize("version", ["3.00", "3.10", "3.20", "3.21"])
def test_pydarshan_reads_the_same(tmp_path, version):
    (tmp_path / "a.darshan").write_bytes(random_log(version, "<", ZLIB, seed=5, few_bins=False).content)
    log = open_log(tmp_path / "a.darshan")
    assert_same(log, read_records(log), pydarshan_records(tmp_path / "a.darshan"))


def attempt(path: Path, content: bytes) -> bool:
    """Whether a log is read; only an InputError may be raised."""
    path.write_bytes(content)
    try:
        read_totals(path)
        counts_of(read_records(open_log(path)))
    except (InputError, ValueError) as error:
        # `DarshanReader` turns the error of `counts_of` about impossible sums into a TraceError.
        assert isinstance(error, InputError) or "more than can be counted" in str(error)
        assert "\n" not in str(error)
        return False
    return True


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    changed = bytearray(content)
    kind = int(random.integers(4))
    if kind == 0:
        return content[: int(random.integers(len(content)))]
    if kind == 1:
        # The header contains most of what other numbers depend on.
        at = random.integers(0, min(1400, len(changed)), 3)
    else:
        at = random.integers(0, len(changed), int(random.integers(1, 40)))
    for place in at.tolist():
        changed[place] = int(random.integers(256))
    if kind == 3:
        begin = int(random.integers(len(changed)))
        del changed[begin : begin + int(random.integers(64))]
    return bytes(changed)


def fuzzed(tmp_path: Path, attempts: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    # Uncompressed data has no check sum, so each byte counts.
    logs = [random_log(version, order, compression, seed).content for version in VERSIONS for order in "<>" for compression in (PLAIN, PLAIN, ZLIB)]
    read = sum(attempt(tmp_path / "a.darshan", damaged(logs[number % len(logs)], random)) for number in range(attempts))
    assert 0 < read < attempts


def test_a_damaged_log_is_read_or_refused_in_one_line(tmp_path):
    fuzzed(tmp_path, 150, seed=1)


@pytest.mark.slow
def test_many_damaged_logs_are_read_or_refused_in_one_line(tmp_path):
    fuzzed(tmp_path, 5000, seed=2)


def test_too_many_calls_become_a_heat_map_of_their_bytes(tmp_path, monkeypatch):
    path = tmp_path / "a.darshan"
    path.write_bytes(random_log("3.10", ">", ZLIB, seed=8).content)
    records = read_records(open_log(path))
    calls = records.calls
    assert not records.many_calls
    writes = np.concatenate([[True] * w + [False] * r for w, r in zip(calls["writes"], calls["reads"], strict=True)])
    ranks = np.repeat(calls["rank"], calls["writes"] + calls["reads"])
    sound = calls["start"] <= calls["end"]
    monkeypatch.setattr("vani.readers.darshan.records.MAX_CALLS", 9)
    monkeypatch.setattr("vani.readers.darshan.records._AT_ONCE", 5)
    read = read_records(open_log(path))
    assert (read.calls, read.many_calls) == (None, True)
    for side, of_side in (("write", writes), ("read", ~writes)):
        for row, rank in enumerate(read.heat["rank"].tolist()):
            own = np.flatnonzero(sound & of_side & (ranks == rank))
            assert read.heat[side][row].sum() == calls["length"][own].sum()
            edges = np.arange(read.heat[side].shape[1] + 1) * read.heat["width"][row]
            shared = np.zeros(len(edges) - 1)
            for call in own.tolist():
                start, end = calls["start"][call], calls["end"][call]
                within = np.clip(edges, start, end)
                shared += np.diff(within) / (end - start) * calls["length"][call]
            np.testing.assert_allclose(read.heat[side][row], shared, atol=1 + len(own))
    assert counts_of(read)[0].dropped >= {"many_segments"}
