"""Writes what a history shows about future jobs, for `vani plan job` to read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vani.atomic import write_text
from vani.centre.history.learned import Scale, job_learned, plain_pattern
from vani.centre.history.reading import unpack_profile
from vani.centre.history.rows import PlannedRun, StoredRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.plan.forward import access_of
from vani.centre.plan.job_settings import LearnSettings
from vani.centre.plan.running_jobs import is_file_name
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import Left
from vani.centre.prediction.behaviour.next_run import next_run
from vani.centre.prediction.behaviour.runs import kept_runs
from vani.centre.prediction.creations.next_files import creations_jobs, history_creations
from vani.cli.profile import profile
from vani.errors import InputError, StoreError, VaniError
from vani.schema.settings import PathLike
from vani.units import counted

if TYPE_CHECKING:
    import sqlalchemy as sa

    from vani.centre.plan.schema.jobs import AccessPattern, Creation, PlannedJob

_LATEST: Final = 400
"""Number of latest runs examined per scale."""
_MAX_CREATIONS: Final = 1000
_DAY_S: Final = 86400.0


@dataclass(frozen=True)
class LearnedDocument:
    """A document about one user's jobs of one name; `is_new` if it was rewritten."""

    path: Path
    jobs: Jobs
    is_new: bool


@dataclass(frozen=True)
class Learned:
    """The result of `plan_learn`."""

    documents: tuple[LearnedDocument, ...]
    left: tuple[Left, ...]


@dataclass(frozen=True)
class _Category:
    """Runs of one application by one user with one number of processes."""

    application: str
    user: str
    processes: int


def plan_learn(
    db: PathLike | None = None,
    folder: PathLike = "known",
    settings: LearnSettings | None = None,
    *,
    now: datetime | None = None,
    **fields: Any,
) -> Learned:
    """Write what the history shows about future jobs to `FOLDER/USER/NAME.yaml`, with a job for each scale.

    NAME is the job's name if its runs were planned, and otherwise the application's. A document written by a person
    is not changed, and nothing is removed. The same history gives the same bytes.

    Parameters
    ----------
    db
        As in `history_add`.
    settings, fields
        Which runs are used, or single fields of `LearnSettings`.
    now
        The time before which its `days` are; None: now.

    Raises
    ------
    InputError
        There is no history, it is anonymised, or a document cannot be written.
    """
    settings = LearnSettings.of(settings, **fields)
    since = (now or datetime.now(UTC)).timestamp() - settings.days * _DAY_S
    scales, left = _scales(db, since, settings.processes_per_node)
    best: dict[tuple[str, str], dict[tuple[int, int], tuple[float, PlannedJob]]] = defaultdict(dict)
    for user, scale in scales:
        spent = sum(run.slowest_s or 0.0 for run in scale.runs)
        of_name, size = best[user, scale.name], (scale.nodes, scale.processes)
        # A job may run several programs; the one with the longest I/O time counts.
        if size not in of_name or spent > of_name[size][0]:
            name = f"{counted(scale.nodes, 'node')}, {counted(scale.processes, 'process')}"
            of_name[size] = spent, job_learned(scale).model_copy(update={"name": name})
    documents = []
    for (user, name), jobs in sorted(best.items()):
        if not is_file_name(user) or not is_file_name(name):
            left.append(Left(name=f"{name} of {user}", reason="it cannot be a file name"))
            continue
        path = Path(folder) / user / f"{name}.yaml"
        written = _written(path, {size: job for size, (_, job) in jobs.items()})
        if isinstance(written, str):
            left.append(Left(name=str(path), reason=written))
        else:
            documents.append(written)
    return Learned(tuple(documents), tuple(left))


def _written(place: Path, jobs: Mapping[tuple[int, int], PlannedJob]) -> LearnedDocument | str:
    """Write the document if it is new or differs; or return why it was not changed."""
    before: dict[tuple[int, int], PlannedJob] = {}
    text = None
    if place.exists():
        try:
            known = Jobs.load(place)
        except InputError as error:
            return f"it exists but cannot be read, so it was not changed: {error.what}"
        if any(job.runs is None for job in known.jobs):
            return "a person wrote it: it was not changed"
        before = {(job.nodes, job.processes or 0): job for job in known.jobs}
        text = place.read_text(encoding="utf-8")
    merged = {**before, **jobs}
    document = Jobs(jobs=[merged[size] for size in sorted(merged)])
    is_new = document.to_yaml() != text
    if is_new:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, document.to_yaml())
    return LearnedDocument(place, document, is_new)


