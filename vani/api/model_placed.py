"""A model that was fitted to a machine's features, asked for a job whose nodes lie somewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vani.api.given import PathLike
from vani.api.model_ask import model_ask
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.models.write_time.placement import Groups
    from vani.schema.prediction import WriteTimePrediction
    from vani.schema.write_model import WriteModel

__all__ = ["model_placed"]

_SHORT: Final = {"router": "r", "I/O node": "io", "bridge": "b", "link": "l"}
"""What stands behind `s_` (the largest group) and `n_` (components used) for each kind of component."""


def model_placed(
    model: PathLike | WriteModel,
    asked: Mapping[str, str | float],
    mapping: PathLike | None,
    job_nodes: str | None,
) -> WriteTimePrediction:
    """Ask for the nodes that are mapped; without a map, where no groups are told, for the range of packed and spread.

    Raises
    ------
    InputError
        As `model_ask`, and where a map is given to a model that knows no machine.
    """
    from vani.models.write_time.published import PUBLISHED  # noqa: PLC0415
    from vani.schema.write_model import WriteModel as Document  # noqa: PLC0415

    read = Document.load(model) if isinstance(model, (str, Path)) else model
    if read.system is None:
        if mapping is not None or job_nodes is not None:
            raise InputError(
                "the model has no features of a machine",
                where="--mapping",
                todo="leave it out, or fit with --system",
            )
        return model_ask(model, asked)
    machine = PUBLISHED[read.system]
    columns = [
        name for short in map(_SHORT.__getitem__, machine.shared) for name in (f"s_{short}", f"n_{short}")
    ]
    if mapping is not None:
        from vani.history.write_time.node_map import read_mapping  # noqa: PLC0415

        known = read_mapping(Path(mapping), list(machine.shared))
        nodes = known.of_job(job_nodes, _count(asked))
        return model_ask(model, {**asked, "nodes": len(nodes), **_told(known.groups(nodes))})
    count = _count(asked)
    if job_nodes is not None:
        raise InputError("needs a mapping", where="--job-nodes", todo="give --mapping FILE as well")
    if count is None or any(name in asked for name in columns):
        return model_ask(model, asked)
    return _range([model_ask(model, {**asked, **_told(groups)}) for groups in machine.ends(count).values()])


def _count(asked: Mapping[str, str | float]) -> int | None:
    try:
        found = int(asked["nodes"])
    except (KeyError, ValueError, OverflowError):
        return None
    return found if found >= 1 else None


def _told(groups: Mapping[str, Groups]) -> dict[str, float]:
    return {
        f"{letter}_{_SHORT[kind]}": float(value)
        for kind, one in groups.items()
        for letter, value in (("s", one.largest), ("n", one.used))
    }


def _range(ends: list[WriteTimePrediction]) -> WriteTimePrediction:
    """From the least of packed and spread to the most; outside where either is."""
    packed, spread = ends
    alike = {name: value for name, value in packed.asked.items() if spread.asked[name] == value}
    outside = list(dict.fromkeys([*packed.outside, *spread.outside]))
    low = [one.low for one in ends if one.low is not None]
    high = [one.high for one in ends if one.high is not None]
    return packed.model_copy(
        update={
            "asked": alike,
            "seconds": None,
            "outside": outside,
            "low": None if outside else min(low),
            "high": None if outside else max(high),
            "notes": [
                *packed.notes,
                "where the nodes of the job lie is not known: the range is from packed to spread",
            ],
        }
    )
