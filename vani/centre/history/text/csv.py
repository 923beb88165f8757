"""A ranking of runs as a table for spreadsheets; seconds are sums over processes, unknown values are empty."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from vani.render.table import cell

if TYPE_CHECKING:
    from vani.centre.history.schema import Ranking

_NAMES: Final = ("application", "user", "processes", "file_system", "mount", "account", "qos")
_COSTS: Final = ("runs", "core_s", "in_io_s", "waiting_s")
_SAVED: Final = (
    "low_s", "expected_s", "high_s", "judged_share", "rule", "setting", "why", "state", "judged_runs",
    "typical_machine",
)  # fmt: skip
_SETTING: Final = ("rule", "setting", "why", "low_s", "expected_s", "high_s", "judged_runs", "typical_machine")


def render(ranking: Ranking) -> str:
    """Write one row for each group, or for each pair that a setting would help."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    if ranking.settings is not None:
        out.writerow([*_SETTING, "application", "user", "member_expected_s"])
        for setting in ranking.settings:
            shown = [cell(getattr(setting, name)) for name in _SETTING]
            out.writerows(
                [*shown, cell(m.application), cell(m.user), cell(m.expected_s)] for m in setting.members
            )
        return text.getvalue()
    out.writerow([*_NAMES, *_COSTS, *(f"saved_{name}" if name.endswith("_s") else name for name in _SAVED)])
    for row in ranking.rows:
        cells = [cell(getattr(row, name)) for name in (*_NAMES, *_COSTS)]
        out.writerow([*cells, *(cell(getattr(row.saved, name, None)) for name in _SAVED)])
    return text.getvalue()
