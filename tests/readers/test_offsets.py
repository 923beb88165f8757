"""The column `offset` means what docs/store.md says, and is null for all other calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import Flag, Kind, Layer
from vani.columns import to_numpy
from vani.readers import open_workload
from vani.readers.trace_reader import Piece

ROOT = Path(__file__).resolve().parent.parent


def test_offsets_belong_to_the_documented_calls_alone():
    met = dict.fromkeys(["data", "MPI-IO", "SEEK", "RESIZE", "MPI_File_set_view"], 0)
    for reader in open_workload([ROOT / "data" / "traces", ROOT / "data" / "parquet"]).readers:
        names = np.array(reader.functions()["name"].to_pylist(), dtype=object)
        for batch in reader.batches(range(reader.ranks), Piece()):
            calls = pa.Table.from_batches([batch])
            calls = calls.filter(pc.is_valid(calls["offset"])).combine_chunks()
            func, layer, kind, flags, offset = (
                to_numpy(calls[name].combine_chunks())
                for name in ("func", "layer", "kind", "flags", "offset")
            )
            assert (offset >= 0).all()
            data = kind <= Kind.WRITE
            named = {
                "data": data & (layer <= Layer.STDIO),
                "MPI-IO": data & (layer == Layer.MPIIO),
                "SEEK": ~data & (flags & Flag.SEEK != 0),
                "RESIZE": ~data & (flags & Flag.RESIZE != 0),
                "MPI_File_set_view": names[func] == "MPI_File_set_view",
            }
            # Each call has exactly one meaning.
            assert (sum(rows.astype(int) for rows in named.values()) == 1).all(), reader.path
            for which, rows in named.items():
                met[which] += int(rows.sum())
    assert all(met.values()), met


def test_the_page_of_the_store_has_a_row_for_each_meaning():
    page = (ROOT.parent / "docs" / "store.md").read_text()
    table = page[page.index("| calls | `offset` |") :].split("\n\n")[0]
    for begin in (
        "kinds 0 and 1 of layers 0 and 1",
        "kinds 0 and 1 of layer 2",
        "flag `SEEK`",
        "flag `RESIZE`",
    ):
        assert f"| {begin} |" in table
    assert "| `MPI_File_set_view` |" in table
