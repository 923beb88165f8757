"""Writes the calls of a store as the Parquet that dftracer-analyzer (dfanalyzer, WisIO) reads.

So that it and Vani can be given the very same files, of any size, without a converter of Recorder's. Column names,
types and meanings are those of the converter in grc-iit/wisio (see `vani/readers/parquet/wisio.py` for what they
leave out); `acc_pat` is 0 throughout, and processes are named `app1#localhost#rank#thread`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vani.analyzers.tables.int_table import NO_VALUE
from vani.calls import Flag, Kind, Layer
from vani.columns import to_numpy
from vani.store.read import Store

__all__ = ["write_twin"]

_TICK_NS = 100
_CATEGORY = {Layer.POSIX: 0, Layer.STDIO: 0, Layer.MPIIO: 1, Layer.MPI: 1, Layer.HDF5: 2}
_OTHER_CATEGORY = 3
_IO_CATEGORY = {Kind.READ: 1, Kind.WRITE: 2, Kind.METADATA: 3}
_NO_IO = 0
_COLUMNS = ("rank", "thread", "func", "layer", "kind", "depth", "flags", "file", "offset", "bytes")


def write_twin(store: Store, folder: Path) -> int:
    """Write `part.N.parquet`, one per part of the store, and `global.json` into `folder`, which is made.

    Returns
    -------
    int
        Rows written: all calls of the store.
    """
    folder.mkdir(parents=True)
    functions = pq.read_table(store.path / "_functions.parquet")
    names = dict(zip(functions["func"].to_pylist(), functions["name"].to_pylist(), strict=True))
    names_of_codes = pa.array([names.get(code, "UNKNOWN") for code in range(max(names, default=-1) + 1)])
    files = pa.array([*store.files["path"].to_pylist(), "UNKNOWN"])
    categories = np.full(max(Layer) + 1, _OTHER_CATEGORY, np.int32)
    categories[list(_CATEGORY)] = list(_CATEGORY.values())
    io_categories = np.full(max(Kind) + 1, _NO_IO, np.int32)
    io_categories[list(_IO_CATEGORY)] = list(_IO_CATEGORY.values())
    last_tick = rows = 0
    for number, part in enumerate(store.manifest.parts):
        with pq.ParquetWriter(folder / f"part.{number}.parquet", _schema()) as writer:
            index = 0
            for batch in store.batches(part, [*_COLUMNS, "start_ns", "duration_ns"]):
                column = {
                    name: to_numpy(batch.column(name), NO_VALUE if name in ("offset", "bytes") else -1)
                    for name in batch.schema.names
                }
                n = batch.num_rows
                start, duration = column["start_ns"], column["duration_ns"]
                middle = (start + duration // 2) // _TICK_NS
                is_seek = (column["flags"] & Flag.SEEK) != 0
                size = np.where(
                    is_seek, column["offset"], np.where(column["kind"] <= Kind.WRITE, column["bytes"], 0)
                )
                size = np.where(size == NO_VALUE, 0, size)
                seconds = duration / 1e9
                rank, thread = column["rank"], column["thread"]
                process = [
                    f"app1#localhost#{r}#{t}" for r, t in zip(rank.tolist(), thread.tolist(), strict=True)
                ]
                func = column["func"]
                writer.write_batch(
                    pa.RecordBatch.from_arrays(
                        [
                            pa.array(np.arange(index + 1, index + n + 1, dtype=np.int64)),
                            pa.array(np.ones(n, np.int64)),
                            pa.array(rank.astype(np.int32)),
                            pa.array(thread.astype(np.int32)),
                            pa.array(categories[column["layer"]]),
                            pa.array(io_categories[column["kind"]]),
                            pa.array((start / 1e9).astype(np.float32)),
                            pa.array(((start + duration) / 1e9).astype(np.float32)),
                            names_of_codes.take(pa.array(np.maximum(func, 0))),
                            pa.array(column["depth"].astype(np.int32)),
                            pa.array(["localhost"] * n),
                            pa.array(["app1"] * n),
                            pa.array(process),
                            files.take(
                                pa.array(np.where(column["file"] < 0, len(files) - 1, column["file"]))
                            ),
                            pa.array(size.astype(np.int64)),
                            pa.array(np.zeros(n, np.int32)),
                            pa.array(
                                np.divide(size, seconds, out=np.zeros(n), where=seconds > 0).astype(
                                    np.float32
                                )
                            ),
                            pa.array(seconds.astype(np.float32)),
                            pa.array(middle.astype(np.int64)),
                            pa.array(column["file"].astype(np.int64) + 1),
                            pa.array(rank.astype(np.int64) + 1),
                        ],
                        schema=_schema(),
                    )
                )
                index += n
                last_tick = max(last_tick, int(middle.max(initial=0)))
        rows += index
    extents = {"file_id": [0, len(files)], "proc_id": [1, store.manifest.ranks], "tmid": [0, last_tick]}
    (folder / "global.json").write_text(json.dumps(extents))
    return rows


def _schema() -> pa.Schema:
    return pa.schema(
        [
            ("index", pa.int64()),
            ("proc", pa.int64()),
            ("rank", pa.int32()),
            ("thread_id", pa.int32()),
            ("cat", pa.int32()),
            ("io_cat", pa.int32()),
            ("tstart", pa.float32()),
            ("tend", pa.float32()),
            ("func_id", pa.string()),
            ("level", pa.int32()),
            ("hostname", pa.string()),
            ("app", pa.string()),
            ("proc_name", pa.string()),
            ("file_name", pa.string()),
            ("size", pa.int64()),
            ("acc_pat", pa.int32()),
            ("bandwidth", pa.float32()),
            ("duration", pa.float32()),
            ("tmid", pa.int64()),
            ("file_id", pa.int64()),
            ("proc_id", pa.int64()),
        ]
    )
