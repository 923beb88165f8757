"""Lines of a job script that copy files near the compute nodes and results back, for each kind of tier.

Lines for the shell are POSIX sh with every path quoted. Directives of batch systems (`#DW`, `#BB_LUA`, `#SBATCH`)
are not shell. They have no quotes, so they cannot contain a path with white space; a comment states that.
Sources: Slurm's and HPE's burst-buffer guides, the documentation of BeeGFS, UnifyFS and GekkoFS, mpiFileUtils.
"""


import posixpath
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vani.advisors.commands import LAUNCHERS, Launcher, comment, launcher_of, quoted_path
from vani.models.staging import Tier
from vani.units import GiB

COPIERS = 8
"""Copying processes per node: one stream from a parallel file system seldom fills a node's link (general knowledge)."""

_HIDDEN = "a path that cannot be written here is left out: type it yourself"


@dataclass(frozen=True)
class Plan:
    """Files and folders to place near the nodes.

    Parameters
    ----------
    name
        Name of the folder on the tier: a single word.
    folders
        Present folders, in the order of their new names under `name` (see `place`).
    stage_in, stage_out
        Copy before and after the program. `stage_out` goes to the present folder, or next to it if that is a link to
        the tier.
    total, per_node
        Bytes over all nodes and on each.
    everywhere
        Every node gets all files. Otherwise each gets a part, or the processes write there as they like.
    shared
        The nodes must see each other's files.
    survives
        Something on the tier must outlive the job.
    files
        Names of the files to stage in from a single folder; empty: everything in the folders.
    """

    name: str
    folders: tuple[str, ...]
    total: int
    per_node: int
    nodes: int | None
    launcher_name: str | None
    stage_in: bool = False
    stage_out: bool = False
    everywhere: bool = False
    shared: bool = False
    survives: bool = False
    files: tuple[str, ...] = ()

    @property
    def launcher(self) -> Launcher | None:
        """Launcher for the job's nodes; None if the script already runs on the only node, or the job is unknown."""
        if self.nodes == 1 or (self.nodes is None and self.launcher_name is None):
            return None
        return launcher_of(self.launcher_name)


def name_of(folder: str, otherwise: str) -> str:
    """The name of a folder in characters that every shell and batch system accepts."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", posixpath.basename(folder.rstrip("/"))) or otherwise


def lines(tier: Tier, plan: Plan) -> list[str]:
    """The lines of a plan for a tier."""
    for key, make in _MAKERS.items():
        if key in tier.type:
            return [*_requests(tier, plan), *make(tier, plan)]
    return [*_requests(tier, plan), *_node_local(tier, plan)]


def place(tier: Tier, plan: Plan, folder: str) -> str:
    """New path of a folder on the tier. It may contain the tier's variables."""
    base = _base(tier, plan)
    below = posixpath.relpath(folder, _top(plan)) if folder != _top(plan) else ""
    return posixpath.join(base, below) if below and not below.startswith("..") else base


def shell_path(path: str) -> str | None:
    """Quote a path that may contain variables such as `$USER` as one word of sh; None as in `quoted_path`."""
    if not path or not path.isprintable():
        return None
    parts = re.split(r"(\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}))", path)
    if len(parts) == 1:
        return quoted_path(path)
    return "".join(f'"{part}"' if i % 2 else shlex.quote(part) if part else "" for i, part in enumerate(parts))


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


def _requests(tier: Tier, plan: Plan) -> list[str]:
    """Directives of the tier, with the plan's space on each node in place of `SIZE`."""
    size = f"{-(-max(plan.per_node, 1) // GiB)}Gi"
    return [line.replace("SIZE", size) for line in tier.request if line.isprintable()]


def _node_local(tier: Tier, plan: Plan) -> list[str]:
    if plan.stage_in:
        return _staged_in(tier, plan)
    return _drained(tier, plan) if plan.stage_out else _linked(tier, plan)


