"""What several entities need of a measured workload, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import KINDS
from vani.analyzers.entities.phase_rows import PhaseRows, rows_of
from vani.analyzers.iostats import Cells, empty_stats, stats_by
from vani.analyzers.keyed import Keyed, group
from vani.analyzers.measures.busy_time import WIDTH
from vani.analyzers.measures.library_time import ANY, LIBRARIES, UNDER
from vani.analyzers.measures.library_time import WIDTH as LAYERS
from vani.analyzers.passes import Measured
from vani.calls import FileClass, Layer
from vani.schema.profile import IOStats, LayerName, LibraryTime

if TYPE_CHECKING:
    from vani.schema.job import Job
    from vani.schema.system import System

__all__ = ["View", "layer_name"]

Ints = NDArray[np.int64]


def layer_name(layer: int) -> str:
    """Name of a layer as profiles write it."""
    return Layer(layer).name.lower()


class View:
    """A measured workload, with what job.yaml and system.yaml add; `notes` become the profile's provenance."""

    def __init__(
        self, measured: Measured, job: Job | None, system: System | None, *, job_name: str = "job.yaml"
    ) -> None:
        self.measured = measured
        self.world = measured.world
        self.facts = measured.facts
        self.job = job
        self.system = system
        self.job_name = job_name
        self.notes: dict[str, str] = {}
        self.cells = Cells(self.world.files, self.facts.phases)

    @property
    def timed(self) -> bool:
        """Whether time stamps were read."""
        return True

    @property
    def knows_callers(self) -> bool:
        """Whether it is known which library made each call."""
        return True

    @property
    def limits(self) -> dict[str, str]:
        """What the traces can never tell, by attribute; of several traces the first that says so."""
        found: dict[str, str] = {}
        for store in self.measured.stores:
            named = self.job is not None and PurePath(store.manifest.source).name in self.job.apps
            for attribute, why in store.manifest.limits:
                if not (named and attribute == "traces.app"):
                    found.setdefault(attribute, why)
        return found

    @property
    def excluded_phase(self) -> int:
        return self.facts.phases

    @property
    def excluded_stats(self) -> IOStats:
        """Of calls that are counted apart."""
        return self.row_stats.get(self.phase_rows.rows, empty_stats())

    @cached_property
    def files(self) -> Ints:
        """Codes of the files of the data set: opened or accessed by some process."""
        used: Keyed = self.measured.results["processes"].files
        found: Ints = used.keys[(used.keys >= 0) & (self.world.file_class[used.keys] == FileClass.DATASET)]
        return found

    @cached_property
    def processes_of_file(self) -> Ints:
        """Processes of each of `files`."""
        used: Keyed = self.measured.results["processes"].files
        return used.at(self.files, "processes")

    def app_of_phase(self, phase: Ints) -> Ints:
        """App of each phase, -1 for excluded calls."""
        apps = np.append(self.facts.phase_app, -1)
        return apps[phase]

    @cached_property
    def _phase_time(self) -> Keyed:
        table: Keyed = self.measured.results["io_time"].phases
        return table

    def _time(self, group_of_phase: Ints, group_of_app: Ints) -> Keyed | None:
        """Time by group * (KINDS + 1) + kind, less what phases of an app have in common; -1: an app is in no group.

        None in a view without times.
        """
        found = []
        width = KINDS + 1
        overlaps: Keyed = self.measured.results["io_time"].overlaps
        for table, groups, sign in ((self._phase_time, group_of_phase, 1), (overlaps, group_of_app, -1)):
            if len(table):
                number = groups[table.keys // width]
                keep = number >= 0
                times = {"time": sign * table["time"][keep]}
                found.append(group(number[keep] * width + table.keys[keep] % width, times))
        return Keyed.merged(found)

    def _busy(self, group_of_phase: Ints) -> dict[int, tuple[int, ...]] | None:
        table = self.measured.busy
        found: dict[int, list[int]] = {}
        phases = self.facts.phases
        if len(table):
            mine = table.keys // WIDTH <= phases
            for key, ns in zip(table.keys[mine].tolist(), table["time"][mine].tolist(), strict=True):
                number = int(group_of_phase[key // WIDTH])
                if number >= 0:
                    found.setdefault(number, [0] * WIDTH)[key % WIDTH] += ns
        return {k: tuple(v) for k, v in found.items()}

    def _app_busy(self) -> dict[int, tuple[int, ...]] | None:
        base = self.facts.phases + 2 + len(self.measured.listed)
        return {app: self._busy_of(base + app) for app in range(len(self.world.apps))}

    @cached_property
    def phase_rows(self) -> PhaseRows:
        """Phases that are alike, put together."""
        return rows_of(self.measured)

    @cached_property
    def row_stats(self) -> Mapping[int, IOStats]:
        """By row of phases that are alike; the number of rows stands for excluded calls."""
        row_of_phase = np.append(self.phase_rows.row, self.phase_rows.rows)
        return stats_by(
            self.measured,
            lambda cell: row_of_phase[self.cells.phase(cell)],
            time=self._time(row_of_phase, np.full(len(self.world.apps), -1)),
            busy=self._busy(row_of_phase),
        )

    @cached_property
    def app_stats(self) -> Mapping[int, IOStats]:
        """By app."""
        app_of_phase = np.append(self.facts.phase_app, -1)
        return stats_by(
            self.measured,
            lambda cell: app_of_phase[self.cells.phase(cell)],
            time=self._time(app_of_phase, np.arange(len(self.world.apps))),
            busy=self._app_busy(),
        )

    @cached_property
    def workload_stats(self) -> IOStats:
        """Of the workload."""
        if len(self.world.apps) == 1:
            return self.app_stats.get(0, empty_stats())
        groups = np.append(np.zeros(self.facts.phases, np.int64), -1)
        busy = {0: self._busy_of(self.facts.phases + 1)}
        found = stats_by(
            self.measured,
            lambda cell: groups[self.cells.phase(cell)],
            time=self._time(groups, np.zeros(len(self.world.apps), np.int64)),
            busy=busy,
        )
        return found.get(0, empty_stats())

    def _busy_of(self, number: int) -> tuple[int, ...]:
        table = self.measured.busy
        if not len(table):
            return (0,) * WIDTH
        return tuple(table.at(number * WIDTH + np.arange(WIDTH), "time").tolist())

    @cached_property
    def file_stats(self) -> Mapping[int, IOStats]:
        """By code, of the files that are listed."""
        listed = self.measured.listed
        number = np.full(self.world.files + 1, -1, np.int64)
        number[listed + 1] = listed
        cells: Keyed = self.measured.results["io_time"].cells
        time = Keyed()
        if len(cells):
            width = KINDS + 1
            file = number[cells.keys // width % (self.world.files + 1)]
            keep = file >= 0
            time = group(file[keep] * width + cells.keys[keep] % width, {"time": cells["time"][keep]})
        base = self.facts.phases + 2
        busy = {int(code): self._busy_of(base + i) for i, code in enumerate(listed.tolist())}
        return stats_by(self.measured, lambda cell: number[self.cells.file(cell) + 1], time=time, busy=busy)

    @cached_property
    def run_ns(self) -> list[tuple[int, int]]:
        """(start, end) of each app: from its first trace's start to its last one's end."""
        spans: list[tuple[int, int]] = []
        for app in range(len(self.world.apps)):
            mine = [t for t, a in enumerate(self.world.app_of_trace) if a == app]
            start = min(self.world.shift_ns[t] + self.measured.stores[t].manifest.begin_ns for t in mine)
            end = max(self.world.shift_ns[t] + self.measured.stores[t].manifest.span_ns for t in mine)
            spans.append((start, end))
        return spans

    @cached_property
    def process_time(self) -> Ints:
        """I/O time of each process in ns, shape (processes,)."""
        table: Keyed = self.measured.results["io_time"].processes
        return (
            table.at(np.arange(self.world.processes), "time")
            if len(table)
            else np.zeros(self.world.processes, np.int64)
        )

    def _layer_times(self, code: int) -> Ints | None:
        """Time of each process under a code of the measure `library_time`, ns; None where no times are known."""
        table: Keyed | None = self.measured.results.get("library_time")
        if table is None:
            return None
        return table.at(np.arange(self.world.processes) * LAYERS + code, "time")

    def layer_time(self, app: int, layer: int) -> int | None:
        """Time of an app's processes in calls of a layer, ns, of files of the data set for posix and stdio.

        None where no times are known.
        """
        times = self._layer_times(layer)
        if times is None:
            return None
        one_by_one: Keyed = self.measured.results["io_time"].layers
        alone = one_by_one.at(np.array([app * 16 + layer]), "time") if len(one_by_one) else times[:0]
        return int(times[self.app_of_process == app].sum() + alone.sum())

    def library_time(self, app: int | None) -> dict[LayerName, LibraryTime] | None:
        """Time in each I/O library, of an app or (None) of the workload; None where no times are known."""
        mine = np.ones(self.world.processes, np.bool_) if app is None else self.app_of_process == app
        found: dict[LayerName, LibraryTime] = {}
        for layer in LIBRARIES:
            times, under = self._layer_times(layer), self._layer_times(layer + UNDER)
            if times is None or under is None:
                return None
            times, under = times[mine], under[mine]
            if not times.any():
                continue
            found[layer_name(layer)] = LibraryTime(  # type: ignore[index]
                total=int(times.sum()) / 1e9,
                outside_file_system=int(np.maximum(times - under, 0).sum()) / 1e9,
                slowest=int(times.max()) / 1e9,
            )
        return found

    @cached_property
    def call_time(self) -> Ints:
        """Time of each process in I/O calls of any kind, libraries' included, ns; shape (processes,)."""
        above, under = self._layer_times(ANY), self._layer_times(ANY + UNDER)
        if above is None or under is None:
            return self.process_time
        # File-system calls that no library call surrounds come on top of the time in libraries.
        found: Ints = above + np.maximum(self.process_time - under, 0)
        return found

    @cached_property
    def app_of_process(self) -> Ints:
        """App of each process, shape (processes,)."""
        found: Ints = np.array(self.world.app_of_trace)[self.trace_of_process]
        return found

    @cached_property
    def trace_of_process(self) -> Ints:
        """Trace of each process, shape (processes,)."""
        bases = np.array(self.world.process_base)
        return np.searchsorted(bases, np.arange(self.world.processes), side="right") - 1

    @cached_property
    def interface_of_files(self) -> NDArray[np.int8]:
        """Layer through which most opens and data operations of each file went, -1 for none; shape (files,)."""
        pairs = self.measured.results["libraries"].outer
        found = np.full(self.world.files, -1, np.int8)
        named = pairs.second >= 0
        layer, file, count = (c[named] for c in (pairs.first % 16, pairs.second, pairs.count))
        order = np.lexsort((layer, count, file))
        # The last one written stays.
        found[file[order]] = layer[order]
        return found

    def facts_of(self, app: int, *names: str) -> list[tuple[str, list[str], int]]:
        """Library calls whose arguments were kept (`Manifest.facts`), of an app."""
        return [
            (name, args, count)
            for trace, of in enumerate(self.world.app_of_trace)
            if of == app
            for name, args, count in self.measured.stores[trace].manifest.facts
            if name in names
        ]
