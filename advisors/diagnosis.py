"""The program's behaviour as observations from a fixed list, whether or not it costs time (`docs/diagnosis.md`).

An observation is true or false and has no severity. Each pattern is a function from a `Run` to a `Seen` or None.
`docs/diagnosis.md` has the thresholds and their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from vani.advisors.diagnosis_files import FILE_PATTERNS
from vani.advisors.diagnosis_processes import RUN_PATTERNS
from vani.advisors.diagnosis_run import Pattern, Run, value_at
from vani.schema.advice import Evidence, Observation, Target

if TYPE_CHECKING:
    from vani.schema.profile import Profile

PATTERNS: Final[Mapping[str, Pattern]] = {**FILE_PATTERNS, **RUN_PATTERNS}
"""The function that detects each pattern, and the rules that act on it."""


def diagnosis(profile: Profile) -> list[Observation]:
    """All patterns that the profile shows, the one with the largest share of the I/O time first.

    A pure function. An entry names the costliest place with the pattern, but its share covers all such places.
    """
    run = Run(profile)
    observations = []
    for name, (see, rules) in PATTERNS.items():
        seen = see(run)
        if seen is not None:
            observations.append(
                Observation(
                    pattern=name,
                    target=seen.target,
                    evidence=[
                        Evidence(attribute=path, value=value)
                        for path in seen.attributes
                        if (value := value_at(profile, path)) is not None
                    ],
                    share=seen.share,
                    rules=list(rules),
                )
            )
    if observations:
        return sorted(observations, key=lambda entry: -(entry.share or 0.0))
    # The remarkable activity may be unrecorded.
    if profile.unseen or not profile.workflow.io.ops.all:
        return []
    evidence = [Evidence(attribute="workflow.io.bytes.total", value=profile.workflow.io.bytes.total)]
    return [
        Observation(pattern="nothing_remarkable", target=Target(kind="job"), evidence=evidence, share=None, rules=[])
    ]
