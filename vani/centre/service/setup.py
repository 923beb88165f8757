"""`vani centre init` writes centre.toml; `vani centre check` tests everything that it names."""

import getpass
import re
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final

import click
from pydantic import Field

from vani.atomic import write_text
from vani.centre.history.discovery import discover
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.service import configuration as centre
from vani.centre.service.task_prolog import FOLDER
from vani.cli.options import settings_options
from vani.collect.file_systems import read_lustre
from vani.collect.mounts import PARALLEL, read_mounts
from vani.collect.node import Ask, NoAnswer, ask
from vani.errors import InputError, VaniError, one_line
from vani.schema.settings import Option
from vani.systems import system_of
from vani.units import MiB, counted

_FOLDERS: Final = ("/var/log/darshan", "/darshan/logs", "/darshan-logs", "/scratch/darshan-logs")
"""Where sites keep Darshan's logs; the first that exists is offered."""
_PROLOG: Final = "/etc/slurm/vani-task-prolog"
_IN_USE: Final = re.compile(r"^TaskProlog\s*=\s*(\S+)", re.MULTILINE)


class InitSettings(centre.ConfigurationSettings):
    """Settings of a new centre.toml that Vani cannot detect for certain."""

    darshan: Annotated[Path | None, Option(metavar="DIR")] = Field(None, description="Folder of Darshan's logs.")
    jobs: Annotated[str | None, Option(metavar="sacct|FILE")] = Field(
        None, description="Job log: `sacct`, or a file that it printed; by default sacct where it answers."
    )
    mount: Annotated[str | None, Option(metavar="DIR")] = Field(
        None, description="Mount point of the file system; by default the first parallel one."
    )
    history: Annotated[str | None, Option(metavar="FILE|URL")] = Field(
        None, description="The history; by default history.sqlite next to the file."
    )
    group: Annotated[str | None, Option(metavar="NAME")] = Field(None, description="Group that may read the history.")
    port: int = Field(8600, ge=0, le=65_535, description="Port of the pages.")
    open: bool = Field(False, description="Serve the pages without a token.")


def centre_init(settings: InitSettings | None = None, /, **fields: Any) -> centre.CentreConfiguration:
    """Write a centre.toml with what the options say and the machine reveals.

    Raises
    ------
    InputError
        The file exists, or the folder of logs is not given or not there.
    """
    wanted = InitSettings.of(settings, **fields)
    if wanted.config.exists():
        raise InputError("exists and is not replaced", where=wanted.config, todo="edit it, or remove it first")
    if wanted.darshan is None or not wanted.darshan.is_dir():
        what = "is missing" if wanted.darshan is None else "is not a folder"
        raise InputError(what, where=wanted.darshan or "--darshan", todo="name the folder of Darshan's logs")
    jobs = wanted.jobs or (None if _fault_of_sacct(ask) else "sacct")
    configuration = centre.CentreConfiguration(
        darshan=str(wanted.darshan.resolve()),
        jobs=jobs if jobs in (None, "sacct") else str(Path(str(jobs)).resolve()),
        history=wanted.history or str(wanted.config.resolve().with_name("history.sqlite")),
        file_system=shared_file_system(wanted.mount),
        **{name: getattr(wanted, name) for name in ("group", "port", "open")},
    )
    write_text(wanted.config, centre.written(configuration))
    return configuration


def shared_file_system(mount: str | None = None, programs: Ask = ask) -> centre.SharedFileSystem | None:
    """The file system at a mount point, or the first parallel one; None if there is none."""
    chosen = mount or next((entry.dir for entry in read_mounts() or [] if entry.type in PARALLEL), None)
    if chosen is None:
        return None
    known, _ = read_lustre(chosen, programs)
    size, count = known.stripe_size or MiB, known.stripe_count or 1
    return centre.SharedFileSystem(mount=chosen, targets=known.osts, stripe_count=count, stripe_size=size)


