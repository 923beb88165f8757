"""A store is plain Parquet: other programs read it without Vani and get the same counts."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import vani
from vani.calls import CALLS

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
NAME = "v3-posix-mix-4r"
REFERENCE = json.loads((TRACES / "reference.json").read_text())[NAME]
RECORDS = REFERENCE["records_total"]
READ, WRITTEN = REFERENCE["posix_bytes_read_total"], REFERENCE["posix_bytes_written_total"]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    (place,) = vani.convert(TRACES / NAME, tmp_path_factory.mktemp("stores") / "mix", scheduler="synchronous")
    return place


def functions(store: Path) -> list[str]:
    return pq.read_table(store / "_functions.parquet")["name"].to_pylist()


def test_pyarrow_reads_the_folder_as_one_dataset(store):
    calls = ds.dataset(store / "calls", format="parquet").to_table()
    assert calls.schema.equals(CALLS)
    assert calls.num_rows == RECORDS
    names = functions(store)
    counts = {names[c["values"]]: c["counts"] for c in calls["func"].value_counts().to_pylist()}
    assert counts == REFERENCE["records_per_function"]


def test_folder_of_a_store_is_a_dataset_too(store):
    # Dataset readers skip names that begin with `_`.
    assert ds.dataset(store, format="parquet", exclude_invalid_files=True).count_rows() == RECORDS


def test_pandas_adds_up_the_same_bytes(store):
    calls = pd.read_parquet(store / "calls")
    data = calls[(calls["layer"] <= 1) & (calls["kind"] <= 1)]
    assert len(calls) == RECORDS
    assert data.groupby("kind")["bytes"].sum().to_dict() == {0: READ, 1: WRITTEN}


def test_duckdb_adds_up_the_same_bytes(store):
    found = duckdb.sql(
        f"select kind, sum(bytes) from '{store}/calls/*.parquet' where layer <= 1 and kind <= 1 group by kind order by kind"
    ).fetchall()
    assert found == [(0, READ), (1, WRITTEN)]
    joined = duckdb.sql(
        f"select f.name, count(*) from '{store}/calls/*.parquet' c join '{store}/_functions.parquet' f using (func) group by 1"
    ).fetchall()
    assert dict(joined) == REFERENCE["records_per_function"]


def test_polars_adds_up_the_same_bytes(store):
    calls = pl.scan_parquet(store / "calls" / "*.parquet")
    files = pl.scan_parquet(store / "_files.parquet")
    found = (
        calls.filter((pl.col("layer") <= 1) & (pl.col("kind") <= 1))
        .join(files, on="file")
        .group_by("path")
        .agg(pl.col("bytes").filter(pl.col("kind") == 0).sum().alias("read"))
        .collect()
    )
    wanted = {path: count["read"] for path, count in REFERENCE["posix_bytes_per_file"].items()}
    assert {path: read for path, read in found.iter_rows() if read} == {
        path: read for path, read in wanted.items() if read
    }


def test_manifest_describes_the_parts(store):
    manifest = json.loads((store / "manifest.json").read_text())
    assert manifest["records"] == RECORDS == sum(part["rows"] for part in manifest["parts"])
    for part in manifest["parts"]:
        with pq.ParquetFile(store / part["file"]) as file:
            assert file.metadata.num_rows == part["rows"]
            assert file.metadata.row_group(0).column(0).compression == "ZSTD"
            assert file.metadata.row_group(0).column(0).is_stats_set
