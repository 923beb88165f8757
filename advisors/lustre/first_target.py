"""LUS005: a first target that is set by hand for all files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vani.advisors.rule import Evidence, Finding, Rule, Target, Verdict
from vani.models.run_time import cost_s, seconds

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

HINT = "start_iodevice"
"""ROMIO's hint for the first target. (`striping_factor` and `striping_unit` are the other two for layouts.)"""

_INDEX = re.compile(r"(?:^|\s)(?:-i|--stripe-index)[\s=]+(-?\d+)")


class FirstTarget(Rule):
    """The first Lustre target of new files is set by hand, and all of them begin on the same one.

    Looks at
        MPI-IO hints that the program set (`start_iodevice`), and the default layout of the file system where the
        machine's description has it (`-i` in a composite layout).
    Why
        With an index, every file's first stripe is on that target. Files of one stripe are entirely on it, so it is
        full and busy while the others are idle. By default, the metadata server chooses in turn or by free space.
    Recommends
        Leave the index out: unset the hint, or set it to -1. Vani itself never writes `-i` into a command.
    Stays silent when
        No hint and no default layout sets a first target; no hints are known.
    Source
        lfs-setstripe(1): -1, the choice of the metadata server, is recommended. ROMIO users' guide.
    Example
        A program sets `start_iodevice` to 0 for all its files: unset it, or set -1,
        `MPI_Info_set(info, "start_iodevice", "-1")`.
    """

    id = "LUS005"
    sources = ("lfs-setstripe(1)", "ROMIO users' guide")

    def check(self, profile: Profile, system: System) -> Verdict:
        findings = _from_hints(profile) + _from_default(profile, system)
        if findings:
            return findings
        if profile.interfaces and all(interface.hints is None for interface in profile.interfaces):
            return (
                "no default layout sets a first target, and interfaces[].hints are not known; "
                "supply a trace with MPI-IO calls, or look with `lfs getstripe -i`"
            )
        return "no MPI-IO hint and no default layout sets a first target"


def _from_hints(profile: Profile) -> list[Finding]:
    findings = []
    for index, interface in enumerate(profile.interfaces or ()):
        value = (interface.hints or {}).get(HINT)
        if value is None or not re.fullmatch(r"\s*\d+\s*", value):
            continue
        target = int(value)
        app = next((app for app in profile.apps if app.name == interface.app), None)
        findings.append(
            Finding(
                target=Target("app", None, interface.app),
                reason=(
                    f"{interface.app} sets the MPI-IO hint {HINT} to {target}: all files that it makes begin on target "
                    f"{target}. The metadata server spreads them if the hint is left out."
                ),
                confidence=0.8,
                gain="supply how full and how busy that target is",
                touched_s=cost_s([app.io], app.processes, app, "total") if app else 0.0,
                recommended={HINT: -1},
                current={HINT: target},
                evidence=[Evidence(f"interfaces[{index}].hints.{HINT}", value)],
                apply=f'in the program: leave out MPI_Info_set(info, "{HINT}", ...), or in a hints file of ROMIO:\n'
                f"  {HINT} -1",
            )
        )
    return findings


def _from_default(profile: Profile, system: System) -> list[Finding]:
    findings = []
    for index, disk in enumerate(system.file_systems):
        fixed = [int(index) for index in _INDEX.findall(disk.site_pfl or "") if int(index) >= 0]
        if disk.type != "lustre" or not fixed:
            continue
        findings.append(
            Finding(
                target=Target("job"),
                reason=(
                    f"The default layout of {disk.name} puts the first stripe of every file on target "
                    f"{fixed[0]}. Contact the site, or request a folder without `-i`."
                ),
                confidence=0.6,
                gain="supply how full and how busy that target is",
                touched_s=seconds(profile.workflow.io.busy_s.total),
                recommended={"stripe_index": -1},
                current={"stripe_index": fixed[0]},
                evidence=[Evidence(f"system.file_systems[{index}].site_pfl", disk.site_pfl)],
            )
        )
    return findings