def unit_text(config: Path) -> str:
    """The unit of the one service."""
    template = (files("vani.centre.service") / "vani.service").read_text(encoding="utf-8")
    words = {"vani": shutil.which("vani") or f"{sys.executable} -m vani", "config": config.resolve()}
    return template.format(**words, user=getpass.getuser(), folder=config.resolve().parent)


def scheduler_lines() -> str:
    """The lines for Slurm, which are needed only where a hook in each job is better than one layout."""
    hook = files("vani.centre.service") / "task_prolog.py"
    return (
        "# Slurm, only if `vani centre advise` says that a hook in each job is better:\n"
        f'#   hook = "{FOLDER}" in {centre.DEFAULT_FILE}\n'
        f"#   install -m 755 {hook} {_PROLOG}   (on all nodes)\n"
        f"#   TaskProlog={_PROLOG} in slurm.conf, then restart slurmd\n"
    )


def _asked(settings: InitSettings) -> InitSettings:
    """Prompt for what the options leave open."""
    known = shared_file_system()
    offered = {
        "darshan": ("Folder of Darshan's logs", next((folder for folder in _FOLDERS if Path(folder).is_dir()), None)),
        "jobs": ("Job log: sacct, a file that it printed, or none", "none" if _fault_of_sacct(ask) else "sacct"),
        "mount": ("Mount point of the file system, or none", "none" if known is None else known.mount),
    }
    answers = {name: click.prompt(*of) for name, of in offered.items() if getattr(settings, name) is None}
    return InitSettings.of(settings, **{name: text for name, text in answers.items() if text != "none"})


@click.command("init")
@settings_options(InitSettings)
def init_command(settings: InitSettings) -> None:
    """Write centre.toml for this centre, and print the lines for systemd.

    It prompts for Darshan's folder, the job log and the file system, and reads `mount` and `lfs df`. Options
    replace questions, and without a terminal it asks nothing.
    """
    if sys.stdin.isatty():
        settings = _asked(settings)
    configuration = centre_init(settings)
    known = configuration.file_system
    about = "no parallel file system found" if known is None else f"{known.mount}, OSTs: {known.targets or 'not known'}"
    click.echo(f"{settings.config}: written ({about}).", err=True)
    click.echo("Now: vani centre run. As a service: save this as /etc/systemd/system/vani.service, and", err=True)
    click.echo("systemctl enable --now vani. `vani centre check` tests everything.", err=True)
    click.echo(unit_text(settings.config) + scheduler_lines(), nl=False)


_Found = tuple[str, str]
"""State that a test found, and what to do."""


@dataclass(frozen=True)
class Finding:
    """The outcome of a test: what was tested and found, and what to do; empty if nothing is missing."""

    what: str
    state: str
    todo: str = ""


def centre_check(config: Path, *, programs: Ask = ask) -> list[Finding]:
    """Test everything that a centre.toml names.

    Parameters
    ----------
    programs
        Runs `lfs`.

    Raises
    ------
    InputError
        The file is missing or wrong.
    """
    known, token = centre.load(config), config.resolve().with_suffix(".token")
    tests: dict[str, Callable[[], _Found]] = {
        "logs": lambda: _logs(Path(known.darshan)), "jobs": lambda: _jobs(known.jobs, programs),
        "history": lambda: _history(known.store(), 0o600 if known.group is None else 0o640),
        "system": lambda: _system(known.system), "file system": lambda: _file_system(known.file_system, programs),
        "hook": lambda: _hook(known.hook, programs),
        "pages": lambda: ("open to everyone who reaches them", "") if known.open else _token(token),
    }
    findings = []
    for what, test in tests.items():
        try:
            findings.append(Finding(what, *test()))
        except (VaniError, OSError) as error:
            findings.append(Finding(what, one_line(str(error)), "see there"))
    return findings


def _logs(folder: Path) -> _Found:
    if next(iter(discover([folder])), None) is None:
        return f"{folder} has no log yet", "load Darshan in jobs (LD_PRELOAD or wrappers), and see DARSHAN_LOGPATH"
    return f"{folder} has logs", ""


