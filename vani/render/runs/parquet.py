"""The table of runs for pandas, DuckDB and others: one row group, columns typed as in the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from vani.schema.run_table import RunRow

if TYPE_CHECKING:
    from vani.schema.run_table import RunTable

def render(document: RunTable, **_: object) -> bytes:
    """Write the rows as a file of Parquet."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and other formats do not need it
    import pyarrow.parquet as pq  # noqa: PLC0415

    types = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
    fields = [
        pa.field(
            name,
            types[next(kind for kind in (*get_args(field.annotation), field.annotation) if kind in types)],
        )
        for name, field in RunRow.model_fields.items()
    ]
    sink = pa.BufferOutputStream()
    rows = [row.model_dump() for row in document.rows]
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
