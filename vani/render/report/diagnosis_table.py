"""The program's behaviour as a table of the report; `docs/diagnosis.md` defines the patterns."""

from __future__ import annotations

from vani.render.answers import pattern_words, place
from vani.render.report.bounds import Limits, clip
from vani.render.report.tables import Column, Row, Table, share, words
from vani.schema.advice import Advice, Observation


def diagnosis_table(advice: Advice, limits: Limits) -> Table | None:
    """A row per pattern; None if there is none, or for advice of an older Vani."""
    observations = advice.diagnosis or []
    if not observations:
        return None
    rows = tuple(
        Row(
            (
                words(pattern_words(observation.pattern)),
                words(clip(place(observation) or "the whole run", limits.path)),
                share(observation.share),
                words(clip(_evidence(observation), limits.prose)),
                words(", ".join(observation.rules)),
            )
        )
        for observation in observations[: limits.rows]
    )
    columns = (Column("Pattern"), Column("Where"), Column("Share", number=True), Column("Evidence"), Column("Rules"))
    caption = (
        "Patterns, whether or not they cost time: the costliest place of each, the share of the I/O time that all its "
        "places take, and rules that act on it."
    )
    return Table("diagnosis", caption, columns, rows, max(0, len(observations) - limits.rows))


def _evidence(observation: Observation) -> str:
    return "; ".join(f"{item.attribute} = {item.value}" for item in observation.evidence)
