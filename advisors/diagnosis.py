"""The program's behaviour as observations from a closed list, whether or not it costs time: `docs/diagnosis.md`.

An observation is true or false: it has no severity. Each pattern is one function of a `Run` that answers with a
`Seen` or None. Thresholds and their sources are in `docs/diagnosis.md`.
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

__all__ = ["PATTERNS", "diagnosis"]

PATTERNS: Final[Mapping[str, Pattern]] = {**FILE_PATTERNS, **RUN_PATTERNS}
"""By name: the function that sees a pattern, and the rules that act on it."""


def diagnosis(profile: Profile) -> list[Observation]:
    """Every pattern that the profile shows, those with the largest share of the I/O time first.

    Pure. An entry names the costliest place where the pattern was seen; its share is that of all of them.
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
    # Unrecorded activity may be remarkable.
    if profile.unseen or not profile.workflow.io.ops.all:
        return []
    evidence = [Evidence(attribute="workflow.io.bytes.total", value=profile.workflow.io.bytes.total)]
    return [
        Observation(pattern="nothing_remarkable", target=Target(kind="job"), evidence=evidence, share=None, rules=[])
    ]
