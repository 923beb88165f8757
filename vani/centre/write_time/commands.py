"""Commands of `vani model`."""

from pathlib import Path
from typing import Any

import click

from vani.centre.history.settings import db_option
from vani.centre.prediction.text import FORMATS
from vani.centre.write_time.design import DesignSettings, model_design, script_of
from vani.centre.write_time.fit import EvaluateSettings, FitSettings, model_evaluate, model_fit
from vani.centre.write_time.predict import PublishedSettings, model_predict
from vani.centre.write_time.published import PUBLISHED
from vani.centre.write_time.schema import WriteModel
from vani.centre.write_time.text import evaluation_text, few_text, model_text
from vani.cli.options import FILE, format_option, output_option, settings_options
from vani.cli.output import check_outputs, emit

_samples = click.argument("samples", type=FILE, nargs=-1)


@click.command()
@_samples
@settings_options(FitSettings)
@db_option
@output_option("Write the model here, not to stdout.")
def fit(samples: tuple[Path, ...], settings: FitSettings, db: str | None, output: Path | None) -> None:
    """Fit a model of write times to SAMPLES: CSV files, or IOR output as text or JSON.

    Each method is fitted without the largest scales and judged on them (with few samples, without one scale after the
    other); the best one is fitted to all. A model that would
    be off by more than a factor of 3 for one write in ten is not written.
    """
    check_outputs([output], samples)
    model = model_fit(samples, settings, db=db)
    emit(model.to_yaml(), output)
    for line in few_text(model):
        click.echo(line, err=True)


@click.command()
@_samples
@settings_options(EvaluateSettings)
@db_option
def evaluate(samples: tuple[Path, ...], settings: EvaluateSettings, db: str | None) -> None:
    """Compare all methods on the larger scales of SAMPLES.

    Methods are fitted to scales up to --up-to and judged on the larger scales.
    """
    click.echo(evaluation_text(model_evaluate(samples, settings, db=db)), nl=False)


@click.command()
@settings_options(DesignSettings)
@output_option("Write the script here, not to stdout.")
def design(settings: DesignSettings, output: Path | None) -> None:
    """Choose which writes to measure on a machine, and write the job script that measures them with IOR.

    Writes are drawn as Xie et al. draw them, at the four largest scales up to --up-to. Each is repeated until its mean
    has converged, and each job stops when its part of --node-hours is used up.
    """
    check_outputs([output], [])
    emit(script_of(model_design(settings), "writes.sh" if output is None else output.name), output)


def _pairs(ctx: click.Context, param: click.Parameter, settings: tuple[str, ...]) -> dict[str, str]:
    del param
    pairs = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or name in pairs:
            raise click.UsageError(f"--set {setting!r} is not COLUMN=VALUE, or sets its column twice", ctx)
        pairs[name] = value
    return pairs


@click.command()
@click.option("--model", type=FILE, metavar="FILE", help="A model that `vani model fit` wrote.")
@click.option(
    "--set", "values", multiple=True, callback=_pairs, metavar="COLUMN=VALUE",
    help="A value for each column of the model.",
)  # fmt: skip
@click.option("--system", metavar="NAME", help="A published model: titan or cetus.")
@settings_options(PublishedSettings)
@format_option(FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
def predict(kind: str | None, output: Path | None, settings: PublishedSettings, **arguments: Any) -> None:
    """Predict the time of a write.

    Use a fitted model (--model, --set) or a published model of a machine (--system, -n, -m, -K, -W), which
    also shows its terms.
    """
    check_outputs([output], [arguments["model"], settings.mapping])
    prediction = model_predict(settings, **arguments)
    emit(FORMATS.render(FORMATS.chosen(kind, output, "text"), prediction), output)


@click.command()
@click.argument("model", type=FILE)
def show(model: Path) -> None:
    """Show the samples of MODEL (from `vani model fit`), and the bandwidth of each stage with its range.

    Stages with little time in every sample cannot be identified.
    """
    click.echo(model_text(WriteModel.load(model)), nl=False)


@click.command("list")
def list_() -> None:
    """List the bundled models: machine, source, samples."""
    for name, model in sorted(PUBLISHED.items()):
        low, high = model.trained_on
        click.echo(
            f"{name:<8} lasso_best_{name}: Xie et al., IPDPS 2019, table V; made from {low} to {high} nodes, tested up "
            f"to {model.most_nodes}"
        )
