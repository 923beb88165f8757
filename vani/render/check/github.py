"""The verdict of a check for GitHub Actions: annotations of a pull request, and the page of the job.

Sources: GitHub documentation, "Workflow commands for GitHub Actions" (commands, escapes, 10 annotations of a type in a
step, 50 in a job; 1 MiB of summary in a step); the runner's `ActionCommand`, which reads the commands.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.check.judgement import RANKS, cause_line, counted, cut, findings, number, verdict_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vani.schema.check import Check, Judgement

MOST_ANNOTATIONS: Final = 10
"""GitHub silently drops further annotations of a type in a step."""
MOST_SUMMARY_BYTES: Final = 1024 * 1024
"""GitHub drops a larger step summary completely."""

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_STATUSES: Final = {"fail": "failed", "excepted": "excepted", "unknown": "unknown", "pass": "passed"}
_LONGEST_TITLE: Final = 200
_LONGEST_TEXT: Final = 2000
# A cell is for people; other formats contain the whole text.
_LONGEST_CELL: Final = 500
# Reserved for the line about omitted rows.
_ROOM_AT_THE_END: Final = 1000


# --- annotations ------------------------------------------------------------------------------------


def render(check: Check, *, version: str) -> str:
    """Write workflow commands for a step's stdout: the ten worst failures, then one line about the rest.

    That line appears if failures are left out or could not be judged. Nothing is written if everything passes.
    """
    del version  # an annotation does not need it
    failed = _of_each_check_first(findings(check))
    shown = failed[:MOST_ANNOTATIONS]
    # The line about the rest is also a notice, and would be the eleventh.
    if all(judgement.level == "note" for judgement in shown):
        shown = shown[: MOST_ANNOTATIONS - 1]
    lines = [_annotation(judgement) for judgement in shown]
    left = failed[len(shown) :]
    unknown = check.counts.unknown
    if left or unknown:
        rest = counted(_by_level(left))
        text = f"{len(left)} more: {rest}" if left else ""
        if unknown:
            text += f"{'; ' if text else ''}{unknown} could not be judged"
        lines.append(
            _command("notice", {"title": "vani check"}, f"{text}. The job's summary has all of them.")
        )
    return "".join(line + "\n" for line in lines)


def _of_each_check_first(failed: Iterable[Judgement]) -> list[Judgement]:
    """Worst first; within a level, the first failure of each check before any second, so that no check is hidden."""
    seen: Counter[tuple[str, str]] = Counter()
    turns = []
    for judgement in failed:
        turns.append((RANKS[judgement.level], seen[judgement.level, judgement.check], judgement))
        seen[judgement.level, judgement.check] += 1
    return [judgement for _, _, judgement in sorted(turns, key=lambda turn: turn[:2])]


def _by_level(judgements: Iterable[Judgement]) -> dict[str, int]:
    counts: Counter[str] = Counter(judgement.level for judgement in judgements)
    return {level: counts[level] for level in RANKS}


def _annotation(judgement: Judgement) -> str:
    # A judgement without a line in the policy has no line in the repository, and GitHub shows it without one.
    position = {} if judgement.place is None or not judgement.place.path else {
        "file": one_line(judgement.place.path),
        "line": str(max(1, judgement.place.line)),
    }  # fmt: skip
    properties = position | {
        "title": cut(f"{judgement.check or 'vani check'} ({judgement.level})", _LONGEST_TITLE),
    }
    lines = [judgement.message or judgement.id, judgement.todo or ""]
    return _command(
        _COMMANDS[judgement.level], properties, "\n".join(cut(text, _LONGEST_TEXT) for text in lines if text)
    )


def _command(name: str, properties: dict[str, str], message: str) -> str:
    pairs = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {pairs}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# --- the job's summary ------------------------------------------------------------------------------


def summary(check: Check) -> str:
    """Write as much of the table as fits into the job's summary, in GitHub's Markdown.

    Text from the policy and from traces cannot be markup, a link or HTML there, or end a cell.
    """
    badge = {"pass": ":white_check_mark:", "fail": ":x:"}.get(check.verdict, ":warning:")
    head = [
        f"## {badge} vani check",
        "",
        *([] if check.damage is None else [_escaped(check.damage), ""]),
        *(
            f"- {_escaped(cut(cause_line(check, cause), _LONGEST_CELL))}"
            for cause in check.causes[:MOST_ANNOTATIONS]
        ),
        *([""] if check.causes else []),
        f"{verdict_line(check)} (fails on: {check.fail_on})",
        "",
        f"Profile {_code(check.profile.path)}"
        + ("" if check.policy is None else f", policy {_code(check.policy.path)}")
        + "".join(f", baseline {_code(baseline.path)}" for baseline in check.baselines[:10])
        + ("" if check.tuned is None else f", tuned {_code(check.tuned.path)}"),
        "",
    ]
    if not check.judgements:
        return "\n".join(head)
    head += [
        "| | level | check | of | value | allowed | baseline | change | found |",
        "| --- | --- | --- | --- | ---: | --- | ---: | ---: | --- |",
    ]
    size = sum(len(line.encode()) + 1 for line in head)
    rows: list[str] = []
    for judgement in check.judgements:
        row = _row(judgement)
        size += len(row.encode()) + 1
        if size > MOST_SUMMARY_BYTES - _ROOM_AT_THE_END:
            break
        rows.append(row)
    tail = []
    left = check.judgements[len(rows) :]
    if left:
        counts = Counter(_STATUSES[judgement.status] for judgement in left)
        by_status = counted({name: counts[name] for name in _STATUSES.values()})
        tail = ["", f"{len(left)} rows are left out ({by_status}): the summary of a step is limited to 1 MiB."]
    return "\n".join([*head, *rows, *tail]) + "\n"


def _row(judgement: Judgement) -> str:
    text = judgement.message
    if judgement.status == "fail" and judgement.todo:
        text += f" → {judgement.todo}"
    if judgement.excepted is not None:
        text += f" (until {judgement.excepted.until}: {judgement.excepted.reason})"
    cells = [
        _STATUSES[judgement.status],
        judgement.level,
        _code(judgement.check),
        _code(judgement.target or judgement.attribute or ""),
        _code("" if judgement.value is None else number(judgement.value)),
        _code(judgement.limit or ""),
        _code("" if judgement.baseline is None else number(judgement.baseline)),
        "" if judgement.change is None else _escaped(f"{judgement.change:+.1%}"),
        _escaped(cut(text, _LONGEST_CELL)),
    ]
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Text that Markdown shows unchanged, also in a table."""
    text = re.sub(r"([\\`*_{}\[\]<>#|~&!@:$])", r"\\\1", one_line(text))
    # GitHub turns these into links without any markup.
    return re.sub(r"(?i)\b(www)\.", r"\1\\.", text)


def _code(text: str) -> str:
    """Text in a code font. Backticks cannot be used: within them no escape keeps a backslash before a bar."""
    return f"<code>{_escaped(cut(text, _LONGEST_CELL))}</code>" if text else ""
