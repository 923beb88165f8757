"""A run, as in a row of the tables, its source, and measured settings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Measurement", "Run", "Source", "Verdict"]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one application by one user; unknown facts are None.

    Attributes
    ----------
    digest
        SHA-256 of its source, in hexadecimal.
    kind
        `darshan`, `profile` or `trace`.
    uid
        The user's number, if the log has one.
    submitted
        When it began, in seconds since 1970.
    in_io_s, slowest_s, waiting_s
        Seconds of all processes in I/O calls; of the slowest process; the latter times the number of processes.
    writers
        Processes that wrote.
    stripes
        Lustre targets under the file with the most I/O time.
    complete
        Nothing of its counts was lost.
    target_times
        Times of its files on each storage target of `mount`, as `vani.readers.darshan.target_times` writes them.
    job
        The batch system's number of its job.
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
class Source:
    """A file that was examined.

    Attributes
    ----------
    size, changed_ns
        Bytes, and when it was last changed: as long as both are the same, it is not opened again.
    digest
        Of its run; None where it is damaged.
    reason
        Why it is; None where it is sound.
    """

    path: str
    size: int
    changed_ns: int
    digest: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The saving expected from following the advice on a run.

    Attributes
    ----------
    digest
        Of the run.
    saved_low_s, saved_s, saved_high_s
        Seconds of the slowest process; 0 where the saving of the advice has no number.
    rule, setting, why, lines
        The recommendation that saves most: its rule, the setting in a few words, the fault, and lines to paste;
        empty where no rule recommends anything.
    typical
        The figures of the machine are those of a typical one.
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


@dataclass(frozen=True, slots=True)
class Measurement:
    """A setting that a session of `vani tune` ran a program with; unknown facts are None.

    Attributes
    ----------
    digest, position
        Of the session, and the place of the setting in it.
    user
        User of the session.
    machine
        Name of its description.
    processes, nodes
        Of the run that the setting was recommended for.
    setting
        JSON, as `vani.schema.tuned.Setting` writes it.
    rules
        Ids of the rules that recommended it; several where their settings were measured together.
    verdict
        `proven`; `not_proven`: it looked faster; `no_gain`; or `failed`: the program did not end as it should.
    speedup, low, high
        Times as fast as without the setting, of the whole run, and the interval of that.
    expected
        The same as the advice expected it.
    runs
        With the setting.
    noise
        Relative deviation of repeated runs of the session.
    ended
        When the session ended, in seconds since 1970.
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
