"""Rows of a history's tables: runs, their files, and what is known about them. `tables` derives the columns.

Reading processes load this module, so it loads no database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self


class AnyRow:
    """A row of some table."""

    __slots__: tuple[str, ...] = ()
    __pydantic_config__: ClassVar = {"strict": True, "allow_inf_nan": False, "revalidate_instances": "always"}

    @classmethod
    def of(cls, values: Iterable[Any]) -> Self:
        """The row with these values, in the order of its fields."""
        return cls(*values)

    def values(self) -> dict[str, Any]:
        """Its values by name; `asdict` copies deeply, which takes longer than the database."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class StoredRun(AnyRow):
    """One run of one application by one user; unknown facts are None.

    Attributes
    ----------
    digest
        SHA-256 of its source, in hexadecimal.
    kind
        `darshan`, `profile` or `trace`.
    uid
        The user's number, if the log contains it.
    submitted
        Start in seconds since 1970.
    in_io_s, slowest_s, waiting_s
        Seconds of all processes in I/O calls; of the slowest process; the latter times the number of processes.
    writers
        Number of processes that wrote.
    stripes
        Lustre targets of the file with most I/O time.
    complete
        Whether none of its counts was lost.
    target_times
        Times of its files on each storage target of `mount`, as written by `vani.readers.darshan.totals`.
    job
        The batch system's number for its job.
    """

    digest: str
    kind: str
    user: str
    uid: int | None
    application: str
    processes: int
    submitted: float | None
    runtime_s: float | None
    bytes_read: int | None
    bytes_written: int | None
    reads: int | None
    writes: int | None
    opens: int | None
    metadata: int | None
    collective: int | None
    independent: int | None
    files: int | None
    shared_files: int | None
    read_s: float | None
    write_s: float | None
    metadata_s: float | None
    in_io_s: float | None
    slowest_s: float | None
    waiting_s: float | None
    writers: int | None
    file_system: str
    mount: str
    stripes: int | None
    complete: bool
    target_times: str | None
    job: str | None


@dataclass(frozen=True, slots=True)
class Source(AnyRow):
    """An examined file.

    Attributes
    ----------
    size, changed_ns
        Bytes, and modification time: while both are unchanged, the file is not opened again.
    digest
        Digest of its run; None if the file is damaged.
    reason
        Reason why it is damaged; None if it is not.
    """

    path: str
    size: int
    changed_ns: int
    digest: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Verdict(AnyRow):
    """The saving expected from following the advice on a run.

    Attributes
    ----------
    digest
        Digest of the run.
    saved_low_s, saved_s, saved_high_s
        Seconds of the slowest process; 0 if the advice's saving has no number.
    rule, setting, why, lines
        The recommendation that saves most: its rule, the setting in a few words, the fault, and lines to paste;
        empty if no rule recommends anything.
    typical
        Whether the machine's figures are those of a typical one.
    severity
        Of the recommendation: 0 (info) to 3 (high).
    """

    digest: str
    system: str
    saved_low_s: float
    saved_s: float
    saved_high_s: float
    rule: str
    setting: str
    why: str
    lines: tuple[str, ...]
    typical: bool
    severity: int = 0


@dataclass(frozen=True, slots=True)
class Measurement(AnyRow):
    """A setting with which a session of `vani tune` ran a program; unknown facts are None.

    Attributes
    ----------
    digest, position
        Digest of the session, and the position of the setting in it.
    user
        User of the session.
    machine
        Name of the machine's description.
    processes, nodes
        Of the run for which the setting was recommended.
    setting
        JSON, as written by `vani.schema.tuned.Setting`.
    rules
        Ids of the rules that recommended it; several if their settings were measured together.
    verdict
        `proven`; `not_proven`: it looked faster; `no_gain`; or `failed`: the program did not end as it should.
    speedup, low, high
        Speed-up of the whole run relative to the run without the setting, and its interval.
    expected
        Speed-up that the advice expected.
    runs
        Number of runs with the setting.
    noise
        Relative deviation of the session's repeated runs.
    ended
        End of the session, in seconds since 1970.
    """

    digest: str
    position: int
    user: str
    application: str | None
    machine: str | None
    processes: int | None
    nodes: int | None
    setting: str
    rules: tuple[str, ...]
    verdict: str
    speedup: float | None
    low: float | None
    high: float | None
    expected: float | None
    runs: int
    noise: float | None
    ended: float


@dataclass(frozen=True, slots=True)
class Letter(AnyRow):
    """A letter that was sent.

    Parameters
    ----------
    written
        Start of the day, in seconds since 1970.
    rule, setting
        Its recommendation; empty if there is none.
    low, expected, high
        Shares of the waiting that following it saves; None if no number was promised.
    """

    application: str
    user: str
    written: float
    rule: str
    setting: str
    low: float | None
    expected: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class AccountedJob(AnyRow):
    """A job in the accounting; unknown values are None. `job` is its number, as in the environment of its tasks."""

    job: str
    user: str | None
    account: str | None
    qos: str | None
