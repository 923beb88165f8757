"""The calls of a profile over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vani.analyzers.heat_map import heat_map as laid_out
from vani.api.arguments import PathLike
from vani.api.run import Run
from vani.api.source import profile_of, read_profile
from vani.errors import InputError
from vani.store.stores import while_stores_vanish

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.profile import Profile
    from vani.schema.timeline import HeatMap
    from vani.store.read import Store

def heat_map(
    profile: PathLike | Profile,
    *,
    store: PathLike | None = None,
    decode: bool = True,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> HeatMap | str:
    """Count the calls of a profile's traces over time and processes.

    Parameters
    ----------
    profile
        A profile, its path, or a trace, which is profiled first.
    store
        The store, or the folder of stores, that the profile was made from; the user's cache directory by default.
    decode
        Decode the trace again if it has no store and is still at the profile's path.

    Returns
    -------
    HeatMap or str
        The data, or the reason why there is none: traces and stores are gone, or contain other calls.

    Raises
    ------
    InputError
        The profile cannot be read, or `store` is not a folder.
    """
    with Run([profile], store=store, scheduler=scheduler, progress=progress) as run:
        model = read_profile(profile_of(run, profile, files=1))
        return heat_map_in(run, model, store=store, decode=decode)


def heat_map_in(
    run: Run, profile: Profile, *, store: PathLike | None = None, decode: bool = True
) -> HeatMap | str:
    """Run `heat_map` as part of a longer run, which may have the stores already."""
    if store is not None and not Path(store).is_dir():
        raise InputError("no such folder", where=store, todo="name a store, or the folder of stores")
    # A quick profile must not decode the trace.
    is_quick = profile.workflow.runtime_s is None
    decode = decode and not is_quick
    executor = run.executor

    def from_stores(stores: list[Store]) -> HeatMap | str:
        why = run.stores.of_profile(profile, executor, stores, decode=decode, is_quick=is_quick)
        if why is not None:
            return why
        return laid_out(stores, [t.app for t in profile.traces], executor)

    heat = while_stores_vanish(from_stores)
    if isinstance(heat, str):
        return heat
    moved = profile.workflow.io.bytes
    if (sum(map(sum, heat.read)), sum(map(sum, heat.written))) != (moved.read or 0, moved.written or 0):
        return "the decoded calls and the profile differ in bytes; profile the trace again"
    return heat