def _staged_in(tier: Tier, plan: Plan) -> list[str]:
    launcher = plan.launcher
    lines = _for_each_node(plan)
    for folder in plan.folders:
        source, target = quoted_path(folder), shell_path(place(tier, plan, folder))
        if source is None or target is None:
            lines += comment(_HIDDEN)
            continue
        lines.append(f"{_each(launcher)}mkdir -p {target}")
        lines += _copy_in(source, target, plan, launcher)
        lines += comment(f"then let the program read {target} where it reads {source}")
    return lines


def _linked(tier: Tier, plan: Plan) -> list[str]:
    """Replace folders with links while the script runs. Existing files stay aside, new files are copied back."""
    pairs = _pairs(tier, plan)
    if not pairs:
        return comment(_HIDDEN) if plan.folders else []
    word, each, base = _identifier(plan.name), _each(plan.launcher), _base(tier, plan)
    lines = comment(
        "before the program starts: links to the node in place of these folders; their present files wait in "
        "FOLDER.before"
    )
    lines += comment(
        f"a program that makes such a folder itself, and minds that it is there, is given one in {base} instead"
    )
    lines += _for_each_node(plan)
    lines.append(
        f'to_node_{word}() {{ {each}mkdir -p "$2" || return 1; if {_OWN_LINK}; then return 0; fi; '
        f"if {_IS_THERE.format('$1')}; then if {_IS_THERE.format('$1.before')}; then "
        'echo "$1.before already exists: move it away" >&2; return 1; fi; mv "$1" "$1.before" || return 1; fi; '
        'mkdir -p "$(dirname "$1")" && ln -s "$2" "$1"; }'
    )
    # Safe against interruption: copy only after the real folder is back, remove only after copying.
    lines.append(
        f'from_node_{word}() {{ if {_OWN_LINK}; then rm "$1"; '
        f'if {_IS_THERE.format("$1.before")}; then mv "$1.before" "$1"; else mkdir "$1"; fi; '
        f'{each}sh -c \'{_BRING_BACK}\' sh "$2" "$1"; fi; }}'
    )
    lines += comment(
        "at the end of the script, also after an error, all of it is copied back; first remove what is not needed"
    )
    calls = " ".join(f"from_node_{word} {old} {new} || :;" for old, new in pairs)
    lines.append(f"all_from_node_{word}() {{ {calls} }}")
    lines += _at_end(f"all_from_node_{word}")
    lines += [f"to_node_{word} {old} {new}" for old, new in pairs]
    if len(pairs) < len(plan.folders):
        lines += comment(_HIDDEN)
    return lines


def _drained(tier: Tier, plan: Plan) -> list[str]:
    """Copy a node's files to the file system while the run continues, and the last ones at the end."""
    pairs = _pairs(tier, plan)
    if not pairs:
        return comment(_HIDDEN)
    word, launcher = _identifier(plan.name), plan.launcher
    lines = _for_each_node(plan)
    lines += [f"{_each(launcher)}mkdir -p {new}" for _, new in pairs]
    lines += [line for old, new in pairs for line in comment(f"let the program write to {new} instead of {old}")]
    lines += comment(
        "whole files, unchanged for a minute, follow while the run continues, all others at the end of the script"
    )
    alongside = f"{launcher.alongside} " if launcher else ""
    copies = " ".join(f"{alongside}sh -c '{_DRAIN}' sh {new} {old} \"$1\" || :;" for old, new in pairs)
    lines.append(f"drain_{word}() {{ {copies} }}")
    # A `sleep` that outlives the script would keep the script's output open.
    lines.append(
        "( nap=; trap 'kill $nap 2>/dev/null; exit 0' TERM; while :; do sleep 60 >/dev/null 2>&1 & nap=$!; "
        f"wait \"$nap\"; drain_{word} '-mmin +1'; done ) & draining_{word}=$!"
    )
    lines.append(f"end_{word}() {{ kill \"$draining_{word}\" 2>/dev/null || :; drain_{word} ''; }}")
    lines += _at_end(f"end_{word}")
    return lines


