"""What `vani model predict` does, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import vani
from vani.errors import InputError
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.models.write_time.features import Write
    from vani.models.write_time.published import Published
    from vani.schema.prediction import WriteTimePrediction

__all__ = ["model_predict"]

_MOST: int = 10_000_000


def model_predict(
    system: str,
    nodes: int,
    processes_per_node: int,
    bytes_per_process: int | str,
    *,
    stripe_count: int | None = None,
) -> WriteTimePrediction:
    """Tell how long a write of a file per process takes, by a model that was published for the machine.

    Parameters
    ----------
    system
        `titan` or `cetus`.
    bytes_per_process
        What each process writes; a number, or text such as `500MB`.
    stripe_count
        Of each file, on Lustre; None: the machine's default.

    Raises
    ------
    InputError
        No model of this machine, or a figure that no write can have.
    """
    from vani.models.write_time.features import Write  # noqa: PLC0415 - `vani --help` pays for no library
    from vani.models.write_time.published import PUBLISHED  # noqa: PLC0415

    model = PUBLISHED.get(system)
    if model is None:
        known = ", ".join(sorted(PUBLISHED))
        raise InputError(
            f"no model of {system!r} is published", where="--system", todo=f"there are models of {known}"
        )
    size = _size(bytes_per_process)
    _refuse_wrong_figures(nodes, processes_per_node, size, stripe_count)
    if model.stripes is None and stripe_count is not None:
        raise InputError(f"{system} has no stripe count", where="--stripe-count", todo="leave it out")
    stripes = stripe_count or model.default_stripes
    write = Write(nodes, processes_per_node, size / 1e6, stripes)
    return _predicted(model, write, stripes if model.stripes is not None else None)


def _predicted(model: Published, write: Write, stripes: int | None) -> WriteTimePrediction:
    from vani.schema.prediction import PredictedTerm, PredictedWrite, WriteEnd  # noqa: PLC0415
    from vani.schema.prediction import WriteTimePrediction as Document  # noqa: PLC0415

    ends = [
        WriteEnd(
            placement=name,
            groups={kind: (one.largest, one.used) for kind, one in groups.items()},
            seconds=sum(term.seconds for term in terms),
            terms=[
                PredictedTerm(
                    feature=term.feature, coefficient=term.coefficient, value=term.value, seconds=term.seconds
                )
                for term in terms
            ],
        )
        for name, groups in model.ends(write.nodes).items()
        for terms in [model.terms(write, groups)]
    ]
    seconds = sorted(end.seconds for end in ends)
    outside = model.outside(write, seconds[-1])
    return Document(
        version=vani.__version__,
        outside=outside,
        notes=_notes(model, seconds[0], bool(outside)),
        model=f"lasso_best_{model.system}",
        source="Xie et al., IPDPS 2019, table V",
        write=PredictedWrite(
            nodes=write.nodes,
            processes_per_node=write.per_node,
            bytes_per_process=write.megabytes * 1e6,
            stripe_count=stripes,
        ),
        low=None if outside else max(0.0, seconds[0]),
        high=None if outside else seconds[-1],
        ends=ends,
    )


def _notes(model: Published, least: float, is_outside: bool) -> list[str]:
    shared = ", ".join(f"{name}s" for name in model.shared)
    notes = [f"where the nodes of the job lie is not known: the range is that of their {shared}"]
    if not is_outside and least < model.least_seconds:
        notes.append(
            f"the model was made from writes of more than {model.least_seconds:g} s: what lies below is a guess"
        )
    return notes


def _size(text: int | str) -> int:
    try:
        return parse_bytes(text)
    except (ValueError, OverflowError):
        raise InputError(
            f"is {text!r}", where="--bytes-per-process", todo="give a size, such as 500MB or 512MiB"
        ) from None


def _refuse_wrong_figures(nodes: int, per_node: int, size: int, stripes: int | None) -> None:
    for name, value in (("--nodes", nodes), ("--processes-per-node", per_node), ("--stripe-count", stripes)):
        if value is not None and not 1 <= value <= _MOST:
            raise InputError(f"is {value:,}", where=name, todo=f"give 1 to {_MOST:,}")
    if not 1 <= size <= 1 << 60:
        raise InputError(
            f"is {size:,}", where="--bytes-per-process", todo="give a size above 0, such as 500MB"
        )
