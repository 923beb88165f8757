"""What a profile shows of itself in sessions of Python and in notebooks: its first screen, and its tables."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from vani.render.profile.screen import render

if TYPE_CHECKING:
    import pyarrow as pa

    from vani.schema.profile import Profile

__all__ = ["as_arrow", "as_html", "as_text"]

_WIDTH: Final = 100


def as_text(profile: Profile) -> str:
    """The first screen, without a line end behind it."""
    from rich.console import Console  # noqa: PLC0415 - heavy, and few profiles are looked at

    sink = io.StringIO()
    render(profile, Console(file=sink, width=_WIDTH, color_system=None, highlight=False), next_steps=False)
    return sink.getvalue().rstrip("\n")


def as_html(profile: Profile) -> str:
    """The same as preformatted text, its verdict in bold; nothing in names of files is markup."""
    lines = [html.escape(line) for line in as_text(profile).split("\n")]
    return f"<pre><b>{lines[0]}</b>\n" + "\n".join(lines[1:]) + "</pre>"


def as_arrow(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table of Arrow, a column per attribute; what is not of one type throughout becomes text."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and few profiles are looked at

    flat = [_flat(row) for row in rows]
    columns = {}
    for name in dict.fromkeys(key for row in flat for key in row):
        values = [row.get(name) for row in flat]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[name] = pa.array([None if value is None else str(value) for value in values])
    return pa.table(columns)


def _flat(row: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{above}{key}.")
        else:
            found[f"{above}{key}"] = value
    return found
