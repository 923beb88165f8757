"""Lines of a job script that bring files near the compute nodes, and the results back, for each kind of tier.

Lines for the shell are POSIX sh with every path quoted. Directives of batch systems (`#DW`, `#BB_LUA`, `#SBATCH`)
are no shell: they have no quotes, so a path that holds white space cannot be written in them, and a comment says so.
What each line means: Slurm's and HPE's burst-buffer guides, BeeGFS, UnifyFS and GekkoFS documentation, mpiFileUtils.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vani.advisors.commands import comment, quoted_path
from vani.advisors.launchers import LAUNCHERS, Launcher, launcher_of
from vani.models.staging import Tier
from vani.units import GiB

__all__ = ["Plan", "lines", "place", "shell_path"]

COPIERS = 8
"""Processes per node that copy: one stream of a parallel file system seldom fills a node's link (general knowledge)."""

_HIDDEN = "a path that cannot be written here is left out: type it yourself"


@dataclass(frozen=True)
class Plan:
    """What is to lie near the nodes.

    Parameters
    ----------
    name
        Of the folder there: a word.
    folders
        Folders of now, in the order of their new names under `name` (see `place`).
    stage_in, stage_out
        Copy before and after; `stage_out` goes to the folder of now, or where the tier is a link to it, beside it.
    total, per_node
        Bytes over all nodes and on each.
    everywhere
        Each node gets all files; else each gets a part, or the processes write there what they like.
    shared
        The nodes must see each other's files.
    survives
        Anything there must outlive the job.
    file
        The only file of the plan, where it is a single one.
    """

    name: str
    folders: tuple[str, ...]
    total: int
    per_node: int
    nodes: int | None
    scheduler: str | None
    stage_in: bool = False
    stage_out: bool = False
    everywhere: bool = False
    shared: bool = False
    survives: bool = False
    file: str | None = None

    @property
    def launcher(self) -> Launcher | None:
        """None where the script already runs on the only node, or nothing is known of the job."""
        if self.nodes == 1 or (self.nodes is None and self.scheduler is None):
            return None
        return launcher_of(self.scheduler)


def lines(tier: Tier, plan: Plan) -> list[str]:
    """The lines for this tier."""
    for key, make in _MAKERS.items():
        if key in tier.type:
            return [*_requests(tier), *make(tier, plan)]
    return [*_requests(tier), *_node_local(tier, plan)]


def place(tier: Tier, plan: Plan, folder: str) -> str:
    """Where a folder of now lies on the tier, in variables where the tier has some."""
    base = _base(tier, plan)
    below = posixpath.relpath(folder, _top(plan)) if folder != _top(plan) else ""
    return posixpath.join(base, below) if below and not below.startswith("..") else base


def shell_path(path: str) -> str | None:
    """A path that may hold variables such as `$USER`, as one word of sh; None as in `quoted_path`."""
    if not path or not path.isprintable():
        return None
    parts = re.split(r"(\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}))", path)
    if len(parts) == 1:
        return quoted_path(path)
    return "".join(
        f'"{part}"' if i % 2 else shlex.quote(part) if part else "" for i, part in enumerate(parts)
    )


def _top(plan: Plan) -> str:
    folders = plan.folders or (".",)
    if len(folders) == 1 or len({folder.startswith("/") for folder in folders}) > 1:
        return folders[0]
    return posixpath.commonpath(folders) or "."


def _base(tier: Tier, plan: Plan) -> str:
    for key, folder in _FOLDERS.items():
        if key in tier.type:
            return posixpath.join(folder(tier, plan), plan.name)
    return posixpath.join(tier.dir or "/dev/shm", plan.name)


def _requests(tier: Tier) -> list[str]:
    return [line for line in tier.request if line.isprintable()]


