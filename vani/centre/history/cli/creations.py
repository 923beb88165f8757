"""`vani history creations`, which can also write the files that plans need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from vani import centre
from vani.centre.history.cli.options import db_option, user_options
from vani.centre.prediction.text import FORMATS
from vani.cli.options import FILE, format_option, output_option
from vani.cli.output import emit_all
from vani.cli.output_guard import check_outputs

if TYPE_CHECKING:
    from vani.centre.prediction.schema import CreationsPrediction

class CreationsOptions(TypedDict):
    """Options passed on to the library unchanged."""

    user: str | None
    processes: int | None
    db: str | None
    method: str | None
    begun: Path | None
    least: float


@click.command()
@click.argument("application", metavar="APP")
@user_options("The same as USER; by default the user of the latest run.")
@click.option("--processes", type=int, metavar="N", help="Processes of each run; by default as in the latest run.")
@db_option
@click.option(
    "--begun",
    type=FILE,
    metavar="FILE",
    help="Files that the run has created so far: CSV (path,rank,size,stripe_count) or its trace. The rest is "
    "predicted.",
)
@click.option("--method", metavar="NAME", help="A predictor; by default the best on past runs.")
@click.option(
    "--least",
    type=float,
    default=0.5,
    show_default=True,
    metavar="P",
    help="Report less probable sizes as unknown.",
)
@click.option(
    "--layout",
    metavar="LAYOUT",
    help="Layout of each file: a stripe count, `-E ...`, or a file with Tarazu's buckets.",
)
@click.option("--table", type=FILE, metavar="FILE", help="Also write the rows for `vani plan store`, a CSV.")
@click.option("--jobs", type=FILE, metavar="FILE", help="Also write a jobs.yaml for `vani plan place`.")
@format_option(FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
def creations(
    application: str,
    kind: str | None,
    output: Path | None,
    table: Path | None,
    jobs: Path | None,
    layout: str | None,
    **options: Unpack[CreationsOptions],
) -> None:
    """Predict the files that the next run of APP will create: rank, size and probability.

    With --begun, it predicts the rest of a run in progress. --table and --jobs get files of known name and size;
    others keep the default layout.
    """
    files = [path for path in (output, table, jobs) if path is not None]
    check_outputs(files or [None], [options["begun"], Path(options["db"]) if options["db"] else None])
    prediction = centre.history_creations(application, **options)
    kind = kind or (FORMATS.of_file(output) if output is not None else None) or "text"
    emit_all(
        [
            *planned_files(prediction, layout, table=table, jobs=jobs),
            (FORMATS.render(kind, prediction), output),
        ]
    )


def planned_files(
    prediction: CreationsPrediction, layout: str | None, *, table: Path | None, jobs: Path | None
) -> list[tuple[str, Path]]:
    """Rows of Tarazu's database as CSV and jobs as YAML, each with its path, if requested."""
    from vani.centre.placement_library.interactions import write_csv  # noqa: PLC0415
    from vani.schema.document import dumps  # noqa: PLC0415

    outputs = []
    if table is not None:
        outputs.append((write_csv(centre.creations_rows(prediction, layout)), table))
    if jobs is not None:
        outputs.append((dumps(centre.creations_jobs(prediction, layout)), jobs))
    return outputs
