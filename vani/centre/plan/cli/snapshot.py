"""`vani plan snapshot`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from vani import centre
from vani.cli.options import output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs
from vani.errors import one_line


def _time(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a time; write 2026-01-01T12:00:00Z", ctx=ctx, param=param
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.command()
@click.argument("files", nargs=-1, metavar="[NAME=]FILE...")
@output_option()
@click.option(
    "--time", callback=_time, help="When it was printed; by default when the oldest file was written."
)
@click.option(
    "--file-system", metavar="NAME", help="The Lustre file system, if the files describe several."
)
def snapshot(
    files: tuple[str, ...],
    output: Path | None,
    time: datetime | None,
    file_system: str | None,
) -> None:
    """Record the current state of the storage for `vani plan` (vani.snapshot/1).

    FILEs contain the output of `lfs df`, `lctl get_param` or a Prometheus exporter, or /proc/loadavg, /proc/meminfo
    and /proc/cpuinfo, alone or concatenated. NAME is the server that printed the output; output of a client needs none.
    """
    from vani.centre.plan.snapshot import named_file  # noqa: PLC0415

    check_outputs([output], [named_file(file)[0] for file in files])
    document = centre.plan_snapshot(files, time=time, file_system=file_system)
    emit(document.to_yaml(), output)
    for gap in document.no_data:
        click.echo(f"vani: {one_line(gap.name)}: {one_line(gap.reason)}", err=True)
