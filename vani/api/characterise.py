"""What `vani profile` does, for programs that look further than the profile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vani
from vani.api.counted import counting, profile_of_counts
from vani.api.given import PathLike, app_of, job_of, system_of
from vani.api.run import Run
from vani.errors import InputError, TraceError

if TYPE_CHECKING:
    from vani.analyzers.entities.view import View
    from vani.engine.run import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.readers.trace_reader import TraceReader
    from vani.schema.job import Job
    from vani.schema.profile import Profile
    from vani.schema.system import System
    from vani.store.read import Store

__all__ = ["Characterised", "characterise", "characterise_in"]


@dataclass(frozen=True)
class Characterised:
    """A profile, and what it was made from."""

    profile: Profile
    view: View

    def graph(self, of: str = "apps") -> Any:
        """Dependencies as a networkx.DiGraph, `of` "apps" or "processes"."""
        from vani.analyzers.entities.dependencies import app_graph, process_graph  # noqa: PLC0415

        return app_graph(self.view) if of == "apps" else process_graph(self.view)


def characterise(
    *traces: PathLike,
    job: PathLike | Job | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    phase_gap: float | None = None,
    files: int | None = 100,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Characterised:
    """Like `profile`, but keeps what was measured, for graphs."""
    with Run(traces, store=store, scheduler=scheduler, progress=progress) as run:
        return characterise_in(run, *traces, job=job, system=system, phase_gap=phase_gap, files=files)


def characterise_in(
    run: Run,
    *traces: PathLike,
    job: PathLike | Job | None = None,
    system: PathLike | System | None = None,
    phase_gap: float | None = None,
    files: int | None = 100,
) -> Characterised:
    """`characterise` as a part of a longer run, which keeps the stores."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from vani.readers.open import open_workload  # noqa: PLC0415 - loads Arrow

    if phase_gap is not None and not 0 < phase_gap < 1e9:
        raise InputError(f"a phase gap of {phase_gap} s", todo="give a positive number of seconds")
    from vani.store.provide import while_stores_vanish  # noqa: PLC0415

    places = run.stores
    with ThreadPoolExecutor(1) as other:
        # Tables are read while the analyzers are loaded. What keeps counts has no store.
        opening = other.submit(
            open_workload,
            [Path(t) for t in traces],
            decoded=lambda reader: not counting([reader]) and places.find(reader, hold=False) is not None,
        )
        from vani.analyzers.characterise import Options  # noqa: PLC0415
        from vani.analyzers.characterise import characterise as measured  # noqa: PLC0415

        job_model, system_model = job_of(job), system_of(system)
        workload = opening.result()
    refused = [(str(path), str(error)) for path, error in workload.refused]
    logs = counting(workload.readers)
    if logs:
        if phase_gap is not None:
            raise InputError("counts tell no phases", where=logs[0].path, todo="leave the phase gap out")
        return Characterised(*profile_of_counts(logs, job_model, system_model, files, refused))
    engine = run.engine
    if engine.is_elsewhere:
        reads = [reader.path for reader in workload.readers]
        engine.check_workers(version=vani.__version__, reads=reads, writes=places.folder)

    def from_stores(stores: list[Store]) -> Characterised:
        readers: list[TraceReader] = []
        lost = list(refused)
        for reader in workload.readers:
            try:
                stores.append(places.provide(reader, engine))
                readers.append(reader)
            except TraceError as error:
                if len(workload.readers) == 1:
                    raise
                lost.append((str(reader.path), str(error)))
        if not stores:
            raise TraceError(f"no trace can be read: {lost[0][1]}")
        names = [app_of(reader, job_model) for reader in readers]
        found, view = measured(
            stores,
            names,
            engine,
            version=vani.__version__,
            job_=job_model,
            system=system_model,
            options=Options(phase_gap_s=phase_gap, list_files=files),
            refused=lost,
        )
        return Characterised(found, view)

    return while_stores_vanish(from_stores)