def _scales(
    place: PathLike | None, since: float, processes_per_node: int | None
) -> tuple[list[tuple[str, Scale]], list[Left]]:
    """Runs of each scale with the user's name, and what was left out."""
    scales, left = [], []
    store = Store(place)
    with store.reading() as connection:
        if read.fact(connection, "names") is not None:
            raise StoreError(
                "contains hashes, not names", where=store.name, todo="name a history with the names of users and files"
            )
        planned = {row.digest: row for row in read.rows(connection, PlannedRun) if row.digest is not None}
        groups = read.groups(connection, "category", read.Period(since, None))
        categories = sorted({(*group.pair, int(group.names[-1])) for group in groups})
        for application, user, processes in categories:
            category = _Category(application, user, processes)
            runs = _likely_runs(connection, category)
            by_size = _by_name_and_nodes(connection, runs, planned, processes_per_node, category)
            for (name, nodes), some in sorted(by_size.items(), key=lambda entry: (entry[0][0], entry[0][1] or 0)):
                if nodes is None:
                    what = f"{application} of {user} on {counted(processes, 'process')}"
                    reason = f"the number of nodes of {counted(len(some), 'run')} is unknown (--processes-per-node)"
                    left.append(Left(name=what, reason=reason))
                    continue
                pattern = _pattern(connection, some[-1])
                creations = _creations(place, category)
                scales.append((user, Scale(name, nodes, processes, some, planned, pattern, creations)))
    return scales, left


def _likely_runs(connection: sa.Connection, category: _Category) -> list[StoredRun]:
    """The latest runs with the most likely behaviour of the next run; all runs if none is likely."""
    wide = (category.application, category.user, category.processes)
    digests = read.latest_digests(connection, *wide, _LATEST)
    known = kept_runs(connection, category.application, category.user)
    if len(known):
        prediction = next_run(known, category.application, user=category.user, processes=category.processes)
        if prediction.behaviours:
            likely = prediction.behaviours[0].behaviour
            of_category = known.category == [name[:3] for name in known.names].index(wide)
            of_likely = of_category & (known.ids == likely)
            alike = {digest for digest, taken in zip(known.digests, of_likely.tolist(), strict=True) if taken}
            digests = [digest for digest in digests if digest in alike] or digests
    runs = read.rows_with(connection, StoredRun, digests)
    return sorted(runs, key=lambda run: (run.submitted or 0.0, run.digest))


def _by_name_and_nodes(
    connection: sa.Connection,
    runs: Sequence[StoredRun],
    planned: Mapping[str, PlannedRun],
    processes_per_node: int | None,
    category: _Category,
) -> dict[tuple[str, int | None], list[StoredRun]]:
    """Runs by job name and number of nodes, which is None if unknown."""
    plans = [planned[run.digest] for run in runs if run.digest in planned]
    names, sizes = {plan.name for plan in plans}, {plan.nodes for plan in plans}
    usual_name = next(iter(names)) if len(names) == 1 else category.application
    usual_nodes = next(iter(sizes)) if len(sizes) == 1 else None
    by_size: dict[tuple[str, int | None], list[StoredRun]] = defaultdict(list)
    for run in runs:
        plan = planned.get(run.digest)
        nodes = plan.nodes if plan is not None else usual_nodes or _nodes(connection, run)
        if nodes is None and processes_per_node is not None:
            nodes = -(-run.processes // processes_per_node)
        by_size[usual_name if plan is None else plan.name, nodes].append(run)
    return by_size


def _nodes(connection: sa.Connection, run: StoredRun) -> int | None:
    content = read.profile_content(connection, run.digest)
    return None if content is None else unpack_profile(content).job.nodes


def _pattern(connection: sa.Connection, run: StoredRun) -> AccessPattern | str:
    """The access pattern by the run's sums, by its profile, or by its log if that still exists."""
    plain = plain_pattern(run)
    if not isinstance(plain, str):
        return plain
    content = read.profile_content(connection, run.digest)
    try:
        if content is not None:
            access = access_of(unpack_profile(content))
            return plain if access is None else access[0]
        for path in read.paths_of(connection, [run.digest])[run.digest]:
            if Path(path).exists() and (access := access_of(profile(path))) is not None:
                return access[0]
    except (VaniError, OSError):
        return plain
    return plain


def _creations(place: PathLike | None, category: _Category) -> list[Creation] | str:
    try:
        prediction = history_creations(category.application, category.user, processes=category.processes, db=place)
        (job,) = creations_jobs(prediction).jobs
    except InputError as error:
        return error.what
    # The plan decides their stripe counts.
    creations = [creation.model_copy(update={"layout": None}) for creation in job.creations or []]
    if len(creations) > _MAX_CREATIONS:
        return f"{len(creations):,} files: more than {_MAX_CREATIONS:,} are not placed one by one"
    return creations
