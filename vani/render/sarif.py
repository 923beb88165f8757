"""Common parts of Vani's SARIF 2.1.0 documents: the tool, its rules, one run, locations.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from vani.schema.syntax.json_writer import json_text

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME: Final = "https://pypi.org/project/vani-io/"


def sarif(
    results: Sequence[Mapping[str, Any]],
    *,
    rules: Sequence[Mapping[str, Any]],
    version: str,
    properties: Mapping[str, Any],
    invocation: Mapping[str, Any] | None = None,
) -> str:
    """Write one run of Vani as JSON in ASCII.

    Parameters
    ----------
    version
        Vani's version.
    invocation
        How the run ended, if that is worth stating.
    """
    driver = {"name": "Vani", "version": version, "informationUri": _HOME, "rules": rules}
    run: dict[str, Any] = {"tool": {"driver": driver}}
    if invocation is not None:
        run["invocations"] = [invocation]
    run |= {"columnKind": "unicodeCodePoints", "results": results, "properties": properties}
    whole = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_text(whole, ascii_only=True, allow_nan=True)


def uri(path: str) -> str:
    """An absolute path as a file URI, any other as a relative reference; bytes that are not text are preserved."""
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A lone surrogate cannot be in a path of this system, but a document may contain one.
        raw = path.encode("utf-8", "surrogatepass")
    quoted = quote(raw, safe="/")
    if path.startswith("/"):
        return f"file://{quoted}" if not path.startswith("//") else f"file:///{quoted.lstrip('/')}"
    # A first part with a colon would be a scheme, but quote() has escaped the colon.
    return quoted
