"""`vani profile` for callers that also need the measurements, such as graphs."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vani
from vani.api.arguments import PathLike, app_of, job_of, system_of
from vani.api.counted import counting, profile_of_counts
from vani.api.run import Run
from vani.errors import InputError, TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vani.analyzers.entities.view import View
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.readers.trace_reader import TraceReader
    from vani.schema.job import Job
    from vani.schema.profile import Profile
    from vani.schema.system import System
    from vani.store.partial_results import PartialResults
    from vani.store.read import Store
    from vani.store.stores import Stores

@dataclass(frozen=True)
class Characterised:
    """A profile and the measurements behind it."""

    profile: Profile
    view: View

    def graph(self, of: str = "apps") -> Any:
        """Dependencies of `of` ("apps" or "processes") as a networkx.DiGraph."""
        from vani.analyzers.entities.dependencies import app_graph, process_graph  # noqa: PLC0415

        return app_graph(self.view) if of == "apps" else process_graph(self.view)


def characterise(
    *traces: PathLike,
    job: PathLike | Job | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    phase_gap: float | None = None,
    files: int | None = 100,
    together: bool = False,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Characterised:
    """Characterise a workload like `profile`, but keep the measurements, for graphs."""
    with Run(traces, store=store, scheduler=scheduler, progress=progress) as run:
        return characterise_in(
            run, *traces, job=job, system=system, phase_gap=phase_gap, files=files, together=together
        )


def characterise_in(
    run: Run,
    *traces: PathLike,
    job: PathLike | Job | None = None,
    system: PathLike | System | None = None,
    phase_gap: float | None = None,
    files: int | None = 100,
    together: bool = False,
) -> Characterised:
    """Run `characterise` as part of a longer run, which owns the stores."""
    from vani.readers.identity import changed_error  # noqa: PLC0415
    from vani.readers.open import open_workload, refuse_unrelated  # noqa: PLC0415 - loads Arrow

    if phase_gap is not None and not 0 < phase_gap < 1e9:
        raise InputError(f"a phase gap of {phase_gap} s", todo="give a positive number of seconds")
    from vani.analyzers.characterise import Options  # noqa: PLC0415
    from vani.analyzers.characterise import characterise as measured  # noqa: PLC0415
    from vani.store.read import CallsNeeded  # noqa: PLC0415
    from vani.store.stores import while_stores_vanish  # noqa: PLC0415

    places = run.stores
    job_model, system_model = job_of(job), system_of(system)
    # A trace that contains only counts has no store.
    workload = open_workload(
        [Path(t) for t in traces],
        decoded=lambda reader: not counting([reader]) and _is_known(places, reader),
    )
    logs = counting(workload.readers)
    if not together:
        refuse_unrelated(workload.readers)
    refused = [(str(path), str(error)) for path, error in workload.refused]
    if logs:
        if phase_gap is not None:
            raise InputError("counts contain no phases", where=logs[0].path, todo="leave the phase gap out")
        return Characterised(*profile_of_counts(logs, job_model, system_model, files, refused))
    known = _known(places, workload.readers, job_model)
    executor = run.executor
    if executor.is_remote:
        reads = [reader.path for reader in workload.readers]
        executor.check_workers(version=vani.__version__, reads=reads, writes=places.folder)

    def measured_of(
        stores: list[Store], names: list[str], lost: list[tuple[str, str]], known: PartialResults | None
    ) -> Characterised:
        options = Options(phase_gap_s=phase_gap, list_files=files)
        results = measured(
            stores,
            names,
            executor,
            version=vani.__version__,
            job_=job_model,
            system=system_model,
            options=options,
            refused=lost,
            known=known,
        )
        return Characterised(*results)

    def from_stores(stores: list[Store]) -> Characterised:
        readers: list[TraceReader] = []
        lost = list(refused)
        for reader in workload.readers:
            try:
                stores.append(places.provide(reader, executor))
                readers.append(reader)
            except TraceError as error:
                if len(workload.readers) == 1:
                    raise
                lost.append((str(reader.path), str(error)))
        if not stores:
            raise TraceError(f"no trace can be read: {lost[0][1]}")
        names = [app_of(reader.path, reader.app, job_model) for reader in readers]
        # Saved results cover all traces together.
        of_all = known if len(stores) == len(workload.readers) else None
        characterised = measured_of(stores, names, lost, of_all)
        for reader, store in zip(readers, stores, strict=True):
            if store.decode is not None and reader.changed():
                raise changed_error(reader)
        if of_all is not None:
            of_all.keep(stores)
        return characterised

    if known is not None and (stores_known := known.stores):
        with suppress(CallsNeeded):
            manifests = [store.manifest for store in stores_known]
            names = [app_of(Path(manifest.source), manifest.app, job_model) for manifest in manifests]
            return measured_of(stores_known, names, refused, known)
    return while_stores_vanish(from_stores)


def _is_known(places: Stores, reader: TraceReader) -> bool:
    """Whether saved results make it unnecessary to read the tables of a trace."""
    from vani.store.partial_results import are_kept, may_be_known  # noqa: PLC0415 - loads Arrow

    if places.find(reader, hold=False) is not None:
        return True
    return not places.are_named and are_kept() and may_be_known(reader.digest())


def _known(places: Stores, readers: Sequence[TraceReader], job: Job | None) -> PartialResults | None:
    """Results of earlier runs with other options on the same calls; None if none are saved."""
    from vani.store import partial_results  # noqa: PLC0415 - loads Arrow

    if places.are_named or not partial_results.are_kept():
        return None
    digests = [reader.digest() for reader in readers]
    if not partial_results.may_be_known(digests[0]):
        calls = sum(int(reader.calls_per_rank().sum()) for reader in readers)
        if calls < partial_results.FEWEST_CALLS:
            return None
    sample = "" if job is None or job.dataset is None else job.dataset.model_dump_json()
    apps = json.dumps({} if job is None else job.apps)
    paths = [str(reader.path.resolve()) for reader in readers]
    return partial_results.PartialResults(digests, [*paths, apps, sample])
