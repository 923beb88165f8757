"""Checks that a verdict can be trusted: traces are complete, and the runs of a baseline have the same size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vani.gate.entity_names import stripped
from vani.gate.outcome import Outcome, judgement
from vani.gate.profile_tree import Tree
from vani.schema.profile import Profile

CHECK: Final = "traces"
_LEFT_OUT: Final = "traces["
_TODO: Final = f'trace the run again, or accept it for a while: [[check.except]] with check = "{CHECK}"'


def judge_completeness(profile: Profile, strip: Sequence[str]) -> list[Outcome]:
    """One outcome for each trace that is damaged or could not be read."""
    outcomes = [
        _outcome(trace.path, "is damaged", trace.problems, strip)
        for trace in profile.traces
        # A quick profile may know of damage, but cannot rule it out.
        if trace.complete is False or trace.problems
    ]
    for key, why in profile.provenance.items():
        if key.startswith(_LEFT_OUT) and key.endswith("]"):
            path = key.removeprefix(_LEFT_OUT)[:-1]
            outcomes.append(_outcome(path, "is not in the profile", [why.removeprefix("left out: ")], strip))
    return outcomes


def judge_run_sizes(runs: Sequence[Tree]) -> list[Outcome]:
    """An outcome if runs of a baseline differ in processes, because all differences that follow count as noise."""

    process_counts = {run.get("workflow", {}).get("processes") for run in runs}
    sizes = sorted(count for count in process_counts if isinstance(count, int))
    if len(sizes) < 2:
        return []
    listed = ", ".join(f"{size:,}" for size in sizes[:5]) + (", ..." if len(sizes) > 5 else "")
    return [
        Outcome(
            judgement(
                "baseline",
                "change",
                "fail",
                "warning",
                f"the baseline has runs of {listed} processes: their differences count as noise",
                against="baseline",
                attribute="workflow.processes",
                todo="save runs of one size: vani check PROFILE ... --save",
            )
        )
    ]


def _outcome(path: str, problem: str, problems: Sequence[str], strip: Sequence[str]) -> Outcome:
    why = f": {problems[0]}" if problems else ""
    more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
    short = stripped(path, strip)
    return Outcome(
        judgement(
            CHECK,
            "missing",
            "fail",
            "warning",
            f"{path} {problem}, so figures may be too small{why}{more}",
            against=short,
            target=path,
            todo=_TODO,
        ),
        stripped=short,
    )
