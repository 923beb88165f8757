"""What a measure sees: batches of calls with everything local made global."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.call_groups import CallGroups
from vani.analyzers.calls.recorded_calls import RecordedCalls
from vani.analyzers.tables.int_table import NO_VALUE, Factorized, Pairs, count_pairs
from vani.analyzers.tables.intervals import Intervals, merge, merge_runs
from vani.analyzers.tables.keys import KINDS, SIDES, pack, unpack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Workload
from vani.calls import FileClass, Flag, Kind, Layer
from vani.kernels.library import call, columns

__all__ = ["Batch", "phases_and_files"]

Ints = NDArray[np.int64]


class Batch(RecordedCalls):
    """The counted file-system calls of a batch: layers posix and stdio, nested ones left out.

    Attributes are numpy arrays of shape (n,). `file` is -1 where none is known; `offset` and `bytes` are `NO_VALUE`
    where null. Times are nanoseconds since the workload began.
    """

    @cached_property
    def examples(self) -> Batch:
        """One call of each group of `call_groups`: what all calls of a group share is read off it."""
        rows, known = self.call_groups.row, self._signatures
        found = Batch.__new__(Batch)
        found.context, found.findings, found._calls = self.context, self.findings, self._calls
        found._read, found._taken = self._read, {} if known is None else dict(known.counted.columns)
        found._rows = rows if self._rows is None else self._rows[rows]
        found._is_example = True
        return found

    @cached_property
    def _rows(self) -> NDArray[Any] | None:
        """Place of each counted call among all calls of the batch; None: all are counted."""
        if self._signatures is not None:
            return self._signatures.counted.rows
        counted = (self.all_calls("layer") <= Layer.STDIO) & ((self.all_calls("flags") & Flag.NESTED) == 0)
        return None if counted.all() else np.flatnonzero(counted)

    def __len__(self) -> int:
        return self._calls.num_rows if self._rows is None else len(self._rows)

    @property
    def complete(self) -> bool:
        """All calls of the partition's batch are counted ones."""
        return self._rows is None

    @cached_property
    def every(self) -> Mapping[str, NDArray[Any]]:
        """Layer, kind and flags of all calls of the batch, those of libraries too, and `count`: of how many calls."""
        names = ("layer", "kind", "flags")
        known = self._signatures
        if known is not None:
            groups = (known.counted, known.others)
            return {name: np.concatenate([g.columns[name] for g in groups]) for name in names} | {
                "count": np.concatenate([g.count for g in groups])
            }
        is_other = np.ones(self._calls.num_rows, np.bool_)
        is_other[slice(None) if self._rows is None else self._rows] = False
        rows = np.flatnonzero(is_other)
        return {
            name: np.append(getattr(self.examples, name), self.all_calls(name)[rows]) for name in names
        } | {"count": np.append(self.call_groups.count, np.ones(len(rows), np.int64))}

    @property
    def rows(self) -> NDArray[Any]:
        """Place of each counted call among all calls of the batch."""
        return np.arange(self._calls.num_rows) if self._rows is None else self._rows

    def _column(self, name: str) -> NDArray[Any]:
        if name not in self._taken:
            known = self._signatures
            if known is not None and name in known.columns and name != "start_ns":
                self._taken[name] = known.columns[name]
            elif self._rows is None:
                return self.all_calls(name)
            else:
                self._taken[name] = self.all_calls(name)[self._rows]
        return self._taken[name]

    @cached_property
    def kind(self) -> NDArray[np.int8]:
        return self._column("kind")

    @cached_property
    def function(self) -> NDArray[np.int32]:
        """Code of the function in `Workload.functions`."""
        codes = self.context.function_codes
        # -1, the code of no function, finds the last entry, as a code beyond the trace's functions does.
        found: NDArray[np.int32] = codes[np.minimum(self._column("func"), len(codes) - 1)]
        return found

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
        if self._signatures is not None:
            return self._of_examples(self.examples.process)
        return self.rank.astype(np.int64) + self.context.workload.process_base[self.context.trace]

    @cached_property
    def named(self) -> Ints:
        """Code of the name that the call gives its file."""
        # -1, the code of no file, finds the last entry.
        found: Ints = np.append(self.context.file_codes, -1)[self._column("file").astype(np.int64)]
        return found

    def _of_examples(self, values: NDArray[Any]) -> NDArray[Any]:
        """What is known of each group of `call_groups`, for each call."""
        found: NDArray[Any] = values[self.call_groups.codes]
        return found

    @cached_property
    def file(self) -> Ints:
        """Code of the file under its last name."""
        if self._signatures is not None:
            return self._of_examples(self.examples.file)
        lives = self.context.workload.lives
        return self.named if lives is None else lives.of(self.named, self.start, self.flags)

    @cached_property
    def bytes(self) -> Ints:
        return self._column("bytes")

    @cached_property
    def offset(self) -> Ints:
        return self._column("offset")

    @cached_property
    def start(self) -> Ints:
        if self._signatures is not None:
            return self._signatures.columns["start_ns"]
        shift = self.context.workload.shift_ns[self.context.trace]
        start: Ints = self._column("start_ns")
        return start + shift if shift else start

    @cached_property
    def duration(self) -> Ints:
        return self._column("duration_ns")

    @cached_property
    def end(self) -> Ints:
        return self.start + self.duration

    @cached_property
    def included(self) -> NDArray[np.bool_]:
        """The call is on a file (or directory) that is no noise: see the contract, "file"."""
        if self._signatures is not None:
            if self.examples.included.all():
                return np.ones(len(self), np.bool_)
            return self._of_examples(self.examples.included)
        found: NDArray[np.bool_] = np.append(self.context.workload.file_class == FileClass.DATASET, False)[
            self.file
        ]
        return found

    @cached_property
    def included_rows(self) -> Any:
        """Places of the included calls, as an array or a slice."""
        # Views in place of copies.
        return slice(None) if self.included.all() else np.flatnonzero(self.included)

    @cached_property
    def phase(self) -> Ints:
        """Phase of each call; the number of phases for excluded calls."""
        if self._signatures is not None:
            return self._of_examples(self.examples.phase)
        findings = self._findings
        first, starts = findings.first_phase[self.context.app], self._phase_starts
        if len(starts) <= 1:
            found = np.full(len(self), first, np.int64)
        else:
            found = np.maximum(np.searchsorted(starts, self.start, side="right") - 1, 0) + first
        if not self.included.all():
            found[~self.included] = findings.phases
        return found

    @cached_property
    def phase_file(self) -> Factorized:
        """Codes of the (phase, file) pairs of the batch; `phases_and_files` gives them back."""
        if not self._is_example:
            return Factorized(self.examples.phase_file.keys, self._of_examples(self.examples.phase_file.codes))
        return Factorized.of(self._phase_file_key)

    @cached_property
    def listed_phase_file(self) -> Factorized:
        """The same, with all files of a phase that are not listed under one code, that of no file.

        What is known of these files one by one are the survey, their processes and their extents.
        """
        if self._findings.listed_as is None:
            return self.phase_file
        if not self._is_example:
            example = self.examples.listed_phase_file
            return Factorized(example.keys, self._of_examples(example.codes))
        return Factorized.of(self.listed_phase_file_key)

    @cached_property
    def listed_phase_file_key(self) -> Ints:
        """Key of `listed_phase_file` of each call."""
        listed_as = self._findings.listed_as
        if listed_as is None:
            return self._phase_file_key
        if self._signatures is not None:
            return self._of_examples(self.examples.listed_phase_file_key)
        return self._key_of(listed_as[self.file])

    @cached_property
    def _phase_file_key(self) -> Ints:
        if self._signatures is not None:
            return self._of_examples(self.examples._phase_file_key)
        return self._key_of(self.file)

    def _key_of(self, file: NDArray[Any]) -> Ints:
        return pack((self.phase, file + 1), _phase_file_widths(self.context.workload, self._findings))

    @property
    def phase_file_width(self) -> int:
        """Width of keys of phase and file."""
        return prod(_phase_file_widths(self.context.workload, self._findings))

    @cached_property
    def call_groups(self) -> CallGroups:
        """The calls put together that agree in process, phase, file, function, kind, layer, flags, via and within.

        In the survey, before phases are known, without the phase; and without what a pass does not read.
        """
        known = self._signatures
        if known is not None:
            return CallGroups(known.counted.codes, known.counted.row, known.counted.count)
        columns: list[NDArray[Any]] = [self.file, self.flags, self.kind + KINDS * self.layer, self.process]
        if self.findings is not None:
            columns += [self.phase, self.within * np.int16(16) + self.via, self._column("func")]
        return CallGroups.of(*columns)

    @cached_property
    def group_bytes(self) -> Ints:
        """Bytes of all calls of each group of `call_groups`."""
        return self._signatures.bytes if self._signatures is not None else self.call_groups.sum(self.bytes)

    @cached_property
    def group_time(self) -> Ints:
        """Duration of all calls of each group of `call_groups`."""
        return self._signatures.time if self._signatures is not None else self.call_groups.sum(self.duration)

    @cached_property
    def group_starts(self) -> tuple[Ints, Ints]:
        """Earliest and latest start of the calls of each group of `call_groups`."""
        known = self._signatures
        return (known.first, known.last) if known is not None else self.call_groups.range(self.start)

    @cached_property
    def group_ends(self) -> Ints:
        """Latest end of the calls of each group of `call_groups`."""
        return self._signatures.end if self._signatures is not None else self.call_groups.range(self.end)[1]

    @cached_property
    def group_placeless(self) -> tuple[Ints, Ints]:
        """How many calls of each group of `call_groups` have no known offset; and how many of these some bytes."""
        known = self._signatures
        if known is not None:
            return known.placeless, known.displaced
        groups = len(self.call_groups.row)
        placeless = self.offset == NO_VALUE
        if not placeless.any():
            return np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        found = (self.call_groups.codes[np.flatnonzero(some)] for some in (placeless, placeless & (self.bytes > 0)))
        first, second = (np.bincount(codes, minlength=groups) for codes in found)
        return first, second

    @cached_property
    def group_unsized(self) -> Ints:
        """Of how many data operations of each group of `call_groups` the trace does not tell the size."""
        if self._signatures is not None:
            return self._signatures.unsized
        unsized = self.call_groups.codes[np.flatnonzero(self.bytes == NO_VALUE)]
        return np.bincount(unsized, minlength=len(self.call_groups.row)) * (self.examples.kind <= Kind.WRITE)

    @cached_property
    def sizes(self) -> Pairs:
        """How often each size occurs in the data operations of each group of `call_groups`, unknown sizes left out."""
        data = self.examples.kind <= Kind.WRITE
        rows = np.flatnonzero(data[self.call_groups.codes] & (self.bytes != NO_VALUE))
        return count_pairs(self.call_groups.codes[rows], self.bytes[rows])

    @cached_property
    def streams(self) -> tuple[Ints, Ints, Ints]:
        """Data operations on files by process, file and direction: keys (of `process_file` and direction) and how many
        operations each has, shape (streams,) each; and the operations, key after key, in recorded order."""
        examples = self.examples
        data = np.flatnonzero((examples.kind <= Kind.WRITE) & (examples.file >= 0))
        found = Factorized.of(pack((examples.process_file[data], examples.kind[data]), SIDES))
        count = found.sum(self.call_groups.count[data])
        # What is no such operation comes last. numpy sorts 16 bits by radix.
        number = np.full(len(examples), len(count), np.uint16 if len(count) < 1 << 16 else np.int64)
        number[data] = found.codes
        order = np.argsort(number[self.call_groups.codes], kind="stable")
        return found.keys, count, order[: count.sum()]

    @cached_property
    def process_file(self) -> Ints:
        """Process and file of each call in one number: a key of process and file + 1."""
        if not self._is_example:
            return self._of_examples(self.examples.process_file)
        workload = self.context.workload
        return pack((self.process, self.file + 1), (workload.processes, workload.files + 1))

    @cached_property
    def blind(self) -> Ints:
        """Data operations on files of which the place or the size is not known, in any order."""
        examples = self.examples
        unknown = (self.group_placeless[0] > 0) | (self.group_unsized > 0)
        if not (unknown & (examples.kind <= Kind.WRITE) & (examples.file >= 0)).any():
            return np.empty(0, np.int64)
        data = ((examples.kind <= Kind.WRITE) & (examples.file >= 0))[self.call_groups.codes]
        return np.flatnonzero(data & ((self.offset == NO_VALUE) | (self.bytes == NO_VALUE)))

    @cached_property
    def touched(self) -> Intervals:
        """Extents that all processes together read and wrote, by 2 * code of phase and file + direction (1: write)."""
        examples = self.examples
        data = (examples.kind <= Kind.WRITE) & (examples.file >= 0)
        sides = 2 * len(examples.phase_file.keys)
        of = np.where(data, 2 * examples.phase_file.codes + examples.kind, -1)
        out = call(
            "extents", codes=self.call_groups.codes, offset=self.offset, bytes=self.bytes, side=of, sides=sides
        )
        if out is not None:
            return merge(*columns(out["extents"]))
        _, _, rows = self.streams
        if len(self.blind):
            rows = rows[(self.offset[rows] != NO_VALUE) & (self.bytes[rows] != NO_VALUE)]
        begin, side = self.offset[rows], of[self.call_groups.codes[rows]]
        return merge_runs(side, begin, begin + self.bytes[rows])


def _phase_file_widths(workload: Workload, findings: SurveyFindings) -> tuple[int, int]:
    return findings.phases + 1, workload.files + 1


def phases_and_files(keys: Ints, workload: Workload, findings: SurveyFindings, *more: int) -> tuple[Ints, ...]:
    """Phase (the number of phases for excluded calls) and file (-1 for none) of keys of `Batch.phase_file`.

    Parameters
    ----------
    more
        Widths of columns that were packed behind the phase and file, which are returned behind the file.
    """
    phase, file, *others = unpack(keys, (*_phase_file_widths(workload, findings), *more))
    return phase, file - 1, *others