_IS_THERE = 'test -e "{0}" || test -h "{0}"'

# True only for a link that these lines created; any other link is the user's.
_OWN_LINK = 'test -h "$1" && test "$(readlink "$1")" = "$2"'

_BRING_BACK = 'if test -d "$1"; then mkdir -p "$2" && cp -R -p "$1/." "$2/" && rm -rf "$1"; fi'

# Every file under its final name is complete, even if the node is lost.
_DRAIN = (
    'find "$1" -type f $3 | while IFS= read -r p; do f=${p#"$1"/}; if test ! -e "$2/$f" || test "$p" -nt "$2/$f"; '
    'then mkdir -p "$(dirname "$2/$f")" && cp -p "$p" "$2/$f.part" && mv "$2/$f.part" "$2/$f"; fi; done'
)


def _at_end(function: str) -> list[str]:
    """Call a function when the script ends for any reason. Other advice may do the same."""
    return [f'at_end="${{at_end-}} {function};"', "trap 'eval \"$at_end\"' EXIT", "trap 'exit 143' INT TERM"]


def _pairs(tier: Tier, plan: Plan) -> list[tuple[str, str]]:
    """Present and new folders as words of sh, without those that cannot be written in sh."""
    pairs = [(quoted_path(folder), shell_path(place(tier, plan, folder))) for folder in plan.folders]
    return [(old, new) for old, new in pairs if old is not None and new is not None]


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _each(launcher: Launcher | None) -> str:
    return f"{launcher.on_each()} " if launcher else ""


def _for_each_node(plan: Plan) -> list[str]:
    if plan.launcher is None and plan.nodes is None:
        return comment("for a job of one node; with several, make and copy the folders on each of them")
    return []


def _copy_in(source: str, target: str, plan: Plan, launcher: Launcher | None) -> list[str]:
    if plan.files and (launcher is None or plan.everywhere or len(plan.files) == 1):
        return [line for file in plan.files for line in _copy_file(file, target, launcher)]
    if launcher is None:
        return [_copy_all(source, target)]
    rank, size = (launcher.local, str(COPIERS)) if plan.everywhere else (launcher.rank, launcher.size_of(COPIERS))
    # dcp splits files over all its processes, which is wrong if each node has its own folder. Each process therefore
    # copies whole files to its own node.
    script = (
        f'cd "$1" && find . -type f | sort | awk "NR % {size} == ${rank}" | while IFS= read -r f; '
        'do mkdir -p "$2/${f%/*}" && cp -p "$f" "$2/$f"; done'
    )
    comment_text = "all files to each node" if plan.everywhere else "each node its own part of the files"
    return [*comment(comment_text), f"{launcher.on_each(COPIERS)} sh -c '{script}' sh {source} {target}"]


def _copy_file(file: str, target: str, launcher: Launcher | None, before: str = "") -> list[str]:
    """A line that copies a file to a folder; `before` precedes the command."""
    source = quoted_path(file)
    if source is None:
        return comment(_HIDDEN)
    if launcher is None:
        return [f"{before}cp -p {source} {target}/"]
    copy = f"{target}/{shlex.quote(posixpath.basename(file))}"
    return [
        f"if command -v dbcast >/dev/null; then {launcher.on_each()} dbcast {source} {copy}; "
        f"else {launcher.on_each()} cp -p {source} {copy}; fi"
    ]


def _sources(plan: Plan, folder: str) -> tuple[str, ...]:
    """Paths to stage in from a folder: named files, or the whole folder."""
    return plan.files if plan.stage_in and plan.files else (folder,)


