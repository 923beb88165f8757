"""`vani advise --next`: settings for a run that has not started yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from vani import api
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler
    from vani.schema.advice import Advice

class AdviseOptions(TypedDict):
    """Options passed on to the library unchanged."""

    system: str | None
    select: tuple[str, ...] | None
    ignore: tuple[str, ...] | None
    config: Path | None
    files: int | None
    store: Path | None
    scheduler: Scheduler


@dataclass(frozen=True)
class NextOf:
    """The run to predict, as named on the command line."""

    application: str | None
    user: str | None
    processes: int | None

    @property
    def is_given(self) -> bool:
        """Whether any of its options was given."""
        return any(option is not None for option in (self.application, self.user, self.processes))


def advice_before(run: NextOf, profile: Path | None, options: AdviseOptions, db: str | None) -> Advice:
    """Advise on a run before it starts.

    Raises
    ------
    InputError
        A profile was named as well, or options that apply to a trace.
    UsageError
        Neither a profile nor an application was named.
    """
    if run.application is None:
        if profile is None:
            raise click.UsageError("Missing argument 'PROFILE|TRACE' (or --next).")
        raise InputError(
            "--user and --processes need --next", todo="leave them out, or name --next APP"
        )
    if profile is not None:
        raise InputError("--next excludes a profile", where=profile, todo="leave one of them out")
    return api.advise_next(
        run.application,
        user=run.user,
        processes=run.processes,
        db=db,
        system=options["system"],
        select=options["select"],
        ignore=options["ignore"],
        config=options["config"],
        files=options["files"],
    )
