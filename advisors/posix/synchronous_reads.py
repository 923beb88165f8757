"""POS013: the program waits for reads that could run while it computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.access_table import through_libraries
from vani.advisors.commands import Language, code_lines, comment, language_of, quoted_path
from vani.advisors.data_files import Group, Item, data_files
from vani.advisors.movers import are_plain
from vani.advisors.posix import OverlappingRule
from vani.advisors.rule import Finding, Gain, Target, figures
from vani.models.savings import Overlap
from vani.units import MiB, format_bytes, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


class SynchronousReads(OverlappingRule):
    """Phases of reading and of computing alternate, and computing waits for the reads.

    Looks at
        Each app's phases that read, at least `min_phases` (or one with pauses between its reads), and the time
        without I/O before and within them, as long as the reading for at least `min_pauses` of them: the reading that
        fits into it, at least `min_share` of the app's run. Time in I/O libraries is not computing, nor is a pause
        before a program reads back its output (at least `min_read_back` of it).
    Why
        A program that knows what it reads next can have it read while it computes. The run is then shorter by what
        fits into the pauses. Clients of file systems read ahead by themselves, but only in the order of the bytes of
        one file, and not into the next file.
    Recommends
        Read one step ahead: workers and a prefetch factor of the data loader, a thread that reads the next step, an
        asynchronous call (`MPI_File_iread_at`, `H5Dread_async`), or a hint to the client (`posix_fadvise` with
        POSIX_FADV_WILLNEED) before computing. ROMIO's `romio_ds_read` and `romio_cb_read` make requests larger; they
        read nothing in advance. On Lustre, where files are read in order, a larger window of the client.
    Stays silent when
        An app reads in too few phases, or little of it fits into pauses; it already calls asynchronous functions or
        requests read-ahead; processes besides the first one read, as workers of a loader do; most of what it reads
        is software; phases are not known.
    Source
        Vani paper, section IV-D (prefetching) and table V (frequency of phases); posix_fadvise(2); documentation of
        PyTorch (torch.utils.data) and of tf.data; Lustre manual, "Tuning File Readahead and Directory Statahead".
        Model: `vani/models/savings.py`.
    Example
        A loader reads 100 files of 1 GB for 0.4 s each and computes 1 s after each: all of it but the first 0.4 s can
        be hidden with one worker:

            loader = DataLoader(samples, batch_size=32)                                        # before
            loader = DataLoader(samples, batch_size=32, num_workers=4, prefetch_factor=2)      # after
    """

    id = "POS013"
    needs = ("phases",)
    settles = "read-ahead"
    sources = ("Vani paper, section IV-D", "posix_fadvise(2)", "Lustre manual, Tuning File Readahead")

    reads = True
    # Prefixes of functions that already read in the background or request read-ahead from the client.
    asynchronous = (
        "MPI_File_iread",
        "MPI_File_read_all_begin",
        "MPI_File_read_at_all_begin",
        "MPI_File_read_ordered_begin",
        "aio_read",
        "lio_listio",
        "io_submit",
        "io_uring",
        "H5Dread_async",
        "ncmpi_iget",
        "posix_fadvise",
        "fadvise64",
        "readahead",
    )

    # Our choice: most of an app's requests. Clients read ahead of consecutive ones.
    min_consecutive = 0.5
    # Our choice: a program loads its modules before it computes.
    min_data = 0.5

    def objection(self, app: App, profile: Profile) -> str | None:
        balance = app.balance
        if are_plain(app, profile) and balance is not None and app.processes > 1 and balance.busiest_rank:
            return f"processes that {app.name} started read for it: they overlap with its computing already"
        moved = app.io.bytes.read or 0
        of_data = Group(app, "", _inputs(app, profile)).scaled("io.bytes.read", "read")
        if of_data < self.min_data * moved:
            return f"most of what {app.name} reads is no data, but software and settings of the machine"
        return None

    def finding(self, number: int, app: App, overlapping: Overlap, profile: Profile, system: System) -> Finding:
        inputs = _inputs(app, profile)
        before, hidden = overlapping.moving_s, overlapping.hidden_s
        after = min(before, before - hidden + overlapping.copying_s)
        method = (
            "what fits into the pauses before and within each phase, less a copy in memory; high: without the copy, "
            "low: computing is slowed by as much"
        )
        lines = comment(_LIBRARIES) if through_libraries(profile, app) else code_lines(_CODE, language_of(app, profile))
        return Finding(
            target=Target("app", None, app.name),
            reason=f"{app.name} reads for {format_seconds(before)} between pauses for computing, into which "
            f"{format_seconds(hidden)} of it fit. The next input can be read meanwhile, where the program knows which "
            f"it is. A process then keeps up to {format_bytes(overlapping.largest)} more in memory. A profile does not "
            "show threads: where one reads ahead already, nothing is left to gain.",
            confidence=0.5,
            touched_s=hidden,
            recommended={"reads": "ahead", "buffer_bytes_per_process": overlapping.largest},
            current={"read_phases": overlapping.phases, "reading_s": before},
            evidence=figures(app, f"apps[{number}]", "io.busy_s.read", "runtime_s", "phase_gap_s"),
            gain=Gain("read_time_s", before, after, before - hidden, before, method),
            apply=lines + self._window(app, inputs, overlapping, profile, system),
            files=frozenset(item.path for item in inputs),
        )

    def _window(
        self, app: App, inputs: list[Item], overlapping: Overlap, profile: Profile, system: System
    ) -> list[str]:
        """Settings of Lustre's read-ahead, which ends with the file, for a file that is read in order, step by step."""
        largest = max(inputs, key=lambda item: item.io.bytes.read or 0, default=None)
        pattern = app.io.access_pattern
        if largest is None or pattern is None or pattern.consecutive < self.min_consecutive:
            return []
        if overlapping.phases < self.min_phases or (largest.io.bytes.read or 0) <= overlapping.largest:
            return []
        disk = system.file_system_for(largest.path)
        if (disk.type if disk is not None else profile.storage.shared.type) != "lustre":
            return []
        lines = comment(
            "or, as the file is read in order, a window of the client that spans a step (root; ask the site):\n"
            f"  lctl set_param llite.*.max_read_ahead_per_file_mb={-(-overlapping.largest // MiB)}\n"
            "  (at most half of llite.*.max_read_ahead_mb)"
        )
        if path := quoted_path(largest.path):
            ask = f"or, any user: have the servers read the file into their memory:\n  lfs ladvise -a willread {path}"
            lines += comment(ask)
        return lines


