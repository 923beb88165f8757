"""The most frequent file-system calls of a store, in SQL: `python examples/read_store.py STORE`."""

from __future__ import annotations

import sys

import duckdb

store = sys.argv[1]
answer = duckdb.sql(
    f"""
    SELECT f.name AS function, count(*) AS calls, sum(c.bytes)::BIGINT AS bytes
    FROM '{store}/calls/*.parquet' c JOIN '{store}/_functions.parquet' f USING (func)
    WHERE c.layer <= 1
    GROUP BY f.name ORDER BY calls DESC, function LIMIT 5
    """
)
print(*answer.columns)
for row in answer.fetchall():
    print(*row)
