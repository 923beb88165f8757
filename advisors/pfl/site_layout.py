"""PFL002: the file system's own composite layout, against its targets and the files of this run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import extent, only
from vani.advisors.placement import Lustre, exception, places
from vani.advisors.rule import Evidence, Finding, Rule, Verdict, figures
from vani.errors import InputError
from vani.models.pfl import Layout, parse_options, usage
from vani.models.run_time import of_files_s
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import FileSystem, System


class SiteLayout(Rule):
    """The site's composite layout does not fit the file system or the largest file of this run.

    Looks at
        The default composite layout in the machine's description, the number of targets, and the largest file that
        the run writes there.
    Why
        A layout with more stripes in all than there are targets puts several stripes of one file on one target; one
        whose last component is narrow makes a very large file fill few targets; one without an end makes writes
        fail.
    Recommends
        Show the finding to the site and do not override its layout: it belongs to the site, and users are asked to
        leave it as it is. The conditions for an exception are stated with it.
    Stays silent when
        The machine's description has no composite layout; the run writes no file of known size on it; the layout fits.
    Source
        Lustre manual, progressive file layouts, as quoted by Tarazu (section 2.3: stop growing when the total reaches
        the number of targets). Tarazu's configuration 2 has 45 stripes on 35 targets.
    Example
        A default of `-E 128M -c 1 -E 2G -c 12 -E -1 -c 32` on 35 targets, and a file of 8 GiB: 45 stripes.
    """

    id = "PFL002"
    sources = ("Lustre manual, progressive file layouts", "Tarazu, section 2.3 and table 8")

    # Our choice: a file that fills a larger share of a target leaves too little room for others.
    max_target_share = 0.1

    def check(self, profile: Profile, system: System) -> Verdict:
        if not any(disk.site_pfl for disk in system.file_systems):
            return "the machine's description has no composite layout of the site (site_pfl)"
        under = places(profile, system)
        written = [
            (i, f, place)
            for i, f in enumerate(profile.files)
            if f.writers
            and extent(f)
            and not isinstance(place := under(f.path.rpartition("/")[0]), str)
            and place.figures is not None
            and place.figures.site_pfl
        ]
        if not written:
            return "the run writes no file of known size where a composite layout is the default"
        index, file, place = max(written, key=lambda row: extent(row[1]) or 0)
        disk = place.figures
        if disk is None or disk.site_pfl is None:
            return "no layout is known"
        try:
            layout = parse_options(disk.site_pfl)
        except InputError as error:
            return [_finding(index, file, place, disk, f"{error.what}", 0.5, profile)]
        wrong = self._wrong(layout, disk, extent(file) or 0)
        if wrong is None:
            return f"the site's layout fits the largest file; {exception()}"
        return [_finding(index, file, place, disk, wrong, 0.6, profile)]

    def _wrong(self, layout: Layout, disk: FileSystem, size: int) -> str | None:
        targets = disk.targets
        got = usage(layout, size, targets)
        if targets and got.allocated > targets:
            return (
                f"a file of {format_bytes(size)} gets {got.allocated} stripes on {targets} targets: some store several "
                "of them"
            )
        capacity = disk.capacity / targets if disk.capacity and targets else None
        if capacity and got.fullest > self.max_target_share * capacity:
            return (
                f"a file of {format_bytes(size)} puts {format_bytes(got.fullest)} on one target, which has "
                f"{format_bytes(capacity)} in all"
            )
        return None


def _finding(
    index: int, file: FileEntity, place: Lustre, disk: FileSystem, wrong: str, confidence: float, profile: Profile
) -> Finding:
    return Finding(
        **only(file),
        reason=f"The default layout of {disk.name} does not fit: {wrong}. It is the site's: show it to "
        f"them; {exception()}. For an expected gain, supply such runs.",
        confidence=round(confidence * place.certainty, 2),
        touched_s=of_files_s([file], profile, "write_synced"),
        recommended={"ask_the_site": True},
        current={"layout": disk.site_pfl},
        evidence=[
            Evidence(f"files[{index}].path", file.path),
            Evidence(f"files[{index}].size", extent(file)),
            *figures(disk, place.prefix, "site_pfl", "targets"),
        ],
        apply=f"look first: lfs getstripe -d {disk.mounts[0] if disk.mounts else '.'}",
    )
