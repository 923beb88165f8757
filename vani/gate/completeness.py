"""Whether a verdict can be trusted: traces are whole, and the runs of a baseline are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vani.gate.entities import stripped
from vani.gate.outcome import Outcome, judgement
from vani.gate.profile_tree import Tree
from vani.schema.profile import Profile

__all__ = ["CHECK", "judge_alikeness", "judge_completeness"]

CHECK: Final = "traces"
_LEFT_OUT: Final = "traces["
_TODO: Final = f'trace the run again, or let it pass for a while: [[check.except]] with check = "{CHECK}"'


def judge_completeness(profile: Profile, strip: Sequence[str]) -> list[Outcome]:
    """One outcome for each trace that is damaged, or that could not be read at all; none where all is well."""
    found = [
        _outcome(trace.path, "is damaged", trace.problems, strip)
        for trace in profile.traces
        # Quick profiles know of damage, not that there is none.
        if trace.complete is False or trace.problems
    ]
    for key, why in profile.provenance.items():
        if key.startswith(_LEFT_OUT) and key.endswith("]"):
            path = key.removeprefix(_LEFT_OUT)[:-1]
            found.append(_outcome(path, "is not in the profile", [why.removeprefix("left out: ")], strip))
    return found


def judge_alikeness(runs: Sequence[Tree]) -> list[Outcome]:
    """An outcome if the runs of a baseline have other numbers of processes: all that follows would pass as noise."""
    found = {run.get("workflow", {}).get("processes") for run in runs}
    sizes = sorted(one for one in found if isinstance(one, int))
    if len(sizes) < 2:
        return []
    told = ", ".join(f"{one:,}" for one in sizes[:5]) + (", ..." if len(sizes) > 5 else "")
    return [
        Outcome(
            judgement(
                "baseline",
                "change",
                "fail",
                "warning",
                f"the baseline has runs of {told} processes: what differs between them is taken for noise",
                against="baseline",
                attribute="workflow.processes",
                todo="save runs of one size: vani baseline save PROFILE ...",
            )
        )
    ]


def _outcome(path: str, what: str, problems: Sequence[str], strip: Sequence[str]) -> Outcome:
    why = f": {problems[0]}" if problems else ""
    more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
    short = stripped(path, strip)
    return Outcome(
        judgement(
            CHECK,
            "missing",
            "fail",
            "warning",
            f"{path} {what}, so figures may be too small{why}{more}",
            against=short,
            target=path,
            todo=_TODO,
        ),
        stripped=short,
    )
