"""A session of `vani tune` with one line per run, and its result."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.models.io_time import HARDLY
from vani.schema.tuned import LEAST_GAIN
from vani.units import counted, format_number

if TYPE_CHECKING:
    from vani.schema.tuned import Result, Tuned, TunedRun

_WIDTH = 46
_OUTCOMES = {
    "running": "under way",
    "failed": "failed",
    "not_verified": "wrong results",
    "not_applied": "not applied",
    "too_slow": "too slow",
    "interrupted": "interrupted",
}


def run_line(tuned: Tuned, run: TunedRun, most: int | None) -> str:
    """One run: its setting, its time or failure, and remarks."""
    label, again = tuned.setting(run.candidates).label, ""
    if any(known.candidates == run.candidates and known.number < run.number for known in tuned.runs):
        again = ", again"
    room = _WIDTH - len(again)
    label = (label if len(label) <= room else f"{label[: room - 1]}\u2026") + again
    number = f"Run {run.number}" + (f" of {most}" if run.number == 1 and most else "")
    has_ended = run.outcome == "ended" and run.seconds is not None
    time = f"{run.seconds:.1f} s" if has_ended else _OUTCOMES.get(run.outcome, "")
    remark = f"  ({run.remark})" if run.remark else ""
    return one_line(f"{number:<13}{label:<{_WIDTH}} {time:>9}{_io(run)}{_worth(tuned, run)}{remark}")


def _io(run: TunedRun) -> str:
    """I/O time of a run, and the kind of call that takes most of it."""
    if run.io_s is None or run.io is None:
        return ""
    kinds = {"write": run.io.write_s, "read": run.io.read_s, "metadata": run.io.metadata_s}
    name, seconds = max(kinds.items(), key=lambda item: item[1] or 0.0)
    return f", I/O {run.io_s:.1f} s" + (f" ({name} {seconds:.1f} s)" if seconds else "")


def _worth(tuned: Tuned, run: TunedRun) -> str:
    """Judges the first run: whether tuning can matter."""
    gain = tuned.most_gain
    if gain is None or run != tuned.first:
        return ""
    if gain < LEAST_GAIN:
        return ": nothing to tune"
    return f": {100 * gain:.0f} % of the run, little to gain" if gain < HARDLY else ": worth tuning"


def result_text(tuned: Tuned, saved: Path | None, continuation: str = "") -> str:
    """The result, the next step, and the folders that the session created.

    Parameters
    ----------
    saved
        Path of the document, with tuned.sh next to it; None if none was written.
    continuation
        How to continue an unfinished session.
    """
    result = tuned.result
    lines = [] if result is None else [_sentence(tuned, result)]
    if result is None:
        lines += (continuation or "To continue the session: vani tune --resume").splitlines()
    lines += [f"Not tried    {item.rule}: {item.why}" for item in tuned.not_tried]
    first = tuned.first
    if first is not None and first.io_why and tuned.io_time != "off":
        lines.append(f"I/O time     is not known: {first.io_why}; --io-time recorder traces each run")
    if saved is not None and tuned.settings:
        script = shlex.quote(str(saved.with_suffix(".sh")))
        lines.append(
            f"Next         sh {script} --apply    undo: sh {script} --undo    lines for the job: sh {script} --job"
        )
    folders = [run.folder for run in tuned.runs if tuned.fresh == "subfolder" and Path(run.folder).is_dir()]
    if folders:
        lines.append(
            f"Output of {counted(len(folders), 'run')} is in {tuned.data}/vani-tune-*; you may remove it"
        )
    return "\n".join(map(one_line, lines)) + "\n"


def _sentence(tuned: Tuned, result: Result) -> str:
    noise = "" if result.noise is None else f" Repeated runs differ by {format_number(100 * result.noise, 2)} %."
    label = tuned.setting(result.candidates).label
    runs = f"{result.as_is_runs} + {result.best_runs} runs"
    interval = (
        ""
        if result.low is None or result.high is None or result.confidence is None
        else f" ({result.low:.2f} to {result.high:.2f} "
        f"at {format_number(100 * result.confidence)} % confidence, {runs})"
    )
    if result.verdict == "proven":
        io = "" if result.io_speedup is None else f"; I/O {result.io_speedup:.2f} times"
        return f"Proven: {result.speedup:.2f} times as fast with {label}{interval}{io}.{noise}"
    if result.verdict == "not_proven":
        looks = f"{label} looks {result.speedup:.2f} times as fast{interval or f' ({runs})'}"
        return f"Not proven: {looks}; {result.why}.{noise}"
    if result.verdict == "nothing_to_gain":
        return f"Nothing to tune: {result.why}."
    if result.verdict == "nothing_helps":
        is_tried = any(run.candidates for run in tuned.runs)
        return f"{'No setting helps' if is_tried else 'No setting was tried'}: {result.why}.{noise}"
    return f"Unfinished: {result.why}."
