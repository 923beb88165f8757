"""One sentence about the losses of damaged traces, the first line of every text made from the profile.

A profile states losses in words (`traces[].problems`, written by readers) and names traces that could not be read at
all in `provenance` (`traces[PATH]`). Lost ranks and calls are counted from these words; if they contain no number, none
is stated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.units import format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile, TraceEntity


UNKNOWN_LOSS: Final = 0.5
"""Most that is taken to be there of a trace with a loss of unknown size."""

_REFUSED: Final = "traces["
_LONGEST_NAME: Final = 60
_LONGEST_REASON: Final = 160
_LISTED: Final = 4
"""Runs of ranks that are named; the others are counted."""

_Run = tuple[int, int]
"""First and last rank."""

_ONE: Final = re.compile(
    r"\brank (?P<rank>\d{1,9}): (?:(?P<some>\d{1,15}) of (?P<of>\d{1,15}) calls |(?P<all>\d{1,15}) calls )?left out"
    r"(?:, (?P<why>.*))?"
)
_MANY: Final = re.compile(
    r"\branks (?:(?P<first>\d{1,9}) to (?P<last>\d{1,9}): (?P<calls>\d{1,15}) calls "
    r"|(?P<ranks>\d{1,9}(?:, \d{1,9})*)(?P<more>, \.\.\. \((?P<number>\d{1,9}) in all\))?: )left out(?:, (?P<why>.*))?"
)


@dataclass
class _Loss:
    """The loss of one trace."""

    trace: TraceEntity
    runs: list[_Run] = field(default_factory=list)
    """Ranks that are named."""
    wholly: int = 0
    """Ranks lost completely, named or not."""
    partly: int = 0
    calls: int | None = 0
    """Calls that are lost; None: not known."""
    why: str = ""


def damage(profile: Profile) -> str | None:
    """One sentence about the parts a profile lacks because its traces are damaged; None if they are complete.

    It states how many processes are lost, wholly or in part, which ranks they are and why, their share of the calls if
    the trace gives it, and the traces that could not be read at all.
    """
    losses = [_loss(trace) for trace in profile.traces if trace.complete is False or trace.problems]
    refused = [
        (key.removeprefix(_REFUSED)[:-1], why.removeprefix("left out: "))
        for key, why in profile.provenance.items()
        if key.startswith(_REFUSED) and key.endswith("]")
    ]
    if not losses and not refused:
        return None
    said = [
        *_unread(refused, len(profile.traces)),
        *_lost_ranks([loss for loss in losses if loss.runs], profile),
        *_other([loss for loss in losses if not loss.runs]),
    ]
    noun = "trace" if len(losses) + len(refused) == 1 else "traces"
    return f"Damaged {noun}: {'; '.join(said)}; all figures are of the rest."


def whole_share(profile: Profile) -> float:
    """Share of the workload that the profile covers, 0..1; 1 if no trace is damaged.

    The share of a trace is that of its processes or of its calls, whichever is less, and at most `UNKNOWN_LOSS` if some
    of the loss is not counted. Traces are weighted by their number of processes; an unreadable trace has the average
    weight of the others.
    """
    refused = sum(key.startswith(_REFUSED) and key.endswith("]") for key in profile.provenance)
    weights = [max(1, trace.ranks) for trace in profile.traces]
    shares = [
        _recorded_share(_loss(trace)) if trace.complete is False or trace.problems else 1.0
        for trace in profile.traces
    ]
    if not weights:
        return 1.0 if not refused else 0.0
    read = sum(weight * share for weight, share in zip(weights, shares, strict=True)) / sum(weights)
    return read * len(weights) / (len(weights) + refused)


def _recorded_share(loss: _Loss) -> float:
    """Share of one damaged trace that was recorded."""
    if not loss.runs:
        return UNKNOWN_LOSS
    share = 1.0 - loss.wholly / max(1, loss.trace.ranks)
    if loss.calls is not None:
        # If no call was lost and none recorded, the share is unknown.
        records = loss.trace.records
        return min(share, records / (records + loss.calls) if records + loss.calls else UNKNOWN_LOSS)
    return min(share, UNKNOWN_LOSS) if loss.partly else share


def _unread(refused: Sequence[tuple[str, str]], read: int) -> Iterable[str]:
    if refused:
        path, why = refused[0]
        verb = "is" if len(refused) == 1 else "are"
        yield (
            f"{format_count(len(refused))} of {format_count(len(refused) + read)} traces {verb} not in the profile "
            f"({_name(path)}: {_reason(why.removeprefix(f'{path}: '), path)}{_further(refused)})"
        )


def _lost_ranks(losses: Sequence[_Loss], profile: Profile) -> Iterable[str]:
    if not losses:
        return
    wholly, partly = sum(loss.wholly for loss in losses), sum(loss.partly for loss in losses)
    ranks = format_count(profile.workflow.processes)
    if wholly:
        text = f"{format_count(wholly)} of {ranks} ranks {'is' if wholly == 1 else 'are'} lost"
        text += f" and {format_count(partly)} in part" if partly else ""
    else:
        text = f"{format_count(partly)} of {ranks} ranks {'is' if partly == 1 else 'are'} lost in part"
    known = [loss.calls for loss in losses if loss.calls is not None]
    lost = sum(known)
    if lost and len(known) == len(losses):
        recorded = sum(trace.records for trace in profile.traces)
        text += f", {format_share(lost / (lost + recorded))} of the calls"
    worst = max(losses, key=lambda loss: (loss.wholly, loss.partly))
    why = f": {worst.why}" if worst.why else ""
    yield f"{text} ({_name(worst.trace.path)}, {_ranks(worst)}{why}{_further(losses)})"


def _other(losses: Sequence[_Loss]) -> Iterable[str]:
    """Damage for which no reader reports lost ranks."""
    if losses:
        worst = max(losses, key=lambda loss: len(loss.trace.problems))
        problems = worst.trace.problems
        what = f": {_reason(problems[0], worst.trace.path)}" if problems else " is not complete"
        what += f" and {format_count(len(problems) - 1)} more" if len(problems) > 1 else ""
        yield f"{_name(worst.trace.path)}{what}{_further(losses)}"


def _further(some: Sequence[object]) -> str:
    more = len(some) - 1
    return f"; {format_count(more)} more trace{'s' * (more > 1)} like it" if more else ""


def _loss(trace: TraceEntity) -> _Loss:
    """The loss that a trace's problems name."""
    loss = _Loss(trace)
    uncounted = summed = counted = 0
    for problem in trace.problems:
        if (match := _ONE.search(problem)) is not None:
            loss.runs.append((int(match["rank"]), int(match["rank"])))
            calls = match["some"] or match["all"]
            if match["some"] is not None and int(match["some"]) < int(match["of"]):
                loss.partly += 1
            else:
                uncounted += calls is None
                counted += calls is not None
        elif (match := _MANY.search(problem)) is not None:
            calls = match["calls"]
            if calls is not None:
                loss.runs.append((int(match["first"]), int(match["last"])))
                counted += int(match["last"]) - int(match["first"]) + 1
            else:
                named = [int(rank) for rank in match["ranks"].split(", ")]
                loss.runs += [(rank, rank) for rank in named]
                summed += int(match["number"]) if match["more"] else len(named)
        else:
            continue
        loss.calls = None if calls is None or loss.calls is None else loss.calls + int(calls)
        loss.why = loss.why or _reason(problem[: match.start()] + (match["why"] or ""), trace.path)
    # If a reader lists the first ranks and then a total, the total includes the listed ones.
    loss.wholly = max(0, min(trace.ranks - loss.partly, max(uncounted, summed) + counted))
    return loss


