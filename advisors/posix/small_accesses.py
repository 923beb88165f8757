"""POS002: many small requests that a buffer would join."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.commands import Language, code_lines, comment, language_of
from vani.advisors.data_files import Item, alike, by_folder, data_files, data_s, is_journal, listed, target_of
from vani.advisors.rule import Evidence, Finding, Rule, Value, Verdict
from vani.advisors.small_requests import (
    SMALL,
    aggregated,
    moved_one_way,
    process_rate,
    sizes_of,
    small_at_least,
    small_share,
    usual_text,
)
from vani.models.small_io import LARGE, requests
from vani.units import MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, FileEntity, Profile
    from vani.schema.system import System


@dataclass(frozen=True)
class Small:
    """One direction of I/O on a file, with `count` small requests."""

    item: Item
    reads: bool
    count: float

    @property
    def requests(self) -> float:
        io, part = self.item.file.io, self.item.part
        return io.ops.read * part.reads if self.reads else io.ops.write * part.writes

    @property
    def users(self) -> float:
        """Number of processes that read (write) the file, summed over files."""
        file = self.item.file
        return max(1, file.readers if self.reads else file.writers) * self.item.part.files

    @property
    def moved(self) -> tuple[int, int, float]:
        """Bytes, requests, and their seconds summed over processes."""
        moved, _, time = moved_one_way(self.item.file.io, reads=self.reads)
        part = self.item.part
        return round(moved * (part.read if self.reads else part.written)), round(self.requests), time * part.time


class SmallAccesses(Rule):
    """Many requests are small and consecutive: a buffer would make few of them.

    Looks at
        Files that are accessed by POSIX or stdio calls, or through MPI-IO by one process each: the share of reads (of
        writes) below `small`, at least `min_share`, where at least `min_ordered` of the accesses go forward in the
        file, and `min_operations` of them in the files of one folder.
    Why
        A request costs a trip to the server and back, whether it moves ten bytes or four million. Client caches hide
        that for one process and its own file, not where files are shared, synced or read once.
    Recommends
        Collect data in memory and move it in pieces of 4 MiB; with stdio, whole arrays in a call or a larger buffer
        (`setvbuf`); in files of HDF5 and netCDF, larger chunks. In C++ a line ends with `'\\n'`, since `std::endl`
        writes it at once; Fortran and Python flush no record automatically.
    Stays silent when
        Requests are large, few, or at random offsets (POS005); sizes are not known; HDF5 made them, or files are shared
        through MPI-IO (MIO001), which have their own rules; or they are journals of a database (POS010).
    Source
        Vani paper, section IV (Montage: 90 % of the requests below 4 KB) and IV-D (buffer by granularity). Gain:
        `vani/models/small_io.py`.
    Example
        Rank 0 writes `cm1out_000001.dat` in 2,560 requests of 4 KiB: three of 4 MiB move the same:

            series << t << ' ' << energy << std::endl;            // before, C++: a request for each line
            series << t << ' ' << energy << '\\n';                // after: one for each buffer

            write(10) record; flush(10)                           ! before, Fortran
            write(10) records                                     ! after, at the end or each 4 MiB

            print(t, energy, file=series, flush=True)             # before, Python
            series = open(name, "w", buffering=4194304)           # after
            print(t, energy, file=series)
    """

    id = "POS002"
    name = "small-accesses"
    family = "posix"
    needs = ("files",)
    settles = "request-size"
    sources = ("Vani paper, section IV",)

    # A sixteenth of one RPC of Lustre, and the unit of its stripes; the Vani paper calls 4 KB small.
    small = SMALL
    # Our choice: most of the requests.
    min_share = 0.5
    # Our choice: most of the accesses. Only forward accesses can be joined.
    min_ordered = 0.5
    # Our choice: with one request per process and file, there is nothing to save.
    min_per_user = 2
    # Our choice: with 1 ms each (typical of a busy file system), fewer take less than a quarter of a second.
    min_operations = 256

    def check(self, profile: Profile, system: System) -> Verdict:
        accessed = data_files(profile, _is_own)
        if not accessed:
            return self.nothing("no data file is accessed by POSIX or stdio calls")
        small = [
            access
            for items in alike(accessed)
            for reads in (False, True)
            for access in self._small(items, reads=reads)
        ]
        if not small:
            unknown = all(
                f.file.io.transfer_size.read is None and f.file.io.transfer_size.write is None
                for f in accessed
            )
            why = "sizes of requests are not known; supply a trace with the data calls"
            return self.nothing(
                why
                if unknown
                else f"few requests are consecutive and below {format_bytes(self.small)}"
            )
        by_item: defaultdict[Item, list[Small]] = defaultdict(list)
        for access in small:
            by_item[access.item].append(access)
        findings = []
        for app, folder, items in by_folder(by_item, profile):
            chosen = [access for item in items for access in by_item[item]]
            if sum(access.count for access in chosen) >= self.min_operations:
                findings.append(self._finding(app, folder, items, chosen, profile, system))
        return findings or self.nothing(
            f"no folder's files have {format_count(self.min_operations)} small requests or more"
        )

    def _small(self, items: list[Item], *, reads: bool) -> list[Small]:
        """Small requests in one direction of files judged together; empty unless most are small and in order."""
        accesses = [access for item in items if (access := self._access(item, reads=reads))]
        total = sum(access.requests for access in accesses)
        count = sum(access.count for access in accesses)
        ordered = sum(access.requests * self._ordered(access.item) for access in accesses)
        if not count or count < self.min_share * total or ordered < self.min_ordered * total:
            return []
        # A process that reads a small file as a whole has nothing to join.
        return accesses if total >= self.min_per_user * sum(access.users for access in accesses) else []

    def _access(self, item: Item, *, reads: bool) -> Small | None:
        io = item.file.io
        share = small_share(sizes_of(io, reads=reads), int(self.small))
        if item.file.interface == "stdio":
            share = max(share or 0.0, small_at_least(io, int(self.small), reads=reads))
        access = Small(item, reads, 0.0)
        return None if share is None or not access.requests else Small(item, reads, share * access.requests)

    def _ordered(self, item: Item) -> float:
        """Lower bound of the share of consecutive requests; 0 if unknown."""
        io, pattern = item.file.io, item.file.io.access_pattern
        if pattern is not None:
            return pattern.consecutive + pattern.sequential
        if item.file.interface != "stdio":
            return 0.0
        # A stream continues where it was unless it is repositioned, which any metadata operation except an open may do.
        moved = max(0, io.ops.metadata - item.file.opens)
        return 1 - min(1.0, moved / max(1, io.ops.read + io.ops.write))

    def _finding(
        self,
        app: App | None,
        folder: str,
        items: list[Item],
        small: list[Small],
        profile: Profile,
        system: System,
    ) -> Finding:
        count = round(sum(access.count for access in small))
        moved = round(sum(access.requests for access in small))
        before = data_s(
            [access.item for access in small if access.reads],
            [access.item for access in small if not access.reads],
            app,
        )
        rate = process_rate(items[0].file.path, system, reads=small[0].reads)
        gain = aggregated("data_time_s", before, [access.moved for access in small], rate)
        # The direction of most small requests.
        reads = sum(access.count if access.reads else -access.count for access in small) > 0
        usual = sizes_of(items[0].file.io, reads=reads)
        current: dict[str, Value] = {"requests": moved, "small_share": count / moved if moved else None}
        return Finding(
            target=target_of(folder, items, app),
            reason=f"{format_count(count)} of {format_count(moved)} requests to {listed(folder, items, app)} "
            f"({format_share(count / moved if moved else None)}) have less than {format_bytes(self.small)}, usually "
            f"{usual_text(usual)}. Pieces of {LARGE // MiB} MiB would need only "
            f"{format_count(requests(access.moved for access in small))}.",
            confidence=0.7,
            touched_s=before,
            recommended={"request_bytes": LARGE},
            current=current,
            evidence=[entry for access in small[:5] for entry in _evidence(access)],
            gain=gain or "supply a trace with times",
            apply=_lines(items[0].file, language_of(app, profile), reads=reads),
            files=frozenset(item.file.path for item in items),
        )


def _is_own(file: FileEntity) -> bool:
    """True if no library is in between, or only one that cannot join the requests of several processes.

    False for databases: the data that each commit needs on disk cannot wait in memory.
    """
    if is_journal(file.path):
        return False
    alone = file.interface == "mpiio" and file.access == "file_per_process"
    return alone or file.interface in (None, "posix", "stdio")


def _evidence(access: Small) -> list[Evidence]:
    kind, io = "read" if access.reads else "write", access.item.file.io
    sizes = sizes_of(io, reads=access.reads)
    return [
        Evidence(f"{access.item.where}.path", access.item.file.path),
        Evidence(f"{access.item.where}.io.ops.{kind}", getattr(io.ops, kind)),
        Evidence(f"{access.item.where}.io.transfer_size.{kind}.p50", sizes.p50 if sizes else None),
        Evidence(f"{access.item.where}.io.busy_s.{kind}", getattr(io.busy_s, kind)),
    ]


def _lines(file: FileEntity, language: Language | None, *, reads: bool) -> list[str]:
    if file.interface == "mpiio":
        many = "read" if reads else "collect records in memory, and write"
        return comment(f"in the program: {many} {LARGE} bytes at once")
    if file.format in _LIBRARIES:
        # The calls of a statically linked library do not appear in a trace.
        return comment(f"in the program: {_LIBRARIES[file.format]}")
    if file.interface == "stdio":
        # Calls of C and of libraries based on it; Fortran and Python have their own buffers.
        many = "fread(values, size, count, file)" if reads else "fwrite(values, size, count, file)"
        whole = f"whole arrays at once:  {many};\n"
        return code_lines(
            {"C": f"{whole}or right after fopen:\n{_SPACE}  setvbuf(file, space, _IOFBF, sizeof space);"}, None
        )
    return code_lines(_READS if reads else _WRITES, language)


_SPACE = f"static char space[{LARGE}];"

_LIBRARIES: dict[str | None, str] = {
    "hdf5": "more elements in each H5Dwrite and H5Dread, and chunks of 1 MiB or more (H5Pset_chunk);\n"
    "H5Pset_meta_block_size(access_list, 1048576) joins metadata",
    "netcdf": "more elements in each nc_put_vara and nc_get_vara, and chunks of 1 MiB or more (nc_def_var_chunking)",
}

_READS: dict[Language, str] = {
    "C": f"read {LARGE} bytes at once into memory, and take the pieces from there",
    "C++": f"{_SPACE}  file.rdbuf()->pubsetbuf(space, sizeof space);   // before file.open(...)",
    "Fortran": f"read whole arrays; gfortran: export GFORTRAN_UNFORMATTED_BUFFER_SIZE={LARGE} (and _FORMATTED_)",
    "Python": f'open(name, "rb", buffering={LARGE}), or numpy.fromfile and read() of whole arrays',
}

_WRITES: dict[Language, str] = {
    "C": f"collect records in memory, and write when {LARGE} bytes are full and at the end,\n"
    f"or write by stdio with setvbuf(file, space, _IOFBF, {LARGE}), without fflush after each record",
    "C++": "file << record << '\\n';   // in place of std::endl, which writes each line at once\n"
    f"{_SPACE}  file.rdbuf()->pubsetbuf(space, sizeof space);   // before file.open(...)",
    "Fortran": "write whole arrays, and no flush(unit) after each record;\n"
    f"gfortran: export GFORTRAN_UNFORMATTED_BUFFER_SIZE={LARGE} (and _FORMATTED_);\n"
    f"Intel: open(..., buffered='yes', blocksize={LARGE})",
    "Python": f'open(name, "wb", buffering={LARGE}), and no flush() or print(..., flush=True) after each record',
}
