"""POS002: many small requests that a buffer would join."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from vani.advisors import data_files
from vani.advisors.access_table import layers_of
from vani.advisors.commands import Language, code_lines, comment, language_of
from vani.advisors.movers import FUNNEL_PROCESSES, are_plain, is_rewritten
from vani.advisors.rule import Finding, Rule, Verdict
from vani.advisors.small_requests import (
    SMALL,
    aggregated,
    part_of_chunk,
    small_share_of,
    usual_at_most,
    usual_text,
)
from vani.models.savings import LARGE, requests
from vani.schema.damage import overhead_of
from vani.units import KiB, MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from vani.schema.profile import App, FileEntity, Profile
    from vani.schema.system import System


class _Run(NamedTuple):
    """The layers of each file, and whether the tracer made calls longer, so that no gain in seconds is known."""

    layers: Mapping[str, Mapping[str, int]]
    is_lengthened: bool


@dataclass(frozen=True)
class Small(data_files.Access):
    """One direction of I/O on a file and those that it represents, with `count` small requests."""

    count: float

    @property
    def all_requests(self) -> float:
        return self.requests * (self.item.part.reads if self.reads else self.item.part.writes)

    @property
    def users(self) -> float:
        """Number of processes that read (write) the file, summed over files."""
        return max(1, self.processes) * self.item.part.files

    @property
    def all_rows(self) -> tuple[int, int, float]:
        """Bytes, requests, and their seconds summed over processes."""
        (moved, _, time), part = self.row, self.item.part
        return round(moved * (part.read if self.reads else part.written)), round(self.all_requests), time * part.time


class SmallAccesses(Rule):
    """Many requests are small and consecutive: a buffer would make few of them.

    Looks at
        Files that several processes do not access through MPI-IO: the share of reads (of writes) below `small`, at
        least `min_share`, where at least `min_ordered` of the accesses go forward in the file, and `min_operations` of
        them in the files of one folder.
    Why
        A request costs a trip to the server and back, whether it moves ten bytes or four million. Client caches hide
        that for one process and its own file, not where files are shared, synced or read once.
    Recommends
        Collect data in memory and move it in pieces of 4 MiB; with stdio, whole arrays in a call or a larger buffer
        (`setvbuf`); in files of HDF5 and netCDF, larger chunks. In C++ a line ends with `'\\n'`, since `std::endl`
        writes it at once; Fortran and Python flush no record automatically.
    Stays silent when
        Requests are large, few, or at random offsets (POS005); sizes are not known; files are shared through MPI-IO
        (MIO001); or they are journals of a database (POS010), or parts of chunks of HDF5 (HD5004). Where the tracer
        makes calls longer, so that no gain is known: requests of `least_joined` or more follow each other (writes: of
        one process), and take `cached_s` or less each: the client's cache joins them.
    Source
        Vani paper, section IV (Montage: 90 % of the requests below 4 KB) and IV-D (buffer by granularity). Gain:
        `vani/models/savings.py`.
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
    needs = (data_files.posix_files,)
    settles = "request-size"
    sources = ("Vani paper, section IV",)

    # A sixteenth of one RPC of Lustre, and the unit of its stripes; the Vani paper calls 4 KB small.
    small = SMALL
    # Our choice: most of the requests.
    min_share = 0.5
    # Our choice: most of the accesses. Only forward accesses can be joined.
    min_ordered = 0.5
    # The page of a client's cache, and the buffer of stdio. A smaller request costs about as much as a page.
    least_joined = 4 * KiB
    # Our choice: a call that waits for a server takes longer, and a copy of less than 64 KiB in memory does not.
    cached_s = 100e-6
    # Our choice: fewer small reads of a file of HDF5 are headers.
    many_objects = 1000
    # Our choice: with one request per process and file, there is nothing to save.
    min_per_user = 2
    # Our choice: with 1 ms each (typical of a busy file system), fewer take less than a quarter of a second.
    min_operations = 256

    def check(self, profile: Profile, system: System) -> Verdict:
        accessed = [item for item in data_files.posix_items(profile) if _can_wait(item)]
        if not accessed:
            return "files are journals, parts of chunks, or written as a whole again and again"
        run = _Run(layers_of(profile), overhead_of(profile) is not None)
        by_item: defaultdict[data_files.Item, list[Small]] = defaultdict(list)
        for items in data_files.alike(accessed):
            for reads in (False, True):
                for access in self._small(items, run, reads=reads):
                    by_item[access.item].append(access)
        if not by_item:
            sizes = [item.io.transfer_size for item in accessed]
            if not any(item.requests for item in accessed):
                return "no other file is read or written"
            if all(size.read is None and size.write is None for size in sizes):
                return "sizes of requests are not known; supply a trace with the data calls"
            return f"few requests are consecutive and below {format_bytes(self.small)}"
        findings = []
        for group in data_files.by_folder(by_item, profile):
            chosen = [access for item in group.items for access in by_item[item]]
            if sum(access.count for access in chosen) >= self.min_operations:
                findings.append(self._finding(group, chosen, profile, system))
        return findings or f"no folder's files have {format_count(self.min_operations)} small requests or more"

    def _small(self, items: list[data_files.Item], run: _Run, *, reads: bool) -> list[Small]:
        """Small requests in one direction of files judged together; empty unless most are small and in order."""
        accesses = [access for item in items if (access := self._access(item, run, reads=reads))]
        total = sum(access.all_requests for access in accesses)
        count = sum(access.count for access in accesses)
        ordered = sum(access.all_requests * self._ordered(access.item, run) for access in accesses)
        if not count or count < self.min_share * total or ordered < self.min_ordered * total:
            return []
        # A process that reads a small file as a whole has nothing to join.
        return accesses if total >= self.min_per_user * sum(access.users for access in accesses) else []

    def _access(self, item: data_files.Item, run: _Run, *, reads: bool) -> Small | None:
        requests = Small(item, reads, 0.0).all_requests
        share = small_share_of(item.io, int(self.small), reads=reads)
        if not requests or (run.is_lengthened and self._is_joined(item, reads=reads)):
            return None
        return Small(item, reads, share * requests)

    def _is_joined(self, item: data_files.Item, *, reads: bool) -> bool:
        """True if the client's cache joins the requests: they follow each other, and no call waited for a server."""
        access = data_files.Access(item, reads)
        moved, count, time = access.row
        pattern, flushes = item.io.access_pattern, item.io.ops.sync or 0
        # O_DIRECT and O_SYNC pass by the cache.
        shared = (item.file.processes > 1 and not reads) or bool(item.file.direct_opens or item.file.synchronous_opens)
        if shared or pattern is None or pattern.consecutive < self.min_ordered or not time:
            return False
        # The last request is short, and some find the end of the file.
        return 1.1 * moved >= self.least_joined * count and time <= self.cached_s * count and 2 * flushes < count

    def _ordered(self, item: data_files.Item, run: _Run) -> float:
        """Lower bound of the share of consecutive requests; 0 if unknown."""
        io, pattern = item.io, item.io.access_pattern
        own = run.layers.get(item.path, {})
        only_read = item.file.format in _LIBRARIES and not item.file.writers
        if only_read and _LIBRARIES.keys().isdisjoint(own) and item.requests >= self.many_objects:
            # No call of the library shows it: its data sets are small, in the order of the format, not chunks.
            return float((usual_at_most(io.transfer_size.read) or 0) < self.least_joined)
        if pattern is not None:
            return pattern.consecutive + pattern.sequential
        if "stdio" not in own:
            return 0.0
        # A stream continues where it was unless it is repositioned, which any metadata operation except an open may do.
        moved = max(0, io.ops.metadata - item.file.opens)
        return 1 - min(1.0, moved / max(1, io.ops.read + io.ops.write))

    def _finding(self, group: data_files.Group, small: list[Small], profile: Profile, system: System) -> Finding:
        count = round(sum(access.count for access in small))
        moved = round(sum(access.all_requests for access in small))
        share, before = count / moved if moved else None, group.data_s(small)
        rows = [access.all_rows for access in small]
        # A piece belongs to one file.
        left = round(sum(max(requests([access.all_rows]), access.item.part.files) for access in small))
        # The direction of most small requests.
        reads = sum(access.count if access.reads else -access.count for access in small) > 0
        first, layers = group.items[0], layers_of(profile)
        lines = _lines(first.file, layers.get(first.path, {}), language_of(group.app, profile), reads=reads)
        if reads and group.app is not None and first.file.processes == 1 and _is_parallel(group.app, profile):
            lines += comment("or each process its own part: MPI_File_read_at_all, in place of sending what one reads")
        return Finding(
            **group.affected,
            direction="read" if reads else "write",
            reason=f"{format_count(count)} of {format_count(moved)} requests to {group.words} "
            f"({format_share(share)}) have less than {format_bytes(self.small)}, usually "
            f"{usual_text(data_files.Access(first, reads).sizes)}. Pieces of {LARGE // MiB} MiB would need only "
            f"{format_count(left)}.",
            confidence=0.7,
            touched_s=before,
            recommended={"request_bytes": LARGE},
            current={"requests": moved, "small_share": share},
            evidence=[
                figure
                for access in small[:5]
                for figure in access.figures(
                    "path", "io.ops.{kind}", "io.transfer_size.{kind}.p50", "io.busy_s.{kind}"
                )
            ],
            gain=aggregated("data_time_s", before, rows, data_files.Access(first, small[0].reads), system, left=left),
            apply=lines,
        )


