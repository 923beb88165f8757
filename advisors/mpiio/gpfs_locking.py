"""MIO004: locks on GPFS between processes that never share data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import Item, listed, target_of, wall_s
from vani.advisors.mpiio.mpiio_files import Use, mpiio_files, mpiio_uses
from vani.advisors.placement import gpfs_under
from vani.advisors.rule import Evidence, Finding, Rule, Verdict
from vani.models.calibration import certainty

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

# "GPFS" in ASCII, which selects ROMIO's file system driver.
_MAGIC = "0x47504653"


class GpfsLocking(Rule):
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
    name = "gpfs-locking"
    family = "mpiio"
    needs = ("files", "interfaces", mpiio_files)
    settles = "locking"
    sources = ("Vani paper, section IV-D", "ROMIO on Blue Gene")

    # A single writer needs no locks.
    min_writers = 2

    def check(self, profile: Profile, system: System) -> Verdict:
        findings: list[Finding] = []
        reasons: list[str] = []
        for use in mpiio_uses(profile):
            items = [item for item in use.items if item.file.writers >= self.min_writers]
            if not items:
                reasons.append("no file is written by several processes through MPI-IO")
                continue
            place = gpfs_under(items[0].file.path, profile, system)
            if isinstance(place, str):
                reasons.append(place)
            elif use.app.process_dependencies is None or profile.workflow.app_dependencies is None:
                reasons.append(f"whether processes of {use.app.name} read what others wrote is not known")
            elif use.app.process_dependencies.edges:
                reasons.append(
                    f"processes of {use.app.name} read what others of them wrote: locks are needed"
                )
            elif any(use.app.name in (d.producer, d.consumer) for d in profile.workflow.app_dependencies):
                reasons.append(f"{use.app.name} hands data to another app or takes it: locks are needed")
            else:
                findings.append(self._finding(use, items, place[0], profile, system))
        return self.verdict(findings, reasons)

    def _finding(self, use: Use, items: list[Item], where: str, profile: Profile, system: System) -> Finding:
        is_blue_gene = system.forwarding is not None and bool(system.forwarding.bridge_nodes_per_io_node)
        known = profile.storage.shared.type is not None
        place = (
            Evidence("storage.shared.type", profile.storage.shared.type)
            if known
            else Evidence(f"system.{where.removeprefix('system.')}.type", "gpfs")
        )
        number, links = profile.apps.index(use.app), use.app.process_dependencies
        return Finding(
            target=target_of(use.folder, items, use.app),
            reason=f"{use.app.name} writes {listed(use.folder, items)} on GPFS, and no process reads what another "
            "process wrote: ROMIO's locks protect nothing there. No trace shows their cost: supply the time "
            "of a run without them.",
            # MPI libraries without ROMIO's driver for GPFS ignore the variable.
            confidence=(0.7 if is_blue_gene else 0.4) * certainty(system),
            touched_s=wall_s(items, use.app, "write"),
            recommended={"BGLOCKLESSMPIO_F_TYPE": _MAGIC},
            current={},
            evidence=[
                place,
                Evidence(f"apps[{number}].process_dependencies.edges", links.edges if links else None),
                *(Evidence(f"{item.where}.writers", item.file.writers) for item in items[:3]),
                *(Evidence(f"{item.where}.io.busy_s.write", item.file.io.busy_s.write) for item in items[:3]),
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
            files=frozenset(item.file.path for item in items),
        )
