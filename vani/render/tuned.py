"""A session of `vani tune` with one line per run, and its result."""

import shlex
from pathlib import Path

from vani.errors import one_line
from vani.models.io_time import HARDLY
from vani.schema.tuned import LEAST_GAIN, Result, Tuned, TunedRun
from vani.units import counted, format_bytes, format_number, format_seconds

_WIDTH = 46
_OUTCOMES = {
    "running": "under way",
    "failed": "crashed",
    "not_verified": "wrong results",
    "not_applied": "not applied",
    "too_slow": "too slow",
    "interrupted": "interrupted",
}


def plan_text(tuned: Tuned) -> str:
    """The settings that the session may try, each with its reason, before the first run."""
    lines = [f"Tries        {item.setting.label}: {item.reason}" for item in tuned.candidates]
    return "".join(f"{one_line(line)}\n" for line in lines or ["Tries        no setting: none is known"])


def cost_line(tuned: Tuned, most: int | None) -> str:
    """Time and room that the rest of the session needs, after the first run; empty if nothing more is run."""
    gain = tuned.most_gain
    if tuned.first is None or tuned.first.seconds is None or most is None or not tuned.candidates:
        return ""
    if gain is not None and gain < LEAST_GAIN:
        return ""
    rest = max(0, most - 1)
    room = f"; each writes {format_bytes(tuned.run_bytes)}" if tuned.run_bytes else ""
    stays = "stays (--keep)" if tuned.keep else "is removed after its run"
    return (
        f"At most      {counted(rest, 'more run')}, about {format_seconds(rest * tuned.first.seconds)} in all{room}, "
        f"which {stays}\n"
    )


def run_line(tuned: Tuned, run: TunedRun, most: int | None) -> str:
    """One run: its setting, its time or failure, and remarks."""
    label, again = tuned.setting(run.candidates).label, ""
    if any(known.candidates == run.candidates and known.number < run.number for known in tuned.runs):
        again = ", again"
    room = _WIDTH - len(again)
    if len(label) > room:
        # Its end is what was added last.
        label = f"{label[: room // 3]}\u2026{label[room // 3 + 1 - room :]}"
    label += again
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
    return f", I/O {format_seconds(run.io_s)}" + (f" ({name} {format_seconds(seconds)})" if seconds else "")


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
    run = {index for each in tuned.runs for index in each.candidates}
    left = [item.setting.label for index, item in enumerate(tuned.candidates) if index not in run]
    if result is not None and result.verdict in ("not_proven", "nothing_helps") and left:
        lines.append(f"Not reached  {'; '.join(left)}: vani tune --resume --more {2 * len(left)}")
    first = tuned.first
    if first is not None and first.io_why and tuned.io_time != "off":
        lines.append(f"I/O time     is not known, so the whole run was judged: {first.io_why}")
    if saved is not None and tuned.settings:
        script = shlex.quote(str(saved.with_suffix(".sh")))
        has_layout = any(tuned.candidates[index].setting.layout for index in (result.candidates if result else ()))
        layout = f"sh {script} --apply    undo: sh {script} --undo    " if has_layout else ""
        lines.append(f"Next         {layout}lines for the job: sh {script} --job")
    folders = [run.folder for run in tuned.runs if tuned.fresh != "emptied" and Path(run.folder).is_dir()]
    if folders:
        lines.append(f"Output of {counted(len(folders), 'run')} is in {', '.join(folders)}; you may remove it")
    return "\n".join(map(one_line, lines)) + "\n"


def _sentence(tuned: Tuned, result: Result) -> str:
    noise = "" if result.noise is None else f" Repeated runs differ by {format_number(100 * result.noise, 2)} %."
    label = tuned.setting(result.candidates).label
    runs = f"{result.as_is_runs} + {result.best_runs} runs"
    low, high = (result.io_low, result.io_high) if result.judged_by == "io_s" else (result.low, result.high)
    interval = ""
    if low is not None and high is not None and result.confidence is not None:
        interval = f" ({low:.2f} to {high:.2f} at {format_number(100 * result.confidence)} % confidence, {runs})"
    what, by, other = "the run", result.speedup, ("I/O", result.io_speedup)
    if result.judged_by == "io_s":
        what, by, other = "I/O", result.io_speedup, ("the run", result.speedup)
    also = "" if other[1] is None else f"; {other[0]} {other[1]:.2f} times"
    if result.verdict == "proven":
        return f"Proven: {what} is {by:.2f} times as fast with {label}{interval}{also}.{noise}"
    if result.verdict == "not_proven":
        looks = f"{what} looks {by:.2f} times as fast with {label}{interval or f' ({runs})'}{also}"
        return f"Not proven: {looks}; {result.why}.{noise}"
    if result.verdict == "nothing_to_gain":
        return f"Nothing to tune: {result.why}."
    if result.verdict == "nothing_helps":
        is_tried = any(run.candidates for run in tuned.runs)
        return f"{'No setting helps' if is_tried else 'No setting was tried'}: {result.why}.{noise}"
    return f"Unfinished: {result.why}."
