"""Whether storage matters to a run, why, and what to do next. All outputs use this decision.

The decisive share comes from `models.io_time`: the time of the slowest process in I/O calls including libraries, or,
for a workflow, the time in which any process is in one. Activity that the trace proves but does not record
(`profile.unseen`) is added if something bounds it. If it could raise a small share to `HARDLY`, the verdict is
open. If the recorded share is already above that, the shares are lower bounds.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from vani.errors import one_line
from vani.models import io_time
from vani.schema.damage import OVERHEAD_S, damage, overhead_of
from vani.schema.profile import IOStats, Matters, Profile, Unseen, Verdict, VerdictCause, VerdictParts
from vani.units import format_count, format_rate, format_seconds, format_share

_NEARLY_ALL: Final = 0.99
_VERBS: Final = ("run ", "trace ", "set ", "no tracer ")
_SECOND: Final = 0.6
"""A function with less than this share of the I/O time is named together with the next one."""
_KINDS: Final = (("read", "read"), ("write", "write"), ("metadata", "open, stat, close and seek"), ("sync", "flush"))
"""Kinds of calls for a source that does not count functions: the key in `io.time_s`, and words."""

_OF_METADATA: Final = (
    ("open", ("open", "fopen")),
    ("stat", ("stat",)),
    ("seek", ("lseek", "fseek")),
    ("rename", ("rename",)),
)
"""Metadata operations, and the functions that count as each."""

_WHAT_WAS_MISSED: Final[dict[str, tuple[str, str, str]]] = {
    "written_without_writes": ("1 file was", "{} files were", " opened for writing and no write was recorded"),
    "read_without_reads": ("1 file was", "{} files were", " opened for reading and no read was recorded"),
    "stream_buffered": (
        "1 file was opened for writing as a stream",
        "{} files were opened for writing as streams",
        " and no write was recorded",
    ),
    "memory_mapped": (
        "1 file was", "{} files were", " mapped into memory, and what moved that way was not recorded"
    ),
    "asynchronous": (
        "1 asynchronous I/O call was", "{} asynchronous I/O calls were", " made whose bytes were not recorded"
    ),
    "copied_in_kernel": (
        "1 copy inside the kernel was recorded without its bytes",
        "{} copies inside the kernel were recorded without their bytes",
        "",
    ),
    "forked_processes": ("child processes", "child processes", " were started without any recorded call"),
    "mpiio_calls_missing": (
        "1 file-system call", "{} file-system calls", " moved data in MPI-IO files outside any recorded MPI-IO call"
    ),
    "calls_below_missing": (
        "1 call of a library was", "{} calls of libraries were", " made without a recorded call that moved the data"
    ),
    "several_launches": (
        "1 process of another launch", "{} processes of other launches", " wrote into the same trace"
    ),
    "other_api": (
        "1 call of another storage interface was",
        "{} calls of other storage interfaces were",
        " made, whose bytes were not recorded",
    ),
}
_MANY: Final = 100
"""Fewest calls of a kind whose mean time is not left to chance (our choice)."""
_EVEN: Final = 0.999
"""Least mean I/O time of processes that take the same time, as a share of the most."""
_CAUSE_SAYS_MORE: Final = ("module_off", "module_partial", "names_excluded")
"""Kinds of which the cause lists the modules or the names."""


def verdict_of(profile: Profile) -> Verdict:
    """The verdict of a profile. Profiles of an older Vani have none, so it is decided here."""
    return profile.verdict or decided(profile)


def could_matter(profile: Profile) -> list[Unseen]:
    """Unseen activity that could decide whether storage matters, the most important first. Usually empty.

    Unbounded activity could always matter. Bounded activity could if it and the recorded I/O together reach `HARDLY`.
    """
    unseen, time = profile.unseen or [], _time(profile)
    if not unseen or time is None or not time.runtime_s:
        return list(unseen)
    bounded = sum(entry.most_s for entry in unseen if entry.most_s is not None)
    room = io_time.HARDLY * time.runtime_s
    together = time.calls_most_s + bounded >= room and bounded > 0.1 * room
    return [entry for entry in unseen if entry.most_s is None or together]


def unseen_bound(profile: Profile) -> str:
    """Clause on the calls that an upper bound on the time of recorded calls leaves out; empty if nothing is unseen."""
    bounds = [entry.most_s for entry in profile.unseen or ()]
    if not bounds:
        return ""
    if None in bounds:
        return "; nothing bounds what was not recorded"
    return f"; what was not recorded took at most {format_seconds(sum(bound or 0.0 for bound in bounds))}"


def _time(profile: Profile) -> io_time.IOTime | None:
    """The I/O time of the run; None if times are unknown."""
    workflow = profile.workflow
    known = (workflow.runtime_s, workflow.io.time_s.total, workflow.io.busy_s.total, workflow.io_time_share)
    return None if None in known else io_time.io_time(profile)


def decided(profile: Profile) -> Verdict:
    """Decide whether storage matters, ignoring a verdict in the profile."""
    workflow, missed, lost, time = profile.workflow, could_matter(profile), damage(profile), _time(profile)
    if missed and not (workflow.io.ops.all and _matters_anyway(profile, time)):
        why = unseen_sentence(missed)
        return _open(profile, why, f"{_capital(why)}: the verdict is open.", _look_again(missed[0]))
    if not workflow.io.ops.all and not workflow.io.time_s.total and (time is None or time.share < io_time.HARDLY):
        if lost is not None:
            left = "No I/O on files of a data set in the rest of the trace: the lost part may have some."
            return _open(profile, lost, left, "trace it again")
        return _verdict(profile, "no", "No I/O on files of a data set.", "nothing to do for storage")
    if time is None:
        calls = format_count(workflow.io.ops.all)
        text = f"{calls} I/O calls were counted and not timed: the verdict is open."
        todo = "profile it without --quick for times, phases and advice"
        return _open(profile, "the times of calls are not known", text, todo)
    return _of_shares(profile, time, missed, lost)


def _verdict(profile: Profile, matters: Matters, sentence: str, remedy: str, why: str | None = None) -> Verdict:
    workflow, time = profile.workflow, _time(profile)
    return Verdict(
        matters=matters,
        share=workflow.io_time_share,
        share_slowest=workflow.io_time_share_slowest,
        share_calls=None if time is None else time.share,
        parts=None if time is None else _parts(time),
        why=why,
        sentence=sentence,
        cause=_cause(profile),
        where=_where(profile),
        remedy=remedy,
    )


def _parts(time: io_time.IOTime) -> VerdictParts:
    storage = min(time.share, time.of_run(time.slowest_s))
    return VerdictParts(storage=storage, library=time.share - storage, processor=1.0 - time.share)


def _open(profile: Profile, why: str, sentence: str, remedy: str) -> Verdict:
    """An open verdict. It has no shares, because readers would take them as final."""
    return _verdict(profile, "open", sentence, remedy, why).model_copy(
        update={"share": None, "share_slowest": None, "share_calls": None, "parts": None}
    )


def _matters_anyway(profile: Profile, time: io_time.IOTime | None) -> bool:
    """True if the recorded calls alone show that storage matters."""
    if time is None or time.is_short:
        return False
    return time.share >= io_time.HARDLY and not _may_be_overhead(profile, time)


def _may_be_overhead(profile: Profile, time: io_time.IOTime) -> bool:
    """True if I/O may take less than `HARDLY` of the run without the tracer's overhead in each call."""
    total = (profile.workflow.io.time_s.total or 0.0) + io_time.outside_s(profile)
    if overhead_of(profile) is None or not total:
        return False
    # The cheapest kind of call has hardly more work than the tracer's.
    means = [row.time_s / row.count for row in profile.workflow.io.calls or () if row.time_s and row.count >= _MANY]
    added = min([OVERHEAD_S, *means]) * (profile.workflow.io.ops.all + _lookups_outside(profile))
    return time.share * max(0.0, 1.0 - added / total) < io_time.HARDLY


