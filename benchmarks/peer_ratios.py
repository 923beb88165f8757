"""How many times of Vani's processor time and memory other tools take, from rows of runs on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["GOAL", "ratios"]

GOAL = 6.0
"""Processor time of recorder2parquet over that of `vani convert`, on millions of calls."""
_LEAST_WORK_S = 0.05
"""Less than that beyond starting is noise."""


def ratios(
    runs: Sequence[Mapping[str, Any]], beside: Mapping[str, Sequence[str]]
) -> list[dict[str, str | float | int | None]]:
    """Divide what each tool took by what Vani's commands together took that do the same.

    Parameters
    ----------
    runs
        Rows of `benchmarks.peers`, Vani's among them.
    beside
        By tool the commands of Vani.

    Returns
    -------
    list of dict
        A row per run of a tool that ended well: input, calls, tool, beside (the commands), `cpu_x`, `seconds_x`;
        `work_x`: processor time without what each takes to start, null where that is not known or next to nothing is
        left; `peak_x`: memory, beside the largest of the commands.
    """
    by_key = {(row["input"], row["tool"]): row for row in runs if row["outcome"] == "done"}
    found = []
    for (given, tool), row in by_key.items():
        if tool not in beside:
            continue
        ours = [by_key.get((given, command)) for command in beside[tool]]
        if any(one is None for one in ours):
            continue
        rows = [one for one in ours if one is not None]
        found.append(
            {
                "input": given,
                "calls": row["calls"],
                "tool": tool,
                "beside": " and ".join(
                    [beside[tool][0], *(c.removeprefix("vani ") for c in beside[tool][1:])]
                ),
                "cpu_x": row["cpu_s"] / sum(one["cpu_s"] for one in rows),
                "work_x": _over(_work([row]), _work(rows)),
                "seconds_x": row["seconds"] / sum(one["seconds"] for one in rows),
                "peak_x": row["peak_bytes"] / max(one["peak_bytes"] for one in rows),
            }
        )
    return found


def _work(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Processor time without what starting takes."""
    if any(row["start_s"] is None for row in rows):
        return None
    return sum(float(row["cpu_s"] - row["start_s"]) for row in rows)


def _over(theirs: float | None, ours: float | None) -> float | None:
    if theirs is None or ours is None or min(theirs, ours) < _LEAST_WORK_S:
        return None
    return theirs / ours
