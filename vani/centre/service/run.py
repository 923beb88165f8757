"""`vani centre run`: the one service of a centre, which imports, judges, advises, and serves pages and metrics."""

import json
import os
import shlex
import tempfile
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
from pydantic import Field

from vani.atomic import write_text
from vani.centre.history.accounting import FIELDS, history_import_jobs
from vani.centre.history.add import history_add
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.centre.history.serve import history_server
from vani.centre.service.advise import advice_as_text, advice_in
from vani.centre.service.configuration import CentreConfiguration, ConfigurationSettings, load
from vani.centre.service.layouts import LayoutAdvice
from vani.centre.service.task_prolog import HINTS
from vani.cli.options import settings_options
from vani.collect.node import NoAnswer, ask
from vani.errors import InputError, VaniError
from vani.units import counted

_SACCT_DAYS: Final = 8
"""Days of the accounting that each import reads: jobs change for as long as they run."""
_SACCT_S: Final = 600
ADVICE: Final = "advice"
"""Fact of the history with the latest advice as text, and the day on which it was made."""

Say = Callable[[str], None]


def work(configuration: CentreConfiguration, say: Say) -> None:
    """Import and judge new logs, import jobs, and renew the advice once a day. A part that fails is reported."""
    for part in (_add_logs, _add_jobs, _advise):
        try:
            part(configuration, say)
        except VaniError as error:
            say(f"vani: {error}")


def _add_logs(configuration: CentreConfiguration, say: Say) -> None:
    done = history_add(configuration.darshan, db=configuration.history, system=configuration.system)
    if done.added.runs or done.judged:
        say(f"{counted(done.added.runs, 'run')} added, {counted(done.judged, 'run')} judged")


def _add_jobs(configuration: CentreConfiguration, _: Say) -> None:
    if configuration.jobs is None:
        return
    if configuration.jobs != "sacct":
        history_import_jobs(configuration.jobs, db=configuration.history)
        return
    since = (datetime.now(UTC) - timedelta(days=_SACCT_DAYS)).strftime("%Y-%m-%d")
    options = "--allocations --allusers --parsable2 --starttime"
    command = ["sacct", *options.split(), since, "--format", ",".join(FIELDS)]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as printed:
        try:
            printed.write(ask(command, _SACCT_S))
            printed.flush()
        except NoAnswer as error:
            raise InputError(str(error), todo="leave `jobs` out of centre.toml to do without accounting") from None
        try:
            history_import_jobs(printed.name, db=configuration.history)
        except InputError as error:
            if error.what != "has no job":
                raise


def _advise(configuration: CentreConfiguration, say: Say) -> None:
    store, today = configuration.store(), datetime.now(UTC).strftime("%Y-%m-%d")
    if configuration.file_system is None:
        return
    with store.reading() as connection:
        if (read.fact(connection, ADVICE) or "").startswith(today):
            return
        advice = advice_in(connection, read.ALWAYS, configuration.file_system)
    with store.writing() as connection:
        write.set_fact(connection, ADVICE, f"{today}\n{advice_as_text(advice)}")
    say(advice_as_text(advice).partition("\n")[0])
    if configuration.hook is not None:
        number = write_hook_files(store, advice.layout, Path(configuration.hook))
        say(f"the hook has layouts for {counted(number, 'user')}")


# Settings that the hook applies in jobs, as a file for each user. `task_prolog` reads them.

_EXPORT: Final = "export "


def write_hook_files(store: Store, layout: LayoutAdvice | None, folder: Path) -> int:
    """Write the layouts of folders, and the hints of judged applications, by user; return the number of users.

    Without a replay in which the hook is better than the default layout alone, all files are removed.
    """
    by_user: dict[str, dict[str, Any]] = {}
    if layout is not None and layout.hook_is_better:
        with store.reading() as connection:
            for verdict, run in read.verdicts(connection):
                own = by_user.setdefault(run.user, {"layouts": [], "hints": {}})
                if hints := _hints(verdict.lines):
                    own["hints"][run.application] = hints
            for entry in layout.hook_layouts:
                own = by_user.setdefault(entry.user, {"layouts": [], "hints": {}})
                own["layouts"].append({"folder": entry.folder, "options": entry.options.split()})
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)
    for old in folder.glob("*.json"):
        if old.stem not in by_user:
            old.unlink()
    for user, own in by_user.items():
        if "/" not in user and not user.startswith("."):
            write_text(folder / f"{user}.json", json.dumps(own) + "\n")
            # Its user reads it in a job, and it has nothing but layouts of the user's own folders.
            (folder / f"{user}.json").chmod(0o644)
    return len(by_user)


def _hints(lines: tuple[str, ...]) -> dict[str, str]:
    """Variables that advice exports, if the hook may set them."""
    words = (shlex.split(line.removeprefix(_EXPORT)) for line in lines if line.startswith(_EXPORT))
    pairs = (some[0].partition("=") for some in words if some)
    return {name: value for name, _, value in pairs if name in HINTS}


class RunSettings(ConfigurationSettings):
    """How long to run."""

    once: bool = Field(False, description="Import, judge and advise once, and serve nothing.")


@click.command("run")
@settings_options(RunSettings)
def command(settings: RunSettings) -> None:
    """Import Darshan's logs and jobs every hour, judge the costliest, advise once a day, and serve pages and metrics.

    The first start prints the address of the pages with its token. Ctrl-C stops it.
    """
    os.umask(0o077)
    configuration = load(settings.config)

    def say(text: str) -> None:
        click.echo(text, err=True)

    with configuration.store().writing(make=True):
        pass
    if settings.once:
        work(configuration, say)
        return
    token_file = settings.config.resolve().with_suffix(".token")
    is_new = not configuration.open and not token_file.exists()
    options = {name: getattr(configuration, name) for name in ("address", "port", "names", "open")}
    with history_server(db=configuration.history, token_file=token_file, **options) as server:
        note = "" if configuration.open else f" (the token is in {token_file})"
        say(f"{server.url}?token={server.token}" if is_new else f"{server.url}{note}")
        worker = threading.Thread(target=_work_on, args=(configuration, say), daemon=True)
        worker.start()
        server.serve_forever()


def _work_on(configuration: CentreConfiguration, say: Say) -> None:
    while True:
        work(configuration, say)
        threading.Event().wait(configuration.every_s)
