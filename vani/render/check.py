"""The verdict of `vani check` as plain text, and what all its formats share: places, fingerprints, causes.

The text has failures first, then exceptions and unknown results; `code_hosts.py` has the other formats.
"""

import hashlib
import math
import os
import posixpath
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from vani.errors import one_line
from vani.schema.check import Cause, Check, CheckCounts, Judgement, Source

RANKS: Final = {"error": 0, "warning": 1, "note": 2}
"""Levels, worst first."""

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


def text_of(judgement: Judgement) -> str:
    """Text of a judgement or finding in every format: the problem and what to do about it, on one line."""
    what = (judgement.message or judgement.id).rstrip(".")
    return one_line(f"{what}; {judgement.todo}" if judgement.todo and judgement.status != "pass" else what)


def findings(check: Check) -> list[Judgement]:
    """Failures, with one judgement for all that follow from the same cause; worst first, causes before the rest.

    It is named after the cause, and is the same in every run, whichever of its judgements fail. Its message is its
    whole text.
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
    lone = [judgement.model_copy(update={"message": text_of(judgement)}) for judgement in uncaused(check)]
    return sorted([*joined, *lone], key=lambda judgement: RANKS[judgement.level])


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
    return text if len(text) <= most else text[: most - 1] + "…"


def counted(counts: dict[str, int]) -> str:
    """`2 errors, 1 warning`: in the given order, without zeros."""
    plural = {"error": "errors", "warning": "warnings", "note": "notes"}
    return ", ".join(f"{n} {plural.get(name, name) if n != 1 else name}" for name, n in counts.items() if n)


def verdict_line(check: Check) -> str:
    """`fail: 2 errors, 1 warning, 5 passed, 1 excepted`."""
    counts: CheckCounts = check.counts
    return f"{check.verdict}: {counted(counts.model_dump()) or 'nothing was checked'}"


# --- text -------------------------------------------------------------------------------------------

MAX_LISTED: Final = 20
"""Maximum number of listed failures per check, and of exceptions or unknown results."""

_WIDTH: Final = 80
_MAX_OF_CAUSE: Final = 6


def to_text(check: Check, **_: object) -> str:
    """Write the verdict for people, without colours; names from traces cannot add lines."""
    lines = [*headlines(check), *_sources(check)]
    if check.damage is not None:
        lines.insert(0, _line(one_line(check.damage)))
    shown: Counter[str] = Counter()
    for cause in check.causes[:MAX_LISTED]:
        lines += ["", *_cause(check, cause)]
    for failure in uncaused(check):
        shown[failure.check] += 1
        if shown[failure.check] <= MAX_LISTED:
            lines += ["", *_failure(failure)]
    for name, count in shown.items():
        if count > MAX_LISTED:
            lines += ["", _line(f"{one_line(name)}: {count - MAX_LISTED:,} more (--format json lists all)")]
    for title, status in (("Excepted:", "excepted"), ("Unknown:", "unknown")):
        some = [judgement for judgement in check.judgements if judgement.status == status]
        if some:
            lines += ["", title]
            lines += [_line(_brief(judgement), "  ") for judgement in some[:MAX_LISTED]]
            if len(some) > MAX_LISTED:
                lines.append(f"  and {len(some) - MAX_LISTED:,} more (--format json lists all)")
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
    bad = [f"{count:,} {name}{'' if count == 1 else 's'}" for name in RANKS if (count := getattr(counts, name))]
    rest = [f"{count:,} {name}" for name in ("excepted", "unknown") if (count := getattr(counts, name))]
    return f"{check.verdict}: {', '.join(bad) or 'nothing found'}; {', '.join([f'{counts.passed:,} passed', *rest])}"


def _sources(check: Check) -> Iterator[str]:
    if check.storage is not None:
        yield _line(f"storage   {one_line(check.storage.sentence)}")
    if check.times is not None:
        yield _line(f"times     {one_line(check.times.sentence)}")
    for run in check.runs or [check.profile]:
        yield f"profile   {one_line(run.path)}"
    yield f"policy    {one_line(check.policy.path) if check.policy else 'none'}"
    for baseline in check.baselines:
        yield f"baseline  {one_line(baseline.path)}"
    if check.tuned is not None:
        yield f"tuned     {one_line(check.tuned.path)}"


def _cause(check: Check, cause: Cause) -> Iterator[str]:
    by_id = {judgement.id: judgement for judgement in check.judgements}
    of = [by_id[name] for name in cause.judgements if name in by_id]
    worst = min((judgement.level for judgement in of), key=list(RANKS).index)
    yield _line(f"{worst} {one_line(cause.message)}")
    for judgement in of[:_MAX_OF_CAUSE]:
        origin = ""
        if judgement.place:
            origin = f"{one_line(judgement.check)} ({one_line(judgement.place.path)}:{judgement.place.line}): "
        yield _line(origin + one_line(judgement.message), "  - ", "    ")
    if len(of) > _MAX_OF_CAUSE:
        yield f"  - {len(of) - _MAX_OF_CAUSE:,} more (--format json lists all)"
    for reason in dict.fromkeys(judgement.reason for judgement in of[:_MAX_OF_CAUSE] if judgement.reason):
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


# --- paths ------------------------------------------------------------------------------------------


def root_of(folder: Path) -> Path:
    """The nearest folder at or above `folder` that contains a git repository, or `folder` itself."""
    start = Path(os.path.realpath(folder))
    for place in (start, *start.parents):
        # `.git` is a file in a worktree or a submodule.
        if (place / ".git").exists():
            return place
    return start


def in_repository(check: Check, *, folder: Path) -> Check:
    """Return `check` with the paths of policy, profile and baselines relative to the repository's root.

    Annotations, code scanning and code quality reports know files only by these paths.

    Parameters
    ----------
    folder
        The base of relative paths: the command's working directory. Paths outside the repository are unchanged.
    """
    root = root_of(folder)

    @cache
    def seen(path: str) -> str:
        return _relative(path, folder, root)

    def source(original: Source) -> Source:
        return original.model_copy(update={"path": seen(original.path)})

    def judgement(original: Judgement) -> Judgement:
        if original.place is None:
            return original
        return original.model_copy(
            update={"place": original.place.model_copy(update={"path": seen(original.place.path)})}
        )

    return check.model_copy(
        update={
            "profile": source(check.profile),
            "runs": [source(run) for run in check.runs],
            "policy": None if check.policy is None else source(check.policy),
            "baselines": [source(baseline) for baseline in check.baselines],
            "tuned": None if check.tuned is None else source(check.tuned),
            "judgements": [judgement(entry) for entry in check.judgements],
        }
    )


def _relative(path: str, folder: Path, root: Path) -> str:
    if not path or "\0" in path:
        return path
    whole = Path(folder) / path
    try:
        # The file itself may be a link to anywhere; the repository contains its name.
        whole = Path(os.path.realpath(whole.parent)) / whole.name
        return whole.relative_to(root).as_posix()
    except (ValueError, OSError):
        return path
