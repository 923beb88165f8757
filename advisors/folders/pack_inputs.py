"""FLD003: many small input files that belong in a few large ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import quoted_path
from vani.advisors.data_files import folder_of_pattern, is_data
from vani.advisors.folder_table import polled
from vani.advisors.rule import Finding, Gain, Rule, Target, Verdict, figures
from vani.models.io_time import calls_s
from vani.models.run_time import of_profile_s
from vani.models.staging import is_near
from vani.units import MiB, format_bytes, format_count, format_number, format_share

if TYPE_CHECKING:
    from vani.schema.profile import NamePattern, Profile
    from vani.schema.system import System


class PackInputs(Rule):
    """Many small inputs are separate files, and reading them takes a large part of the I/O time.

    Looks at
        Name patterns over all files of the run: at least `min_files` files that are only read, with `max_size` moved
        per open or less, that take at least `min_share` of the I/O time.
    Why
        A small file costs several requests for its name and attributes before its first byte, and no read is large
        enough for the servers to read ahead. A training run pays that again in each epoch.
    Recommends
        Pack them before the run into a few large files (shards): tar files as WebDataset reads them, HDF5, Parquet,
        LMDB, Zarr with sharding, or an image (SquashFS) where the program must see files. At least one for each process
        that reads. Shuffle the order of shards, and the samples in a buffer.
    Stays silent when
        Patterns are not known; small inputs are few, or take little of the I/O time; they are near the nodes already,
        are installed software (FLD002), or a process waits for each of them (POS003).
    Source
        Carns et al., Small-file access in parallel file systems (IPDPS 2009); WebDataset documentation (sharding).
    Example
        8 loaders read 2,000 images of 40,000 B, each in three epochs: 6,000 opens, 96 % of the I/O time:

            samples = torchvision.datasets.ImageFolder("train")                                       # before
            samples = webdataset.WebDataset("train-{000000..000007}.tar", shardshuffle=8).shuffle(1000)   # after
    """

    id = "FLD003"
    needs = ("patterns",)
    settles = "files"
    sources = ("Carns et al., Small-file access in parallel file systems (IPDPS 2009)", "WebDataset documentation")

    # As in FLD001: with fewer files, one trip less per file does not show.
    min_files = 100
    # As in FLD001: the bytes of a smaller file take one request (Lustre manual, section 19.2), its name takes several.
    max_size = MiB
    # Our choice: a smaller share is not what makes I/O slow.
    min_share = 0.25
    # Shards of 100 MB to 1 GB are read in large pieces and still shuffle well (WebDataset documentation).
    shard = 256 * MiB

    def check(self, profile: Profile, system: System) -> Verdict:
        inputs = [
            (position, pattern)
            for position, pattern in enumerate(profile.patterns or ())
            if pattern.files >= self.min_files and self._is_small_input(pattern, profile, system)
        ]
        if not inputs:
            return f"no name pattern has {format_count(int(self.min_files))} files or more that are small and only read"
        costly = [row for row in inputs if _share(row[1], profile) >= self.min_share]
        if not costly:
            most = max(_share(pattern, profile) for _, pattern in inputs)
            return f"reading small inputs takes {format_share(most)} of the I/O time"
        return [self._finding(position, pattern, profile) for position, pattern in costly]

    def _is_small_input(self, pattern: NamePattern, profile: Profile, system: System) -> bool:
        path = pattern.pattern
        read = pattern.bytes.read
        small = read is not None and 0 < read <= self.max_size * max(pattern.opens, pattern.files)
        only_read = not pattern.writes and not pattern.bytes.written and pattern.reads > 0
        awaited = folder_of_pattern(path) in polled(profile)
        return small and only_read and is_data(path) and not awaited and not is_near(path, profile, system)

    def _finding(self, position: int, pattern: NamePattern, profile: Profile) -> Finding:
        folder, share = folder_of_pattern(pattern.pattern), _share(pattern, profile)
        size = pattern.size or _once(pattern)
        # A process reads whole shards, so each needs at least one.
        shards = max(1, min(pattern.files, max(round(size / self.shard), pattern.processes or 1)))
        epochs = pattern.opens / pattern.files
        again = f", {format_number(epochs)} times each" if epochs >= 1.5 else ""
        spent = of_profile_s(profile, "total") * share
        before = spent * (min(1.0, (pattern.metadata_time_s or 0.0) / pattern.time_s) if pattern.time_s else 0.0)
        left = before * shards / pattern.files
        gain = Gain.at_best(
            "metadata_time_s",
            before,
            after=(before + left) / 2,
            best=left,
            method=f"operations on names scale with the number of files, {shards} in place of {pattern.files}: low, "
            "only those of the shards are left; middle, half of the others stay for what is inside them; high, all",
        )
        return Finding(
            target=Target("directory", folder, profile.apps[0].name if len(profile.apps) == 1 else None),
            reason=f"{format_count(pattern.files)} small files in {folder} are read{again}: "
            f"{format_count(pattern.opens)} opens for {format_bytes(pattern.bytes.read)} take {format_share(share)} of "
            f"the I/O time. Pack them into {format_count(shards)} large {'file' if shards == 1 else 'files (shards)'}.",
            confidence=0.7,
            touched_s=spent,
            recommended={"files": shards, "layout": "shards"},
            current={"files": pattern.files, "opens": pattern.opens},
            evidence=figures(pattern, f"patterns[{position}]", "pattern", "files", "opens", "bytes.read", "time_s"),
            gain=gain,
            apply="before the run, once: pack the files into shards, in a random order where they are samples\n"
            "  (`tar` files for WebDataset, HDF5, Zarr, Parquet, LMDB); each process reads whole shards;\n"
            f"  or, for a program that must see files: `mksquashfs {quoted_path(folder) or 'FOLDER'} inputs.sqsh`, "
            "mounted on each node",
            removes=frozenset({"opening", "request-size"}),
            precedes=frozenset({"location"}),
            files=frozenset(file.path for file in profile.files if file.path.startswith(folder + "/")),
        )


def _once(pattern: NamePattern) -> int:
    """Bytes of all files, assuming that each open reads a whole file."""
    return (pattern.bytes.read or 0) * pattern.files // max(pattern.opens, pattern.files)


def _share(pattern: NamePattern, profile: Profile) -> float:
    """Share of the I/O time, 0..1, that the files take, or of the calls if times are unknown."""
    whole = calls_s(profile.workflow.io)
    if pattern.time_s is not None and whole:
        return min(1.0, pattern.time_s / whole)
    return min(1.0, (pattern.opens + pattern.reads) / max(1, profile.workflow.io.ops.all))
