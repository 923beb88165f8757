"""MIO004: locks on GPFS between processes that never share data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import LayerGroup
from vani.advisors.mpiio import MPIIORule
from vani.advisors.placement import gpfs_under
from vani.advisors.rule import Answer, Evidence, Finding, figures, known_figures
from vani.models.calibration import certainty

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

# "GPFS" in ASCII, which selects ROMIO's file system driver.
_MAGIC = "0x47504653"


class GpfsLocking(MPIIORule):
    """MPI-IO locks a shared file on GPFS though no process needs what another one wrote.

    Looks at
        Shared files on GPFS that at least two processes write through MPI-IO, the data that processes of the
        app hand to each other through files, and what apps hand to other apps.
    Why
        ROMIO locks ranges of the file around its accesses, so that no process sees half of another one's
        data. Where no process reads what others wrote, these locks protect nothing, and taking them costs a
        message to the node that has the token.
    Recommends
        ROMIO's driver without locks (`BGLOCKLESSMPIO_F_TYPE`), a variable of ROMIO's driver for Blue Gene and GPFS;
        others ignore it.
    Stays silent when
        The data is not on GPFS; no app uses MPI-IO, or no file is written by several processes; processes or
        apps depend on each other's data.
    Source
        Vani paper, section IV-D (locks of ROMIO off where no process or app shares data); documentation of
        ROMIO on Blue Gene.
    Example
        1,280 processes write `dump.dat` on GPFS and do not read it: `export BGLOCKLESSMPIO_F_TYPE=0x47504653`.
    """

    id = "MIO004"
    settles = "locking"
    sources = ("Vani paper, section IV-D", "ROMIO on Blue Gene")

    # A single writer needs no locks.
    min_writers = 2

    def judge(self, use: LayerGroup, profile: Profile, system: System) -> Answer:
        use = use.of(item for item in use.items if item.file.writers >= self.min_writers)
        if not use.items:
            return "no file is written by several processes through MPI-IO"
        place = gpfs_under(use.items[0].path, profile, system)
        if isinstance(place, str):
            return place
        links, pairs = use.app.process_dependencies, profile.workflow.app_dependencies
        if links is None or pairs is None:
            return f"whether processes of {use.app.name} read what others wrote is not known"
        if links.edges:
            return f"processes of {use.app.name} read what others of them wrote: locks are needed"
        if any(use.app.name in (pair.producer, pair.consumer) for pair in pairs):
            return f"{use.app.name} hands data to another app or takes it: locks are needed"
        is_blue_gene = system.forwarding is not None and bool(system.forwarding.bridge_nodes_per_io_node)
        by_system = Evidence(f"system.{place[0].removeprefix('system.')}.type", "gpfs")
        return Finding(
            **use.affected,
            reason=f"{use.app.name} writes {use.words} on GPFS, and no process reads what another "
            "process wrote: ROMIO's locks protect nothing there. No trace shows their cost: supply the time "
            "of a run without them.",
            # MPI libraries without ROMIO's driver for GPFS ignore the variable.
            confidence=(0.7 if is_blue_gene else 0.4) * certainty(system),
            touched_s=use.wall_s("write"),
            recommended={"BGLOCKLESSMPIO_F_TYPE": _MAGIC},
            evidence=[
                *(known_figures(profile, "", "storage.shared.type") or [by_system]),
                *figures(use.app, f"apps[{profile.apps.index(use.app)}]", "process_dependencies.edges"),
                *use.figures("writers"),
                *use.figures("io.busy_s.write"),
            ],
            apply=[
                *comment(
                    "job script; a variable of ROMIO's driver for Blue Gene and GPFS, which others ignore.\n"
                    "Only while no process reads what another one writes in the same run:"
                ),
                f"export BGLOCKLESSMPIO_F_TYPE={_MAGIC}",
            ],
            # Without locks, a run can be fast and wrong, so no trial may set it.
            settings=(),
        )