def _lookups_outside(profile: Profile) -> int:
    """Number of look-ups that are no I/O of the workflow."""
    return round(sum(row.calls * (row.excluded_s or 0.0) / row.time_s for row in profile.lookups or () if row.time_s))


def _of_shares(profile: Profile, time: io_time.IOTime, missed: Sequence[Unseen], lost: str | None) -> Verdict:
    """The verdict from the recorded calls' shares of the run."""
    why = None
    matters: Matters
    if time.is_short:
        why = _too_short(time)
        matters, ending = "too_short", f"{why} is too short to judge"
    elif time.share >= io_time.HARDLY and _may_be_overhead(profile, time):
        tool, much = overhead_of(profile) or ("", "")
        why = f"{tool} adds {much} to each call"
        matters, ending = "open", f"{why}, which may be most of that"
    elif time.share >= io_time.HARDLY:
        matters, ending = "yes", "it matters"
        if time.is_in_libraries:
            ending = "it matters, and the time goes to the I/O library"
    elif lost is not None:
        matters, ending, why = "open", "the lost part may change that", lost
    elif time.of_run(time.calls_most_s) >= io_time.HARDLY:
        matters, ending = "open", "it may matter, and counts do not show more"
        why = "counts do not show when each call took place"
    else:
        what = "this workflow" if time.traces > 1 else "this run"
        matters, ending = "no", f"storage is not what {what} waits for"
    sentence = f"{_shares_in_words(profile, time, at_least=bool(missed))}: {ending}."
    if missed:
        sentence += f" {_capital(unseen_sentence(missed))}."
    verdict = _verdict(profile, matters, sentence, _remedy(matters, missed, lost), why)
    return verdict.model_copy(update={"is_lower_bound": bool(missed)})


