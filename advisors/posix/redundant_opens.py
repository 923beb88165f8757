"""POS003: processes open and stat files more often than they use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import Item, by_folder, data_files, listed, metadata_s, target_of
from vani.advisors.metadata import (
    MAY_HOLD_FLUSHING,
    OPENING,
    SERVED,
    count_of,
    flushes_most,
    may_hold_flushing,
    time_of,
)
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Value, Verdict, seconds
from vani.units import format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, FileEntity, Profile
    from vani.schema.system import System

# Names of calls that ask for a file's attributes, without their suffixes and underscores.
_STATS = ("stat", "lstat", "fstat", "xstat", "lxstat", "fxstat", "stat64", "access", "newfstatat", "fstatat")


class RedundantOpens(Rule):
    """Files are opened again and again, or by processes that move no data of them.

    Looks at
        Data files of POSIX and stdio: opens against those that are needed, one for each process that reads and one
        for each that writes, at least `min_opens` times as many; or what a metadata server answers (open, close, stat,
        rename, not seeks or flushing) against data operations, at least `min_metadata` times as many, where it takes
        at least `min_share` of the files' I/O time. At least `min_redundant` opens (or such operations) together.
    Why
        Open, stat and close are requests to the metadata server, which all jobs share; it answers them one after
        another, and on a file of several processes each open also calls locks back.
    Recommends
        To open a file once, keep it open as long as it is used, and open it only where data is moved; to ask for
        attributes once and broadcast them.
    Stays silent when
        Every process opens each file once per direction; there are few opens; files belong to MPI-IO or HDF5
        (MIO005, HD5003); most of the I/O time of the files is flushing.
    Source
        Vani paper, section IV (HACC: files are opened and closed several times, four times as many metadata
        operations as reads or writes, half of the I/O time).
    Example
        HACC-IO opens each file of a process four times, twice to write it and twice to read it.
    """

    id = "POS003"
    name = "redundant-opens"
    family = "posix"
    needs = ("files",)
    settles = "opening"
    sources = ("Vani paper, section IV",)

    # Ours: twice as many as needed.
    min_opens = 2.0
    # Vani paper, section IV: HACC's four times, which its authors call unexpected.
    min_metadata = 4.0
    # Ours, well below HACC's half: less time in metadata than this is not what makes I/O slow.
    min_share = 0.25
    # Ours: where flushing takes most of the time, opens are not what makes I/O slow.
    most_flushing = 0.5
    # Ours: one for a single process is no matter; eight processes with two each are a pattern.
    min_redundant = 16

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - holds on every machine
        accessed = data_files(profile, lambda file: file.interface in (None, "posix", "stdio"))
        if not accessed:
            return self.nothing("no data file is accessed by POSIX or stdio calls")
        unknown = {app.name for app in profile.apps if may_hold_flushing(profile, app.name)}
        items = [
            item
            for item in accessed
            if unknown.isdisjoint(item.file.apps) and (self._reopened(item.file) or self._asked(item.file))
        ]
        if not items and unknown:
            return self.nothing(MAY_HOLD_FLUSHING)
        if not items:
            return self.nothing("each process opens a file about once for reading and once for writing")
        findings = []
        for app, folder, group in by_folder(items, profile):
            opens = sum(max(0, i.file.opens - _needed(i.file)) for i in group if self._reopened(i.file))
            metadata_calls = sum(count_of(i.file.io, SERVED) for i in group if not self._reopened(i.file))
            if opens + metadata_calls >= self.min_redundant:
                findings.append(self._finding(app, folder, group, profile))
        return findings or self.nothing(
            f"no folder's files have {format_count(self.min_redundant)} needless opens or more"
        )

    def _reopened(self, file: FileEntity) -> bool:
        return file.opens >= self.min_opens * _needed(file) and not flushes_most(file.io, self.most_flushing)

    def _asked(self, file: FileEntity) -> bool:
        io = file.io
        data = io.ops.read + io.ops.write
        many = data > 0 and count_of(io, SERVED) >= self.min_metadata * data
        return many and time_of([io], SERVED) >= self.min_share * seconds(io.time_s.total) > 0

    def _finding(self, app: App | None, folder: str, items: list[Item], profile: Profile) -> Finding:
        opens, needed = sum(i.file.opens for i in items), sum(_needed(i.file) for i in items)
        metadata = sum(count_of(i.file.io, SERVED) for i in items)
        data = sum(i.file.io.ops.read + i.file.io.ops.write for i in items)
        before = metadata_s(items, app, OPENING)
        left = min(1.0, needed / opens) if opens else 1.0
        reopened = [item for item in items if self._reopened(item.file)]
        gain = None
        if before and left < 1:
            gain = Gain(
                metric="metadata_time_s",
                before_s=before,
                after_s=before * left,
                best_s=before * left * 0.5,
                worst_s=before,
                method="opens and closes take as long as there are opens; low: the first open of each file is what "
                "takes long, high: the others also make it wait for them",
            )
        time = sum(seconds(i.file.io.time_s.total) for i in items)
        share = time_of([i.file.io for i in items], SERVED) / time if time else None
        idle = sum(max(0, i.file.processes - max(i.file.readers, i.file.writers)) for i in items)
        current: dict[str, Value] = {"opens": opens, "metadata_ops": metadata, "data_ops": data}
        stats = _stats(app, profile)
        reason = f"{listed(folder, items, app)}: " + (
            f"{format_count(opens)} opens where {format_count(needed)} would do"
            if reopened
            else f"{metadata / max(1, data):.2g} opens, closes and stats for each read or write"
        )
        reason += f"; opening, closing and asking take {format_share(share)} of the I/O time on them."
        if reopened and idle:
            reason += f" {format_count(idle)} of the opening processes move no data."
        if gain is None:
            reason += " Which of the operations can go is not known: supply the time of a run without them."
        return Finding(
            target=target_of(folder, items, app),
            reason=reason,
            confidence=0.7 if reopened else 0.4,
            touched_s=metadata_s(items, app, SERVED),
            recommended={"opens": needed},
            current=current,
            evidence=[entry for item in items[:3] for entry in _evidence(item)] + stats,
            gain=gain,
            apply=comment(
                "in the program:\n"
                "  open each file once, on the processes that read or write it, and close it after the last access;\n"
                "  stat on one process and broadcast what it found"
            ),
            files=frozenset(item.file.path for item in items),
        )


def _needed(file: FileEntity) -> int:
    """Opens that the data needs: each process once per direction, or one where nobody moves data."""
    return max(1, file.readers + file.writers)


def _evidence(item: Item) -> list[Evidence]:
    file, where = item.file, item.where
    return [
        Evidence(f"{where}.path", file.path),
        Evidence(f"{where}.opens", file.opens),
        Evidence(f"{where}.readers", file.readers),
        Evidence(f"{where}.writers", file.writers),
        Evidence(f"{where}.io.ops.metadata", file.io.ops.metadata),
        Evidence(f"{where}.io.busy_s.metadata", file.io.busy_s.metadata),
    ]


def _stats(app: App | None, profile: Profile) -> list[Evidence]:
    """Number of calls of the app that read attributes, by trace."""
    return [
        Evidence(f"traces[{index}].functions.{name}", count)
        for index, trace in enumerate(profile.traces)
        if app is not None and trace.app == app.name
        for name, count in trace.functions.items()
        if name.lstrip("_") in _STATS
    ][:5]
