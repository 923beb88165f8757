"""Implements `vani plan place`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import vani
from vani.api.arguments import PathLike
from vani.centre.plan.api.inputs import layout_files_of, loaded, plan_input, read_layouts, refuse_old
from vani.centre.plan.place import place
from vani.centre.plan.schema import PlacePlan, PlaceSettings
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError


def plan_place(
    jobs: PathLike | Jobs,
    snapshot: PathLike | Snapshot,
    *,
    method: Literal["balanced", "tarazu", "lsa"] = "balanced",
    size_weight: Mapping[str, float] | None = None,
    ceiling: float = 0.95,
    cpu_weight: float = 0.5,
    memory_weight: float = 0.5,
    turn: Literal["going-on", "random-start"] = "going-on",
    window: float = 0.17,
    seed: int = 0,
    seeds: int = 50,
    max_age: float | None = None,
    now: datetime | None = None,
) -> PlacePlan:
    """Choose OSTs for the files that jobs will create.

    Parameters
    ----------
    jobs, snapshot
        A jobs.yaml and a snapshot.yaml, or the documents themselves.
    size_weight
        For `past`: weight, 0..1, of bytes already on an OST, relative to new ones (default 1).
    ceiling
        Maximum share, 0..1, to which OSTs are filled.
    cpu_weight, memory_weight
        Weights of a server's load in the costs of `tarazu`.
    turn, window, seed, seeds
        Simulation of Lustre's own allocator: the OST at which its turn starts for a file, the difference in free
        space from which it draws by free space, and the number of draws.
    max_age, now
        Maximum age of the snapshot in seconds at the time `now`; None: any age, the current time.

    Raises
    ------
    InputError
        A document cannot be used, a figure is invalid, the snapshot is too old, or no OST is in service.
    """
    weights = {"past": 1.0, **(size_weight or {})}
    _refuse_wrong_figures(weights, ceiling, cpu_weight, memory_weight, window, seed, seeds)
    given_jobs = loaded("jobs", jobs, Jobs)
    state = loaded("snapshot", snapshot, Snapshot)
    refuse_old(state.document, max_age, now, state.where)
    files = layout_files_of(given_jobs.document, given_jobs.folder)
    return place(
        given_jobs.document,
        state.document,
        PlaceSettings(
            method=method,
            past_weight=weights["past"],
            ceiling=ceiling,
            cpu_weight=cpu_weight,
            memory_weight=memory_weight,
            turn=turn,
            window=window,
            seed=seed,
            seeds=seeds,
        ),
        layouts=read_layouts(files),
        inputs=[
            given_jobs.source,
            state.source,
            *(plan_input("layout", path) for path in dict.fromkeys(files.values())),
        ],
        where=given_jobs.where,
        where_snapshot=state.where,
        version=vani.__version__,
    )


def _refuse_wrong_figures(
    weights: Mapping[str, float],
    ceiling: float,
    cpu_weight: float,
    memory_weight: float,
    window: float,
    seed: int,
    seeds: int,
) -> None:
    unknown = sorted(set(weights) - {"past"})
    if unknown:
        raise InputError(f"has no {unknown[0]!r}", where="--size-weight", todo="give past=0..1")
    # Written this way round because comparisons with NaN are false.
    if not 0 <= weights["past"] <= 1:
        raise InputError(f"is past={weights['past']:g}", where="--size-weight", todo="give past=0..1")
    if not 0 < ceiling <= 1:
        raise InputError(f"is {ceiling:g}", where="--ceiling", todo="give a share above 0, at most 1")
    if not 0 <= window <= 1:
        raise InputError(f"is {window:g}", where="--window", todo="give a share, 0 to 1")
    for name, weight in (("--cpu-weight", cpu_weight), ("--memory-weight", memory_weight)):
        if not 0 <= weight <= 1e6:
            raise InputError(f"is {weight:g}", where=name, todo="give 0 or more")
    if not 0 <= seed < 1 << 32:
        raise InputError(f"is {seed:,}", where="--seed", todo="give 0 to 4,294,967,295")
    if not 1 <= seeds <= 10_000:
        raise InputError(f"is {seeds:,}", where="--seeds", todo="give 1 to 10,000")