def _remedy(matters: Matters, missed: Sequence[Unseen], lost: str | None) -> str:
    if matters == "no":
        return "nothing to do for storage"
    if missed:
        return _look_again(missed[0])
    if lost is not None and matters == "open":
        return "trace it again"
    if matters == "too_short":
        run, io = format_seconds(io_time.LEAST_RUN_S), format_seconds(io_time.LEAST_IO_S)
        return f"trace a run of at least {run}, with {io} of I/O"
    if matters == "open":
        return "a trace of its calls by Recorder shows more"
    return "vani advise"


def _too_short(time: io_time.IOTime) -> str:
    if time.runtime_s < io_time.LEAST_RUN_S:
        return f"a run of {format_seconds(time.runtime_s)}"
    return f"{format_seconds(time.calls_s)} of I/O"


def _shares_in_words(profile: Profile, time: io_time.IOTime, *, at_least: bool) -> str:
    """`I/O takes 20 % of the run in the slowest process (rank 0), 23 % in at least one`.

    The share that decides comes first.
    """
    workflow = profile.workflow
    looking = f"look-ups of names {format_share(time.of_run(time.lookups_s))}"
    if not workflow.io.time_s.total and time.lookups_s:
        return f"L{looking[1:].replace('names', 'names take')} of the run"
    if not workflow.io.time_s.total:
        return "I/O takes less time than the trace's clock can resolve"
    busy, of_run = format_share(workflow.io_time_share), " of the run"
    most = format_share(time.of_run(time.calls_most_s))
    # Unrecorded I/O may exceed the upper bound of the recorded.
    if "workflow.io.busy_s.total" in profile.bounds and most != busy and not at_least:
        busy += f" to {most}"
    text = "at least " if at_least else ""
    names, begin = time.libraries[0] if time.libraries else "I/O libraries", "I/O takes "
    if time.is_in_libraries:
        begin = f"Calls of {names} take {format_share(time.share)}{of_run}{_rank(profile, time.caller)}, and I/O "
        of_run = ""
    slowest = format_share(workflow.io_time_share_slowest)
    if io_time.in_turn(profile):
        text += f"{busy}{of_run} in {format_count(workflow.processes)} processes, one after another"
    elif workflow.processes == 1 or workflow.io_time_share_slowest is None:
        text += f"{busy}{of_run}"
    elif time.traces > 1:
        text += f"{busy}{of_run} ({format_seconds(time.busy_s)}), {slowest} in {_slowest(profile, time)}"
    else:
        text += f"{slowest}{of_run} in {_slowest(profile, time)}"
        text += f", {busy} in at least one" if busy != slowest else ""
    text = begin + text
    return f"{text}, and {looking}" if time.of_run(time.lookups_s) >= io_time.HARDLY else text


def _slowest(profile: Profile, time: io_time.IOTime) -> str:
    """The process with most I/O time in words. Counts of all processes together name none if they fit an even share."""
    mean_s = profile.apps[0].balance.mean_io_time_s if len(profile.apps) == 1 and profile.apps[0].balance else None
    if time.slowest is not None and (mean_s or 0.0) >= _EVEN * time.slowest.time_s > 0:
        return "every process"
    return f"the slowest process{_rank(profile, time.slowest)}"


