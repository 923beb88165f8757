"""What a fitted model of write times says of a run that has a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.api.given import PathLike
from vani.errors import InputError, one_line

if TYPE_CHECKING:
    from vani.schema.prediction import WriteTimePrediction
    from vani.schema.profile import Profile

__all__ = ["predicted_write"]

_MOST_READ: Final = 0.1
"""Bytes read over bytes written of a run whose time in I/O is that of its writes."""


def predicted_write(profile: Profile, model: PathLike) -> WriteTimePrediction:
    """Ask a model for the time of what a run wrote; to be held against the I/O time of its slowest process.

    Raises
    ------
    InputError
        The model is damaged, asks for a column that no profile tells, or the run reads too much to compare.
    """
    from vani.api.model_ask import model_ask  # noqa: PLC0415 - loads pydantic
    from vani.schema.write_model import WriteModel  # noqa: PLC0415

    known = WriteModel.load(model)
    moved, ops = profile.workflow.io.bytes, profile.workflow.io.ops
    if not moved.written or (moved.read or 0) > _MOST_READ * moved.written:
        raise InputError(
            "the run does not write, or reads more than a tenth of that: its time is not that of its writes",
            where="--model",
            todo="leave --model out",
        )
    told = {
        "nodes": profile.job.nodes,
        "processes": profile.workflow.processes,
        "bytes": moved.written,
        "request": moved.written / ops.write if ops.write else None,
    }
    for name in (*known.columns, *known.words):
        if told.get(name) is None:
            raise InputError(
                f"the model asks for {one_line(name)}, which this profile does not tell",
                where="--model",
                todo="ask `vani model predict`, or fit a model without it",
            )
    return model_ask(known, {name: told[name] or 0 for name in known.columns})
