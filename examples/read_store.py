"""The most frequent file-system calls of a store: `python examples/read_store.py STORE`.

pyarrow comes with Vani. With duckdb, which is installed apart (`pip install duckdb`), the same question is::

    SELECT f.name AS function, count(*) AS calls, sum(c.bytes)::BIGINT AS bytes
    FROM 'STORE/calls/*.parquet' c JOIN 'STORE/_functions.parquet' f USING (func)
    WHERE c.layer <= 1
    GROUP BY f.name ORDER BY calls DESC, function LIMIT 5
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

if len(sys.argv) != 2 or not Path(sys.argv[1], "_functions.parquet").is_file():
    sys.exit("usage: python read_store.py STORE, the folder that `vani convert TRACE STORE` wrote")
store = Path(sys.argv[1])

# Layers 0 and 1 are POSIX and stdio. Each batch is summed up before the next is read: a store may exceed memory.
calls = ds.dataset(store / "calls").to_batches(columns=["func", "bytes"], filter=ds.field("layer") <= 1)
parts = [
    pa.table(batch).group_by("func").aggregate([([], "count_all"), ("bytes", "sum")]) for batch in calls if len(batch)
]
if not parts:
    sys.exit(f"{store}: no file-system call")
summed = pa.concat_tables(parts).group_by("func").aggregate([("count_all", "sum"), ("bytes_sum", "sum")])
named = summed.join(pq.read_table(store / "_functions.parquet", columns=["func", "name"]), "func")

print("function calls bytes")
for row in named.sort_by([("count_all_sum", "descending"), ("name", "ascending")]).slice(0, 5).to_pylist():
    print(row["name"], row["count_all_sum"], row["bytes_sum_sum"])
