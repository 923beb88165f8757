"""POS005: small accesses at random offsets of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.advisors import data_files
from vani.advisors.commands import quoted_path
from vani.advisors.movers import is_moved_within, is_rewritten
from vani.advisors.rule import Finding, Gain, Perhaps, Rule, Verdict, figures
from vani.advisors.small_requests import is_tiny, usual_at_most
from vani.models import staging
from vani.models.run_time import seconds
from vani.units import GiB, KiB, MiB, counted, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class RandomAccesses(Rule):
    """Files are read or written in small requests at random offsets.

    Looks at
        Data files that MPI-IO does not share, with at least `min_random` of their accesses at random offsets, usually
        of less than `max_request`, at least `min_operations` in the files of one folder. Files of `min_mapped` or more
        that several processes map into memory and do not write.
    Why
        Neither the client's read-ahead nor the server's cache can guess the next offset: each access waits for the
        disk, and on a shared file for a lock as well. The first touch of a mapped page is such a read, which no call
        shows.
    Recommends
        Sort or batch accesses by offset before they are made; or first bring the file into memory or to the node's
        storage, where random offsets cost nothing.
    Stays silent when
        Accesses go forward, have large pieces, or are few; a file is moved within itself (POS011); offsets are not
        known; files are shared through MPI-IO.
    Source
        Vani paper, section IV-D (staging by access pattern). Gain: bytes that are moved more than once are moved
        once.
    Example
        Eight processes read 115 MB of a file of 17 MB in pieces of 64 B to 47 kB: read once into memory, that
        is 17 MB.

            for i in order: file.seek(at[i]); rows.append(file.read(size))    # before
            data = file.read()    # after: the file fits in memory
            rows = [data[at[i] : at[i] + size] for i in order]
    """

    id = "POS005"
    needs = (data_files.posix_files,)
    settles = "order"
    sources = ("Vani paper, section IV-D",)

    # Our choice: most of the accesses.
    min_random = 0.5
    # Half an RPC of 1 MiB (Lustre manual, section 19.2): larger pieces are about as fast in any order.
    max_request = 512 * KiB
    # As in POS002: with 0.1 to 1 ms each, fewer take less than a second.
    min_operations = 1000
    # Our choice: at least a tenth of the bytes moves more than once.
    again = 1.1
    # Our choice, as in BB001: a fifth of the node's storage stays free.
    spare = 0.2
    # By default, a tmpfs may take half of the memory (tmpfs(5)).
    memory_share = 0.5
    # As in BB001: the kernel reads a smaller file ahead soon.
    min_mapped = 64 * MiB
    # Our choice: a file of this size is assumed to fit if the space on a node is unknown.
    small = GiB

    def check(self, profile: Profile, system: System) -> Verdict:
        moved = [item for item in data_files.posix_items(profile) if item.io.ops.read + item.io.ops.write]
        if moved and all(item.io.access_pattern is None for item in moved):
            return "files[].io.access_pattern is not known; supply a trace with offsets"
        items = [item for item in moved if self._is_random(item)]
        mapped = self._mapped(profile)
        if not items:
            return mapped or "most accesses go forward in their file, or have large pieces"
        findings = mapped + [
            self._finding(group, self._node_local_folder(group, profile, system))
            for group in data_files.by_folder(items, profile)
            if _operations(group) >= self.min_operations
        ]
        return findings or f"no folder's files have {format_count(self.min_operations)} random accesses or more"

    def _mapped(self, profile: Profile) -> list[Finding]:
        """The findings on files that processes map into memory."""
        findings = []
        for at, entry in enumerate(profile.unseen or ()):
            paths = entry.files if entry.kind == "memory_mapped" and (entry.bytes or 0) >= self.min_mapped else ()
            files = [item for item in data_files.data_files(profile) if item.path in paths and not item.file.writers]
            findings += [
                Finding(
                    **group.affected,
                    reason=f"{counted(max(item.file.processes for item in group.items), 'process')} map {group.words} "
                    f"into memory, at most {format_bytes(entry.bytes)} together: the first touch of each page reads "
                    "from the file, a few pages at a time, in the order in which the program needs them.",
                    confidence=0.4,
                    touched_s=seconds(profile.workflow.runtime_s),
                    recommended={"order": "whole"},
                    current={"mapped_bytes": entry.bytes},
                    evidence=figures(entry, f"unseen[{at}]", "kind", "count", "bytes"),
                    gain=Perhaps("no call shows how long the pages take"),
                    apply=_WHOLE,
                )
                for group in data_files.by_folder((item for item in files if item.file.processes > 1), profile)
            ]
        return findings

    def _is_random(self, item: data_files.Item) -> bool:
        io = item.io
        if is_moved_within(item.file) or is_rewritten(item.file) or is_tiny(item):
            return False
        if io.access_pattern is None or io.access_pattern.random < self.min_random:
            return False
        # Accesses entirely past the end of the file have no offset in it (POS008).
        if not (io.bytes.written or 0) and io.past_end.read and io.past_end.read >= (io.bytes.read or 0):
            return False
        usual = usual_at_most(data_files.Access(item, io.ops.read >= io.ops.write).sizes)
        return usual is not None and usual < self.max_request

    def _node_local_folder(self, group: data_files.Group, profile: Profile, system: System) -> str | None:
        """Folder on the node into which the only file of a group fits; None if that is not certain."""
        size = data_files.extent(group.items[0].file)
        tiers = staging.tiers(profile, system, spare=self.spare, memory_share=self.memory_share)
        near = next((tier for tier in tiers if not tier.is_shared), None)
        if group.path is None or size is None or near is None:
            return None
        room = self.small if near.capacity is None else near.capacity
        return near.plain_dir if size <= room else None

    def _finding(self, group: data_files.Group, node_local: str | None) -> Finding:
        operations = _operations(group)
        weighted = sum(
            item.io.access_pattern.random * (item.io.ops.read + item.io.ops.write)
            for item in group.items
            if item.io.access_pattern is not None
        )
        share = weighted / operations
        moved = group.total("io.bytes.read") + group.total("io.bytes.written")
        distinct = group.total("io.footprint.read") + group.total("io.footprint.written")
        before, gain = group.data_s(), None
        if distinct and moved > self.again * distinct:
            gain = Gain.at_best(
                "data_time_s",
                before,
                after=before * (1 + distinct / moved) / 2,
                best=before * distinct / moved,
                method=f"{format_bytes(distinct)} moved once instead of {format_bytes(moved)}: half of that is saved; "
                "low: a cache has them already, high: all of it",
            )
        lines = ["in the program: collect requests, sort them by offset, join neighbours, then read or write"]
        times, size = max(map(_rewritten, group.items))
        if times:
            lines = [
                f"in the program: {format_count(times)} writes of {format_bytes(size)} go to the same place, between "
                "others: keep that part\n  (a header, a counter, a pointer to the end) in memory, and write it once at "
                "the end or after many records;\n  each seek back also empties the buffer of stdio"
            ]
        elif node_local is not None:
            lines += ["  or read the file into memory once and access it there"]
            path, copy = quoted_path(group.items[0].path), quoted_path(node_local)
            if path and copy and not group.items[0].file.writers:
                lines += ["or without changing it, once on every node, then name the copy:", f"  cp {path} {copy}/"]
        return Finding(
            **group.affected,
            direction="" if group.total("io.ops.read") else "write",
            reason=f"{format_share(share)} of {format_count(operations)} accesses to {group.words} "
            "are at random offsets, in requests too small for disks."
            + (
                f" {format_bytes(moved)} transferred from {format_bytes(distinct)} of data."
                if gain
                else " The gain of another order is unknown: measure it."
            ),
            confidence=0.5,
            touched_s=before,
            recommended={"order": "by offset"},
            current={"random": share},
            evidence=group.figures("path", "io.access_pattern.random", "io.bytes.total", "io.busy_s.total"),
            gain=gain,
            apply="\n".join(lines),
        )


def _rewritten(item: data_files.Item) -> tuple[int, int]:
    """Number of writes that only rewrite the same few bytes, and their size; (0, 0) if these are no large part."""
    io, sizes = item.io, item.io.transfer_size.write
    again = (io.bytes.written or 0) - (io.footprint.written or 0)
    for size, count in (sizes.common if sizes is not None else None) or ():
        # Nearly all writes of this size go where one went before.
        if 4 * count >= io.ops.write and abs(again - size * count) <= 0.1 * size * count and io.footprint.written:
            return count, size
    return 0, 0


_WHOLE: Final = (
    "in the program: read the file whole and in order before the pages are needed,\n"
    "  madvise(address, bytes, MADV_POPULATE_READ), or read(2) in pieces of 4 MiB in place of the mapping;\n"
    "  or copy the file to each node first"
)


def _operations(group: data_files.Group) -> int:
    return sum(item.io.ops.read + item.io.ops.write for item in group.items)
