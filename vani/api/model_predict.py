"""What `vani model predict` does, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import vani
from vani.api.given import PathLike
from vani.errors import InputError
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.models.write_time.features import Write
    from vani.models.write_time.published import Published
    from vani.schema.prediction import WriteTimePrediction
    from vani.schema.write_model import WriteModel

__all__ = ["model_predict"]

_MOST: int = 10_000_000


def model_predict(
    *,
    model: PathLike | WriteModel | None = None,
    asked: Mapping[str, str | float] | None = None,
    system: str | None = None,
    nodes: int | None = None,
    processes_per_node: int | None = None,
    bytes_per_process: int | str | None = None,
    stripe_count: int | None = None,
) -> WriteTimePrediction:
    """Tell how long a write takes: by a model that was fitted, or by one that was published for a machine.

    Parameters
    ----------
    model, asked
        A model.yaml, and a value for each column of its samples.
    system
        `titan` or `cetus`, for a write of a file per process.
    bytes_per_process
        What each process writes; a number, or text such as `500MB`.
    stripe_count
        Of each file, on Lustre; None: the machine's default.

    Raises
    ------
    InputError
        No such model, or a figure that no write can have.
    """
    if (model is None) == (system is None):
        raise InputError("name a model", todo="give --model FILE or --system NAME")
    if model is not None:
        from vani.api.model_ask import model_ask  # noqa: PLC0415 - `vani --help` pays for no library

        given = {"-n": nodes, "-m": processes_per_node, "-K": bytes_per_process, "-W": stripe_count}
        for name, value in given.items():
            if value is not None:
                raise InputError("is of published models", where=name, todo="give --set COLUMN=VALUE")
        return model_ask(model, asked or {})
    if asked:
        raise InputError("is of fitted models", where="--set", todo="give -n, -m and -K")
    return _by_published(str(system), nodes, processes_per_node, bytes_per_process, stripe_count)


def _by_published(
    system: str, nodes: int | None, per_node: int | None, size: int | str | None, stripe_count: int | None
) -> WriteTimePrediction:
    from vani.models.write_time.features import Write  # noqa: PLC0415
    from vani.models.write_time.published import PUBLISHED  # noqa: PLC0415

    model = PUBLISHED.get(system)
    if model is None:
        known = ", ".join(sorted(PUBLISHED))
        raise InputError(
            f"no model of {system!r} is published", where="--system", todo=f"there are models of {known}"
        )
    if nodes is None or per_node is None or size is None:
        missing = "-n" if nodes is None else "-m" if per_node is None else "-K"
        raise InputError("is missing", where=missing, todo="say what is written: -n, -m and -K")
    _refuse_wrong_figures(nodes, per_node, _size(size), stripe_count)
    if model.stripes is None and stripe_count is not None:
        raise InputError(f"{system} has no stripe count", where="--stripe-count", todo="leave it out")
    stripes = stripe_count or model.default_stripes
    write = Write(nodes, per_node, _size(size) / 1e6, stripes)
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
        asked={},
        seconds=None,
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
