"""Results of measures outside the schema, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class ExtensionRow:
    """One value."""

    measure: str
    attribute: str
    """Place in the result, such as `by_rank[3].count`; empty for the result itself."""
    value: bool | int | float | str | None


def extension_rows(extensions: Mapping[str, Any]) -> Iterator[ExtensionRow]:
    """Yield every value in the order of the document; empty collections have none."""
    for measure, result in extensions.items():
        for attribute, value in _values(result, ""):
            yield ExtensionRow(measure, attribute, value)


def _values(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, element in value.items():
            yield from _values(element, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from _values(element, f"{where}[{i}]")
    else:
        yield where, value