def _ranks(loss: _Loss) -> str:
    """`rank 3`, `ranks 4 to 7, 9`, `ranks 0 to 4 and 75 more`."""
    runs: list[_Run] = []
    for first, last in sorted(loss.runs):
        if runs and first <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(last, runs[-1][1]))
        else:
            runs.append((first, last))
    shown = runs[:_LISTED]
    named = sum(last - first + 1 for first, last in shown)
    others = loss.wholly + loss.partly - named
    text = ", ".join(_run(*run) for run in shown) + (f" and {format_count(others)} more" if others > 0 else "")
    return f"rank{'s' * (named > 1 or others > 0)} {text}"


def _run(first: int, last: int) -> str:
    if last - first < 2:
        return str(first) if first == last else f"{first}, {last}"
    return f"{first} to {last}"


def _reason(text: str, path: str) -> str:
    """The reason, with files of the trace as bare names, because the profile gives the trace's path."""
    return _short(text.replace(f"{path.rstrip('/')}/", "").replace(": is missing", " is missing"))


def _name(path: str) -> str:
    return _short(PurePosixPath(path).name or path, _LONGEST_NAME)


def _short(text: str, most: int = _LONGEST_REASON) -> str:
    """The text on one line, truncated to a bounded length."""
    safe = one_line(text[: 2 * most])
    return safe if len(safe) <= most else safe[: most - 1].rstrip() + "…"


OVERHEAD_S: Final = 50e-6
"""Seconds that strace adds to each call, some (docs/tracing.md)."""

_TOOLS: Final = {"strace": "some 50 us"}
"""Tracers that stop a program at each call, and what that adds to each (docs/tracing.md)."""


def overhead_of(profile: Profile) -> tuple[str, str] | None:
    """The tracer that lengthened times, and by how much per call; None if the times are the program's own.

    Counts, bytes and order stay correct. The share of the run spent in I/O is an upper bound, because time added to
    calls is also added to the run.
    """
    for trace in profile.traces:
        if trace.tool in _TOOLS:
            return trace.tool, _TOOLS[trace.tool]
    return None
