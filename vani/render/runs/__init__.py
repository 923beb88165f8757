"""Many runs with one line each, in each format as bytes."""

from typing import Final

from vani.render.formats import Formats

FORMATS: Final[Formats[bytes]] = Formats(
    __name__,
    {"text": (".txt",), "csv": (".csv",), "json": (".json",), "parquet": (".parquet",)},
    what="table",
)

__all__ = ["FORMATS"]