def _rank(profile: Profile, slowest: io_time.Slowest | None) -> str:
    if slowest is None or slowest.rank is None or profile.workflow.processes == 1:
        return ""
    of = f" of {one_line(slowest.app)}" if len(profile.apps) > 1 else ""
    return f" (rank {slowest.rank}{of})"


def _look_again(entry: Unseen) -> str:
    """How to record the missing activity, as a sentence without a capital letter and full stop."""
    return entry.see_with if entry.see_with.startswith(_VERBS) else f"record it with {entry.see_with}"


def unseen_sentence(missed: Sequence[Unseen]) -> str:
    """The two most important kinds of unrecorded I/O, as a sentence without a capital letter and full stop."""
    parts: list[str] = []
    for kind in dict.fromkeys(entry.kind for entry in missed):
        count = sum(entry.count for entry in missed if entry.kind == kind)
        if kind in _CAUSE_SAYS_MORE:
            parts += [entry.cause for entry in missed if entry.kind == kind]
        else:
            singular, plural, rest = _WHAT_WAS_MISSED[kind]
            parts.append((singular if count == 1 else plural.format(format_count(count))) + rest)
    more = f"; and {format_count(len(parts) - 2)} more blind spots" if len(parts) > 2 else ""
    return "; ".join(parts[:2]) + more


def _cause(profile: Profile) -> VerdictCause | None:
    """The function with most I/O time (most calls if times are unknown), perhaps with the next one."""
    io = profile.workflow.io
    calls = [call for call in io.calls or () if call.name is not None]
    looking_s, number = io_time.outside_s(profile), _lookups_outside(profile)
    if looking_s > ((calls[0].time_s or 0.0) if calls else io.time_s.total or 0.0):
        part = looking_s / (looking_s + sum(call.time_s or 0.0 for call in io.calls or ()))
        text = f"look-ups that find nothing: {_times(number)}, {_part(part)} of the time of I/O and look-ups."
        return VerdictCause(call="look-up", share=part, count=number, sentence=text)
    if not calls:
        return _cause_of_counts(profile)
    first = calls[0]
    name = one_line(first.name or "")
    whole = sum(call.time_s or 0.0 for call in io.calls or ())
    if first.time_s is None or not whole:
        share = first.count / io.ops.all if io.ops.all else None
        text = f"{name}: {_times(first.count)}" + (f", {_part(share)} of the calls" if share is not None else "")
        return VerdictCause(call=name, share=share, count=first.count, sentence=f"{text}.")
    share = min(1.0, first.time_s / whole)
    text = f"{name}: {_times(first.count)}, {_part(share)} of the I/O time"
    if share < _SECOND and len(calls) > 1 and calls[1].time_s:
        part, times = calls[1].time_s / whole, _times(calls[1].count)
        text += f"; {one_line(calls[1].name or '')}: {times}, {_part(part)}"
    return VerdictCause(call=name, share=share, count=first.count, sentence=f"{text}.{_synced(io)}{_waiting(profile)}")


def _cause_of_counts(profile: Profile) -> VerdictCause | None:
    """The kind of call with most time (most calls if times are unknown), for a source that does not count functions.

    Metadata operations are listed with their counts. Flushes are named with the writes if the times are not separate.
    """
    io = profile.workflow.io
    if not io.ops.all:
        return None
    counts = {kind: getattr(io.ops, kind) or 0 for kind, _ in _KINDS}
    times = {kind: getattr(io.time_s, kind) or 0.0 for kind, _ in _KINDS}
    whole = sum(times.values())
    order = sorted(counts, key=lambda kind: (-times[kind], -counts[kind]))
    first, second = order[0], order[1]
    share = min(1.0, times[first] / whole) if whole else counts[first] / io.ops.all
    of = "the I/O time" if whole else "the calls"
    text = f"{_kind_in_words(profile, first)}, {_part(share)} of {of}"
    if share < _SECOND and times[second]:
        text += f"; {_kind_in_words(profile, second)}, {_part(times[second] / whole)}"
    return VerdictCause(call=first, share=share, count=counts[first], sentence=f"{text}.{_synced(io)}")


