"""The verdict of `vani check` as plain text: failures first, then exceptions and unknown results."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.check.judgement import RANKS, cause_line, uncaused

if TYPE_CHECKING:
    from vani.schema.check import Cause, Check, Judgement

LISTED: Final = 20
"""Maximum number of listed failures per check, and of exceptions or unknown results."""

_WIDTH: Final = 100
_OF_CAUSE: Final = 6


def render(check: Check, *, version: str) -> str:
    """Write the verdict for people, without colours; names from traces cannot add lines."""
    del version
    lines = [*headlines(check), *_sources(check)]
    if check.damage is not None:
        lines.insert(0, _line(one_line(check.damage)))
    shown: Counter[str] = Counter()
    for cause in check.causes[:LISTED]:
        lines += ["", *_cause(check, cause)]
    for failure in uncaused(check):
        shown[failure.check] += 1
        if shown[failure.check] <= LISTED:
            lines += ["", *_failure(failure)]
    for name, count in shown.items():
        if count > LISTED:
            lines += ["", _line(f"{one_line(name)}: {count - LISTED:,} more (--format json lists all)")]
    for title, status in (("Excepted:", "excepted"), ("Unknown:", "unknown")):
        some = [judgement for judgement in check.judgements if judgement.status == status]
        if some:
            lines += ["", title]
            lines += [_line(_brief(judgement), "  ") for judgement in some[:LISTED]]
            if len(some) > LISTED:
                lines.append(f"  and {len(some) - LISTED:,} more (--format json lists all)")
    return "\n".join(lines) + "\n"


def headlines(check: Check) -> list[str]:
    """The verdict with its first cause, if known, and the numbers of failed and passed checks."""
    if not check.causes:
        return [headline(check)]
    counts = headline(check).partition(": ")[2]
    return [_line(f"{check.verdict}: {cause_line(check, check.causes[0])}"), counts]


def headline(check: Check) -> str:
    """`fail: 2 errors, 1 warning; 14 passed, 1 excepted, 2 unknown`."""
    counts = check.counts
    bad = [
        f"{count:,} {name}{'' if count == 1 else 's'}"
        for count, name in ((counts.error, "error"), (counts.warning, "warning"), (counts.note, "note"))
        if count
    ]
    rest = [f"{counts.passed:,} passed"]
    if counts.excepted:
        rest.append(f"{counts.excepted:,} excepted")
    if counts.unknown:
        rest.append(f"{counts.unknown:,} unknown")
    return f"{check.verdict}: {', '.join(bad) or 'nothing found'}; {', '.join(rest)}"


def _sources(check: Check) -> Iterator[str]:
    if check.storage is not None:
        yield _line(f"storage   {one_line(check.storage.sentence)}")
    yield f"profile   {one_line(check.profile.path)}"
    yield f"policy    {one_line(check.policy.path) if check.policy else 'none'}"
    for baseline in check.baselines:
        yield f"baseline  {one_line(baseline.path)}"
    if check.tuned is not None:
        yield f"tuned     {one_line(check.tuned.path)}"


def _cause(check: Check, cause: Cause) -> Iterator[str]:
    by_id = {judgement.id: judgement for judgement in check.judgements}
    of = [by_id[name] for name in cause.judgements if name in by_id]
    yield _line(
        f"{min((judgement.level for judgement in of), key=list(RANKS).index)} {one_line(cause.message)}"
    )
    for judgement in of[:_OF_CAUSE]:
        origin = (
            f"{one_line(judgement.check)} ({one_line(judgement.place.path)}:{judgement.place.line}): "
            if judgement.place
            else ""
        )
        yield _line(origin + one_line(judgement.message), "  - ", "    ")
    if len(of) > _OF_CAUSE:
        yield f"  - {len(of) - _OF_CAUSE:,} more (--format json lists all)"
    for reason in dict.fromkeys(judgement.reason for judgement in of[:_OF_CAUSE] if judgement.reason):
        yield _line(f"Why: {one_line(reason)}", "  ")
    explained = f" ({', '.join(f'vani explain {rule}' for rule in cause.rules)})" if cause.rules else ""
    yield _line(f"Do: {one_line(cause.todo)}{explained}", "  ")


def _failure(failure: Judgement) -> Iterator[str]:
    place = f" ({one_line(failure.place.path)}:{failure.place.line})" if failure.place else ""
    yield _line(f"{failure.level} {one_line(failure.check)}{place}")
    yield _line(one_line(failure.message), "  ")
    if failure.reason:
        yield _line(f"Why: {one_line(failure.reason)}", "  ")
    if failure.todo:
        yield _line(f"Do: {one_line(failure.todo)}", "  ")


def _brief(judgement: Judgement) -> str:
    text = one_line(judgement.message)
    if judgement.excepted is not None:
        return f"{text} (until {judgement.excepted.until}: {one_line(judgement.excepted.reason)})"
    return text


def _line(text: str, indent: str = "", below: str | None = None) -> str:
    """Break lines only at blanks, so that paths can be copied."""
    return "\n".join(
        textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + "  " if below is None else below,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
