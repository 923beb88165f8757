"""POS007: the program waits for writes that could run while it computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.access_table import through_libraries
from vani.advisors.commands import Language, code_lines, comment, language_of
from vani.advisors.data_files import data_files
from vani.advisors.movers import FUNNEL_PROCESSES, is_funnel
from vani.advisors.posix import OverlappingRule
from vani.advisors.rule import Finding, Gain, Target, figures
from vani.models.savings import Overlap
from vani.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


class SynchronousWrites(OverlappingRule):
    """Phases of writing and of computing alternate, and computing waits for the writes.

    Looks at
        Each app's phases that write, at least `min_phases`, and the time without I/O after and within them, as long as
        the writing for at least `min_pauses` of them: the writing that fits into it, at least `min_share` of the app's
        run. Time in I/O libraries is not computing, nor is a pause before a program reads back its output (at least
        `min_read_back` of it).
    Why
        Data that is copied to a buffer can be written in the background while the program computes on. The run is
        then shorter by what fits into the pauses.
    Recommends
        Asynchronous writes with two buffers: `MPI_File_iwrite`, HDF5's asynchronous connector, ADIOS2, or a thread
        that writes. At most the overlapping time is saved, less the copy of the bytes.
    Stays silent when
        An app writes in too few phases, or little of it fits into pauses; the program calls asynchronous functions
        already; phases are not known.
    Source
        Vani paper, table V (frequency of phases). Model: `vani/models/savings.py`.
    Example
        Three output steps write for 2 s each, 60 s of computing follow each: 6 s of writing can be hidden:

            write(fd, field, bytes);  compute(field);                                       // before
            MPI_File_iwrite(file, buffer[i], count, type, &request);  compute(buffer[1-i]);   // after
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    """

    id = "POS007"
    needs = ("phases",)
    settles = "waiting"
    sources = ("Vani paper, table V",)

    # Prefixes of functions that already write in the background.
    reads = False
    asynchronous = (
        "MPI_File_iwrite",
        "aio_write",
        "lio_listio",
        "io_submit",
        "io_uring",
        "H5Dwrite_async",
        "ncmpi_iput",
        "ncmpi_bput",
    )

    def finding(
        self,
        number: int,
        app: App,
        overlapping: Overlap,
        profile: Profile,
        system: System,  # noqa: ARG002 - applies on every machine
    ) -> Finding:
        outputs = data_files(profile, lambda file: file.writers > 0 and app.name in file.apps)
        # Several writers are the first remedy (POS004) and leave less to hide.
        shared_out = is_funnel(app, profile)
        part = 1 / FUNNEL_PROCESSES if shared_out else 1.0
        before, hidden = part * overlapping.moving_s, part * overlapping.hidden_s
        left = before - hidden
        after = min(before, left + part * overlapping.copying_s)
        method = (
            "what fits into the pauses after and within each phase, less a copy in memory; low: computing is slowed by "
            "as much, high: without the copy"
        ) + (f"; of the time that {FUNNEL_PROCESSES} writers leave" if shared_out else "")
        language = None if through_libraries(profile, app) else language_of(app, profile)
        return Finding(
            target=Target("app", None, app.name),
            reason=f"{app.name} writes for {format_seconds(overlapping.moving_s)} in "
            f"{format_count(overlapping.phases)} phases with pauses for computing, into which "
            f"{format_seconds(overlapping.hidden_s)} of it fit. A process must keep up to "
            f"{format_bytes(overlapping.largest)} in a second buffer meanwhile."
            + (" One process writes for all: let several write first (POS004)." if shared_out else ""),
            confidence=0.5,
            touched_s=hidden,
            recommended={"writes": "asynchronous", "buffer_bytes_per_process": overlapping.largest},
            current={"write_phases": overlapping.phases, "writing_s": overlapping.moving_s},
            evidence=figures(app, f"apps[{number}]", "io.busy_s.write", "runtime_s", "phase_gap_s"),
            gain=Gain("write_time_s", before, after, left, before, method),
            apply=comment(_LIBRARIES) if language is None else code_lines(_CODE, language),
            files=frozenset(item.path for item in outputs),
        )


_LIBRARIES = (
    "in the program, with two buffers in turn:\n"
    "  MPI_File_iwrite_at(file, offset, buffer[i], count, type, &request);  compute();\n"
    "  MPI_Wait(&request, MPI_STATUS_IGNORE);\n"
    "  or HDF5's asynchronous connector (H5Dwrite_async), or a thread that writes"
)

_CODE: dict[Language, str] = {
    "Python": (
        "PyTorch:  future = torch.distributed.checkpoint.async_save(state, checkpoint_id=folder)\n"
        "others:   pool = concurrent.futures.ThreadPoolExecutor(1);  written = pool.submit(write, copy of the step)\n"
        "          ...compute...;  written.result()   # before the next output"
    ),
    "Fortran": (
        "open(unit, file=name, asynchronous='yes', ...)\n"
        "write(unit, asynchronous='yes', id=request) buffer;  call compute(other);  wait(unit, id=request)"
    ),
}
