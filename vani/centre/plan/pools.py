"""The pools of I/O nodes that `vani plan job` shares, and the choice of a job's pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vani.centre.plan.inputs import plan_input
from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.schema.jobs import JobPool, SharingSettings
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError
from vani.schema.document import read_text

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import PlanInput
    from vani.centre.prolog.state import JobFacts

Source = tuple[Path | None, Path | None]
"""Sources of I/O node names: a snapshot and a hosts file."""


@dataclass(frozen=True)
class Pool:
    """Working I/O nodes, the least loaded first, and the number of each in GekkoFWD's hosts file.

    `name` comes from the settings, None for the pool of the command's options. `takes` selects jobs; None accepts
    all that no other pool accepts.
    """

    working: tuple[str, ...]
    numbers: Mapping[str, int]
    inputs: tuple[PlanInput, ...] = ()
    name: str | None = None
    takes: JobPool | None = None
    snapshot: Snapshot | None = None


def pools_of(rules: SharingRules) -> list[Pool]:
    """All pools in the order in which jobs are offered to them; the last is the pool of the command's options.

    Raises
    ------
    InputError
        A document cannot be used, a named I/O node is in none of them, or there is no pool at all.
    """
    if rules.settings is None:
        return [pool_of(rules)]
    settings = sharing_settings(rules)
    listed = [(_source(pool, rules), pool) for pool in settings.pools]
    taken: dict[Source, set[str]] = defaultdict(set)
    for source, pool in listed:
        taken[source].update(pool.io_nodes if isinstance(pool.io_nodes, list) else ())
    pools = [_part(pool, source, taken[source], rules) for source, pool in listed]
    if not pools or any(given is not None for given in (rules.io_nodes, rules.snapshot, rules.hosts_file)):
        pools.append(_rest(rules, taken[rules.snapshot, rules.hosts_file]))
    return pools


def sharing_settings(rules: SharingRules) -> SharingSettings:
    """The document of `--settings`; an empty one without that option.

    Raises
    ------
    DocumentError
        It is not a settings document.
    """
    if rules.settings is None:
        return SharingSettings()
    settings = SharingSettings.load(rules.settings)
    settings.refuse_twins(str(rules.settings))
    return settings


def pool_for(job: JobFacts, pools: Sequence[Pool]) -> Pool | None:
    """The first pool that accepts a job; None if no pool does."""
    return next(
        (
            pool
            for pool in pools
            if pool.takes is None
            or pool.takes.takes(partition=job.partition, account=job.account, qos=job.qos)
        ),
        None,
    )


def _source(pool: JobPool, rules: SharingRules) -> Source:
    assert rules.settings is not None
    folder = rules.settings.parent
    return (
        rules.snapshot if pool.snapshot is None else folder / pool.snapshot,
        rules.hosts_file if pool.hosts_file is None else folder / pool.hosts_file,
    )


def _part(pool: JobPool, source: Source, taken: set[str], rules: SharingRules) -> Pool:
    """A pool of the settings, with I/O nodes that no earlier pool took, which are added to `taken`.

    A pool given as a number takes I/O nodes in their numbering: if one fails, the others do not move up.
    """
    where = f"{rules.settings}: pool {pool.name}"
    own = rules.model_copy(update={"snapshot": source[0], "hosts_file": source[1], "io_nodes": None})
    if source == (None, None):
        if not isinstance(pool.io_nodes, int):
            todo = "add one, or a number of I/O nodes"
            raise InputError("names no snapshot and no file of hosts", where=where, todo=todo)
        return replace(pool_of(own.model_copy(update={"io_nodes": pool.io_nodes})), name=pool.name, takes=pool)
    whole = pool_of(own)
    if isinstance(pool.io_nodes, list):
        names = pool.io_nodes
        unknown = next((node for node in names if node not in whole.numbers), None)
        if unknown is not None:
            todo = "see the snapshot or the file of hosts"
            raise InputError(f"there is no I/O node {unknown!r}", where=where, todo=todo)
    else:
        names = [node for node in whole.numbers if node not in taken][: pool.io_nodes]
        if not names:
            raise InputError("no I/O nodes are left for it", where=where, todo="see the pools before it")
    taken.update(names)
    return replace(
        whole, working=tuple(node for node in whole.working if node in names), name=pool.name, takes=pool
    )


def _rest(rules: SharingRules, taken: set[str]) -> Pool:
    """The pool of the command's options, without the I/O nodes in pools of the settings."""
    if rules.snapshot is None and rules.hosts_file is None:
        return pool_of(rules)
    whole = pool_of(rules.model_copy(update={"io_nodes": None}))
    working = [node for node in whole.working if node not in taken]
    return replace(whole, working=tuple(working[: rules.io_nodes]))


def pool_of(rules: SharingRules) -> Pool:
    """The I/O nodes to share: working ones in the snapshot, those in the hosts file, or plain numbers.

    Raises
    ------
    InputError
        None of these is given, or the snapshot cannot be used.
    """
    hosts = None if rules.hosts_file is None else _forwarding_hosts(rules.hosts_file)
    if rules.snapshot is not None:
        snapshot = Snapshot.load(rules.snapshot)
        nodes = snapshot.forwarding
        known = [node.name for node in nodes] if hosts is None else hosts
        working = [
            (node.load is None, node.load or 0.0, place)
            for place, node in enumerate(nodes)
            if node.state == "ok" and node.name in known
        ]
        names = [nodes[place].name for *_, place in sorted(working)]
        inputs = (plan_input("snapshot", rules.snapshot),)
        return Pool(tuple(names[: rules.io_nodes]), _numbers(known), inputs, snapshot=snapshot)
    if hosts is not None:
        return Pool(tuple(hosts[: rules.io_nodes]), _numbers(hosts))
    if rules.io_nodes is None or not 0 <= rules.io_nodes <= 100_000:
        raise InputError(
            "is not given, or not 0 to 100,000", where="--io-nodes", todo="give it, or --snapshot"
        )
    names = [str(number) for number in range(rules.io_nodes)]
    return Pool(tuple(names), _numbers(names))


def _numbers(names: Sequence[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def _forwarding_hosts(path: Path) -> list[str]:
    """Host names in GekkoFS' hosts file, the first word of each line, in the order of their numbers."""
    names = [words[0] for line in read_text(path).splitlines() if (words := line.split())]
    wrong = next(
        (name for name in names if not name.isprintable() or any(sign in name for sign in "\"'`\\$,")), None
    )
    if wrong is not None or len(set(names)) < len(names) or not names:
        what = "names no host" if not names else "names a host twice, or an invalid host name"
        raise InputError(
            what, where=path, todo="give GekkoFS' file of hosts: a host and its address in each line"
        )
    return names