def _node_local(tier: Tier, plan: Plan) -> list[str]:
    launcher = plan.launcher
    each = f"{launcher.on_each()} " if launcher else ""
    made = comment("once on every node of the job:") if launcher is None and plan.nodes is None else []
    for folder in plan.folders:
        source, target = quoted_path(folder), shell_path(place(tier, plan, folder))
        if source is None or target is None:
            made += comment(_HIDDEN)
            continue
        made.append(f"{each}mkdir -p {target}")
        if plan.stage_in:
            made += _copy_in(source, target, plan, launcher)
            made += comment(f"then let the program read {target} where it reads {source}")
        elif plan.stage_out:
            made += comment(
                f"let the program write to {target} instead of {source}; after each write, and at the end:"
            )
            made.append(_copy_out(source, target, launcher))
        else:
            # A link serves programs whose folders cannot be changed; one that is there stays as it is.
            made += comment(f"give the program {target} instead of {source}, or where it takes none:")
            made.append(f"test -e {source} || test -h {source} || ln -s {target} {source}")
    return made


def _copy_in(source: str, target: str, plan: Plan, launcher: Launcher | None) -> list[str]:
    if plan.file is not None:
        one = quoted_path(plan.file)
        if one is None:
            return comment(_HIDDEN)
        if launcher is None:
            return [f"cp -p {one} {target}/"]
        copy = f"{target}/{shlex.quote(posixpath.basename(plan.file))}"
        return [f"{launcher.on_each()} dbcast {one} {copy}"]
    if launcher is None:
        return [f"mpirun -np {COPIERS} dcp -p {source}/ {target}/"]
    rank, size = (launcher.local, str(COPIERS)) if plan.everywhere else (launcher.rank, f"${launcher.size}")
    # dcp cuts files over all its processes, which is wrong where each node has its own folder: each process copies
    # whole files to its own node.
    script = (
        f'cd "$1" && find . -type f | sort | awk "NR % {size} == ${rank}" | while IFS= read -r f; '
        'do mkdir -p "$2/${f%/*}" && cp -p "$f" "$2/$f"; done'
    )
    what = "all files to each node" if plan.everywhere else "each node its own part of the files"
    return [*comment(what), f"{launcher.on_each(COPIERS)} sh -c '{script}' sh {source} {target}"]


def _copy_out(source: str, target: str, launcher: Launcher | None) -> str:
    if launcher is None:
        return f"mkdir -p {source} && cp -R -p {target}/. {source}/"
    script = 'mkdir -p "$2" && cp -R -p "$1/." "$2/"'
    return f"{launcher.on_each()} sh -c '{script}' sh {target} {source}"


def _datawarp(tier: Tier, plan: Plan) -> list[str]:
    mode = "striped" if plan.shared or plan.stage_in else "private"
    made = [f"#DW jobdw type=scratch capacity={_capacity(plan.total)} access_mode={mode}"]
    for folder in plan.folders:
        there = place(tier, plan, folder)
        if plan.file is not None:
            what, here, there = "file", plan.file, posixpath.join(there, posixpath.basename(plan.file))
        else:
            what, here = "directory", folder
        if _is_word(here) and _is_word(there):
            if plan.stage_in:
                made.append(f"#DW stage_in type={what} source={here} destination={there}")
            if plan.stage_out:
                made.append(f"#DW stage_out type=directory source={there} destination={folder}")
        else:
            made += comment(_HIDDEN)
        made += _instead(place(tier, plan, folder), folder)
    return made


