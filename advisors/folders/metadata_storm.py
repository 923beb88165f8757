"""FLD001: many small files whose names cost more than their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.advisors.commands import quoted_path
from vani.advisors.data_files import SERVED, is_data, share_of, software_share
from vani.advisors.folder_table import Folders, beyond, folder_table, folders_of, is_small, is_written, polled
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, TunableSetting, Verdict
from vani.advisors.small_requests import SMALL
from vani.models import staging
from vani.models.io_time import calls_s
from vani.models.run_time import of_profile_s
from vani.units import MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class MetadataStorm(Rule):
    """Many small files are made, opened or removed, and that takes most of the I/O time.

    Looks at
        All folders of the run with data, not only the listed files: those in which nine in ten files have at most
        `max_size`, with at least `min_files` files together. Opening, closing, querying and removing these files, and
        making and removing folders, takes at least `min_share` of the I/O time on data. Reading and writing counts,
        too, where the run writes the files and nine in ten have at most `tiny`: no request there depends on its bytes.
    Why
        Each file costs several trips to a metadata server, however few bytes it has, and these few servers serve all
        users. More nodes do not make this faster, because they wait in one queue.
    Recommends
        Fewer and larger files. For output: one file per process (or one for all) in a container format (HDF5, ADIOS,
        NetCDF) or an archive. For input: an archive (HDF5, tar, SquashFS) that each process opens once. For files whose
        removal is the last thing that happens to them: a folder on the node (`$TMPDIR`), where no server is involved.
        If many processes must make files in one folder: a separate folder for each.
    Stays silent when
        Small files are few; they take less of the I/O time, apart from that of loading programs (FLD002); they are on
        the node already; a process waits for each of them (POS003); folders are not known.
    Source
        Carns et al., Small-file access in parallel file systems (IPDPS 2009); Lustre manual, chapter 20.
    Example
        4 processes write 300 images of 20 KiB into one folder, and 96 % of the I/O time is making them: one HDF5 file
        or tar archive per process makes four files of them.

            cv2.imwrite(f"out/{i}.png", image)    # before: a file for each image
            images[i] = image    # after: h5py data set, one file per process
    """

    id = "FLD001"
    needs = ("workflow.io.time_s.metadata", folder_table)
    settles = "files"
    sources = ("Carns et al., Small-file access in parallel file systems (IPDPS 2009)", "Lustre manual, chapter 20")

    # As in LUS006: one trip less per file saves milliseconds, which do not show with fewer files (general knowledge).
    min_files = 100
    # Half of the I/O time: below, bytes decide (our choice).
    min_share = 0.5
    # Where less than a tenth of the I/O is for data, loading programs is what takes time (our choice).
    min_data = 0.1
    # One RPC (Lustre manual, section 19.2): the bytes of a smaller file take one request, but its name takes several.
    max_size = MiB
    # As in POS002: the file is smaller than a small request.
    tiny = SMALL
    # As in BB002, for the node's storage in a trial.
    spare = 0.2
    memory_share = 0.5  # see spare

    def check(self, profile: Profile, system: System) -> Verdict:
        table = folders_of(profile, system)
        awaited = polled(profile)
        small = Folders(
            tuple(row for row in table.rows if row[1].path not in awaited and is_small(row[1], int(self.max_size)))
        ).without_trifles()
        # FLD003 packs inputs.
        tiny = Folders(tuple(row for row in small.rows if is_small(row[1], int(self.tiny)) and is_written(row[1])))
        names, files = min(1.0, small.metadata_share(profile) + _of_folders(profile)), small.files
        everywhere = self._everywhere(profile)
        if everywhere:
            names, files = _of_all(profile), profile.dataset.files or 0
        if files < self.min_files:
            left_out = beyond(profile)
            where = (
                f"the folders with most metadata and with most files ({format_count(left_out)} files are in others)"
                if left_out
                else "all folders of the run"
            )
            return f"{where} contain {format_count(files)} small files, fewer than {format_count(int(self.min_files))}"
        least = self.min_share * max(self.min_data, 1 - software_share(profile))
        sizes = profile.dataset.size_distribution
        if everywhere and names < least and sizes is not None and (sizes.p90 or self.tiny) < self.tiny:
            data = [file for file in profile.files if is_data(file.path)]
            if 2 * sum(file.writers > 0 for file in data) >= len(data):
                return [self._finding(small, profile, system, files, None, everywhere=True)]
        if names >= least:
            return [self._finding(small, profile, system, files, names, everywhere=everywhere)]
        if tiny.files >= self.min_files and tiny.share(profile) >= least:
            return [self._finding(tiny, profile, system, tiny.files, None, everywhere=False)]
        return (
            f"metadata operations on small files and folders take {format_share(names)} of the I/O time, less than "
            f"{format_share(least)}"
        )

    def _everywhere(self, profile: Profile) -> bool:
        """True if the table omits folders and most files of the run are small."""
        sizes, files = profile.dataset.size_distribution, profile.dataset.files
        if not (beyond(profile) and files and sizes is not None and sizes.p90 is not None):
            return False
        return 2 * sizes.known >= files and sizes.p90 <= self.max_size

    def _finding(
        self, small: Folders, profile: Profile, system: System, files: int, names: float | None, *, everywhere: bool
    ) -> Finding:
        """The finding; `names` is the share of operations on names, None where all calls on the files count."""
        served, io, layout = _of_all(profile), profile.workflow.io, _layout(small, profile)
        if names is None:
            share = 1 - software_share(profile) if everywhere else small.share(profile)
            before = of_profile_s(profile, "total") * share if everywhere else small.total_s(profile)
            cost = f"all calls on them take {format_share(share)} of the I/O time, for few bytes in each"
        else:
            part = min(1.0, names / served) if served else 0.0
            before = of_profile_s(profile, "metadata") * share_of([io], SERVED) * part
            cost = (
                "creating, opening, closing, querying and removing them (and their folders) takes "
                f"{format_share(names)} of the I/O time"
            )
        # A file per process saves little if there are hardly more files than processes. Then use one for all.
        ranks = all(trace.layout != "processes" for trace in profile.traces)
        packs = profile.workflow.processes if ranks and files >= 2 * profile.workflow.processes else 1
        left = before * packs / files
        gain = Gain.at_best(
            "metadata_time_s" if names is not None else "io_time_s",
            before,
            after=(before + left) / 2,
            best=left,
            method=f"operations on names scale with the number of files, {packs} instead of {files}: high, only "
            "the new files' remain; middle, half of the others remain for their contents; low, all",
        )
        where = f"{format_count(files)} files" if everywhere else small.words()
        usual = max((row.sizes.p90 for _, row in small.rows if row.sizes and row.sizes.p90 is not None), default=None)
        room, seen = files * int(usual or self.max_size), all(row.removes is not None for _, row in small.rows)
        sizes = "" if usual is None else f", nine in ten with {format_bytes(usual)} or less"
        return Finding(
            target=Target("dataset") if everywhere else small.target(profile),
            reason=f"{where}{sizes}: {cost}.",
            advice=_ADVICE[layout]
            + (" One file for all is enough." if packs == 1 else f" {format_count(packs)} files are enough, one each."),
            confidence=0.7,
            touched_s=before,
            # Files of which no removal can be seen may also belong on the node.
            recommended={"files": packs} | ({"layout": layout} if layout != "container" or seen else {}),
            current={"files": files},
            evidence=[
                Evidence("workflow.io.time_s.metadata", io.time_s.metadata),
                *small.evidence("creates", "removes", "metadata_time_s"),
            ],
            gain=gain,
            apply=_lines(small, layout),
            files=small.listed(profile),
            direction="write" if 2 * small.written >= small.files else "read",
            removes=frozenset({"request-size"}),
            precedes=frozenset({"location"}),
            settings=() if everywhere else self._tunable(small, layout, profile, system, room),
        )

    def _tunable(
        self, small: Folders, layout: str, profile: Profile, system: System, total: int
    ) -> list[TunableSetting]:
        """Settings that put removed files into TMPDIR on the node, or kept ones, which are copied back at the end."""
        near = staging.tiers(profile, system, spare=self.spare, memory_share=self.memory_share)
        tier = staging.choose(near, total=total, nodes=profile.job.nodes or 1, shared=False)
        if isinstance(tier, str) or tier.plain_dir is None:
            return []
        if layout == "node_local":
            return [TunableSetting("environment", [{"TMPDIR": tier.plain_dir}])]
        paths = {row.path for _, row in small.rows}
        if layout == "archive" or len(paths) != 1:
            return []
        return [TunableSetting("stage_out", [{"near": tier.plain_dir}], paths.pop())]


def _of_all(profile: Profile) -> float:
    """Share of the I/O time, 0..1, of operations that metadata servers answer."""
    io = profile.workflow.io
    return (io.time_s.metadata or 0.0) * share_of([io], SERVED) / calls_s(io) if io.time_s.total else 0.0


def _of_folders(profile: Profile) -> float:
    """Share of the I/O time, 0..1, of creating, listing and removing folders."""
    io = profile.workflow.io
    if io.metadata_kinds is None or not io.time_s.total:
        return 0.0
    return (io.metadata_kinds.directory.time_s or 0.0) / calls_s(io)


def _layout(small: Folders, profile: Profile) -> str:
    """Where the files belong: `node_local` if their removal is the last thing that happens to most of them."""
    files = [file for file in profile.files if file.path in small.listed(profile)]
    if 2 * sum(file.role == "temporary" for file in files) > len(files):
        return "node_local"
    return "archive" if 2 * small.written < small.files else "container"


_ADVICE: Final = {
    "node_local": "Most of them are removed in the end: scratch files belong on the node.",
    "container": "Write them into one container (HDF5, ADIOS, NetCDF) or archive per process.",
    "archive": "Pack them into an archive (HDF5, tar, SquashFS) that each process opens once.",
}


def _lines(small: Folders, layout: str) -> str:
    paths = {row.path for _, row in small.rows}
    folder = (quoted_path(paths.pop()) if len(paths) == 1 else None) or "FOLDER"
    text = {
        "node_local": "in the program: write scratch files below $TMPDIR of the node if the process that wrote them "
        "reads them; otherwise append them to one file per process",
        "container": "in the program: one HDF5 file per process, a data set in place of each file; or, where the files "
        "must stay, write them on the node and `tar` them to the file system at the end",
        "archive": f"before the run, once: pack the folder (`tar -cf packed.tar -C {folder} .`, or\n"
        f"  `mksquashfs {folder} packed.sqsh`), and let the program read from that",
    }[layout]
    if any((row.makers or 0) > 1 for _, row in small.rows):
        text += "\nwhere files must stay apart: a separate folder for each process, made before they begin"
    return text
