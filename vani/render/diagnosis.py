"""Observations in words, one line per pattern; `docs/diagnosis.md` defines them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.units import format_share

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from vani.schema.advice import Advice, Observation

HEADING: Final = "The program:"
MOST_LINES: Final = 8


def pattern_words(pattern: str) -> str:
    """The name of a pattern in words."""
    return one_line(pattern).replace("_io", " I/O").replace("_", " ")


def acts_on(patterns: Sequence[str]) -> str:
    """A sentence with the patterns on which a recommendation acts."""
    return f"Acts on: {', '.join(map(pattern_words, patterns))}."


def place(observation: Observation) -> str:
    """Place of an observation as the trace names it, not yet safe to print; empty for the whole job."""
    target = observation.target
    return target.path or target.app or ("" if target.kind == "job" else target.kind)


def advised_rules(advice: Advice) -> frozenset[str]:
    """Rules that recommend something."""
    return frozenset(entry.rule for entry in advice.recommendations)


def observation_lines(observations: Sequence[Observation], width: int, advised: Collection[str] = ()) -> list[str]:
    """A printable line for each of the first `MOST_LINES`: pattern, share, `advised` rules that act on it, place.

    A place that does not fit into `width` columns keeps its end.
    """
    lines = []
    for observation in observations[:MOST_LINES]:
        line = pattern_words(observation.pattern)
        if observation.share is not None:
            line += f", {format_share(observation.share)} of the I/O time"
        rules = [one_line(rule) for rule in observation.rules if rule in advised]
        line += f" ({', '.join(rules)})" if rules else ""
        where = one_line(place(observation))
        room = width - len(line) - 2
        if where:
            line += f": \u2026{where[1 - room :]}" if len(where) > room > 1 else f": {where}"
        lines.append(line)
    if len(observations) > MOST_LINES:
        lines.append(f"and {len(observations) - MOST_LINES} more, which `vani advise` writes")
    return lines
