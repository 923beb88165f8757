"""The output of `python -m tests.catalogue`."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from tests.catalogue.judged import Finding, Judged, Pathology, Tally, each_program_once, tally
from tests.catalogue.labels import Labels
from vani.advisors.catalogue import rules

__all__ = ["as_json", "as_text", "hand_made_cases"]

CASES = Path(__file__).resolve().parents[2] / "tests" / "advisors" / "cases"

_FIRING = ("fired", "times", "first")
_TALLY = ("right", "wrong", "neither", "precision", "found", "of", "recall")


def as_text(labels: Labels, judged: Judged, counters: Path) -> str:
    """All tables; `counters` is the folder of labelled Darshan logs, which is named if it exists."""
    return "\n".join(
        [
            *_head(labels, judged),
            *_total(labels, judged),
            *_by_rule(judged),
            *_by_kind(labels, judged),
            *_never(labels, judged),
            *_first(judged),
            *_missed(labels, judged),
            *_wrong(judged),
            *_counters(counters),
        ]
    )


def as_json(labels: Labels, judged: Judged) -> dict[str, Any]:
    """Every finding and every pathology, and the figures of the tables."""
    families = {rule.id: rule.family for rule in rules()}
    return {
        "traces": judged.traces,
        "refused": judged.refused,
        "unlabelled": judged.unlabelled,
        "unexpected": judged.unexpected,
        "total": _figures(tally(judged.findings, judged.pathologies)),
        "each_program_once": dict(
            zip(("precision", "recall"), each_program_once(labels, judged), strict=True)
        ),
        "machines": {
            name: _figures(tally(findings, pathologies))
            for name, findings, pathologies in _by_machine(judged)
        },
        "rules": {
            rule.id: {
                "family": families[rule.id],
                "hand_made_cases": hand_made_cases(rule.id),
                **dict(zip(_FIRING, _firing(judged, rule.id), strict=True)),
                **_figures(_of_rules(judged, {rule.id})),
            }
            for rule in rules()
            if rule.id not in labels.verdicts
        },
        "families": {
            family: _figures(_of_rules(judged, {id_ for id_, of in families.items() if of == family}))
            for family in sorted(set(families.values()))
        },
        "kinds": {
            name: _figures(tally((), [one for one in judged.pathologies if one.kind == name]))
            for name in labels.kinds
        },
        "findings": [asdict(one) for one in judged.findings],
        "pathologies": [asdict(one) for one in judged.pathologies],
    }


def hand_made_cases(rule: str) -> int | None:
    """Number of the tests' cases in which the rule recommends something; None without the tests."""
    place = CASES / f"{rule}.yaml"
    if not place.is_file():
        return None
    cases = yaml.safe_load(place.read_text(encoding="utf-8"))
    return sum("nothing" not in case["expect"] for name, case in cases.items() if name != "rule")


def _figures(of: Tally) -> dict[str, Any]:
    return {**asdict(of), "precision": of.precision, "recall": of.recall}


def _of_rules(judged: Judged, ids: set[str]) -> Tally:
    """Findings of these rules, and the pathologies they could have found."""
    pathologies = [
        Pathology(
            one.kind, one.trace, one.machine, one.rules, tuple(id_ for id_ in one.found_by if id_ in ids)
        )
        for one in judged.pathologies
        if ids.intersection(one.rules)
    ]
    return tally([one for one in judged.findings if one.rule in ids], pathologies)


def _by_machine(judged: Judged) -> Iterator[tuple[str, list[Finding], list[Pathology]]]:
    for name in judged.machines:
        yield (
            name,
            [one for one in judged.findings if one.machine == name],
            [one for one in judged.pathologies if one.machine == name],
        )


def _head(labels: Labels, judged: Judged) -> Iterator[str]:
    yield f"{len(judged.traces)} traces, each as on {' and on '.join(judged.machines)}"
    if judged.refused:
        yield f"refused, as they should be: {', '.join(judged.refused)}"
    if judged.unlabelled:
        yield f"without labels, left out: {', '.join(judged.unlabelled)}"
    yield from (f"UNEXPECTED: {sentence}" for sentence in judged.unexpected)
    absent = sorted(labels.by_trace.keys() - {*judged.traces, *judged.refused})
    if absent and not judged.unexpected:
        yield f"labelled, but not there: {', '.join(absent)}"


def _total(labels: Labels, judged: Judged) -> Iterator[str]:
    rows = [
        (name, *_cells(tally(findings, pathologies))) for name, findings, pathologies in _by_machine(judged)
    ]
    rows.append(("all", *_cells(tally(judged.findings, judged.pathologies))))
    precision, recall = each_program_once(labels, judged)
    rows.append(("all, each program once", "", "", "", _percent(precision), "", "", _percent(recall)))
    rows += [
        (
            f"medium and high: {name}",
            *_cells(tally([one for one in findings if one.severity in ("medium", "high")], ()))[:4],
        )
        for name, findings, _ in _by_machine(judged)
    ]
    yield from _table("Findings (rule, trace, machine) and pathologies", ("", *_TALLY), rows)


