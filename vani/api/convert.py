"""Implements `vani convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.api.arguments import PathLike
from vani.engine.executor import open_executor
from vani.errors import InputError, TraceError, VaniError
from vani.readers.open import open_workload
from vani.store.write import check_call_sites, write_store

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike

def convert(
    trace: PathLike,
    store: PathLike,
    *,
    call_sites: bool = False,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Decode a trace into a Parquet dataset at `store`, or a directory of traces into one dataset each below it.

    Parameters
    ----------
    call_sites
        Also store the place in a program or library that made each call.
    scheduler, progress
        As in `profile`.

    Returns
    -------
    list of Path
        The stores written, each with a manifest.json.

    Raises
    ------
    InputError
        A trace cannot be read or lacks the requested call sites, or `store` cannot be written.
    """
    target = Path(store)
    if (
        target.exists()
        and not (target / "manifest.json").is_file()
        and (not target.is_dir() or any(target.iterdir()))
    ):
        raise InputError("exists and is not a store", where=target, todo="name a new folder")
    if Path(trace).is_dir() and target.resolve().is_relative_to(Path(trace).resolve()):
        raise InputError("is inside the trace", where=target, todo="name a folder next to it")
    if Path(trace).resolve().is_relative_to(target.resolve()):
        raise InputError("contains the trace, and would be replaced", where=target, todo="name a new folder")
    workload = open_workload([Path(trace)])
    for path, error in workload.refused:
        raise error if isinstance(error, VaniError) else TraceError(str(error), where=path)
    if call_sites:
        for reader in workload.readers:
            check_call_sites(reader)
    places = []
    with open_executor(scheduler, progress=progress) as executor:
        executor.check_workers(
            version=vani.__version__, reads=[r.path for r in workload.readers], writes=target.parent
        )
        for reader in workload.readers:
            name = reader.path.name
            if sum(other.path == reader.path for other in workload.readers) > 1:
                name += f"-{reader.app}"
            place = target if len(workload.readers) == 1 else target / name
            write_store(
                reader, place, version=vani.__version__, executor=executor, call_sites=call_sites
            )
            places.append(place)
    return places
