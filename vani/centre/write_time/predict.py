"""Predicts how long a write takes, with a fitted model or with one published for a machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BeforeValidator, Field

import vani
from vani.centre.prediction.schema import PredictedWrite, WriteEnd, WriteTimePrediction
from vani.centre.write_time.choice import Fitted
from vani.centre.write_time.fit import prepared
from vani.centre.write_time.published import PUBLISHED, Groups, Placement, Published, Write, read_mapping
from vani.centre.write_time.samples import MAX_READ, Samples
from vani.centre.write_time.schema import WriteModel
from vani.errors import InputError, one_line
from vani.schema.settings import Option, PathLike, Settings
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Profile

# Write times from a fitted model: of one write, of a job on given nodes, and of a profiled run.

BEYOND: Final = 4.0
"""Maximum factor beyond the samples' largest scale at which a model answers: Xie et al. tested 128 to 512 nodes."""
_NEAR: Final = 1.1


def fitted_write_time(model: PathLike | WriteModel, values: Mapping[str, str | float]) -> WriteTimePrediction:
    """Predict the time of one write with a fitted model.

    Parameters
    ----------
    values
        A value for each column of the samples; sizes can be text such as `16GiB`.

    Raises
    ------
    InputError
        A value is missing, belongs to no column or is not a number, or the model is damaged.
    """
    where = str(model) if isinstance(model, (str, Path)) else "model"
    read = WriteModel.load(model) if isinstance(model, (str, Path)) else model
    numbers, words = _values(read, values)
    seconds, low, high = _seconds(read, numbers, words, where)
    outside = [
        f"{name} {numbers[name]:g}: the samples had {column.low:g} to {column.high:g}"
        for name, column in read.columns.items()
        if not column.low / _NEAR <= numbers[name] <= column.high * (BEYOND if _grows(name, read) else _NEAR)
    ]
    return WriteTimePrediction(
        version=vani.__version__,
        outside=outside,
        notes=[
            f"nine in ten of the {read.held_out:,} held-out writes took {read.low:.2f} to {read.high:.2f} times the "
            "predicted time",
            *_widened(read, numbers[read.scale] / max(read.columns[read.scale].high, 1e-30)),
        ],
        model=read.method,
        source=f"fitted to {read.samples:,} writes with {read.scale} up to {read.columns[read.scale].high:g}",
        write=None,
        asked={**numbers, **words},
        seconds=None if outside else seconds,
        low=None if outside else low,
        high=None if outside else high,
        ends=[],
    )


def _grows(name: str, model: WriteModel) -> bool:
    """Whether a column is the scale, or counts nodes or the components behind them, which grow with it."""
    return name == model.scale or (
        model.system is not None and model.scale == "nodes" and name.startswith(("s_", "n_"))
    )


def _values(model: WriteModel, values: Mapping[str, str | float]) -> tuple[dict[str, float], dict[str, str]]:
    known = [*model.columns, *model.words]
    for name in values:
        if name not in known:
            raise InputError(f"the model has no column {name!r}", where="--set", todo=f"it has {', '.join(known)}")
    for name in known:
        if name not in values:
            raise InputError(f"no value of {name!r}", where="--set", todo=f"give --set {name}=...")
    numbers = {}
    for name in model.columns:
        try:
            numbers[name] = float(parse_bytes(value) if isinstance(value := values[name], str) else value)
        except (ValueError, OverflowError):
            raise InputError(f"{name} is {values[name]!r}", where="--set", todo="give a number or a size") from None
        if not 0 <= numbers[name] <= 1e30:
            raise InputError(f"{name} is {values[name]}", where="--set", todo="give 0 or more")
    for name, met in model.words.items():
        if str(values[name]) not in met:
            raise InputError(f"{name} is {values[name]!r}", where="--set", todo=f"the samples had {', '.join(met)}")
    return numbers, {name: str(values[name]) for name in model.words}


def _widened(model: WriteModel, beyond: float) -> list[str]:
    """The reasons why the interval is wider than that of the held-out writes."""
    reasons = []
    if beyond > _NEAR:
        reasons.append(f"{model.scale} is {beyond:.1f} times the largest one")
    if model.rivals:
        names = ", ".join(rival.method for rival in model.rivals)
        reasons.append(f"{names} fit nearly as well")
    return [f"the range is wider, because {' and '.join(reasons)}"] if reasons else []


