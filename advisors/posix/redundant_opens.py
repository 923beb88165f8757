"""POS003: processes open and stat files more often than they use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vani.advisors import data_files
from vani.advisors.commands import Language, code_lines, language_of
from vani.advisors.folder_table import Search, searches
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Verdict, figures
from vani.models.io_time import lookup_share
from vani.models.run_time import seconds
from vani.units import MiB, counted, format_count, format_number, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System

# Our choice, as in POS011: reading twice may be two steps of a program.
_WALKS = 3
# Our choice, above the headers and indices that libraries read at each open: more is data.
_MAX_HEADERS = MiB

# Calls that query a file's attributes, without suffixes and underscores.
_STATS = ("stat", "lstat", "fstat", "xstat", "lxstat", "fxstat", "stat64", "access", "newfstatat", "fstatat")


_SEARCHES: Mapping[Search, tuple[str, str]] = {
    "newest_file_search": (
        "list the folder and query each file of it, as a program does that looks for the newest one or for types",
        "list names only; the list has types: os.scandir and entry.is_file() (Python), entry.is_regular_file() (C++);\n"
        "  take the step or the time from the name, not from stat;\n"
        "  or keep the name of the newest file in a variable, or in a small file that its writer replaces",
    ),
    "outputs_checked_again": (
        "query the same files again, as a program does that checks which results are there",
        "list the folder once (os.listdir): one request returns many names;\n"
        "  keep a set of finished results in memory, or one file with their names, instead of a stat for each",
    ),
    "polling": (
        "query a name again and again, as a program does that looks for a flag",
        "look less often, every N steps or seconds, and on one process (INQUIRE or stat of a STOP file);\n"
        "  a program that waits doubles the pause each time, or waits without the file system:\n"
        "  a message of MPI, a dependency of jobs (sbatch --dependency), a pipe or a socket",
    ),
}
"""Purpose of look-ups and the remedy, by kind of search."""

_ONCE: Mapping[Language, str] = {
    "C": "fd = open(name, flags);     // before the loop, on the processes that read or write\n"
    "for (...) write(fd, ...);   // in C++ std::ofstream file(name); before the loop\nclose(fd);",
    "Fortran": "open(newunit=unit, file=name, ...)   ! before the loop\nwrite(unit) record\n"
    "close(unit)                          ! after it; flush(unit) where readers follow the run",
    "Python": "with open(name, mode) as file:   # around the loop; logging: one FileHandler for the run,\n"
    "and of several processes a QueueHandler each and one QueueListener, which writes",
    "Shell": "for ...; do ...; done >> FILE    # redirect the loop, not each command in it; or exec 3>> FILE and >&3",
}
_RECREATED = (
    "in the program:\n"
    "  write the whole file less often, after several steps or at the end; or append what is new to a file that stays\n"
    "  open, one record (a line of JSON) for each step"
)
_LOOKED_UP = (
    "in the program:\n"
    "  stat once, on one process, and broadcast the result; where it waits for a change:\n"
    f"  {_SEARCHES['polling'][1]}"
)


class RedundantOpens(Rule):
    """Files are opened or queried again and again, or opened by processes that move no data of them.

    Looks at
        Data files that MPI-IO does not share: opens against those that are needed, one for each process that reads and
        one for each that writes, at least `min_opens` times as many; or requests to a metadata server (open, close,
        stat, rename, not seeks or flushing) against data operations, at least `min_metadata` times as many, where it
        takes at least `min_share` of the files' I/O time. At least `min_redundant` opens (or such operations) together.
        Look-ups of names that are never opened, where they take `min_lookups` of the time of I/O and look-ups: in
        search of the newest file, of finished results, or of a flag.
    Why
        Open, stat and close are requests to the metadata server, which all jobs share; it answers them one after
        another, and on a file of several processes each open also revokes locks.
    Recommends
        Open a file once, keep it open as long as it is used, and open it only where data is moved; query attributes
        once and broadcast them.
    Stays silent when
        Every process opens each file once per direction; there are few opens; files are shared through MPI-IO
        (MIO005); most of the I/O time of the files is flushing.
    Source
        Vani paper, section IV (HACC: files are opened and closed several times, four times as many metadata
        operations as reads or writes, half of the I/O time).
    Example
        HACC-IO opens each file of a process four times, twice to write it and twice to read it.

            for (i = 0; i < n; i++) { fd = open(name, flags); write(fd, row[i], size); close(fd); }    // before
            fd = open(name, flags);    // after
            for (i = 0; i < n; i++) write(fd, row[i], size);
            close(fd);
    """

    id = "POS003"
    settles = "opening"
    sources = ("Vani paper, section IV",)

    # Our choice: twice as many as needed.
    min_opens = 2.0
    # Vani paper, section IV: HACC's factor of four, which the authors call unexpected.
    min_metadata = 4.0
    # Our choice, well below HACC's half: a smaller share of metadata is not what makes I/O slow.
    min_share = 0.25
    # Our choice: if flushing takes most of the time, opens are not what makes I/O slow.
    most_flushing = 0.5
    # Our choice: one redundant open of one process does not matter; eight processes with two each are a pattern.
    min_redundant = 16

    # As FLD002: less does not show.
    min_lookups = 0.05

    def check(self, profile: Profile, system: System) -> Verdict:
        looked_up = self._looked_up(profile)
        why = data_files.posix_files(profile, system)
        if why is not None:
            return looked_up or why
        mapped = {path for entry in profile.unseen or () if entry.kind == "memory_mapped" for path in entry.files}
        accessed = data_files.posix_items(profile)
        known = data_files.alike(accessed)
        reopened = {item for items in known if self._reopened(items) for item in items}
        # What moves by mappings is no read or write.
        queried = {item for items in known if self._queried(items) for item in items if item.path not in mapped}
        items = [item for item in accessed if item in reopened or item in queried]
        if not items:
            return looked_up or "each process opens a file about once for reading and once for writing"
        findings = looked_up
        for group in data_files.by_folder(items, profile):
            opens = sum(max(0, i.opens - _needed(i)) for i in group.items if i in reopened)
            metadata_calls = sum(_served(i) for i in group.items if i not in reopened)
            if opens + metadata_calls >= self.min_redundant:
                findings.append(self._finding(group, not reopened.isdisjoint(group.items), profile))
        return findings or f"no folder's files have {format_count(self.min_redundant)} needless opens or more"

    def _looked_up(self, profile: Profile) -> list[Finding]:
        findings = []
        for at, row, search in searches(profile):
            share = lookup_share(profile, row) or 0.0
            if search not in _SEARCHES or share < self.min_lookups:
                continue
            what, remedy = _SEARCHES[search]
            nothing = f" ({format_count(row.failed)} find nothing)" if row.failed else ""
            findings.append(
                Finding(
                    target=Target("directory", row.folder, profile.apps[0].name if len(profile.apps) == 1 else None),
                    reason=f"{format_count(row.calls)} look-ups of {counted(row.names, 'name')} in {row.folder}"
                    f"{nothing} take {format_share(share)} of the time of I/O and look-ups: they {what}. Each is a "
                    "request to the metadata server. The gain is not known: supply the time of a run without them.",
                    confidence=0.7,
                    touched_s=(row.time_s or 0.0) / max(1, sum(app.processes // app.instances for app in profile.apps)),
                    recommended={"lookups": row.names},
                    current={"lookups": row.calls},
                    evidence=figures(row, f"lookups[{at}]", "folder", "calls", "names", "listings", "time_s"),
                    apply=f"in the program:\n  {remedy}",
                )
            )
        return findings

    def _reopened(self, items: list[data_files.Item]) -> bool:
        again = sum(item.opens for item in items) >= self.min_opens * sum(map(_needed, items))
        return again and not all(data_files.flushes_most(item.file.io, self.most_flushing) for item in items)

    def _queried(self, items: list[data_files.Item]) -> bool:
        data, io = sum(item.requests for item in items), [item.io for item in items]
        if any(item.file.generations for item in items):
            # A file that is replaced by another one is opened and renamed for each.
            return False
        if 2 * sum(stats.ops.sync or 0 for stats in io) >= data:
            # A database queries its files for each transaction: fewer of these are POS010.
            return False
        many = data > 0 and sum(map(_served, items)) >= self.min_metadata * data
        total = sum(seconds(stats.time_s.total) for stats in io)
        return many and data_files.time_of(io, data_files.SERVED) >= self.min_share * total > 0

    def _finding(self, group: data_files.Group, reopened: bool, profile: Profile) -> Finding:
        opens, data = (round(sum(getattr(item, name) for item in group.items)) for name in ("opens", "requests"))
        needed, metadata = (round(sum(map(count, group.items))) for count in (_needed, _served))
        before = group.metadata_s(data_files.OPENING)
        gain: Gain | str | None = None
        walked = group.of(item for item in group.items if reopened and _walked(item))
        walks_s = walked.wall_s("read") + walked.metadata_s(("seek",)) if walked.items else 0.0
        left = before * (min(1.0, needed / opens) if opens else 1.0)
        if walks_s:
            gain = "each open reads headers and indices again, which one open reads once: measure a run with it"
        elif left < before:
            gain = Gain.at_best(
                "metadata_time_s",
                before,
                after=left,
                best=left * 0.5,
                method="opens and closes take as long as there are opens; low: the first open of each file is what "
                "takes long, high: the others also make it wait for them",
            )
        time = group.seconds("io.time_s.total")
        share = data_files.time_of([item.io for item in group.items], data_files.SERVED) / time if time else None
        idle = round(
            sum(i.part.files * max(0, i.file.processes - max(i.file.readers, i.file.writers)) for i in group.items)
        )
        reason = f"{group.words}: " + (
            f"{format_count(opens)} opens instead of {format_count(needed)}"
            if reopened
            else f"{format_number(metadata / max(1, data), 2)} opens, closes and stats for each read or write"
        )
        reason += f"; open, close and stat take {format_share(share)} of the I/O time on them."
        if reopened and idle:
            reason += f" {format_count(idle)} of the opening processes move no data."
        if gain is None:
            reason += " Which of the operations can go is not known: supply the time of a run without them."
        recreated = reopened and all(map(data_files.is_recreated, group.items))
        is_read, is_written = (any(getattr(i.file, name) for i in group.items) for name in ("readers", "writers"))
        return Finding(
            **group.affected,
            direction="" if is_read == is_written else "read" if is_read else "write",
            reason=reason,
            confidence=0.7 if reopened else 0.4,
            touched_s=group.metadata_s(data_files.SERVED) + walks_s,
            recommended={"opens": needed},
            current={"opens": opens, "metadata_ops": metadata, "data_ops": data},
            evidence=group.figures("path", "opens", "readers", "writers", "io.ops.metadata", "io.busy_s.metadata")
            + _stats(group.app, profile),
            gain=gain,
            apply=_RECREATED
            if recreated
            else code_lines(_ONCE, language_of(group.app, profile))
            if reopened
            else _LOOKED_UP,
            removes=frozenset({"reuse", "order", "read-ahead"} if walked.items else ()),
            # A buffer collects what a file that stays open is given.
            precedes=frozenset({"request-size"} if reopened and (walks_s or data <= self.min_metadata * opens) else ()),
        )


def _walked(item: data_files.Item) -> bool:
    """True if each open reads the same again, and no more than headers and indices."""
    distinct, moved = item.io.footprint.read or float("inf"), item.io.bytes.read or 0
    return _WALKS * distinct <= moved <= _MAX_HEADERS * item.file.opens


def _served(item: data_files.Item) -> float:
    return data_files.count_of(item.file.io, data_files.SERVED) * item.part.files


def _needed(item: data_files.Item) -> float:
    """Opens that the data of each generation needs: one per process and direction, or one if no process moves data."""
    return max(1, item.file.readers + item.file.writers) * (item.file.generations or 1) * item.part.files


def _stats(app: App | None, profile: Profile) -> list[Evidence]:
    """Number of the app's calls that query attributes, by trace, as evidence."""
    return [
        Evidence(f"traces[{index}].functions.{name}", count)
        for index, trace in enumerate(profile.traces)
        if app is not None and trace.app == app.name
        for name, count in trace.functions.items()
        if name.lstrip("_") in _STATS
    ][:5]
