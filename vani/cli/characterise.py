"""From traces to a profile: stores are found or made, and calls are measured. Loads Arrow and the analyzers."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vani
from vani.analyzers.characterise import Options
from vani.analyzers.characterise import characterise as measured
from vani.analyzers.entities.view import View
from vani.cli.sources import ProfileSettings, Resources, app_of, job_of
from vani.errors import InputError, TraceError, one_line
from vani.readers.files import changed_error
from vani.readers.open import open_workload, refuse_unrelated
from vani.readers.trace_reader import KeepsCounts, NamesCallers, TraceReader
from vani.schema.job import Job
from vani.schema.profile import Profile
from vani.schema.settings import PathLike
from vani.store import partial_results
from vani.store.partial_results import PartialResults
from vani.store.read import CallsNeeded, Store
from vani.store.stores import Stores, while_stores_vanish
from vani.systems import system_of


@dataclass(frozen=True)
class Characterised:
    """A profile and the measurements behind it."""

    profile: Profile
    view: View

    def graph(self, of: str = "apps") -> Any:
        """Dependencies of `of` ("apps" or "processes") as a networkx.DiGraph."""
        from vani.analyzers.entities.dependencies import app_graph, process_graph  # noqa: PLC0415

        return app_graph(self.view) if of == "apps" else process_graph(self.view)


def characterise(resources: Resources, traces: Sequence[PathLike], settings: ProfileSettings) -> Characterised:
    """Measure a workload as `vani.profile` does, and keep the measurements."""
    places, phase_gap = resources.stores, settings.phase_gap
    system = system_of(settings.system)
    # A trace that contains only counts has no store.
    workload = open_workload(
        [Path(trace) for trace in traces],
        decoded=lambda reader: not isinstance(reader, KeepsCounts) and _is_known(places, reader),
    )
    job = job_of(settings, [reader.path for reader in workload.readers])
    logs = counting(workload.readers)
    if not settings.together:
        refuse_unrelated(workload.readers)
    refused = [(str(path), str(error)) for path, error in workload.refused]
    if logs:
        if phase_gap is not None:
            raise InputError("counts contain no phases", where=logs[0].path, todo="leave the phase gap out")
        from vani.cli.counted import profile_of_counts  # noqa: PLC0415 - only for logs of counts

        return Characterised(*profile_of_counts(logs, job, system, settings.files, refused))
    known = _known(places, workload.readers, job)
    executor = resources.executor
    if executor.is_remote:
        reads = [reader.path for reader in workload.readers]
        executor.check_workers(version=vani.__version__, reads=reads, writes=places.folder)

    def measured_of(
        stores: list[Store], names: list[str], lost: list[tuple[str, str]], known: PartialResults | None
    ) -> Characterised:
        results = measured(
            stores,
            names,
            executor,
            version=vani.__version__,
            job_=job,
            system=system,
            options=Options(phase_gap_s=phase_gap, list_files=settings.files),
            refused=lost,
            known=known,
        )
        profile, view = results
        return Characterised(_with_caller(profile, workload.readers), view)

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
        names = [app_of(reader.path, reader.app, job) for reader in readers]
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
            names = [app_of(Path(manifest.source), manifest.app, job) for manifest in manifests]
            return measured_of(stores_known, names, refused, known)
    return while_stores_vanish(from_stores)


def _with_caller(profile: Profile, readers: Sequence[TraceReader]) -> Profile:
    """The profile, whose cause names the place in the program that makes most of its calls if the tracer recorded it.

    Of several traces, the place in one may not make most calls of all.
    """
    verdict, reader = profile.verdict, readers[0]
    if verdict is None or verdict.cause is None or len(readers) > 1 or not isinstance(reader, NamesCallers):
        return profile
    rank = profile.apps[0].balance.slowest_rank if len(profile.apps) == 1 and profile.apps[0].balance else None
    caller = reader.caller_of(verdict.cause.call, rank or 0)
    if caller is None:
        return profile
    sentence = f"{verdict.cause.sentence} Most come from {one_line(caller)}."
    cause = verdict.cause.model_copy(update={"caller": one_line(caller), "sentence": sentence})
    return profile.model_copy(update={"verdict": verdict.model_copy(update={"cause": cause})})


def counting(readers: Sequence[TraceReader]) -> list[TraceReader]:
    """The readers if all of them provide only counts; an empty list if they provide calls.

    Raises
    ------
    InputError
        Some provide counts, others calls.
    """
    logs: list[TraceReader] = [reader for reader in readers if isinstance(reader, KeepsCounts)]
    if logs and len(logs) < len(readers):
        other = next(reader for reader in readers if not isinstance(reader, KeepsCounts))
        raise InputError(
            f"is a log of {logs[0].tool}, and {other.path} is a trace of {other.tool}: counts and calls are not one "
            "workload",
            where=logs[0].path,
            todo="profile them apart",
        )
    return logs


def _is_known(places: Stores, reader: TraceReader) -> bool:
    """Whether saved results make it unnecessary to read the tables of a trace."""
    if places.find(reader, hold=False) is not None:
        return True
    return not places.are_named and partial_results.are_kept() and partial_results.may_be_known(reader.digest())


def _known(places: Stores, readers: Sequence[TraceReader], job: Job | None) -> PartialResults | None:
    """Results of earlier runs with other options on the same calls; None if none are saved."""
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
    return PartialResults(digests, [*paths, apps, sample])
