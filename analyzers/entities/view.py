"""What several entities need of a measured workload, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.iostats import Cells, empty_stats, stats_by
from vani.analyzers.keyed import Keyed, group
from vani.analyzers.passes import Measured
from vani.calls import FileClass, Layer
from vani.schema.profile import IOStats

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
    def excluded_phase(self) -> int:
        return self.facts.phases

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

    def _time(self, group_of_phase: Ints) -> Keyed | None:
        """Time by group * 4 + kind: phases of one process never overlap, so their unions add up.

        None in a view without times.
        """
        table = self._phase_time
        if not len(table):
            return table
        number = group_of_phase[table.keys // 4]
        keep = number >= 0
        return group(number[keep] * 4 + table.keys[keep] % 4, {"time": table["time"][keep]})

    def _busy(self, group_of_phase: Ints) -> dict[int, tuple[int, int, int, int]] | None:
        table = self.measured.busy
        found: dict[int, list[int]] = {}
        phases = self.facts.phases
        if len(table):
            mine = table.keys // 4 <= phases
            for key, ns in zip(table.keys[mine].tolist(), table["time"][mine].tolist(), strict=True):
                number = int(group_of_phase[key // 4])
                if number >= 0:
                    found.setdefault(number, [0, 0, 0, 0])[key % 4] += ns
        return {k: (v[0], v[1], v[2], v[3]) for k, v in found.items()}

    def _by_phase(self, group_of_phase: Ints) -> dict[int, IOStats]:
        return stats_by(
            self.measured,
            lambda cell: group_of_phase[self.cells.phase(cell)],
            time=self._time(group_of_phase),
            busy=self._busy(group_of_phase),
        )

    @cached_property
    def phase_stats(self) -> Mapping[int, IOStats]:
        """By phase; the number of phases stands for excluded calls."""
        return self._by_phase(np.arange(self.facts.phases + 1))

    @cached_property
    def app_stats(self) -> Mapping[int, IOStats]:
        """By app."""
        return self._by_phase(np.append(self.facts.phase_app, -1))

    @cached_property
    def workload_stats(self) -> IOStats:
        """Of the workload."""
        if len(self.world.apps) == 1:
            return self.app_stats.get(0, empty_stats())
        groups = np.append(np.zeros(self.facts.phases, np.int64), -1)
        busy = {0: self._busy_of(self.facts.phases + 1)}
        found = stats_by(
            self.measured, lambda cell: groups[self.cells.phase(cell)], time=self._time(groups), busy=busy
        )
        return found.get(0, empty_stats())

    def _busy_of(self, number: int) -> tuple[int, int, int, int]:
        table = self.measured.busy
        if not len(table):
            return (0, 0, 0, 0)
        values = table.at(number * 4 + np.arange(4), "time").tolist()
        return (values[0], values[1], values[2], values[3])

    @cached_property
    def file_stats(self) -> Mapping[int, IOStats]:
        """By code, of the files that are listed."""
        listed = self.measured.listed
        number = np.full(self.world.files + 1, -1, np.int64)
        number[listed + 1] = listed
        cells: Keyed = self.measured.results["io_time"].cells
        time = Keyed()
        if len(cells):
            file = number[cells.keys // 4 % (self.world.files + 1)]
            keep = file >= 0
            time = group(file[keep] * 4 + cells.keys[keep] % 4, {"time": cells["time"][keep]})
        base = self.facts.phases + 2
        busy = {int(code): self._busy_of(base + i) for i, code in enumerate(listed.tolist())}
        return stats_by(self.measured, lambda cell: number[self.cells.file(cell) + 1], time=time, busy=busy)

    @cached_property
    def run_ns(self) -> list[tuple[int, int]]:
        """(start, end) of each app: from its first trace's start to its last one's end."""
        spans: list[tuple[int, int]] = []
        for app in range(len(self.world.apps)):
            mine = [t for t, a in enumerate(self.world.app_of_trace) if a == app]
            start = min(self.world.shift_ns[t] for t in mine)
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

    @cached_property
    def trace_of_process(self) -> Ints:
        """Trace of each process, shape (processes,)."""
        bases = np.array(self.world.process_base)
        return np.searchsorted(bases, np.arange(self.world.processes), side="right") - 1

    @cached_property
    def io_share_of_process(self) -> NDArray[np.float64]:
        """I/O time of each process as a share of its trace's run time."""
        spans = np.array([max(1, s.manifest.span_ns) for s in self.measured.stores], dtype=np.float64)
        return np.minimum(self.process_time / spans[self.trace_of_process], 1.0)

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
