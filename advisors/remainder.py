"""The time in I/O calls that recommendations leave, if they act on less than half of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.models.library_part import LEAST, library_part
from vani.models.verdict import verdict_of
from vani.schema.advice import Remainder
from vani.units import format_seconds, format_share

if TYPE_CHECKING:
    from vani.models.io_time import IOTime
    from vani.schema.profile import Profile

_NOT_REDUCED: Final = "no setting of storage reduces it"


def remainder(profile: Profile, time: IOTime | None, acted_on_s: float) -> Remainder | None:
    """Describe the time that recommendations leave; None if I/O does not matter or they act on at least half of it.

    `acted_on_s` is the largest number of seconds that a single recommendation acts on, because it is unknown how much
    several overlap.
    """
    verdict = verdict_of(profile)
    if time is None or verdict.matters != "yes" or acted_on_s >= LEAST * time.calls_s:
        return None
    part = library_part(profile, time)
    if part is not None and part.seconds >= LEAST * time.calls_s:
        share = min(1.0, part.seconds / time.calls_s)
        text = f"{format_share(share)} of the time in I/O calls is {part.words}: {_NOT_REDUCED}."
        return Remainder(kind=part.kind, seconds=part.seconds, share=share, sentence=text)
    left = time.calls_s - acted_on_s
    whole = format_seconds(time.calls_s)
    text = f"Recommendations act on at most {format_seconds(acted_on_s)} of the {whole} in I/O calls."
    if not acted_on_s:
        text = f"No rule has a setting for the {whole} in I/O calls."
    return Remainder(kind="file_system", seconds=left, share=left / time.calls_s, sentence=text)
