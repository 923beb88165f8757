"""GPF002: many processes make files in one folder on GPFS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import quoted_path
from vani.advisors.folder_table import Folders, folder_table, folders_of
from vani.advisors.placement import gpfs_under
from vani.advisors.rule import Answer, Evidence, Finding, Rule, Verdict
from vani.models.calibration import certainty
from vani.units import format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


def _several_nodes(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    return "all processes run on one node, which needs one token" if profile.job.nodes == 1 else None


class SharedFolder(Rule):
    """Many processes make files in one folder on GPFS, and that takes much of the I/O time.

    Looks at
        Folders on GPFS, over all files of the run and not only the listed ones, in which two processes or more make at
        least `min_creates` files, and whose metadata operations take at least `min_metadata_share` of the I/O time.
    Why
        GPFS nodes manage folders themselves: a node that makes or removes a name takes the token of a block of the
        folder, and another node that wants the same block waits until it is written back and given up. A node changes a
        folder of its own in its memory.
    Recommends
        A folder for each process, or for each node (`mkdir` before the run, by one process), or fewer processes that
        make files. How many files a folder has does not matter: GPFS finds names by hashing.
    Stays silent when
        No folder has that many files made by several processes, or metadata takes little of the I/O time; all processes
        run on one node; folders are not known; the data is not on GPFS.
    Source
        Schmuck and Haskin, FAST 2002, sections 2.2 (large folders) and 3 (tokens); US patent 8156164 (why
        nodes that change one folder wait for each other). The cost: IO500's mdtest, whose easy half gives each
        process a folder (`-u`).
    Example
        4 nodes make 1,600 files in one folder, and 98 % of the I/O time is making and removing them: `out/RANK/`.

            open(f"out/{rank}_{step}", "wb")    # before: all files in one folder
            open(f"out/{rank}/{step}", "wb")    # after
    """

    id = "GPF002"
    needs = ("workflow.io.time_s.metadata", _several_nodes, folder_table)
    settles = "directory"
    sources = ("Schmuck and Haskin, FAST 2002, sections 2.2 and 3", "US patent 8156164")

    # As in FLD001: with fewer files, the waiting does not show.
    min_creates = 100
    # Below a third, metadata (including the wait for tokens) is little of the I/O time (our choice).
    min_metadata_share = 0.3

    def check(self, profile: Profile, system: System) -> Verdict:
        table = folders_of(profile, system)
        if table.rows and all(row[1].creates is None for row in table.rows):
            return "the number of files made is not known; Recorder records it"
        many = [row for row in table.rows if (row[1].creates or 0) >= self.min_creates]
        if not many:
            return (
                f"in no folder {format_count(int(self.min_creates))} files are made, of those with most metadata time "
                "and most files"
            )
        known = [row for row in many if row[1].makers is not None]
        if not known:
            return "the number of processes that make the files is not known; make the profile again, with times"
        shared = [row for row in known if (row[1].makers or 0) > 1]
        if not shared:
            return "each folder's files are made by one process"
        return self.among(self._judge(Folders((row,)), profile, system) for row in shared)

    def _judge(self, folder: Folders, profile: Profile, system: System) -> Answer:
        (_, row), nodes, share = folder.rows[0], profile.job.nodes, folder.metadata_share(profile)
        place = gpfs_under(f"{row.path}/x", profile, system)
        if isinstance(place, str):
            return place
        if share < self.min_metadata_share:
            return f"metadata operations there take {format_share(share)} of the I/O time"
        quoted = quoted_path(row.path)
        makers = min(profile.workflow.processes, max(2, row.makers or 2))
        unknown = "" if nodes else " If they run on one node, it does not matter: supply the number of nodes."
        return Finding(
            target=folder.target(profile),
            reason=f"{format_count(makers)} processes or more make {format_count(row.creates)} files in {row.path}, "
            f"and metadata operations on them take {format_share(share)} of the I/O time: nodes that change one folder "
            f"take its blocks from each other.{unknown} What that costs is in no trace: compare `mdtest -n 1000 -F` "
            "with `mdtest -n 1000 -F -u` there for an expected gain.",
            confidence=round((0.6 if nodes else 0.4) * certainty(system), 2),
            touched_s=folder.metadata_s(profile),
            recommended={"folders": nodes or makers},
            current={"folders": 1},
            evidence=[*folder.evidence("creates", "makers", "metadata_time_s"), Evidence("job.nodes", nodes)],
            apply=(
                "in the program: a folder for each process or node, made by one process before the others begin"
                + (f", such as\n  mkdir -p {quoted}/rank0 {quoted}/rank1 ..." if quoted else "")
            ),
            files=folder.listed(profile),
        )