def _by_rule(judged: Judged) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        (f"{rule.id} {rule.name}", *map(str, counts), *_cells(_of_rules(judged, {rule.id})))
        for rule in rules()
        if (counts := _firing(judged, rule.id))[0]
    ]
    title = "By rule (fired: traces and machines; times: all its recommendations; first: as first advice)"
    yield from _table(title, ("", *_FIRING, *_TALLY), rows)
    families: dict[str, set[str]] = {}
    for rule in rules():
        families.setdefault(rule.family, set()).add(rule.id)
    rows = [
        (family, *_cells(_of_rules(judged, ids)))
        for family, ids in sorted(families.items())
        if ids & {one.rule for one in judged.findings}
    ]
    yield from _table("By family", ("", *_TALLY), rows)


def _firing(judged: Judged, rule: str) -> tuple[int, int, int]:
    """Number of traces and machines for which it recommends something, of recommendations, and of first places."""
    own = [one for one in judged.findings if one.rule == rule]
    return len(own), sum(one.recommendations for one in own), sum(one.first for one in own)


def _by_kind(labels: Labels, judged: Judged) -> Iterator[str]:
    rows = []
    for name, kind in labels.kinds.items():
        of = [one for one in judged.pathologies if one.kind == name]
        if of:
            named = sum(bool(one.named_by) for one in of)
            rows.append((name, *_cells(tally((), of))[4:], str(named), ", ".join(kind.rules) or "no rule"))
    title = "By kind of pathology (diagnosis: so many have a pattern that one of the rules acts on)"
    yield from _table(title, ("", *_TALLY[4:], "diagnosis", "rules"), rows)


def _never(labels: Labels, judged: Judged) -> Iterator[str]:
    fired = {one.rule for one in judged.findings} | labels.verdicts.keys()
    rows = []
    for rule in rules():
        if rule.id not in fired:
            cases = hand_made_cases(rule.id)
            told = "tests are not here" if cases is None else str(cases)
            rows.append((f"{rule.id} {rule.name}", told))
    yield from _table(
        "Never fired (and hand-made cases in tests/advisors/cases that fire it)", ("", "cases"), rows
    )


def _first(judged: Judged) -> Iterator[str]:
    for machine, findings, _ in _by_machine(judged):
        firsts = {one.trace: one for one in findings if one.first}
        rows = [
            (trace, f"{one.rule}, {one.severity}" if one else "", one.worth if one else "nothing")
            for trace in judged.traces
            for one in [firsts.get(trace)]
        ]
        count = Counter(worth for *_, worth in rows)
        told = ", ".join(f"{count[worth]} {worth}" for worth in ("right", "wrong", "neither", "nothing"))
        yield from _table(f"First advice on {machine}: {told}", ("", "", ""), rows)


def _missed(labels: Labels, judged: Judged) -> Iterator[str]:
    rows = []
    for kind in dict.fromkeys(one.kind for one in judged.pathologies):
        missed: dict[str, list[str]] = {}
        for one in judged.pathologies:
            if one.kind == kind and not one.found_by:
                missed.setdefault(one.machine, []).append(one.trace)
        rows += [
            (
                f"{kind} ({', '.join(labels.kinds[kind].rules) or 'no rule'})",
                machine,
                str(len(traces)),
                " ".join(traces),
            )
            for machine, traces in missed.items()
        ]
    yield from _table("Missed pathologies", ("", "", "", ""), _joined(rows))


def _wrong(judged: Judged) -> Iterator[str]:
    wrong: dict[tuple[str, str], list[str]] = {}
    for one in judged.findings:
        if one.worth == "wrong":
            wrong.setdefault((one.rule, one.machine), []).append(one.trace)
    order = Counter(one.rule for one in judged.findings if one.worth == "wrong")
    rows = [
        (rule, machine, str(len(traces)), " ".join(traces))
        for (rule, machine), traces in sorted(
            wrong.items(), key=lambda item: (-order[item[0][0]], item[0][0])
        )
    ]
    yield from _table("Wrong recommendations", ("", "", "", ""), _joined(rows))


def _joined(rows: Iterable[tuple[str, str, str, str]]) -> list[tuple[str, ...]]:
    """Merge rows that differ only in the machine."""
    joined: dict[tuple[str, str, str], list[str]] = {}
    for name, machine, count, traces in rows:
        joined.setdefault((name, count, traces), []).append(machine)
    return [
        (name, " and ".join(machines), count, traces) for (name, count, traces), machines in joined.items()
    ]


def _counters(folder: Path) -> Iterator[str]:
    table = folder / "io_issues_table.csv"
    if not table.is_file():
        return
    with table.open(encoding="utf-8", newline="") as text:
        labelled = sum(1 for _ in csv.DictReader(text))
    logs = sum(1 for _ in folder.rglob("*.txt.gz"))
    yield ""
    yield (
        f"Not judged: {logs} Darshan logs of {folder.name} ({labelled} labelled runs). They hold counters, no calls;"
        " once counters can be read, their labels belong here."
    )


def _cells(of: Tally) -> tuple[str, ...]:
    return (
        str(of.right),
        str(of.wrong),
        str(of.neither),
        _percent(of.precision),
        str(of.found),
        str(of.pathologies),
        _percent(of.recall),
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield title
    if not rows:
        yield "  none"
        return
    whole = [head, *rows] if any(head) else list(rows)
    widths = [max(len(row[i]) for row in whole if i < len(row)) for i in range(len(head))]
    for row in whole:
        # Words are left-aligned, numbers right-aligned; the last column of words needs no padding.
        cells = [
            cell.ljust(width) if i == 0 or not _is_number(cell, head[i]) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def _is_number(cell: str, head: str) -> bool:
    return head in (*_TALLY, *_FIRING, "cases") or cell.isdigit()
