"""A history's figures in OpenMetrics text format, for Prometheus and others.

Format: OpenMetrics 1.0. All metrics are gauges, since runs can be removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import click
from pydantic import Field

from vani.centre.history.ranking import ranking_in
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import Ranking, TargetRow
from vani.centre.history.settings import HistorySettings
from vani.centre.history.targets import ranked_targets
from vani.cli.options import output_option, settings_options
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs
from vani.errors import one_line

Sample = tuple[dict[str, str], float]


def metrics(whole: Ranking, recent: Ranking, targets: Sequence[TargetRow]) -> str:
    """Write metrics.

    Parameters
    ----------
    whole
        Ranking of all time, of which the sums are written.
    recent
        Ranking of recent days, of which the rows are written, by application and user.
    targets
        Storage targets on the same days.
    """
    of = whole.whole
    lines = [
        *_family("vani_history_runs", "", "Runs of all time.", [({}, of.runs)]),
        *_family("vani_history_core_seconds", "seconds", "Processes times run time of all runs.", [({}, of.core_s)]),
        *_family("vani_history_io_seconds", "seconds", "Time of all processes in I/O calls.", [({}, of.in_io_s)]),
        *_family(
            "vani_history_waiting_seconds", "seconds", "Processes times the slowest process's time in I/O calls.",
            [({}, of.waiting_s)],
        ),
        *_family("vani_history_damaged_files", "", "Files that could not be read.", [({}, of.damaged)]),
    ]  # fmt: skip
    if of.last is not None:
        lines += _family(
            "vani_history_last_run_timestamp_seconds", "seconds", "Start of the last run.", [({}, of.last)]
        )
    rows = [
        ({"application": row.application or "", "user": row.user or ""}, row)
        for row in recent.rows
    ]
    lines += _family("vani_history_recent_runs", "", "Runs of the last days.", [(of, row.runs) for of, row in rows])
    lines += _family(
        "vani_history_recent_waiting_seconds", "seconds", "Waiting in the last days.",
        [(of, row.waiting_s) for of, row in rows],
    )  # fmt: skip
    lines += _family(
        "vani_history_recent_savable_seconds", "seconds", "Part of the waiting that advice is expected to save.",
        [(of, row.saved.expected_s) for of, row in rows if row.saved is not None and row.saved.state == "saves"],
    )  # fmt: skip
    places = [({"mount": row.mount, "target": str(row.target)}, row) for row in targets]
    lines += _family(
        "vani_history_target_lost_seconds", "seconds", "Time that files on a storage target lost in the last days.",
        [(of, row.lost_s) for of, row in places],
    )  # fmt: skip
    lines += _family(
        "vani_history_target_slow", "", "1 where a storage target is slow.",
        [(of, float(row.slow)) for of, row in places],
    )  # fmt: skip
    return "\n".join([*lines, "# EOF", ""])


def _family(name: str, unit: str, text: str, samples: Sequence[Sample]) -> list[str]:
    if not samples:
        return []
    lines = [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {text}"]
    return [*lines, *(f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples)]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return repr(float(value)) if value % 1 else str(int(value))


class MetricsSettings(HistorySettings):
    """Which figures to write."""

    days: Annotated[int, Field(ge=1, le=3650)] = Field(
        30, description="Length of the period before the last run, in days."
    )
    limit: Annotated[int, Field(ge=1)] = Field(
        20, description="Maximum number of pairs (application and user) and of targets."
    )


def history_metrics(settings: MetricsSettings | None = None, /, **fields: Any) -> str:
    """Format figures of a history as OpenMetrics text.

    Raises
    ------
    InputError
        There is no history, or the number of days is invalid.
    """
    wanted = MetricsSettings.of(settings, **fields)
    with Store(wanted.db).reading() as connection:
        last = read.whole(connection, read.ALWAYS).last or 0.0
        period = read.Period((last // read.DAY_S + 1 - wanted.days) * read.DAY_S, None)
        recent = ranking_in(connection, period, limit=wanted.limit)
        always = ranking_in(connection, read.ALWAYS, limit=1)
        targets = ranked_targets(read.target_times(connection, period))
    return metrics(always, recent, targets[: wanted.limit])


@click.command("metrics")
@settings_options(MetricsSettings)
@output_option()
def command(settings: MetricsSettings, output: Path | None) -> None:
    """Write figures for Prometheus (OpenMetrics): sums of all runs; pairs and storage targets of the last days.

    node_exporter reads this file from the folder of its textfile collector.
    """
    check_outputs([output])
    emit(history_metrics(settings), output)