def _rabbit(tier: Tier, plan: Plan) -> list[str]:
    kind = "lustre" if plan.shared or (plan.stage_in and not plan.everywhere) else "xfs"
    # Of xfs the capacity is that of a compute node, of lustre that of the job.
    size = _capacity(plan.total if kind == "lustre" else plan.per_node)
    made = [f"#DW jobdw type={kind} capacity={size} name={_RABBIT_NAME}"]
    for folder in plan.folders:
        there = place(tier, plan, folder)
        source = plan.file or folder
        if not (_is_word(source) and _is_word(there)):
            made += comment(_HIDDEN)
        else:
            if plan.stage_in:
                made.append(f"#DW copy_in source={source} destination={there}/")
            if plan.stage_out:
                made.append(f"#DW copy_out source={there} destination={folder}")
    if (plan.scheduler or "flux").lower() == "flux":
        made = [
            '#FLUX: -S dw="""',
            *(f"#FLUX: {line}" if line.startswith("#DW") else line for line in made),
            '#FLUX: """',
        ]
    for folder in plan.folders:
        made += _instead(place(tier, plan, folder), folder)
    return made


def _slurm(tier: Tier, plan: Plan) -> list[str]:
    access = "striped" if plan.shared or plan.stage_in else "private"
    made = [f'#SBATCH --bb="capacity={_capacity(plan.total)} access={access} type=scratch"']
    return made + _by_hand(tier, plan)


def _lua(tier: Tier, plan: Plan) -> list[str]:
    pool = f"pool={tier.name} " if re.fullmatch(r"[A-Za-z0-9_]+", tier.name) else ""
    made = [f"#BB_LUA {pool}capacity={-(-plan.total // GiB)}G"]
    made += comment("the site's script defines further options and where the space is mounted")
    return made + _by_hand(tier, plan)


def _beeond(tier: Tier, plan: Plan) -> list[str]:
    mount = shell_path(tier.dir or "/mnt/beeond")
    launcher = plan.launcher or LAUNCHERS["slurm"]
    made = [
        f"{launcher.hosts} > beeond.nodes",
        f"beeond start -n beeond.nodes -d /data/beeond -c {mount} -P -F -L /tmp",
        *comment("-d is a folder on a disk of each node: the site says which"),
    ]
    for folder in plan.folders:
        source, target = quoted_path(folder), shell_path(place(tier, plan, folder))
        if source is None or target is None:
            made += comment(_HIDDEN)
            continue
        made.append(f"mkdir -p {target}")
        if plan.stage_in:
            made.append(f"beeond-cp copy -n beeond.nodes {source} {target}")
        made += _instead(place(tier, plan, folder), folder)
        if plan.stage_out:
            made.append(f"beeond-cp copy -n beeond.nodes {target} {source}")
    return [*made, "beeond stop -n beeond.nodes -L -d"]


def _unifyfs(tier: Tier, plan: Plan) -> list[str]:
    made = [
        f"export UNIFYFS_LOGIO_SPILL_SIZE={max(plan.per_node, 4 * GiB)}",
        "export UNIFYFS_LOGIO_SPILL_DIR=/dev/shm",
    ]
    if not plan.survives:
        made += ["export UNIFYFS_CLIENT_FSYNC_PERSIST=off", "export UNIFYFS_CLEANUP=on"]
    if not plan.shared and not plan.stage_in:
        made += ["export UNIFYFS_CLIENT_LOCAL_EXTENTS=on", *comment("each rank reads only what it wrote")]
    ways = [(quoted_path(f), shell_path(place(tier, plan, f))) for f in plan.folders]
    stage_in = " --stage-in=stage-in.txt" if plan.stage_in else ""
    stage_out = " --stage-out=stage-out.txt" if plan.stage_out else ""
    for source, target in ways:
        if source is None or target is None:
            made += comment(_HIDDEN)
        elif plan.stage_in:
            made.append(
                f"find {source} -type f | while IFS= read -r f; do "
                f'printf \'"%s" "%s"\\n\' "$f" {target}/"${{f##*/}}"; done >> stage-in.txt'
            )
    made.append(f'unifyfs start --share-dir="$PWD"{stage_in}')
    for folder in plan.folders:
        made += _instead(place(tier, plan, folder), folder)
    made += comment("a file that another node reads must be laminated (chmod a-w) first")
    if plan.stage_out:
        made += comment(
            "stage-out.txt: a line per result, its path under /unifyfs and the one that it gets, in quotes"
        )
    return [*made, f"unifyfs terminate{stage_out}"]


