"""`vani convert --call-sites`: the origin of each call, for users who want to know the source line."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import vani
from tests.traces.recorder_oracle import decode_trace
from tests.traces.recorder_writer import UNKNOWN_SITE, Call, encode_call_sites, write_trace
from vani.calls import CALL_SITES, CALLS
from vani.cli.convert import command
from vani.errors import InputError
from vani.store.read import open_store

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
WITH_SITES = ["n2-mix-4r", "n2-noipc-mix-4r", "n2-hdf5-4r", "n2-threads-tid-nonmpi"]


def calls_of(store: Path) -> pa.Table:
    return ds.dataset(store / "calls").to_table()


@pytest.mark.parametrize("name", WITH_SITES)
def test_call_leads_to_its_module_and_offset(name, tmp_path):
    vani.convert(TRACES / name, tmp_path / "store", call_sites=True)
    places = pq.read_table(tmp_path / "store" / "_call_sites.parquet")
    assert places.schema.remove_metadata() == CALL_SITES
    calls = calls_of(tmp_path / "store")
    assert calls.column_names == [*CALLS.names, "call_site"]
    joined = calls.select(["rank", "call_site"]).join(places, ["rank", "call_site"])
    found = Counter(zip(*(joined[c].to_pylist() for c in ("rank", "module", "offset")), strict=True))
    # The slow decoder returns numbers; the tables behind them are parsed by hand.
    oracle, wanted = decode_trace(TRACES / name), Counter()
    for rank, made in enumerate(oracle.calls):
        content = oracle.call_sites[rank]
        paths_end = 16 + int.from_bytes(content[12:16], "little")
        modules = content[16:paths_end].decode().split("\0")
        for call in made:
            entry = content[paths_end + 12 * call.site :][:12]
            module, offset = int.from_bytes(entry[:4], "little"), int.from_bytes(entry[4:], "little")
            wanted[rank, modules[module], offset] += 1
    assert found == wanted


def test_call_sites_are_absent_by_default(tmp_path):
    vani.convert(TRACES / "n2-mix-4r", tmp_path / "plain")
    vani.convert(TRACES / "n2-mix-4r", tmp_path / "sites", call_sites=True)
    assert not (tmp_path / "plain" / "_call_sites.parquet").exists()
    assert calls_of(tmp_path / "plain").schema.names == CALLS.names
    assert calls_of(tmp_path / "sites").drop_columns("call_site") == calls_of(tmp_path / "plain")
    # Both are stores of this version, and of the same trace.
    plain, sites = (open_store(tmp_path / name).manifest for name in ("plain", "sites"))
    assert sites.columns == [*plain.columns, "call_site: int32"] and sites.digest == plain.digest


def test_unknown_places_are_null_and_lost_tables_leave_the_numbers(tmp_path):
    calls = [Call("write", ("/a", "%p", "1"), site=site) for site in (0, UNKNOWN_SITE, 7)]
    tables = [encode_call_sites(["/opt/sim"], [(0, 5)]), b"damaged"]
    write_trace(tmp_path / "trace", [calls, calls], layout="3.x-dat2", call_sites=tables)
    vani.convert(tmp_path / "trace", tmp_path / "store", call_sites=True)
    assert calls_of(tmp_path / "store")["call_site"].to_pylist() == [0, None, 7] * 2
    places = pq.read_table(tmp_path / "store" / "_call_sites.parquet").to_pylist()
    assert places == [{"rank": 0, "call_site": 0, "module": "/opt/sim", "offset": 5}]


@pytest.mark.parametrize("name", ["n2-nosite-mix-4r", "nm-mix-4r", "n1-noipc-mix-4r", "v3-posix-mix-nonmpi"])
def test_a_trace_without_call_sites_is_refused_in_one_line(name, tmp_path):
    with pytest.raises(InputError, match=rf"{name}: has no call sites; leave --call-sites out"):
        vani.convert(TRACES / name, tmp_path / "store", call_sites=True)
    assert not (tmp_path / "store").exists()


def test_missing_call_sites_are_refused_before_writing(tmp_path):
    (tmp_path / "traces").mkdir()
    for name in ("n2-mix-4r", "v3-posix-mix-nonmpi"):
        (tmp_path / "traces" / name).symlink_to(TRACES / name)
    with pytest.raises(InputError, match="v3-posix-mix-nonmpi: has no call sites"):
        vani.convert(tmp_path / "traces", tmp_path / "stores", call_sites=True)
    assert not (tmp_path / "stores").exists()


def test_the_command_has_the_option(tmp_path):
    store = tmp_path / "store"
    done = CliRunner().invoke(command, ["--call-sites", str(TRACES / "n2-mix-4r"), str(store)])
    assert done.exit_code == 0, done.output
    assert json.loads((store / "manifest.json").read_text())["columns"][-1] == "call_site: int32"