def _seconds(
    model: WriteModel, numbers: Mapping[str, float], words: Mapping[str, str], where: str
) -> tuple[float, float, float]:
    """Predicted seconds, and the range that contains nine out of ten such writes."""
    import numpy as np  # noqa: PLC0415

    samples = Samples(
        {name: np.array([value]) for name, value in numbers.items()},
        {name: np.array([value]) for name, value in words.items()},
        np.ones(1),
    )
    rivals = {rival.method: dict(rival.parameters) for rival in model.rivals}
    of_method = (model.method, dict(model.parameters), model.words)
    fitted = Fitted(*of_method, model.low, model.high, (), offset=model.offset, rivals=rivals)
    beyond = np.array([numbers[model.scale] / max(model.columns[model.scale].high, 1e-30)])
    beyond = np.minimum(beyond, BEYOND)  # Beyond that, no range is promised.
    try:
        with np.errstate(all="ignore"):
            known = prepared(samples, model.system)
            seconds = float(fitted.predict(known)[0])
            low, high = (float(bound[0]) for bound in fitted.interval(known, beyond))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"its parameters do not match {model.method} ({type(error).__name__}: {error})"
        raise InputError(what, where=where, todo="fit it again") from error
    if not 0 < seconds < 1e12:
        raise InputError(f"predicts {seconds:g} seconds", where=where, todo="fit it again")
    return seconds, low, high


_SHORT: Final = {"router": "r", "I/O node": "io", "bridge": "b", "link": "l"}
"""Suffix of the columns `s_` (largest group) and `n_` (components used) for each kind of component."""


def placed_write_time(
    model: PathLike | WriteModel,
    values: Mapping[str, str | float],
    mapping: PathLike | None,
    job_nodes: str | None,
) -> WriteTimePrediction:
    """Predict the write time of a job on mapped nodes, or the range from packed to spread without a map and groups.

    Raises
    ------
    InputError
        As in `fitted_write_time`, or a map is given to a model without a machine.
    """
    read = WriteModel.load(model) if isinstance(model, (str, Path)) else model
    if read.system is None:
        if mapping is not None or job_nodes is not None:
            todo = "leave it out, or fit with --system"
            raise InputError("the model has no machine features", where="--mapping", todo=todo)
        return fitted_write_time(model, values)
    machine, count = PUBLISHED[read.system], _count(values)
    mapped = _groups(machine, count, mapping, job_nodes)
    if mapped is not None:
        return fitted_write_time(model, {**values, "nodes": mapped[0], **_columns_of(mapped[1])})
    ends = [_columns_of(groups) for groups in machine.ends(count or 1).values()]
    if count is None or values.keys() & ends[0].keys():
        return fitted_write_time(model, values)
    return _range([fitted_write_time(model, {**values, **columns}) for columns in ends])


def _count(values: Mapping[str, str | float]) -> int | None:
    try:
        count = int(values["nodes"])
    except (KeyError, ValueError, OverflowError):
        return None
    return count if count >= 1 else None


def _columns_of(groups: Mapping[str, Groups]) -> dict[str, float]:
    return {
        f"{letter}_{_SHORT[kind]}": float(value)
        for kind, group in groups.items()
        for letter, value in (("s", group.largest), ("n", group.used))
    }


def _range(ends: list[WriteTimePrediction]) -> WriteTimePrediction:
    """The range from the lower to the upper end of packed and spread; out of range if either is."""
    packed, spread = ends
    alike = {name: value for name, value in packed.asked.items() if spread.asked[name] == value}
    outside = list(dict.fromkeys([*packed.outside, *spread.outside]))
    low = [end.low for end in ends if end.low is not None]
    high = [end.high for end in ends if end.high is not None]
    note = "the placement of the job's nodes is not known: the range is from packed to spread"
    return packed.model_copy(
        update={
            "asked": alike,
            "seconds": None,
            "outside": outside,
            "low": None if outside else min(low),
            "high": None if outside else max(high),
            "notes": [*packed.notes, note],
        }
    )


def profile_write_time(profile: Profile, model: PathLike) -> WriteTimePrediction:
    """Predict the time of a run's writes, to compare it with the I/O time of its slowest process.

    Raises
    ------
    InputError
        The model is damaged or needs a column that no profile has, or the run reads too much to compare.
    """
    known = WriteModel.load(model)
    moved, ops = profile.workflow.io.bytes, profile.workflow.io.ops
    if not moved.written or (moved.read or 0) > MAX_READ * moved.written:
        raise InputError(
            "the run does not write, or reads more than a tenth of what it writes: its I/O time is not its write time",
            where="--model",
            todo="leave --model out",
        )
    columns = {
        "nodes": profile.job.nodes,
        "processes": profile.workflow.processes,
        "bytes": moved.written,
        "request": moved.written / ops.write if ops.write else None,
    }
    for name in (*known.columns, *known.words):
        if columns.get(name) is None:
            what = f"the model needs {one_line(name)}, which this profile does not have"
            raise InputError(what, where="--model", todo="use `vani model predict`, or fit a model without it")
    return fitted_write_time(known, {name: columns[name] or 0 for name in known.columns})


