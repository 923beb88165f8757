"""Vani as a library: what the commands do, for programs::

    import vani
    profile = vani.profile("traces/ior")
    profile.save("profile.yaml")
    profile.frame("files")

A trace or a document that cannot be used raises an `InputError`, whose text is one line for the user.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import vani
from vani.errors import InputError, NoRoomError, StoreError, TraceError, VaniError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from vani.analyzers.entities.view import View
    from vani.calls import Occurrences
    from vani.engine.run import Progress
    from vani.gate.advice import AskedRules
    from vani.gate.policy import Asked
    from vani.gate.reading import Figures
    from vani.readers.base import CountsCalls, TraceReader
    from vani.render.report.prepared import Inputs
    from vani.schema.advice import Advice
    from vani.schema.check import Check, Level
    from vani.schema.diff import Diff
    from vani.schema.job import Job
    from vani.schema.profile import Profile, TraceEntity
    from vani.schema.system import System
    from vani.schema.timeline import HeatMap
    from vani.store.kept import Room
    from vani.store.locks import InUse
    from vani.store.manifest import Manifest
    from vani.store.read import Store

__all__ = [
    "JUDGED_FILES",
    "Characterised",
    "advise",
    "baseline_figures",
    "characterise",
    "check",
    "convert",
    "diff",
    "files_of_gate",
    "heat_map",
    "profile",
    "report",
    "save_baseline",
]

PathLike = str | Path

Result = TypeVar("Result")

_TRIES = 3

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
    quick: bool = False,
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
    quick
        Count calls on the grammars alone, without reading time stamps or decoding a call: what hangs on times or on
        the order of calls is null. For Recorder traces only; `store`, `scheduler` and `progress` are not used.
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
    if quick:
        if phase_gap is not None:
            raise InputError("quick profiles have no phases", todo="leave the phase gap or --quick out")
        return _quick_profile(traces, _job(job), _system(system), files)
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


def _quick_profile(
    traces: Sequence[PathLike], job: Job | None, system: System | None, files: int | None
) -> Profile:
    from vani.analyzers.quick.counts import Trace  # noqa: PLC0415 - loads Arrow
    from vani.analyzers.quick.profile import quick_profile  # noqa: PLC0415
    from vani.readers.base import CountsCalls  # noqa: PLC0415
    from vani.readers.identity import unchanged  # noqa: PLC0415
    from vani.readers.open import open_workload  # noqa: PLC0415

    workload = open_workload([Path(t) for t in traces])
    found = []
    with ExitStack() as stack:
        for reader in workload.readers:
            stack.enter_context(unchanged(reader))
            if not isinstance(reader, CountsCalls):
                raise InputError(
                    f"is a trace of {reader.tool}, which has no grammar to count calls on",
                    where=reader.path,
                    todo="leave --quick out",
                )
            names = reader.functions()
            functions = dict(zip(names["func"].to_pylist(), names["name"].to_pylist(), strict=True))
            found.append(Trace(_tables_of(reader), reader.files(), functions, _counted_once(reader)))
        return quick_profile(
            found,
            [_app(reader, job) for reader in workload.readers],
            version=vani.__version__,
            job_=job,
            system=system,
            list_files=files,
            refused=[(str(path), str(error)) for path, error in workload.refused],
        )


def _counted_once(reader: CountsCalls) -> Occurrences:
    """The occurrences of a trace whose tables are forgotten once they have been counted."""
    from vani.calls import Occurrences  # noqa: PLC0415 - loads Arrow
    from vani.allocator import give_back  # noqa: PLC0415
    from vani.readers.base import KeepsTables  # noqa: PLC0415

    counted = reader.occurrences()

    def batches() -> Iterator[RecordBatch]:
        yield from counted.batches()
        if isinstance(reader, KeepsTables):
            reader.release()
            give_back()

    return Occurrences(counted.group_of_rank, batches)


def _tables_of(reader: TraceReader) -> Manifest:
    """What a store's manifest says that is known before a call is read."""
    from vani.store.manifest import Manifest  # noqa: PLC0415

    problems = list(reader.problems)
    return Manifest(
        source=str(reader.path.resolve()),
        digest="",
        tool=reader.tool,
        format=reader.format,
        layout=reader.layout,
        app=reader.app,
        ranks=reader.ranks,
        records=0,
        start_unix_s=reader.start_unix_s,
        first_ns=None,
        span_ns=0,
        functions={},
        complete=not problems,
        problems=problems,
        limits=[(limit.attribute, limit.why) for limit in reader.limits],
        repaired_times=0,
        facts=[(name, list(args), often) for name, args, often in reader.facts()],
        parts=[],
        vani=vani.__version__,
        columns=[],
    )


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
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from vani.readers.open import open_workload  # noqa: PLC0415 - loads Arrow

    if phase_gap is not None and not 0 < phase_gap < 1e9:
        raise InputError(f"a phase gap of {phase_gap} s", todo="give a positive number of seconds")
    with ExitStack() as stack:
        place = _store_place(store, stack)
        with ThreadPoolExecutor(1) as other:
            # Tables are read while the analyzers are loaded.
            opening = other.submit(
                open_workload,
                [Path(t) for t in traces],
                decoded=lambda reader: _store_of(reader, place, hold=False) is not None,
            )
            from vani.analyzers.characterise import Options  # noqa: PLC0415
            from vani.analyzers.characterise import characterise as run  # noqa: PLC0415
            from vani.engine.run import Engine  # noqa: PLC0415

            job_model, system_model = _job(job), _system(system)
            workload = opening.result()
        engine = Engine(scheduler, progress=progress)
        stack.callback(engine.close)
        refused = [(str(path), str(error)) for path, error in workload.refused]
        engine.check(version=vani.__version__, reads=[r.path for r in workload.readers], writes=place.folder)
        from vani.store.kept import Room  # noqa: PLC0415

        def from_stores(stores: list[Store]) -> Characterised:
            readers: list[TraceReader] = []
            lost = list(refused)
            room = Room() if engine.shares_memory else None
            for reader in workload.readers:
                try:
                    stores.append(_stored(reader, place, engine, room))
                    readers.append(reader)
                except TraceError as error:
                    if len(workload.readers) == 1:
                        raise
                    lost.append((str(reader.path), str(error)))
            if not stores:
                raise TraceError(f"no trace can be read: {lost[0][1]}")
            names = [_app(reader, job_model) for reader in readers]
            found, view = run(
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

        return _while_stores_vanish(from_stores)


def convert(
    trace: PathLike,
    store: PathLike,
    *,
    call_sites: bool = False,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Decode a trace into a Parquet dataset at `store`; for a directory of traces, one below it for each.

    Parameters
    ----------
    call_sites
        Keep from which place in a program or library each call was made.
    scheduler, progress
        As in `profile`.

    Returns
    -------
    list of Path
        The stores written, each with a manifest.json.

    Raises
    ------
    InputError
        A trace that cannot be read or has no call sites that were asked for, or a place that cannot be written.
    """
    from vani.engine.run import Engine  # noqa: PLC0415
    from vani.readers.open import open_workload  # noqa: PLC0415
    from vani.store.write import check_call_sites, write_store  # noqa: PLC0415

    target = Path(store)
    if (
        target.exists()
        and not (target / "manifest.json").is_file()
        and (not target.is_dir() or any(target.iterdir()))
    ):
        raise InputError("exists and is no store", where=target, todo="name a new folder")
    if Path(trace).is_dir() and target.resolve().is_relative_to(Path(trace).resolve()):
        raise InputError("lies inside the trace", where=target, todo="name a folder beside it")
    if Path(trace).resolve().is_relative_to(target.resolve()):
        raise InputError("holds the trace, and would be replaced", where=target, todo="name a new folder")
    workload = open_workload([Path(trace)])
    for path, error in workload.refused:
        raise error if isinstance(error, VaniError) else TraceError(str(error), where=path)
    if call_sites:
        for reader in workload.readers:
            check_call_sites(reader)
    engine = Engine(scheduler, progress=progress)
    places = []
    try:
        engine.check(version=vani.__version__, reads=[r.path for r in workload.readers], writes=target.parent)
        for reader in workload.readers:
            place = target if len(workload.readers) == 1 else target / reader.path.name
            run = _decoding(reader, engine)
            write_store(reader, place, version=vani.__version__, run=run, call_sites=call_sites)
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


def check(
    profile: PathLike | Profile,
    *,
    policy: PathLike | None = None,
    search: bool = True,
    baselines: Sequence[PathLike] = (),
    system: PathLike | System | None = None,
    fail_on: Level | None = None,
    allow_empty: bool = False,
    update_baseline: bool = False,
    today: date | None = None,
    progress: Progress | None = None,
) -> Check:
    """Hold a profile against a policy and against the runs of a baseline.

    Parameters
    ----------
    profile
        A profile, its path, or the directory of a trace, which is profiled first (all files listed).
    policy
        vani.toml or .vani.yaml; None: the nearest one from the working directory upwards, if `search`.
    baselines
        Baselines or profiles, folders or globs of them, instead of what the policy names.
    system
        The machine that rules judge by, instead of the policy's.
    fail_on
        The least level that makes the verdict `fail`, instead of the policy's.
    allow_empty
        Nothing to check is a pass.
    update_baseline
        Afterwards, whatever the verdict, make the baseline anew from this profile alone.
    today
        The day that exceptions are judged by; that of UTC by default.

    Raises
    ------
    InputError
        A document that cannot be used, or nothing to check.
    """
    from vani.gate import baselines as saved  # noqa: PLC0415 - loads the models
    from vani.gate.verdict import columns_asked, judge  # noqa: PLC0415

    asked = _asked(policy, search=search)
    target = None
    if update_baseline:
        target = saved.update_place(asked, [Path(one) for one in baselines])
    columns = columns_asked(asked)
    files = max(JUDGED_FILES if asked.rules else 1, saved.FILES if target else 1)
    figures = _figures(profile, columns, files, system=system, progress=progress)
    places = saved.chosen(asked, [str(one) for one in baselines], missing_ok=update_baseline)
    earlier = [saved.read_runs(place, columns) for place in places]
    found = judge(
        asked,
        figures,
        [run for one in earlier for run in one.runs],
        [one.source for one in earlier],
        _asked_rules(asked, figures, system),
        today=today or datetime.now(UTC).date(),
        fail_on=fail_on,
        allow_empty=allow_empty or update_baseline,
        version=vani.__version__,
    )
    if target is not None:
        saved.write(saved.baseline_of([saved.run_of(figures)], asked.strip), target)
    return found


def save_baseline(
    *profiles: PathLike | Profile,
    output: PathLike | None = None,
    add: bool = False,
    keep: int = 10,
    policy: PathLike | None = None,
    search: bool = True,
    system: PathLike | System | None = None,
    progress: Progress | None = None,
) -> Path:
    """Make a baseline of profiles or traces, each of them one run; returns where it was written.

    Parameters
    ----------
    output
        Where; by default what the policy names, or .vani/baseline.yaml beside it.
    add, keep
        Behind the runs that are there already, of which the newest stay, `keep` in all.

    Raises
    ------
    InputError
        A document that cannot be used, or a file there that is no baseline.
    """
    from vani.gate import baselines as saved  # noqa: PLC0415 - loads the models

    asked = _asked(policy, search=search)
    place = saved.place_of(asked) if output is None else Path(output)
    saved.check_place(place)
    runs = []
    if add and place.is_file():
        earlier = saved.read_runs(place, saved.FILE_COLUMNS)
        runs += list(zip(earlier.made, earlier.runs, strict=True))
    for one in profiles:
        runs.append(saved.run_of(_figures(one, (), saved.FILES, system=system, progress=progress)))
    saved.write(saved.baseline_of(runs[-keep:] if add else runs, asked.strip), place)
    return place


def baseline_figures(
    *files: PathLike, policy: PathLike | None = None
) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """What baselines hold: each file with its number of runs, and key figures of all runs as text.

    Parameters
    ----------
    files
        Baselines or profiles, folders or globs of them; by default what the policy names.

    Raises
    ------
    InputError
        A file that is no baseline, or there is none.
    """
    from vani.gate import baselines as saved  # noqa: PLC0415 - loads the models
    from vani.gate.show import key_figures  # noqa: PLC0415

    asked = _asked(policy, search=True)
    places = saved.chosen(asked, [str(one) for one in files])
    if not places:
        raise InputError(
            "there is no baseline here or above", todo="make one with `vani baseline save PROFILE`"
        )
    earlier = [saved.read_runs(place, saved.FILE_COLUMNS) for place in places]
    sources = [(one.source.path, len(one.runs)) for one in earlier]
    return sources, key_figures([run for one in earlier for run in one.runs])


def diff(
    a: PathLike | Profile,
    b: PathLike | Profile,
    *,
    strip: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Diff:
    """Compare two profiles, traces or baselines, attribute by attribute.

    Parameters
    ----------
    strip
        Beginnings of paths that differ from run to run; None: those of the nearest policy.

    Raises
    ------
    InputError
        A document that cannot be used.
    """
    from vani.gate.baselines import read_runs  # noqa: PLC0415 - loads the models
    from vani.gate.difference import FILE_COLUMNS, Side, compare  # noqa: PLC0415
    from vani.schema.check import Source  # noqa: PLC0415

    def side(one: PathLike | Profile) -> Side:
        if isinstance(one, (str, Path)) and Path(one).is_file():
            earlier = read_runs(Path(one), FILE_COLUMNS)
            return Side(
                earlier.source, earlier.runs, all(map(_lists_all_files, earlier.runs)), earlier.is_saved
            )
        figures = _figures(one, FILE_COLUMNS, 1, progress=progress)
        source = Source(path=figures.path, sha256=figures.sha256)
        return Side(source, (figures.tree,), _lists_all_files(figures.tree))

    found = _asked(None, search=True).strip if strip is None else strip
    return compare(side(a), side(b), strip=found, version=vani.__version__)


def files_of_gate(
    policy: PathLike | None = None, *, baselines: Sequence[PathLike] | None = ()
) -> Iterator[Path]:
    """The files beside profiles that `check`, `diff` and `save_baseline` read, for what must not be written over.

    Parameters
    ----------
    policy, baselines
        As for `check`; without baselines (None) only the policy and what it names.

    Raises
    ------
    InputError
        The policy cannot be used.
    """
    from vani.gate import baselines as saved  # noqa: PLC0415 - loads the models
    from vani.systems import files_of_system  # noqa: PLC0415

    asked = _asked(policy, search=True)
    if asked.path is not None:
        yield asked.path
    if baselines is None:
        return
    yield from saved.chosen(asked, [str(one) for one in baselines], missing_ok=True)
    if asked.table.system is not None:
        named = asked.folder / asked.table.system
        yield from files_of_system(named if named.is_file() else asked.table.system)


def _asked(policy: PathLike | None, *, search: bool) -> Asked:
    """What a policy asks: that of a file, the nearest one, or the built-in list."""
    from vani.gate.policy import find_policy, no_policy, project_folder, read_policy  # noqa: PLC0415

    path = Path(policy) if policy is not None else find_policy(Path()) if search else None
    return read_policy(path) if path is not None else no_policy(project_folder(Path()) if search else Path())


def _figures(
    profile: PathLike | Profile,
    columns: Collection[tuple[str, ...]],
    files: int,
    *,
    system: PathLike | System | None = None,
    progress: Progress | None = None,
) -> Figures:
    """A profile as a tree; a trace is held against a policy as its profile would be once it is written."""
    from vani.gate.reading import path_text, read_bytes, read_figures  # noqa: PLC0415

    if not isinstance(profile, (str, Path)):
        return read_figures(profile.to_yaml().encode(), "profile", columns, model_files=files)
    path = Path(profile)
    if path.is_dir():
        made = characterise(path, files=None, system=system, progress=progress).profile
        content = made.to_yaml().encode()
    else:
        content = read_bytes(path, todo="name a profile or a trace")
    return read_figures(content, path_text(path), columns, model_files=files)


def _lists_all_files(tree: Mapping[str, Any]) -> bool:
    total = tree.get("dataset", {}).get("files")
    return isinstance(total, int) and len(tree.get("files", ())) >= total


def _asked_rules(asked: Asked, figures: Figures, system: PathLike | System | None) -> AskedRules | None:
    """Ask the rules of the catalogue, if the policy wants to know what they say."""
    if asked.rules is None:
        _system(system)  # A misspelt name is told even where nobody asks about the machine.
        return None
    from vani.advisors.catalogue import find, pick  # noqa: PLC0415 - loads all rules
    from vani.advisors.judge import UNKNOWN_SYSTEM, judge  # noqa: PLC0415
    from vani.advisors.settings import Settings, settings_of  # noqa: PLC0415
    from vani.gate.advice import AskedRules  # noqa: PLC0415
    from vani.schema.advice import ProfileRef, SystemRef  # noqa: PLC0415

    table = asked.rules.table
    place = f"{asked.rules.place.path}:{asked.rules.place.line}"
    try:
        if system is None and asked.table.system is not None:
            named = asked.folder / asked.table.system
            machine = _system(named if named.is_file() else asked.table.system)
        else:
            machine = _system(system)
    except InputError as error:
        # What is wrong with a file is told with its own lines; a name that there is not, where it stands.
        where = error.where or ("" if system is not None else asked.where("system"))
        raise InputError(error.what, where=where, todo=error.todo) from None
    settings = settings_of(dict(asked.advise), asked.path or Path()) if asked.advise else Settings()
    try:
        forbidden = frozenset(rule.id for rule in pick(table.forbid)) if table.forbid else frozenset()
        levels = {find(name).id: level for name, level in table.levels.items()}
        pick(table.ignore)
    except InputError as error:
        raise InputError(error.what, where=place, todo=error.todo) from None
    try:
        advice = judge(
            figures.model,
            UNKNOWN_SYSTEM if machine is None else machine,
            profile_ref=ProfileRef(path=figures.path, sha256=figures.sha256),
            system_ref=SystemRef(name=None if machine is None else machine.name, sha256=""),
            select=settings.select,
            ignore=[*settings.ignore, *table.ignore],
            thresholds=settings.thresholds,
        )
    except InputError as error:
        # The words of `[advise]`: rules and thresholds that there are not.
        raise InputError(error.what, where=error.where or str(asked.path), todo=error.todo) from None
    return AskedRules(advice, forbidden, levels)


def heat_map(
    profile: PathLike | Profile,
    *,
    store: PathLike | None = None,
    decode: bool = True,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> HeatMap | str:
    """Lay the calls of a profile's traces out over time and processes.

    Parameters
    ----------
    profile
        A profile, or the path of one.
    store
        The store, or the folder of stores, that the profile was made from; the user's cache directory by default.
    decode
        Decode a trace that has no store there but still lies where the profile says.

    Returns
    -------
    HeatMap or str
        Time-resolved data, or the reason why there are none: traces and stores are gone, or hold other calls.

    Raises
    ------
    InputError
        The profile cannot be read, or `store` is no folder.
    """
    from vani.analyzers.heat_map import heat_map as run  # noqa: PLC0415 - loads Arrow
    from vani.engine.run import Engine  # noqa: PLC0415
    from vani.schema.profile import Profile as Model  # noqa: PLC0415

    if isinstance(profile, (str, Path)):
        profile = Model.load(profile)
    if store is not None and not Path(store).is_dir():
        raise InputError("no such folder", where=store, todo="name a store, or the folder of stores")
    # Whoever asked for a quick profile did not ask for the trace to be decoded.
    is_quick = profile.workflow.runtime_s is None
    decode = decode and not is_quick
    engine = Engine(scheduler, progress=progress)
    with ExitStack() as stack:
        stack.callback(engine.close)

        def from_stores(stores: list[Store]) -> HeatMap | str:
            why = _stores_of(profile, store, engine, stack, stores, decode=decode, is_quick=is_quick)
            return run(stores, [t.app for t in profile.traces], engine) if why is None else why

        found = _while_stores_vanish(from_stores)
        if isinstance(found, str):
            return found
    moved = profile.workflow.io.bytes
    if (sum(map(sum, found.read)), sum(map(sum, found.written))) != (moved.read or 0, moved.written or 0):
        return "the decoded calls move other numbers of bytes than the profile says; profile the trace again"
    return found


def _stores_of(
    profile: Profile,
    store: PathLike | None,
    engine: Any,
    stack: ExitStack,
    stores: list[Store],
    *,
    decode: bool,
    is_quick: bool,
) -> str | None:
    """Find the store of each trace of a profile; returns why one is not to be had."""
    from vani.store.cache import cache_directory  # noqa: PLC0415
    from vani.store.locks import InUse  # noqa: PLC0415
    from vani.store.lookup import store_of, stores_in  # noqa: PLC0415

    if not profile.traces:
        return "the profile names no trace"
    cache = cache_directory()
    if store is not None:
        pool = stores_in(Path(store))
    else:
        pool = [] if cache is None else stores_in(cache / "stores", profile.traces)
    in_use = InUse(stack)
    for trace in profile.traces:
        found = store_of(trace, pool)
        if found is not None and not in_use.hold(found.path):
            found = None
        if found is None and decode:
            reader = _reader_of(trace)
            if isinstance(reader, str):
                return reader
            place = store if store is None or not (Path(store) / "manifest.json").is_file() else None
            try:
                found = _stored(reader, _store_place(place, stack), engine)
            except TraceError as error:
                return f"the trace cannot be decoded: {error}"
        if found is None:
            what = f"it needs the decoded calls, and no store of {Path(trace.path).name} is at hand"
            if store is not None and (Path(store) / "manifest.json").is_file() and not pool:
                what += f" ({_why_not(Path(store))})"
            todo = "name its folder with --store"
            return f"{what}: {'profile the trace without --quick, or ' if is_quick else ''}{todo}"
        stores.append(found)
        pool = [s for s in pool if s.path != found.path]
    return None


def _why_not(store: Path) -> str:
    """Why a store that was named is not used."""
    from vani.store.read import open_store  # noqa: PLC0415

    try:
        open_store(store)
    except StoreError as error:
        return f"{error.where}: {error.what}"
    return f"{store} holds other calls"


def _reader_of(trace: TraceEntity) -> TraceReader | str:
    """The reader of a profile's trace where it still lies in its place and is the same, else what is wrong."""
    from vani.readers.open import open_trace  # noqa: PLC0415

    path = Path(trace.path)
    try:
        reader = open_trace(path)
        records = int(reader.calls_per_rank().sum())
    except InputError:
        return (
            f"it needs the decoded calls, but the trace {trace.path} is not there any more and no store of it "
            "is known: name the store's folder with --store, or profile the trace again"
        )
    if (reader.ranks, records) != (trace.ranks, trace.records) and trace.complete:
        return (
            f"the trace at {path} holds {records:,} calls of {reader.ranks} processes, the profile "
            f"{trace.records:,} of {trace.ranks}: profile it again"
        )
    return reader


def report(
    profile: PathLike | Profile,
    *,
    advice: PathLike | Advice | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    format: Literal["html", "markdown", "txt"] = "html",
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> str:
    """Write what a profile and its advice say, for people.

    Parameters
    ----------
    profile
        A profile, the path of one, or a directory that a tracer left, which is profiled first.
    advice
        Advice that was made from this profile; by default all rules are asked.
    system
        The machine, for the advice (and the profile, where it is made here).
    store
        The store, or the folder of stores, for what happened when; the user's cache directory by default.
    format
        `html`: one page that needs no network and has at most 2 MB; `markdown`: for a merge request, at most 60,000
        letters; `txt`: for a terminal of 80 columns.

    Raises
    ------
    InputError
        A document that cannot be read, or advice that was made from another profile.
    """
    found = report_inputs(
        profile,
        advice=advice,
        system=system,
        store=store,
        with_heat_map=format == "html",
        scheduler=scheduler,
        progress=progress,
    )
    return written_report(found, format)


def report_inputs(
    profile: PathLike | Profile,
    *,
    advice: PathLike | Advice | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    with_heat_map: bool = True,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Inputs:
    """What `report` writes from: the profile, its advice and what happened when.

    Parameters are those of `report`; without `with_heat_map` the calls are not looked at, for formats without plots.

    Raises
    ------
    InputError
        A document that cannot be read, or advice that was made from another profile.
    """
    from vani.render.report.prepared import Inputs  # noqa: PLC0415 - loads pydantic

    source: PathLike | Profile = profile
    if isinstance(profile, (str, Path)) and Path(profile).is_dir():
        # More files than a profile lists by default: the report shows datasets of many files as one row.
        source = characterise(
            profile, system=system, store=store, files=JUDGED_FILES, scheduler=scheduler, progress=progress
        ).profile
    model, digest = _document(source)
    judged = _advice(advice, source, model, digest, system)
    return Inputs(
        profile=model,
        profile_sha256=digest,
        advice=judged,
        heat=heat_map(model, store=store, scheduler=scheduler, progress=progress) if with_heat_map else "",
        rule_names=_rule_names(),
        version=vani.__version__,
        rule_findings=_rule_findings(),
    )


def written_report(inputs: Inputs, format: Literal["html", "markdown", "txt"]) -> str:
    """The report as `report` gives it."""
    if format == "markdown":
        from vani.render.report.markdown import markdown  # noqa: PLC0415

        return markdown(inputs)
    if format == "txt":
        from vani.render.report.text import text  # noqa: PLC0415

        return text(inputs)
    from vani.render.report.page import page  # noqa: PLC0415

    return page(inputs)


def _document(source: PathLike | Profile) -> tuple[Profile, str]:
    """A profile and the digest of its file, or of the YAML that it is written as."""
    import hashlib  # noqa: PLC0415

    from vani.schema.document import dumps, loads, read_text  # noqa: PLC0415
    from vani.schema.profile import Profile as Model  # noqa: PLC0415

    if not isinstance(source, (str, Path)):
        return source, hashlib.sha256(dumps(source).encode()).hexdigest()
    model = loads(read_text(source), Model, where=str(source))
    return model, hashlib.sha256(Path(source).read_bytes()).hexdigest()


def _advice(
    given: PathLike | Advice | None,
    source: PathLike | Profile,
    model: Profile,
    digest: str,
    system: PathLike | System | None,
) -> Advice:
    """The advice that was given for this profile, or what the rules say about it."""
    from vani.schema.advice import Advice as Model  # noqa: PLC0415

    if given is None:
        # Judged as a file, a profile has a name and its own digest in the advice.
        return advise(source if isinstance(source, (str, Path)) else model, system=system)
    found = Model.load(given) if isinstance(given, (str, Path)) else given
    if found.profile.sha256 != digest:
        raise InputError(
            "was made from another profile (its sha256 differs)",
            where=given if isinstance(given, (str, Path)) else "the advice",
            todo="run `vani advise` on this profile, or leave --advice out",
        )
    return found


def _rule_names() -> dict[str, str]:
    from vani.advisors.catalogue import rules  # noqa: PLC0415

    return {rule.id: rule.name for rule in rules()}


def _rule_findings() -> dict[str, str]:
    from vani.advisors.catalogue import rules  # noqa: PLC0415

    found = {}
    for rule in rules():
        # A rule of another distribution may have no docstring in this form: its name has to do.
        with suppress(VaniError):
            found[rule.id] = rule.page().finding
    return found


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


@dataclass(frozen=True)
class _StorePlace:
    """Where the stores of a run lie."""

    folder: Path
    in_use: InUse
    until: ExitStack
    """Ends with the run."""
    is_named: bool
    """By the user; else stores may lie elsewhere, too."""


def _store_place(store: PathLike | None, until: ExitStack) -> _StorePlace:
    """Where stores are kept: the user's place, the cache, or a temporary folder if that cannot be written."""
    from vani.store.cache import cache_directory, sweep  # noqa: PLC0415
    from vani.store.locks import InUse  # noqa: PLC0415

    in_use = InUse(until)
    if store is not None:
        folder = Path(store)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot be made ({error.strerror})", where=folder, todo="name a folder that can be written"
            ) from error
        return _StorePlace(folder.absolute(), in_use, until, is_named=True)
    if (cache := cache_directory()) is not None:
        with suppress(OSError):
            folder = (cache / "stores").absolute()
            folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            with tempfile.TemporaryFile(dir=folder):
                pass
            sweep(folder)
            return _StorePlace(folder, in_use, until, is_named=False)
    return _StorePlace(_temporary(until), in_use, until, is_named=True)


def _temporary(until: ExitStack) -> Path:
    return Path(until.enter_context(tempfile.TemporaryDirectory(prefix="vani-")))


def _stored(reader: TraceReader, place: _StorePlace, engine: Any, room: Room | None = None) -> Store:
    """The store of a trace: the one there is if it is whole and current, else a new one."""
    from vani.allocator import give_back  # noqa: PLC0415
    from vani.readers.base import KeepsTables  # noqa: PLC0415
    from vani.store.cache import own_place  # noqa: PLC0415
    from vani.store.read import open_store  # noqa: PLC0415

    found = _store_of(reader, place)
    if found is not None:
        return found
    name, digest = reader.path.resolve().name, reader.digest()
    path = own_place(place.folder, name, digest)
    try:
        kept = _decoded(reader, path, engine, room)
    except NoRoomError as error:
        if place.is_named:
            raise
        path = own_place(_elsewhere(reader, place, engine, error), name, digest)
        kept = _decoded(reader, path, engine, room)
    if isinstance(reader, KeepsTables):
        reader.release()
        give_back()
    place.in_use.hold(path)
    return open_store(path, kept, made_here=True)


def _decoded(reader: TraceReader, path: Path, engine: Any, room: Room | None) -> Any:
    """Decode a trace into a store; one that another run of this version made meanwhile stays."""
    from vani.store.cache import find_store  # noqa: PLC0415
    from vani.store.write import write_store  # noqa: PLC0415

    def is_there() -> bool:
        found = find_store(path, reader.digest())
        return found is not None and found.manifest.vani == vani.__version__

    run = _decoding(reader, engine)
    return write_store(reader, path, version=vani.__version__, run=run, room=room, unless=is_there)


def _elsewhere(reader: TraceReader, place: _StorePlace, engine: Any, error: NoRoomError) -> Path:
    """A temporary folder in place of a cache that takes nothing more, if workers see it."""
    try:
        folder = _temporary(place.until)
        engine.check(version=vani.__version__, reads=[reader.path], writes=folder)
    except (OSError, InputError):
        raise error from None
    return folder


def _store_of(reader: TraceReader, place: _StorePlace, *, hold: bool = True) -> Store | None:
    """The store of a trace, if it is whole and current; with `hold` it stays until the run ends."""
    from vani.store.cache import find_store, places_of  # noqa: PLC0415

    digest = reader.digest()
    for path in places_of(place.folder, reader.path.resolve().name, digest):
        if not path.is_dir() or (hold and not place.in_use.hold(path)):
            continue
        found = find_store(path, digest)
        if found is not None:
            return found
    return None


def _while_stores_vanish(work: Callable[[list[Store]], Result]) -> Result:
    """Do what reads stores, which it puts into the list that it gets; again where one vanished on the way."""
    for _ in range(_TRIES - 1):
        stores: list[Store] = []
        try:
            return work(stores)
        except StoreError:
            if stores and _all_there(stores):
                raise
    return work([])


def _all_there(stores: Sequence[Store]) -> bool:
    """Whether what cannot be read is at least still in its place."""
    from vani.store.cache import find_store  # noqa: PLC0415

    return all(find_store(one.path, one.manifest.digest) is not None for one in stores)


def _decoding(reader: TraceReader, engine: Any) -> Any:
    """Runs the tasks of `write_store` on the engine."""

    def run(function: Any, tasks: Any) -> Any:
        pieces = engine.map(function, tasks, stage="decode", constants=[reader])
        # Workers in other folders open the trace by its whole path: what they tell names it as the user did.
        there, here = (str(p / "_")[:-1] for p in (reader.path.absolute(), reader.path))
        if here != there:
            for piece in pieces:
                piece.problems = [text.replace(there, here) for text in piece.problems]
        return pieces

    return run


def _app(reader: TraceReader, job: Job | None) -> str:
    """Name of a trace's app: from job.yaml, else from the trace or its directory."""
    if job is not None:
        name = job.apps.get(reader.path.resolve().name)
        if name:
            return name
    return reader.app
