"""LUS008: inputs that are on too few Lustre targets for the processes that read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.advisors.commands import comment, quoted_path
from vani.advisors.data_files import app_of, extent, folder_of
from vani.advisors.lustre import layout_choice, layout_text
from vani.advisors.lustre.layout_choice import Case, LayoutRule
from vani.advisors.placement import own_stripes
from vani.advisors.rule import Finding, Target, Verdict
from vani.units import format_bytes, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class MigrateInputs(LayoutRule):
    """An input that many processes read is on too few Lustre targets.

    Looks at
        Files on Lustre of at least `min_bytes` that the run only reads, with at least `min_readers` processes:
        on how many nodes, the distance between the offsets that they read at the same moment, and the number of
        targets.
    Why
        A file's layout is fixed when it is made: an input that was copied or downloaded by one process is on
        few targets, and all readers queue there, in every run. A folder's default does not change files that
        already exist.
    Recommends
        `lfs migrate`, which copies the file into a new layout under its name, with the count and size that LUS002
        finds. It reads and writes the whole file once, so it pays if later runs read the file again. Nothing may write
        the file meanwhile.
    Stays silent when
        No large file is read by many and written by none; each large input has few readers; the data is not on Lustre,
        or its location is not known; the default layout, which the input is assumed to have, fits; the site asks not to
        override its layout.
    Source
        lfs-migrate(1). AIOT, equation 3. Lustre manual, section 19.2. Targets per node: docs/models.md.
    Example
        64 processes on 4 nodes read one NetCDF file of 4 GiB from one of 48 targets:
        `lfs migrate -c 48 -S 64M in.nc`.
    """

    id = "LUS008"
    settles = "layout"
    sources = ("lfs-migrate(1)", "AIOT eq. 3", "Lustre manual, section 19.2")

    # A target of 0.5 GB/s cannot serve two readers at 0.3 GB/s per process (OPRAEL). With four, processes wait for at
    # least half of the time.
    min_readers = 4

    def check(self, profile: Profile, system: System) -> Verdict:
        inputs = [
            (i, f)
            for i, f in enumerate(profile.files)
            if f.role == "input" and f.access == "shared" and not f.writers
        ]
        large = [(i, f) for i, f in inputs if (extent(f) or 0) >= self.min_bytes]
        if not large:
            if inputs and all(extent(f) is None for _, f in inputs):
                return (
                    "files[].io.footprint and files[].size of the shared inputs are not known; "
                    "supply a trace with offsets"
                )
            return f"no input of {lfs_size(int(self.min_bytes))}iB or more is shared by processes"
        many = [(i, f) for i, f in large if f.readers >= self.min_readers]
        if not many:
            return f"no large input is read by {self.min_readers} processes or more"
        groups = self.groups(many, profile, system)
        if isinstance(groups, str):
            return groups
        return [_finding(group, profile) for group in groups]

    def objection(self, case: Case) -> str | None:
        if case.layout.default_count == case.layout.count:
            if own_stripes(case.file) is not None:
                return "the inputs have a layout whose stripe count fits"
            return "the inputs presumably have the default layout, whose stripe count fits"
        return None


def _finding(group: Sequence[Case], profile: Profile) -> Finding:
    first, layout = group[0], group[0].layout
    app = app_of(first.file)
    gain = layout_choice.gain(group, profile)
    known = all(own_stripes(case.file) is not None for case in group)
    copied = sum(extent(case.file) or 0 for case in group)
    return Finding(
        target=Target("file", first.file.path, app)
        if len(group) == 1
        else Target("directory", folder_of(first.file.path), app),
        reason=f"{layout_text.sentence(group)} Migrating copies "
        f"{format_bytes(copied)} once and pays where later runs read the data again"
        + ("." if known else "; `lfs getstripe` shows whether the layout is still the default."),
        # If the profile does not have the file's own layout, the default is a guess.
        confidence=round(
            first.place.certainty
            * (0.7 if first.size_from in ("distance", "site") else 0.5)
            * (1.1 if known else 1.0),
            2,
        ),
        touched_s=layout_choice.spent_s(group, profile),
        recommended={"stripe_count": layout.count, "stripe_size": layout.size}
        | ({"pool": layout.pool} if layout.pool else {}),
        current={"stripe_count": layout.default_count, "stripe_size": layout.default_size},
        evidence=layout_text.evidence(group),
        gain=gain or None,
        apply=_commands(group),
        files=frozenset(case.file.path for case in group),
    )


def _commands(group: Sequence[Case]) -> list[str]:
    layout = group[0].layout
    paths = [quoted_path(case.file.path) for case in group]
    lines = [f"lfs migrate {layout.options} {path}" for path in paths if path]
    if None in paths:
        lines += comment("a path with control characters is left out: type it yourself")
    return lines