def _datawarp(tier: Tier, plan: Plan) -> list[str]:
    mode = "striped" if plan.shared or plan.stage_in else "private"
    lines = [f"#DW jobdw type=scratch capacity={_capacity(plan.total)} access_mode={mode}"]
    for folder in plan.folders:
        target = place(tier, plan, folder)
        for source in _sources(plan, folder):
            to = target if source == folder else posixpath.join(target, posixpath.basename(source))
            kind = "directory" if source == folder else "file"
            if not (_is_word(source) and _is_word(to)):
                lines += comment(_HIDDEN)
            elif plan.stage_in:
                lines.append(f"#DW stage_in type={kind} source={source} destination={to}")
        if plan.stage_out and _is_word(folder) and _is_word(target):
            lines.append(f"#DW stage_out type=directory source={target} destination={folder}")
        lines += _instead(place(tier, plan, folder), folder)
    return lines


def _rabbit(tier: Tier, plan: Plan) -> list[str]:
    kind = "lustre" if plan.shared or (plan.stage_in and not plan.everywhere) else "xfs"
    # The capacity is per compute node for xfs and per job for lustre.
    size = _capacity(plan.total if kind == "lustre" else plan.per_node)
    lines = [f"#DW jobdw type={kind} capacity={size} name={_RABBIT_NAME}"]
    for folder in plan.folders:
        target = place(tier, plan, folder)
        for source in _sources(plan, folder):
            if not (_is_word(source) and _is_word(target)):
                lines += comment(_HIDDEN)
            elif plan.stage_in:
                lines.append(f"#DW copy_in source={source} destination={target}/")
        if plan.stage_out and _is_word(folder) and _is_word(target):
            lines.append(f"#DW copy_out source={target} destination={folder}")
    if (plan.launcher_name or "flux").lower() == "flux":
        lines = [
            '#FLUX: -S dw="""',
            *(f"#FLUX: {line}" if line.startswith("#DW") else line for line in lines),
            '#FLUX: """',
        ]
    return lines + _all_instead(tier, plan)


def _slurm(tier: Tier, plan: Plan) -> list[str]:
    access = "striped" if plan.shared or plan.stage_in else "private"
    lines = [f'#SBATCH --bb="capacity={_capacity(plan.total)} access={access} type=scratch"']
    return lines + _by_hand(tier, plan)


def _lua(tier: Tier, plan: Plan) -> list[str]:
    pool = f"pool={tier.name} " if re.fullmatch(r"[A-Za-z0-9_]+", tier.name) else ""
    lines = [f"#BB_LUA {pool}capacity={-(-plan.total // GiB)}G"]
    lines += comment("the site's script defines further options and where the space is mounted")
    return lines + _by_hand(tier, plan)


def _beeond(tier: Tier, plan: Plan) -> list[str]:
    mount = shell_path(tier.dir or "/mnt/beeond")
    launcher = plan.launcher or LAUNCHERS["slurm"]
    lines = [
        f"{launcher.hosts} > beeond.nodes",
        f"beeond start -n beeond.nodes -d /data/beeond -c {mount} -P -F -L /tmp",
        *comment("-d is a folder on a disk of each node: see the site's documentation"),
    ]
    lines += _copied_folders(tier, plan, lambda source, target: f"beeond-cp copy -n beeond.nodes {source} {target}")
    return [*lines, "beeond stop -n beeond.nodes -L -d"]


def _unifyfs(tier: Tier, plan: Plan) -> list[str]:
    lines = [
        f"export UNIFYFS_LOGIO_SPILL_SIZE={max(plan.per_node, 4 * GiB)}",
        "export UNIFYFS_LOGIO_SPILL_DIR=/dev/shm",
    ]
    if not plan.survives:
        lines += ["export UNIFYFS_CLIENT_FSYNC_PERSIST=off", "export UNIFYFS_CLEANUP=on"]
    if not plan.shared and not plan.stage_in:
        lines += ["export UNIFYFS_CLIENT_LOCAL_EXTENTS=on", *comment("each rank reads only its own data")]
    ways = [(quoted_path(f), shell_path(place(tier, plan, f))) for f in plan.folders]
    stage_in = " --stage-in=stage-in.txt" if plan.stage_in else ""
    stage_out = " --stage-out=stage-out.txt" if plan.stage_out else ""
    for source, target in ways:
        if source is None or target is None:
            lines += comment(_HIDDEN)
        elif plan.stage_in and plan.files:
            lines += [line for file in plan.files for line in _listed(file, target)]
        elif plan.stage_in:
            lines.append(
                f"find {source} -type f | while IFS= read -r f; do "
                f'printf \'"%s" "%s"\\n\' "$f" {target}/"${{f##*/}}"; done >> stage-in.txt'
            )
    lines.append(f'unifyfs start --share-dir="$PWD"{stage_in}')
    lines += _all_instead(tier, plan)
    lines += comment("a file that another node reads must be laminated (chmod a-w) first")
    if plan.stage_out:
        lines += comment(
            "stage-out.txt: a line per result, its path under /unifyfs and the one that it gets, in quotes"
        )
    return [*lines, f"unifyfs terminate{stage_out}"]


