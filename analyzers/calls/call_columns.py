"""Attributes of calls with local codes made global: files, processes, phases and times of the workload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.int_table import pack, unpack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import FileClass

Ints = NDArray[np.int64]


class CallColumns(ABC):
    """Attributes of calls, or of groups of calls, as numpy arrays of shape (n,).

    `file` is -1 if unknown. Times are nanoseconds since the start of the workload.
    """

    def __init__(self, context: Context, findings: SurveyFindings | None) -> None:
        self.context = context
        self.findings = findings

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _column(self, name: str) -> NDArray[Any]:
        """A column of `vani.calls.CALLS`."""

    @cached_property
    def kind(self) -> NDArray[np.int8]:
        return self._column("kind")

    @cached_property
    def function(self) -> NDArray[np.int32]:
        """Code of the function in `Workload.functions`."""
        codes = self.context.function_codes
        # -1 (no function) and codes beyond the trace's functions both select the last entry.
        function: NDArray[np.int32] = codes[np.minimum(self._column("func"), len(codes) - 1)]
        return function

    @cached_property
    def layer(self) -> NDArray[np.int8]:
        return self._column("layer")

    @cached_property
    def via(self) -> NDArray[np.int8]:
        return self._column("via")

    @cached_property
    def within(self) -> NDArray[np.int16]:
        return self._column("within")

    @cached_property
    def flags(self) -> NDArray[np.int16]:
        return self._column("flags")

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        return self._column("rank")

    @cached_property
    def process(self) -> Ints:
        return self.rank.astype(np.int64) + self.context.workload.process_base[self.context.trace]

    @cached_property
    def start(self) -> Ints:
        shift = self.context.workload.shift_ns[self.context.trace]
        start: Ints = self._column("start_ns")
        return start + shift if shift else start

    @cached_property
    def named(self) -> Ints:
        """Code of the name under which the call refers to its file."""
        # -1 (no file) selects the last entry.
        named: Ints = np.append(self.context.file_codes, -1)[self._column("file").astype(np.int64)]
        return named

    @cached_property
    def file(self) -> Ints:
        """Code of the file under its final name."""
        lives = self.context.workload.lives
        return self.named if lives is None else lives.of(self.named, self.start, self.flags)

    @cached_property
    def included(self) -> NDArray[np.bool_]:
        """Whether the call is on a file (or directory) of the data set: see the contract, "file"."""
        in_dataset = np.append(self.context.workload.file_class == FileClass.DATASET, False)
        included: NDArray[np.bool_] = in_dataset[self.file]
        return included

    @cached_property
    def phase(self) -> Ints:
        """Phase of each call; the number of phases for excluded calls."""
        findings = self.known_findings
        first, starts = findings.first_phase[self.context.app], self._phase_starts
        if len(starts) <= 1:
            phase = np.full(len(self), first, np.int64)
        else:
            phase = np.maximum(np.searchsorted(starts, self.start, side="right") - 1, 0) + first
        if not self.included.all():
            phase[~self.included] = findings.phases
        return phase

    @cached_property
    def phase_file_key(self) -> Ints:
        """Key of phase and file; see `phases_and_files`."""
        return self._key_of(self.file)

    @cached_property
    def listed_phase_file_key(self) -> Ints:
        """Key of phase and file, in which unlisted files count as no file.

        Of unlisted files, only the survey's results, their processes and their extents are kept individually.
        """
        listed_as = self.known_findings.listed_as
        return self.phase_file_key if listed_as is None else self._key_of(listed_as[self.file])

    def _key_of(self, file: NDArray[Any]) -> Ints:
        return pack((self.phase, file + 1), _phase_file_widths(self.context.workload, self.known_findings))

    @property
    def phase_file_width(self) -> int:
        """Width of keys of phase and file."""
        phases, files = _phase_file_widths(self.context.workload, self.known_findings)
        return phases * files

    @cached_property
    def process_file(self) -> Ints:
        """Key of process and file + 1."""
        workload = self.context.workload
        return pack((self.process, self.file + 1), (workload.processes, workload.files + 1))

    @property
    def known_findings(self) -> SurveyFindings:
        """The findings, in the second pass."""
        if self.findings is None:
            raise RuntimeError("phases are known in the second pass only")
        return self.findings

    @property
    def _phase_starts(self) -> Ints:
        findings, app = self.known_findings, self.context.app
        return findings.phase_start[findings.first_phase[app] : findings.first_phase[app + 1]]


def _phase_file_widths(workload: Workload, findings: SurveyFindings) -> tuple[int, int]:
    return findings.phases + 1, workload.files + 1


def phases_and_files(keys: Ints, workload: Workload, findings: SurveyFindings, *more: int) -> tuple[Ints, ...]:
    """Phase (the number of phases for excluded calls) and file (-1 for none), from keys of phase and file.

    Parameters
    ----------
    more
        Widths of columns that were packed after phase and file, which are returned after the file.
    """
    phase, file, *columns = unpack(keys, (*_phase_file_widths(workload, findings), *more))
    return phase, file - 1, *columns
