"""A judgement as all formats of a check show it: its place, details and fingerprint."""

from __future__ import annotations

import hashlib
import math
import posixpath
import re
from typing import TYPE_CHECKING, Final

from vani.errors import one_line

if TYPE_CHECKING:
    from vani.schema.check import Cause, Check, CheckCounts, Judgement

RANKS: Final = {"error": 0, "warning": 1, "note": 2}
"""Levels, worst first."""

_ELLIPSIS: Final = "…"
_DIGITS: Final = re.compile(r"\d+")


def blocks(check: Check, judgement: Judgement) -> bool:
    """Whether this judgement makes the whole check fail, because it fails at or above the level of `fail_on`."""
    return judgement.status == "fail" and RANKS[judgement.level] <= RANKS[check.fail_on]


def place(check: Check, judgement: Judgement) -> tuple[str, int]:
    """File and line at which to show a judgement: the policy's requirement, or the profile's first line."""
    if judgement.place is not None and judgement.place.path:
        return judgement.place.path, max(1, judgement.place.line)
    return check.profile.path or "profile.yaml", 1


def fingerprint(judgement: Judgement) -> str:
    """32 hexadecimal digits that identify a judgement in every run, independent of its value and line."""
    return hashlib.sha256(b"vani.check/1\0" + judgement.id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def uncaused(check: Check) -> list[Judgement]:
    """Failures without a cause, worst first."""
    of_causes = {name for cause in check.causes for name in cause.judgements}
    return [
        judgement
        for judgement in check.judgements
        if judgement.status == "fail" and judgement.id not in of_causes
    ]


def cause_line(check: Check, cause: Cause) -> str:
    """The change, the remedy, and whether it matters, on one line."""
    explained = f" (vani explain {cause.rules[0]})" if cause.rules else ""
    share = f". {check.io_share}" if check.io_share else ""
    return one_line(f"{cause.message}; {cause.todo}{explained}{share}")


def findings(check: Check) -> list[Judgement]:
    """Failures, with one judgement for all that follow from the same cause; worst first, causes before the rest.

    It is named after the cause, and is the same in every run, whichever of its judgements fail.
    """
    by_id = {judgement.id: judgement for judgement in check.judgements}
    joined = []
    for cause in check.causes:
        of = sorted(
            (by_id[name] for name in cause.judgements if name in by_id),
            key=lambda judgement: (RANKS[judgement.level], judgement.place is None),
        )
        if not of:
            continue
        what = posixpath.basename(cause.files[0]) if cause.files else ""
        more = f" ({of[0].message}{f'; {len(of) - 1} more' if len(of) > 1 else ''})"
        joined.append(
            of[0].model_copy(
                update={
                    "id": f"{cause.kind} {_DIGITS.sub('*', what)}".rstrip(),
                    "message": cause_line(check, cause) + more,
                    "target": cause.files[0] if cause.files else of[0].target,
                    "todo": None,
                    "place": next((judgement.place for judgement in of if judgement.place is not None), None),
                }
            )
        )
    return sorted([*joined, *uncaused(check)], key=lambda judgement: RANKS[judgement.level])


def details(judgement: Judgement) -> list[tuple[str, str]]:
    """Details besides the message, as (name, one line) pairs; null values are left out."""
    pairs = [
        ("attribute", judgement.attribute),
        ("target", judgement.target),
        ("value", None if judgement.value is None else number(judgement.value)),
        ("allowed", judgement.limit),
        ("baseline", None if judgement.baseline is None else number(judgement.baseline)),
        ("change", None if judgement.change is None else f"{judgement.change:+.1%}"),
        ("reason", judgement.reason),
        ("what to do", judgement.todo),
    ]
    if judgement.excepted is not None:
        pairs += [("excepted until", judgement.excepted.until), ("exception", judgement.excepted.reason)]
    return [(name, one_line(text)) for name, text in pairs if text]


def number(value: float | str) -> str:
    """An integer exactly, another number with six digits, a text unchanged."""
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else str(value)
    return str(value)


def cut(text: str, most: int) -> str:
    """`text` on one line, with at most `most` characters."""
    text = one_line(text)
    return text if len(text) <= most else text[: most - 1] + _ELLIPSIS


def counted(counts: dict[str, int]) -> str:
    """`2 errors, 1 warning`: in the given order, without zeros."""
    plural = {"error": "errors", "warning": "warnings", "note": "notes"}
    return ", ".join(f"{n} {plural.get(name, name) if n != 1 else name}" for name, n in counts.items() if n)


def verdict_line(check: Check) -> str:
    """`fail: 2 errors, 1 warning, 5 passed, 1 excepted`."""
    counts: CheckCounts = check.counts
    return f"{check.verdict}: {counted(counts.model_dump()) or 'nothing was checked'}"
