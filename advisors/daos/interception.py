"""DAO001: many calls that reach DAOS through the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import Group, by_folder, listed, posix_files, posix_items
from vani.advisors.placement import disk_under
from vani.advisors.rule import Answer, Evidence, Finding, Rule, Verdict
from vani.models.calibration import certainty
from vani.units import format_count

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

# Path in DAOS's packages. It intercepts data and metadata, while libioil.so intercepts only data.
_LIBRARY = "/usr/lib64/libpil4dfs.so"


class Interception(Rule):
    """A program makes many POSIX calls on DAOS, each of which may go through the kernel.

    Looks at
        Files on DAOS that MPI-IO does not share, and how many calls they make: at least
        `min_operations`, data and metadata together.
    Why
        A mounted container (dfuse) is served by one daemon per node behind the kernel, and each open, read and write
        goes there and back. With the interception library, the program calls DAOS directly.
    Recommends
        `LD_PRELOAD=/usr/lib64/libpil4dfs.so` for the program's processes, unless it is set already, which no trace
        shows. The site's notes on containers (object classes, chunks) are repeated from the machine's description.
    Stays silent when
        Few calls are made there, or by several processes through MPI-IO, whose driver may reach DAOS without POSIX; the
        data is not on DAOS according to the machine's description or `vani collect`.
    Source
        DAOS documentation, File System (docs.daos.io): with interception data moves as through the DFS API, metadata
        through dfuse is much slower. ALCF user guides, DAOS: libpil4dfs intercepts data and metadata and is preferred.
    Example
        64 processes write logs of 4 KiB lines below `/tmp/POOL/CONTAINER`: `LD_PRELOAD=/usr/lib64/libpil4dfs.so`.
    """

    id = "DAO001"
    needs = (posix_files,)
    sources = ("DAOS documentation, File System", "ALCF user guides, DAOS")

    # Our choice: at ten microseconds through the kernel and the daemon, a thousand calls take a hundredth of a second.
    min_operations = 1_000

    def check(self, profile: Profile, system: System) -> Verdict:
        data = by_folder(posix_items(profile), profile)
        return self.among(self._judge(group, profile, system) for group in data)

    def _judge(self, group: Group, profile: Profile, system: System) -> Answer:
        first = group.of(group.items[:1])
        place = disk_under("daos", "DAOS", first.items[0].path, profile, system)
        if isinstance(place, str):
            return place
        calls = sum(group.total(f"io.ops.{kind}") for kind in ("read", "write", "metadata"))
        if calls < self.min_operations:
            return f"the files there have fewer than {format_count(int(self.min_operations))} calls"
        note = f" Note of the site: {place[1].note}" if place[1] is not None and place[1].note else ""
        return Finding(
            **group.affected,
            reason=f"{format_count(calls)} calls on {listed(group.folder, group.items)} reach DAOS through the kernel "
            "unless the interception library is loaded, which no trace shows: run once with it and once "
            f"without for an expected gain.{note}",
            confidence=round(0.5 * certainty(system), 2),
            touched_s=group.wall_s("total"),
            recommended={"LD_PRELOAD": _LIBRARY},
            evidence=[*first.figures("path", "io.ops.metadata"), Evidence(f"{place[0]}.type", "daos")],
            apply="for the program's processes alone, behind a tracer's library if there is one: "
            f"LD_PRELOAD={_LIBRARY}\nfor example: mpiexec --env LD_PRELOAD={_LIBRARY} ... (libioil.so in "
            "its place intercepts data alone)",
        )
