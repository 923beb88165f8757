"""Implements `vani model predict`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.centre.prediction.schema import PredictedTerm, PredictedWrite, WriteEnd, WriteTimePrediction
from vani.centre.write_time.api.write_time import placed_write_time
from vani.centre.write_time.models.features import Write
from vani.centre.write_time.models.published import PUBLISHED, Placement, Published
from vani.centre.write_time.node_map import read_mapping
from vani.errors import InputError
from vani.schema.settings import PathLike
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.centre.write_time.models.placement import Groups
    from vani.centre.write_time.schema import WriteModel

_MOST: int = 10_000_000


def model_predict(
    *,
    model: PathLike | WriteModel | None = None,
    values: Mapping[str, str | float] | None = None,
    system: str | None = None,
    nodes: int | None = None,
    processes_per_node: int | None = None,
    bytes_per_process: int | str | None = None,
    stripe_count: int | None = None,
    mapping: PathLike | None = None,
    job_nodes: str | None = None,
) -> WriteTimePrediction:
    """Predict how long a write takes, with a fitted model or with one published for a machine.

    Parameters
    ----------
    model, values
        A model.yaml, and a value for each of its columns.
    system
        `titan` or `cetus`, for one file per process.
    bytes_per_process
        Bytes written per process; a number, or text such as `500MB`.
    stripe_count
        Stripes per file on Lustre; None takes the machine's default.
    mapping
        A CSV file with the components behind which each node is: columns `node` and `router`, or `io_node`,
        `bridge` and `link`. None gives the range from packed to spread.
    job_nodes
        The job's nodes in that file, such as `nid[001-128]`; None: all.

    Raises
    ------
    InputError
        The model does not exist, a figure is impossible for a write, or a node is not in the map.
    """
    if (model is None) == (system is None):
        raise InputError("name a model", todo="give --model FILE or --system NAME")
    if model is not None:
        given: dict[str, object] = {
            "-n": nodes,
            "-m": processes_per_node,
            "-K": bytes_per_process,
            "-W": stripe_count,
        }
        for name, value in given.items():
            if value is not None:
                raise InputError("is for published models", where=name, todo="give --set COLUMN=VALUE")
        return placed_write_time(model, values or {}, mapping, job_nodes)
    if values:
        raise InputError("is for fitted models", where="--set", todo="give -n, -m and -K")
    known = _published(str(system))
    groups = _groups(known, nodes, mapping, job_nodes)
    if groups is not None and nodes is None:
        nodes = groups[0]
    write = _write(known, nodes, processes_per_node, bytes_per_process, stripe_count)
    return _predicted(known, write, None if groups is None else groups[1])


def _published(system: str) -> Published:
    model = PUBLISHED.get(system)
    if model is None:
        known = ", ".join(sorted(PUBLISHED))
        raise InputError(
            f"no model of {system!r} is published", where="--system", todo=f"there are models of {known}"
        )
    return model


def _groups(
    model: Published, nodes: int | None, mapping: PathLike | None, job_nodes: str | None
) -> tuple[int, dict[str, Groups]] | None:
    """The job's number of nodes, and their groups; None if their places are unknown."""
    if mapping is None:
        if job_nodes is not None:
            raise InputError("needs a mapping", where="--job-nodes", todo="give --mapping FILE as well")
        return None
    known = read_mapping(Path(mapping), list(model.shared))
    names = known.of_job(job_nodes, nodes)
    return len(names), known.groups(names)


def _write(
    model: Published,
    nodes: int | None,
    per_node: int | None,
    size: int | str | None,
    stripe_count: int | None,
) -> Write:
    if nodes is None or per_node is None or size is None:
        missing = "-n" if nodes is None else "-m" if per_node is None else "-K"
        raise InputError("is missing", where=missing, todo="describe the write: -n, -m and -K")
    _refuse_wrong_figures(nodes, per_node, _size(size), stripe_count)
    if model.stripes is None and stripe_count is not None:
        raise InputError(f"{model.system} has no stripe count", where="--stripe-count", todo="leave it out")
    return Write(nodes, per_node, _size(size) / 1e6, stripe_count or model.default_stripes)


def _predicted(model: Published, write: Write, mapped: dict[str, Groups] | None) -> WriteTimePrediction:
    places: dict[Placement, dict[str, Groups]] = (
        model.ends(write.nodes) if mapped is None else {"mapped": mapped}
    )
    ends = [
        WriteEnd(
            placement=name,
            groups={kind: (group.largest, group.used) for kind, group in groups.items()},
            seconds=sum(term.seconds for term in terms),
            terms=[
                PredictedTerm(
                    feature=term.feature, coefficient=term.coefficient, value=term.value, seconds=term.seconds
                )
                for term in terms
            ],
        )
        for name, groups in places.items()
        for terms in [model.terms(write, groups)]
    ]
    seconds = sorted(max(0.0, end.seconds) for end in ends)
    outside = model.outside(write, seconds[-1])
    low, high = seconds[0], seconds[-1]
    notes = _notes(model, seconds[0], bool(outside))
    if mapped is not None:
        off, share = model.off_by_at_most(write.nodes)
        low, high = low / (1 + off), high / (1 - off)
        notes[0] = (
            f"{100 * share:.1f} % of the converged writes in the paper's test took {1 / (1 + off):.2f} to "
            f"{1 / (1 - off):.2f} times its prediction"
        )
    return WriteTimePrediction(
        version=vani.__version__,
        outside=outside,
        notes=notes,
        model=f"lasso_best_{model.system}",
        source="Xie et al., IPDPS 2019, table V",
        asked={},
        seconds=None if outside or mapped is None else seconds[0],
        write=PredictedWrite(
            nodes=write.nodes,
            processes_per_node=write.per_node,
            bytes_per_process=write.megabytes * 1e6,
            stripe_count=write.stripes if model.stripes is not None else None,
        ),
        low=None if outside else low,
        high=None if outside else high,
        ends=ends,
    )


def _notes(model: Published, least: float, is_outside: bool) -> list[str]:
    shared = ", ".join(f"{name}s" for name in model.shared)
    notes = [f"the placement of the job's nodes is not known: the range is given by their {shared}"]
    if not is_outside and least < model.least_seconds:
        notes.append(
            f"the model was made from writes of more than {model.least_seconds:g} s: shorter times are extrapolated"
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