def _kind_in_words(profile: Profile, kind: str) -> str:
    """`write: 25,600 calls`; metadata with the numbers of opens, stats and seeks if they were counted."""
    io = profile.workflow.io
    count = getattr(io.ops, kind) or 0
    if kind == "write" and io.time_s.sync is None and io.ops.sync:
        return f"write and flush: {_times(io.ops.sync, 'flush', 'flushes')} for {_times(count, 'write')}"
    parts = []
    if kind == "metadata":
        functions = Counter[str]()
        for trace in profile.traces:
            functions.update(trace.functions)
        counted = ((name, sum(functions[function] for function in names)) for name, names in _OF_METADATA)
        parts = [_times(n, name) for name, n in sorted(counted, key=lambda row: -row[1]) if 0 < n <= count]
    return f"{dict(_KINDS)[kind]}: " + (", ".join(parts) if parts else _times(count))


def _times(count: int, singular: str = "call", plural: str = "") -> str:
    return f"{format_count(count)} {singular if count == 1 else plural or singular + 's'}"


def _part(share: float) -> str:
    return "nearly all" if share >= _NEARLY_ALL else format_share(share)


def _synced(io: IOStats) -> str:
    """The rate of writes including flushes, if flushing takes a visible share of the time."""
    if not io.bandwidth.write_synced or io.time_share is None or (io.time_share.sync or 0.0) < io_time.HARDLY:
        return ""
    return f" Write rate including fsync: {format_rate(io.bandwidth.write_synced)}."


def _waiting(profile: Profile) -> str:
    """Writes to files opened with O_SYNC or O_DSYNC, if these take at least half of the I/O time."""
    whole = profile.workflow.io.time_s.total
    waited = sum(
        (file.io.time_s.write or 0.0) * (file.synchronous_writes or 0) / max(1, file.io.ops.write)
        for file in profile.files
    )
    if not whole or waited < whole / 2:
        return ""
    return f" Writes that wait for the storage (O_SYNC or O_DSYNC): {_part(min(1.0, waited / whole))} of it."


_REFUSED: Final = {
    "no locks on this mount (Lustre: mount option flock or localflock)": ("ENOLCK", "ENOSYS", "EOPNOTSUPP"),
    "another process has the lock": ("EAGAIN", "EWOULDBLOCK", "EACCES", "EDEADLK"),
}
_HDF5_LOCKS: Final = "HDF5 locks its files unless HDF5_USE_FILE_LOCKING=FALSE"
_MPI_LOCKS: Final = "MPI-IO locks each access in atomic mode, and writes that it sieves (romio_ds_write disable)"
_DATABASES: Final = "a database locks for each transaction"


def locking(profile: Profile) -> list[str]:
    """Locks that failed, or that take `HARDLY` of the I/O time, each with its probable cause."""
    whole, texts = io_time.calls_s(profile.workflow.io), []
    layers = {row.layer for row in profile.interfaces or ()}
    for lock in profile.locks or ():
        # strace does not show which library takes a lock.
        of_mpi, several = not layers.isdisjoint(("mpiio", "hdf5")), profile.workflow.processes > 1
        who = _HDF5_LOCKS if lock.call == "flock" else _MPI_LOCKS if of_mpi or several else _DATABASES
        troubles = []
        for why, errors in _REFUSED.items():
            named = [error for error in errors if (lock.failed or {}).get(error)]
            if named:
                number = _times(sum((lock.failed or {})[error] for error in named))
                troubles.append(f"{number} of {lock.call} failed with {' and '.join(named)}: {why}")
        if lock.time_s and whole and lock.time_s >= io_time.HARDLY * whole:
            share = format_share(min(1.0, lock.time_s / whole))
            troubles.append(f"locks take {share} of the I/O time ({lock.call}: {_times(lock.calls)})")
        if troubles:
            where = f" ({one_line(lock.files[0])})" if lock.files else ""
            guess = "if a library takes them: " if who == _MPI_LOCKS and not of_mpi else ""
            texts.append(f"{'; '.join(troubles)}{where}; {guess}{who}")
    return texts


def _where(profile: Profile) -> str | None:
    files = io_time.costliest(profile)
    return None if files is None else one_line(files.name)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