def _jobs(jobs: str | None, programs: Ask) -> _Found:
    if jobs is None:
        return "no accounting: losses are not summed by account", ""
    if jobs == "sacct":
        fault = _fault_of_sacct(programs)
        return fault or "sacct answers", "enable Slurm's accounting, or leave `jobs` out" if fault else ""
    there = Path(jobs).is_file()
    return f"{jobs} is {'' if there else 'not '}there", "" if there else "write it"


def _fault_of_sacct(programs: Ask) -> str:
    """Why sacct prints no jobs; empty if it does. Slurm installs it even where it keeps no accounting."""
    try:
        programs(["sacct", "--noheader", "--allocations", "--starttime", "now"])
    except NoAnswer as error:
        return str(error)
    return ""


def _history(store: Store, most: int) -> _Found:
    if not store.exists():
        return f"{store.name} is not there yet", "vani centre run makes it"
    with store.reading() as connection:
        whole, damaged = read.whole(connection, read.ALWAYS), read.count_damaged(connection)
    mode = most if store.file is None else stat.S_IMODE(store.file.stat().st_mode)
    if mode & ~most:
        return f"others can read it (mode {mode:04o})", f"chmod {most:04o} {store.file}"
    return f"{counted(whole.runs, 'run')}, {counted(damaged, 'damaged file')}", ""


def _system(name: str | None) -> _Found:
    if name is None:
        todo = "vani systems detect -o system.yaml, and name it as `system`"
        return "the machine is not described: advice uses figures of a typical one", todo
    system_of(name)
    return f"{name} describes the machine", ""


def _file_system(known: centre.SharedFileSystem | None, programs: Ask) -> _Found:
    if known is None:
        return "none is named: no advice on layouts", "add [file_system] with `mount`"
    if not Path(known.mount).is_dir():
        return f"{known.mount} is not mounted here", "mount it, or run this where it is"
    now = shared_file_system(known.mount, programs)
    if now is None or now.targets is None:
        return f"{known.mount}: lfs df shows no OSTs", "" if known.targets else "install lfs, or set targets"
    differs = now.targets != known.targets
    return f"{known.mount} has {now.targets} OSTs", f"set file_system.targets = {now.targets}" if differs else ""


def _hook(folder: str | None, programs: Ask) -> _Found:
    """Slurm loads a new TaskProlog only at its restart, so the configuration in use counts."""
    if folder is None:
        return "off: no job runs it", ""
    if folder != FOLDER:
        return f"jobs read {FOLDER}, not {folder}", f'set hook = "{FOLDER}", or FOLDER in {_PROLOG}'
    try:
        used = _IN_USE.search(programs(["scontrol", "show", "config"]))
    except NoAnswer as error:
        return str(error), "run this where scontrol answers"
    if used is None or used[1] != _PROLOG:
        return "Slurm runs no TaskProlog of Vani", f"TaskProlog={_PROLOG} in slurm.conf, then restart slurmd"
    return f"Slurm runs {_PROLOG}", ""


def _token(token: Path) -> _Found:
    if not token.exists():
        return "no token yet", "vani centre run makes it"
    return f"the token is in {token}", f"chmod 600 {token}" if token.stat().st_mode & 0o077 else ""


@click.command("check")
@settings_options(centre.ConfigurationSettings)
@click.pass_context
def check_command(ctx: click.Context, settings: centre.ConfigurationSettings) -> None:
    """Test everything that centre.toml names, and print what is missing. Exit status 1: something is."""
    findings = centre_check(settings.config)
    for finding in findings:
        todo = f"; {finding.todo}" if finding.todo else ""
        click.echo(f"{'MISSING' if finding.todo else 'ok':7}  {finding.what}: {one_line(finding.state)}{todo}")
    ctx.exit(1 if any(finding.todo for finding in findings) else 0)
