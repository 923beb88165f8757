"""Why, when and where a run does I/O, in one line each: the first box of a page, and the printed sheet."""

from __future__ import annotations

from vani.models.verdict import verdict_of
from vani.render.answers import by_app, files_line, moved, when
from vani.render.report.bounds import Limits, clip
from vani.render.report.identity import Fact
from vani.render.report.slow_calls import slowest_part
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap

_ROOM = 10_000
"""Maximum number of characters in a line, which the page wraps itself."""


def answers(profile: Profile, heat: HeatMap | str, limits: Limits) -> tuple[Fact, ...]:
    """The lines for which the profile has an answer."""
    cause = verdict_of(profile).cause
    where = [line for line in (by_app(profile), files_line(profile, _ROOM)) if line]
    lines = (
        ("Why", cause.sentence if cause is not None else "", "verdict.cause"),
        ("When", when(profile), ""),
        ("Where", "; ".join(where), ""),
        ("Data", moved(profile), ""),
        ("Slowest", slowest_part(heat), ""),
    )
    # A key names an attribute, which an older document may lack.
    stated = profile.verdict is not None
    return tuple(Fact(label, clip(text, limits.prose), "", key if stated else "") for label, text, key in lines if text)
