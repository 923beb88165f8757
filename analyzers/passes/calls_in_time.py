"""Calls by when they took place and what they count for, as busy time is found in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.batch import Batch
from vani.analyzers.tables.keys import KINDS, pack
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.calls import FileClass, Flag, Layer
from vani.kernels.library import call

__all__ = ["COLUMNS", "CallsInTime", "calls_in_time", "widths_of"]

COLUMNS = ("rank", "layer", "kind", "flags", "file", "start_ns", "duration_ns")

Ints = NDArray[np.int64]


@dataclass
class CallsInTime:
    """Calls in order of their starts; shape (n,) each."""

    code: NDArray[np.int32] | Ints
    """Key of phase, number of the listed file + 1 (0 for others), and kind, see `widths_of`."""
    start: Ints
    """ns; not empty."""
    end: Ints

    def __len__(self) -> int:
        return len(self.code)

    @staticmethod
    def joined(parts: list[CallsInTime]) -> CallsInTime:
        """Calls of several parts, one behind the other: in no order."""
        nothing = CallsInTime(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64))
        parts = [part for part in parts if len(part)] or [nothing]
        if len(parts) == 1:
            return parts[0]
        return CallsInTime(
            *(np.concatenate([getattr(p, n) for p in parts]) for n in ("code", "start", "end"))
        )

    def between_rows(self, begin: int, stop: int) -> CallsInTime:
        """Some that follow each other."""
        return CallsInTime(self.code[begin:stop], self.start[begin:stop], self.end[begin:stop])

    def within(self, begin: int, end: int) -> CallsInTime:
        """What lies in a stretch of time."""
        if not len(self) or (self.start[0] >= begin and int(self.end.max()) <= end):
            return self
        start, stop = np.maximum(self.start, begin), np.minimum(self.end, end)
        some = start < stop
        return CallsInTime(self.code[some], start[some], stop[some])

    def take_until(self, moment: int) -> CallsInTime:
        """Take out those that begin before."""
        at = int(np.searchsorted(self.start, moment))
        taken = self.between_rows(0, at)
        self.code, self.start, self.end = self.code[at:], self.start[at:], self.end[at:]
        return taken

    def cut_at(self, moment: int) -> tuple[CallsInTime, CallsInTime]:
        """What of calls that begin before lies before, and what behind."""
        over = self.end > moment
        if not over.any():
            return self, CallsInTime(self.code[:0], self.start[:0], self.end[:0])
        behind = CallsInTime(self.code[over], np.full(int(over.sum()), moment), self.end[over])
        return CallsInTime(self.code, self.start, np.minimum(self.end, moment)), behind


def widths_of(findings: SurveyFindings, listed: Ints) -> tuple[int, int, int]:
    """Widths of keys of phase, number of the listed file + 1, and kind."""
    return findings.phases + 1, int(listed.max(initial=-1)) + 2, KINDS


def calls_in_time(
    batch: Batch, findings: SurveyFindings, listed: Ints, *, begin: int, end: int, ordered: bool = True
) -> CallsInTime:
    """The calls of a batch within a stretch of time, cut at its ends; in order of their starts if `ordered`.

    Parameters
    ----------
    listed
        Shape (files,): number of a listed file, -1 for others.
    """
    context, widths = batch.context, widths_of(findings, listed)
    number = np.append(listed, -1) + 1
    if context.workload.lives is None:
        file = np.append(context.file_codes, len(listed))
        app = context.app
        out = call(
            "intervals",
            **{name: batch.all_calls(name) for name in COLUMNS if name != "rank"},
            number=number[file],
            included=np.append(context.workload.file_class == FileClass.DATASET, False)[file],
            files=len(file) - 1,
            width=widths[1],
            phase_starts=findings.phase_start[findings.first_phase[app] : findings.first_phase[app + 1]],
            first_phase=findings.first_phase[app],
            excluded=findings.phases,
            most_layer=Layer.STDIO,
            nested=Flag.NESTED,
            shift=context.workload.shift_ns[context.trace],
            low=begin,
            high=end,
        )
        if out is not None:
            calls = out["code"], out["start"], out["end"]
            return _in_order(*calls) if ordered and out["falls"][0] else CallsInTime(*calls)
    start, stop = np.maximum(batch.start, begin), np.minimum(batch.end, end)
    inside = start < stop
    rows = slice(None) if inside.all() else np.flatnonzero(inside)
    key = pack((batch.phase[rows], number[batch.file[rows]], batch.kind[rows]), widths)
    return _in_order(key, start[rows], stop[rows])


def _in_order(code: NDArray[np.int32] | Ints, start: Ints, end: Ints) -> CallsInTime:
    if (start[1:] >= start[:-1]).all():
        return CallsInTime(code, start, end)
    order = np.argsort(start, kind="stable")
    return CallsInTime(code[order], start[order], end[order])