def _inputs(app: App, profile: Profile) -> list[Item]:
    return data_files(profile, lambda file: file.readers > 0 and app.name in file.apps)


_LIBRARIES = (
    "in the program, with two buffers in turn:\n"
    "  MPI_File_iread_at(file, offset of the next step, buffer[1 - i], count, type, &request);  compute(buffer[i]);\n"
    "  MPI_Wait(&request, MPI_STATUS_IGNORE);\n"
    "HDF5: H5Dread_async with the asynchronous connector; PnetCDF: ncmpi_iget_vara, compute, ncmpi_wait_all;\n"
    "otherwise a thread that reads the next step.\n"
    "ROMIO reads nothing ahead: romio_ds_read and romio_cb_read only make the requests of one call larger"
)

_CODE: dict[Language, str] = {
    "Python": (
        "PyTorch:  DataLoader(..., num_workers=4, prefetch_factor=2, persistent_workers=True)\n"
        "others:   pool = concurrent.futures.ThreadPoolExecutor(1);  ahead = pool.submit(read, first)\n"
        "          for step in steps: data = ahead.result();  ahead = pool.submit(read, step + 1);  compute(data)"
    ),
    "C": (
        "posix_fadvise(fd, offset of the next step, bytes, POSIX_FADV_WILLNEED);  compute();\n"
        "or a thread that reads the next step into a second buffer"
    ),
}