# Implements `vani model predict`.

_Count = Annotated[int | None, Field(ge=1, le=10_000_000)]


def _size(text: object) -> int | None:
    try:
        return None if text is None else parse_bytes(text)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        raise ValueError("is not a size; give one such as 500MB or 512MiB") from None


class PublishedSettings(Settings):
    """The write whose time a published model predicts, and the nodes that do it."""

    nodes: Annotated[_Count, Option(("-n", "--nodes"))] = Field(None, description="Writing compute nodes.")
    processes_per_node: Annotated[_Count, Option(("-m", "--processes-per-node"), "M")] = Field(
        None, description="Writing processes per node."
    )
    bytes_per_process: Annotated[
        int | None, Field(ge=1, le=1 << 60), BeforeValidator(_size), Option(("-K", "--bytes-per-process"), "SIZE")
    ] = Field(None, description="Bytes per process and file, such as 500MB.")
    stripe_count: Annotated[_Count, Option(("-W", "--stripe-count"), "W")] = Field(
        None, description="Stripe count of each file, if the machine has stripes."
    )
    mapping: Annotated[Path | None, Option(metavar="FILE")] = Field(
        None,
        description="CSV with the router or I/O node of each node: node,router or node,io_node,bridge,link. Without "
        "it, a range is predicted.",
    )
    job_nodes: Annotated[str | None, Option(metavar="LIST")] = Field(
        None, description="The job's nodes among the mapped ones, such as nid[001-128]; by default all."
    )


def model_predict(
    settings: PublishedSettings | None = None,
    *,
    model: PathLike | WriteModel | None = None,
    values: Mapping[str, str | float] | None = None,
    system: str | None = None,
    **fields: Any,
) -> WriteTimePrediction:
    """Predict how long a write takes, with a fitted model or with one published for a machine.

    Parameters
    ----------
    settings, fields
        The write, for a published model, or single fields of `PublishedSettings`; its `mapping` and `job_nodes` are
        also for a model that was fitted with a machine's features.
    model, values
        A model.yaml, and a value for each of its columns.
    system
        `titan` or `cetus`, for one file per process.

    Raises
    ------
    InputError
        The model does not exist, a figure is impossible for a write, or a node is not in the map.
    """
    write = PublishedSettings.of(settings, **fields)
    if (model is None) == (system is None):
        raise InputError("name a model", todo="give --model FILE or --system NAME")
    if model is not None:
        for option, name in _OF_WRITES.items():
            if getattr(write, name) is not None:
                raise InputError("is for published models", where=option, todo="give --set COLUMN=VALUE")
        return placed_write_time(model, values or {}, write.mapping, write.job_nodes)
    if values:
        raise InputError("is for fitted models", where="--set", todo="give -n, -m and -K")
    known = PUBLISHED.get(str(system))
    if known is None:
        todo = f"there are models of {', '.join(sorted(PUBLISHED))}"
        raise InputError(f"no model of {system!r} is published", where="--system", todo=todo)
    groups = _groups(known, write.nodes, write.mapping, write.job_nodes)
    if groups is not None and write.nodes is None:
        write = write.model_copy(update={"nodes": groups[0]})
    return _predicted(known, _write(known, write), None if groups is None else groups[1])


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


_OF_WRITES: Final = {"-n": "nodes", "-m": "processes_per_node", "-K": "bytes_per_process", "-W": "stripe_count"}


def _write(model: Published, write: PublishedSettings) -> Write:
    nodes, per_node, size, stripes = (getattr(write, name) for name in _OF_WRITES.values())
    for option, value in zip(_OF_WRITES, (nodes, per_node, size), strict=False):
        if value is None:
            raise InputError("is missing", where=option, todo="describe the write: -n, -m and -K")
    if model.stripes is None and stripes is not None:
        raise InputError(f"{model.system} has no stripe count", where="--stripe-count", todo="leave it out")
    return Write(nodes, per_node, size / 1e6, stripes or model.default_stripes)


def _predicted(model: Published, write: Write, mapped: dict[str, Groups] | None) -> WriteTimePrediction:
    places: dict[Placement, dict[str, Groups]] = (model.ends(write.nodes) if mapped is None else {"mapped": mapped})
    ends = [
        WriteEnd(
            placement=name,
            groups={kind: (group.largest, group.used) for kind, group in groups.items()},
            seconds=sum(term.seconds for term in terms),
            terms=terms,
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