def _listed(file: str, target: str) -> list[str]:
    """A line that adds a file to UnifyFS's list of files to stage in."""
    source = quoted_path(file)
    if source is None:
        return comment(_HIDDEN)
    name = shlex.quote(posixpath.basename(file))
    return [f'printf \'"%s" "%s"\\n\' {source} {target}/{name} >> stage-in.txt']


_GEKKOFS = "LD_PRELOAD=libgkfs_intercept.so "


def _gekkofs(tier: Tier, plan: Plan) -> list[str]:
    return [
        'export LIBGKFS_HOSTS_FILE="$PWD"/gkfs_hosts.txt',
        f"{_each(plan.launcher)}gkfs_daemon -r /dev/shm/gkfs -m {shell_path(tier.dir or '/tmp/gekkofs')} "
        '-H "$LIBGKFS_HOSTS_FILE" &',
        *_copied_folders(
            tier, plan, lambda source, target: f"{_GEKKOFS}cp -R {source}/. {target}/", _GEKKOFS, makes=False
        ),
        *comment("start the program with LD_PRELOAD=libgkfs_intercept.so; no rename and no links there"),
    ]


def _by_hand(tier: Tier, plan: Plan) -> list[str]:
    """Copy with the job's own commands, on a tier that all of its nodes see."""
    return _copied_folders(tier, plan, _copy_all)


def _copy_all(source: str, target: str) -> str:
    """Copy the contents of a folder, with mpiFileUtils if it is installed."""
    return (
        f"if command -v dcp >/dev/null; then mpirun -np {COPIERS} dcp -p {source}/ {target}/; "
        f"else cp -R -p {source}/. {target}/; fi"
    )


def _copied_folders(
    tier: Tier, plan: Plan, copy: Callable[[str, str], str], before: str = "", *, makes: bool = True
) -> list[str]:
    """Lines that copy each folder to the tier and back with the command `copy(source, target)`.

    `before` precedes commands that copy a single file. With `makes`, the folder is made first.
    """
    lines: list[str] = []
    for folder in plan.folders:
        source, target = quoted_path(folder), shell_path(place(tier, plan, folder))
        if source is None or target is None:
            lines += comment(_HIDDEN)
            continue
        if makes:
            lines.append(f"mkdir -p {target}")
        if plan.stage_in and plan.files:
            lines += [line for file in plan.files for line in _copy_file(file, target, None, before)]
        elif plan.stage_in:
            lines.append(copy(source, target))
        lines += _instead(place(tier, plan, folder), folder)
        if plan.stage_out:
            lines.append(copy(target, source))
    return lines


def _all_instead(tier: Tier, plan: Plan) -> list[str]:
    return [line for folder in plan.folders for line in _instead(place(tier, plan, folder), folder)]


def _instead(new: str, old: str) -> list[str]:
    target, source = shell_path(new), quoted_path(old)
    if target is None or source is None:
        return []
    return comment(f"give the program {target} instead of {source}")


def _capacity(size: int) -> str:
    return f"{max(1, -(-size // GiB))}GiB"


def _is_word(path: str) -> bool:
    """True if a directive can contain the path: printable, and without white space."""
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