def _gekkofs(tier: Tier, plan: Plan) -> list[str]:
    mount = shell_path(tier.dir or "/tmp/gekkofs")
    launcher = plan.launcher
    each = f"{launcher.on_each()} " if launcher else ""
    made = [
        'export LIBGKFS_HOSTS_FILE="$PWD"/gkfs_hosts.txt',
        f'{each}gkfs_daemon -r /dev/shm/gkfs -m {mount} -H "$LIBGKFS_HOSTS_FILE" &',
    ]
    for folder in plan.folders:
        source, target = quoted_path(folder), shell_path(place(tier, plan, folder))
        if source is None or target is None:
            made += comment(_HIDDEN)
            continue
        if plan.stage_in:
            made.append(f"LD_PRELOAD=libgkfs_intercept.so cp -R {source}/. {target}/")
        made += _instead(place(tier, plan, folder), folder)
        if plan.stage_out:
            made.append(f"LD_PRELOAD=libgkfs_intercept.so cp -R {target}/. {source}/")
    return [
        *made,
        *comment("start the program with LD_PRELOAD=libgkfs_intercept.so; no rename and no links there"),
    ]


def _by_hand(tier: Tier, plan: Plan) -> list[str]:
    """Copies by the job itself, on a tier that all of its nodes see."""
    made: list[str] = []
    for folder in plan.folders:
        source, target = quoted_path(folder), shell_path(place(tier, plan, folder))
        if source is None or target is None:
            made += comment(_HIDDEN)
            continue
        made.append(f"mkdir -p {target}")
        if plan.stage_in:
            made.append(f"mpirun -np {COPIERS} dcp -p {source}/ {target}/")
        made += _instead(place(tier, plan, folder), folder)
        if plan.stage_out:
            made.append(f"mpirun -np {COPIERS} dcp -p {target}/ {source}/")
    return made


def _instead(there: str, here: str) -> list[str]:
    target, source = shell_path(there), quoted_path(here)
    if target is None or source is None:
        return []
    return comment(f"give the program {target} instead of {source}")


def _capacity(size: int) -> str:
    return f"{max(1, -(-size // GiB))}GiB"


def _is_word(path: str) -> bool:
    """Whether a directive can hold the path: printable, and no white space in it."""
    return bool(path) and path.isprintable() and not re.search(r"\s", path) and not path.startswith("-")


_RABBIT_NAME = "vani"

_FOLDERS: dict[str, Callable[[Tier, Plan], str]] = {
    "datawarp": lambda _, plan: "$DW_JOB_STRIPED" if plan.shared or plan.stage_in else "$DW_JOB_PRIVATE",
    "rabbit": lambda *_: f"$DW_JOB_{_RABBIT_NAME}",
    "nnf": lambda *_: f"$DW_JOB_{_RABBIT_NAME}",
    "beeond": lambda tier, _: tier.dir or "/mnt/beeond",
    "unifyfs": lambda tier, _: tier.dir or "/unifyfs",
    "gekkofs": lambda tier, _: tier.dir or "/tmp/gekkofs",
    "gkfs": lambda tier, _: tier.dir or "/tmp/gekkofs",
    "lua": lambda tier, _: tier.dir or "$BB_LUA_DIR",
    "slurm": lambda tier, _: tier.dir or "$SLURM_BB_DIR",
}

_MAKERS: dict[str, Callable[[Tier, Plan], Sequence[str]]] = {
    "datawarp": _datawarp,
    "rabbit": _rabbit,
    "nnf": _rabbit,
    "beeond": _beeond,
    "unifyfs": _unifyfs,
    "gekkofs": _gekkofs,
    "gkfs": _gekkofs,
    "lua": _lua,
    "slurm": _slurm,
}
