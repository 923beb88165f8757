"""`vani model list`."""

from __future__ import annotations

import click


@click.command("list")
def list_() -> None:
    """List the bundled models: machine, source, samples."""
    from vani.centre.write_time.models.published import PUBLISHED  # noqa: PLC0415 - `vani --help` pays for no library

    for name, model in sorted(PUBLISHED.items()):
        low, high = model.trained_on
        click.echo(
            f"{name:<8} lasso_best_{name}: Xie et al., IPDPS 2019, table V; made from {low} to {high} nodes, tested up "
            f"to {model.most_nodes}"
        )
