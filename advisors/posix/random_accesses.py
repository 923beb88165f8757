"""POS005: small accesses at random offsets of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment, quoted_path
from vani.advisors.data_files import Item, by_folder, data_files, data_s, extent, listed, target_of
from vani.advisors.movers import is_moved_within
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Value, Verdict
from vani.advisors.small_requests import usual_at_most
from vani.models import staging
from vani.units import GiB, KiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


class RandomAccesses(Rule):
    """Files are read or written in small requests at random offsets.

    Looks at
        Data files of POSIX and stdio with at least `min_random` of their accesses at random offsets, usually of
        less than `max_request`, at least `min_operations` in the files of one folder.
    Why
        Neither the client's read-ahead nor the server's cache can guess the next offset: each access waits for the
        disk, and on a shared file for a lock as well.
    Recommends
        Sort or batch accesses by offset before they are made; or first bring the file into memory or to the node's
        storage, where random offsets cost nothing.
    Stays silent when
        Accesses go forward, have large pieces, or are few; a file is moved within itself (POS011); offsets are not
        known; files belong to MPI-IO or HDF5.
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
    name = "random-accesses"
    family = "posix"
    needs = ("files",)
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
    # Our choice: a file of this size is assumed to fit if the space on a node is unknown.
    small = GiB

    def check(self, profile: Profile, system: System) -> Verdict:
        data = data_files(profile, lambda file: file.interface in (None, "posix", "stdio"))
        if not data:
            return self.nothing("no data file is accessed by POSIX or stdio calls")
        moved = [item for item in data if item.file.io.ops.read + item.file.io.ops.write]
        if moved and all(item.file.io.access_pattern is None for item in moved):
            return self.nothing("files[].io.access_pattern is not known; supply a trace with offsets")
        items = [item for item in moved if self._is_random(item)]
        if not items:
            return self.nothing("most accesses go forward in their file, or have large pieces")
        findings = [
            self._finding(app, folder, group, self._node_local_folder(group, profile, system))
            for app, folder, group in by_folder(items, profile)
            if sum(i.file.io.ops.read + i.file.io.ops.write for i in group) >= self.min_operations
        ]
        return findings or self.nothing(
            f"no folder's files have {format_count(self.min_operations)} random accesses or more"
        )

    def _is_random(self, item: Item) -> bool:
        io = item.file.io
        if is_moved_within(item.file):
            return False
        if io.access_pattern is None or io.access_pattern.random < self.min_random:
            return False
        # Accesses entirely past the end of the file have no offset in it (POS008).
        if not (io.bytes.written or 0) and io.past_end.read and io.past_end.read >= (io.bytes.read or 0):
            return False
        sizes = io.transfer_size.read if io.ops.read >= io.ops.write else io.transfer_size.write
        usual = usual_at_most(sizes)
        return usual is not None and usual < self.max_request

    def _node_local_folder(self, items: list[Item], profile: Profile, system: System) -> str | None:
        """Folder on the node into which the only file of a group fits; None if that is not certain."""
        size = extent(items[0].file)
        tiers = staging.tiers(profile, system, spare=self.spare, memory_share=self.memory_share)
        near = next((tier for tier in tiers if not tier.is_shared), None)
        if len(items) > 1 or size is None or near is None:
            return None
        room = self.small if near.capacity is None else near.capacity
        return near.plain_dir if size <= room else None

    def _finding(self, app: App | None, folder: str, items: list[Item], node_local: str | None) -> Finding:
        operations = sum(i.file.io.ops.read + i.file.io.ops.write for i in items)
        weighted = sum(
            i.file.io.access_pattern.random * (i.file.io.ops.read + i.file.io.ops.write)
            for i in items
            if i.file.io.access_pattern is not None
        )
        share = weighted / operations
        moved, distinct = _moved(items), _distinct(items)
        before = data_s(items, items, app)
        gain = None
        if before and distinct and moved > self.again * distinct:
            gain = Gain(
                metric="data_time_s",
                before_s=before,
                after_s=before * (1 + distinct / moved) / 2,
                best_s=before * distinct / moved,
                worst_s=before,
                method=f"{format_bytes(distinct)} moved once instead of {format_bytes(moved)}: half of that is saved; "
                "low: a cache has them already, high: all of it",
            )
        current: dict[str, Value] = {"random": share}
        settings: dict[str, Value] = {"order": "by offset"}
        lines = ["in the program: collect requests, sort them by offset, join neighbours, then read or write"]
        if node_local is not None:
            lines += ["  or read the file into memory once and access it there"]
            path, copy = quoted_path(items[0].file.path), quoted_path(node_local)
            if path and copy and not items[0].file.writers:
                lines += [
                    "or without changing it, once on every node, then name the copy:",
                    f"  cp {path} {copy}/",
                ]
        return Finding(
            target=target_of(folder, items, app),
            reason=f"{format_share(share)} of {format_count(operations)} accesses to {listed(folder, items, app)} "
            "are at random offsets, in requests too small for disks."
            + (
                f" {format_bytes(moved)} transferred from {format_bytes(distinct)} of data."
                if gain
                else " The gain of another order is unknown: measure it."
            ),
            confidence=0.5,
            touched_s=before,
            recommended=settings,
            current=current,
            evidence=[
                entry
                for item in items[:3]
                for entry in (
                    Evidence(f"{item.where}.path", item.file.path),
                    Evidence(
                        f"{item.where}.io.access_pattern.random",
                        item.file.io.access_pattern.random if item.file.io.access_pattern else None,
                    ),
                    Evidence(f"{item.where}.io.bytes.total", item.file.io.bytes.total),
                    Evidence(f"{item.where}.io.busy_s.total", item.file.io.busy_s.total),
                )
            ],
            gain=gain,
            apply=comment("\n".join(lines)),
            files=frozenset(item.file.path for item in items),
        )


def _moved(items: list[Item]) -> int:
    return sum((i.file.io.bytes.read or 0) + (i.file.io.bytes.written or 0) for i in items)


def _distinct(items: list[Item]) -> int:
    return sum((i.file.io.footprint.read or 0) + (i.file.io.footprint.written or 0) for i in items)
