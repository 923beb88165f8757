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
        "Test all methods on scales they were not fitted to.",
    ),
    "show": ("vani.cli.model.show:show", "Show the samples of a fitted model, and its bandwidths."),
    "list": ("vani.cli.model.list:list_", "List the models that are bundled."),
}


@click.group(cls=commands_from(_COMMANDS))
def model() -> None:
    """Models of how long a write takes."""
