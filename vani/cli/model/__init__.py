"""`vani model`."""

from __future__ import annotations

import click

from vani.cli.lazy_group import commands_from

__all__ = ["model"]

_COMMANDS = {
    "fit": ("vani.cli.model.fit:fit", "Fit a model to samples of writes."),
    "predict": ("vani.cli.model.predict:predict", "Predict the time of a write."),
    "evaluate": (
        "vani.cli.model.evaluate:evaluate",
        "Test all methods on larger scales than they were fitted to.",
    ),
    "show": ("vani.cli.model.show:show", "Show a fitted model's samples and bandwidths."),
    "list": ("vani.cli.model.list:list_", "List the bundled models."),
}


@click.group(cls=commands_from(_COMMANDS))
def model() -> None:
    """Models of write time."""
