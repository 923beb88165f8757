"""Vani as a library: what the commands do, for programs.

import vani
profile = vani.profile("traces/ior")
profile.save("profile.yaml")
profile.frame("files")
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vani
from vani.errors import InputError, TraceError, VaniError

if TYPE_CHECKING:
    from vani.analyzers.entities.view import View
    from vani.engine.run import Progress
    from vani.readers.base import TraceReader
    from vani.schema.advice import Advice
    from vani.schema.job import Job
    from vani.schema.profile import Profile
    from vani.schema.system import System
    from vani.store.read import Store

__all__ = ["JUDGED_FILES", "Characterised", "advise", "characterise", "convert", "profile"]

PathLike = str | Path

JUDGED_FILES = 1000
"""Files that `advise` judges of a profile that lists more: ten times as many as `profile` lists by default."""


@dataclass(frozen=True)
class Characterised:
    """A profile, and what it was made from."""

    profile: Profile
    view: View

    def graph(self, of: str = "apps") -> Any:
        """Dependencies as a networkx.DiGraph, `of` "apps" or "processes"."""
        from vani.analyzers.entities.dependencies import app_graph, process_graph  # noqa: PLC0415

        return app_graph(self.view) if of == "apps" else process_graph(self.view)


def profile(
    *traces: PathLike,
    job: PathLike | Job | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    phase_gap: float | None = None,
    files: int | None = 100,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Profile:
    """Characterise a workload: one trace directory, several, or a directory of them.

    Parameters
    ----------
    traces
        Directories that a tracer left, or Parquet made of them.
    job, system
        job.yaml and system.yaml, the name of a bundled machine, or the models themselves.
    store
        Folder that keeps the decoded calls; the user's cache directory by default.
    phase_gap
        Seconds without I/O that separate phases; found from the data by default.
    files
        How many files are listed, most I/O time first; None lists all.
    scheduler
        `threads`, `processes`, `synchronous` or the address of a Dask scheduler.
    progress
        Called with (stage, done, total).

    Raises
    ------
    InputError
        A trace or document that cannot be read.
    VaniError
        A fault of Vani, such as a failed self-check.
    """
    return characterise(
        *traces,
        job=job,
        system=system,
        store=store,
        phase_gap=phase_gap,
        files=files,
        scheduler=scheduler,
        progress=progress,
    ).profile


def characterise(
    *traces: PathLike,
    job: PathLike | Job | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    phase_gap: float | None = None,
    files: int | None = 100,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Characterised:
    """Like `profile`, but keeps what was measured, for graphs."""
    from vani.analyzers.characterise import Options  # noqa: PLC0415 - loads Arrow
    from vani.analyzers.characterise import characterise as run  # noqa: PLC0415
    from vani.engine.run import Engine  # noqa: PLC0415
    from vani.readers.open import open_workload  # noqa: PLC0415

    if phase_gap is not None and not 0 < phase_gap < 1e9:
        raise InputError(f"a phase gap of {phase_gap} s", todo="give a positive number of seconds")
    job_model, system_model = _job(job), _system(system)
    workload = open_workload([Path(t) for t in traces])
    engine = Engine(scheduler, progress=progress)
    refused = [(str(path), str(error)) for path, error in workload.refused]
    with ExitStack() as stack:
        stack.callback(engine.close)
        folder = _store_folder(store, stack)
        stores: list[Store] = []
        readers: list[TraceReader] = []
        for reader in workload.readers:
            try:
                stores.append(_stored(reader, folder, engine))
                readers.append(reader)
            except TraceError as error:
                if len(workload.readers) == 1:
                    raise
                refused.append((str(reader.path), str(error)))
        if not stores:
            raise TraceError(f"no trace can be read: {refused[0][1]}")
        names = [_app(reader, job_model) for reader in readers]
        found, view = run(
            stores,
            names,
            engine,
            version=vani.__version__,
            job_=job_model,
            system=system_model,
            options=Options(phase_gap_s=phase_gap, list_files=files),
            refused=refused,
        )
    return Characterised(found, view)


def convert(
    trace: PathLike, store: PathLike, *, scheduler: str | None = None, progress: Progress | None = None
) -> list[Path]:
    """Decode a trace into a Parquet dataset at `store`; for a directory of traces, one below it for each.

    Returns
    -------
    list of Path
        The stores written, each with a manifest.json.

    Raises
    ------
    InputError
        A trace that cannot be read, or a place that cannot be written.
    """
    from vani.engine.run import Engine  # noqa: PLC0415
    from vani.readers.open import open_workload  # noqa: PLC0415
    from vani.store.write import write_store  # noqa: PLC0415

    target = Path(store)
    if (
        target.exists()
        and not (target / "manifest.json").is_file()
        and (not target.is_dir() or any(target.iterdir()))
    ):
        raise InputError("exists and is no store", where=target, todo="name a new folder")
    if Path(trace).is_dir() and target.resolve().is_relative_to(Path(trace).resolve()):
        raise InputError("lies inside the trace", where=target, todo="name a folder beside it")
    workload = open_workload([Path(trace)])
    for path, error in workload.refused:
        raise error if isinstance(error, VaniError) else TraceError(str(error), where=path)
    engine = Engine(scheduler, progress=progress)
    places = []
    try:
        for reader in workload.readers:
            place = target if len(workload.readers) == 1 else target / reader.path.name
            write_store(
                reader, place, version=vani.__version__, run=lambda f, t: engine.map(f, t, stage="decode")
            )
            places.append(place)
    finally:
        engine.close()
    return places


def advise(
    profile: PathLike | Profile,
    *,
    system: PathLike | System | None = None,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    thresholds: Mapping[str, Mapping[str, int | float | str]] | None = None,
    config: PathLike | None = None,
    files: int | None = JUDGED_FILES,
) -> Advice:
    """Judge a profile by every rule of the catalogue.

    Parameters
    ----------
    profile
        A profile, or the path of one.
    system
        A machine's description: its path, a bundled machine's name, or the model.
    select, ignore
        Ids (or beginnings of ids, such as `LUS`) of rules to run, and not to run.
    thresholds
        By a rule's id or name, values by the name of its threshold; they win over those of `config`.
    config
        A TOML file whose table `[advise]` holds thresholds, `select` and `ignore` (see `vani.advisors.settings`);
        `select` given here replaces the file's, what is ignored adds up.
    files
        Of a profile that lists more files, judge those with the most I/O time; None judges all.

    Raises
    ------
    InputError
        A document that cannot be read, or a rule or threshold that does not exist.
    """
    from vani.schema.reading import Reading  # noqa: PLC0415

    # A long profile is read while the rules are imported.
    source = Reading(profile) if isinstance(profile, (str, Path)) else profile
    from vani.advisors.judge import advise_document  # noqa: PLC0415
    from vani.advisors.settings import Settings, read_settings  # noqa: PLC0415

    settings = Settings() if config is None else read_settings(Path(config))
    merged = {key: dict(values) for key, values in settings.thresholds.items()}
    for key, values in (thresholds or {}).items():
        merged[key] = merged.get(key, {}) | dict(values)
    return advise_document(
        source,
        _system(system),
        select=settings.select if select is None else select,
        ignore=[*settings.ignore, *(ignore or ())],
        thresholds=merged,
        files=files,
    )


def _job(job: PathLike | Job | None) -> Job | None:
    if job is None or not isinstance(job, (str, Path)):
        return job
    from vani.schema.job import Job as Model  # noqa: PLC0415

    return Model.load(job)


def _system(system: PathLike | System | None) -> System | None:
    if system is None or not isinstance(system, (str, Path)):
        return system
    from vani.systems import load_system  # noqa: PLC0415

    return load_system(system)


def _store_folder(store: PathLike | None, stack: ExitStack) -> Path:
    """Where stores are kept: the user's place, the cache, or a temporary folder if that cannot be written."""
    from vani.store.cache import cache_directory, sweep  # noqa: PLC0415

    if store is not None:
        folder = Path(store)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot be made ({error.strerror})", where=folder, todo="name a folder that can be written"
            ) from error
        return folder
    folder = cache_directory() / "stores"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vani-")))
    sweep(folder)
    return folder


def _stored(reader: TraceReader, folder: Path, engine: Any) -> Store:
    """The store of a trace: the one there is if it is whole and current, else a new one."""
    from vani.store.cache import find_store, store_path  # noqa: PLC0415
    from vani.store.read import open_store  # noqa: PLC0415
    from vani.store.write import write_store  # noqa: PLC0415

    digest = reader.digest()
    place = store_path(folder, reader.path.resolve().name, digest)
    found = find_store(place, digest)
    if found is not None:
        return found
    write_store(reader, place, version=vani.__version__, run=lambda f, t: engine.map(f, t, stage="decode"))
    return open_store(place)


def _app(reader: TraceReader, job: Job | None) -> str:
    """Name of a trace's app: from job.yaml, else from the trace's directory."""
    if job is not None:
        name = job.apps.get(reader.path.resolve().name)
        if name:
            return name
    return reader.app