def _is_parallel(app: App, profile: Profile) -> bool:
    """True if the processes of an app are ranks, enough to share work."""
    return app.processes >= FUNNEL_PROCESSES and not are_plain(app, profile)


def _can_wait(item: data_files.Item) -> bool:
    """True if data may wait in memory: not that of a database, or of a file that is written whole again and again."""
    return not data_files.is_journal(item.path) and not is_rewritten(item.file) and part_of_chunk(item, None) is None


def _lines(file: FileEntity, layers: Container[str], language: Language | None, *, reads: bool) -> list[str]:
    if file.direct_opens:
        return comment(f"in the program: open without O_DIRECT; or {LARGE} bytes in each call, of posix_memalign")
    if file.format in _LIBRARIES:
        # The calls of a statically linked library do not appear in a trace.
        return comment(f"in the program: {_LIBRARIES[file.format]}")
    if "mpiio" in layers:
        many = "read" if reads else "collect records in memory, and write"
        return comment(f"in the program: {many} {LARGE} bytes at once")
    if "stdio" in layers:
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
    "Shell": "one program that reads the file once (awk), in place of a command for each line",
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
    "Shell": "for ...; do ...; done | cat >> FILE   # printf and echo write each line at once, cat 64 KiB and more",
    "Python": f'open(name, mode, buffering={LARGE}), and no flush() or print(..., flush=True) after each record;\n'
    "logging: logging.handlers.MemoryHandler(1000, target=handler)",
}
