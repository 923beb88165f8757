"""Programs that ran once under Recorder and once under Darshan: agreement about files, and the advice on either."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import vani
from vani.cli.counted import profile_of_counts
from vani.readers.darshan.log import open_log
from vani.readers.darshan.reader import DarshanReader
from vani.readers.darshan.records import read_records
from vani.schema.advice import Recommendation
from vani.schema.profile import FileEntity, Profile

SHARED = Path(__file__).resolve().parents[2] / "shared"
DATA = SHARED / "data"
TWINS = DATA / "darshan-twins"
SYSTEM = "generic-lustre"
MOST = {
    "processes": 1.0, "access": 1.0, "opens": 0.98, "written": 0.99, "reads": 0.99, "writes": 0.99, "readers": 0.99,
    "writers": 0.99, "size": 0.96,
}  # fmt: skip
"""Minimum share of files that must agree, by attribute."""
NEED_ROLES = frozenset(
    {"LUS008", "BB001", "BB002", "BB003", "BB004", "FWD002", "PFL002", "WFL001", "WFL002", "CKP001"}
)
"""Rules that need the purpose of a file, which counts do not show for written files."""


def twins() -> list[str]:
    """Names of the Recorder traces that have a twin."""
    with (TWINS / "comparison.csv").open(encoding="utf-8") as file:
        names = [row["trace"] for row in csv.DictReader(file) if "/" not in row["trace"]]
    return [name for name in names if (SHARED / "traces" / name).is_dir()]


def logs_of(name: str) -> list[Path]:
    """Logs of a twin: one in total, or one per step."""
    return [
        p for p in (TWINS / f"{name}.darshan", *sorted(TWINS.glob(f"{name}.[0-9]*.darshan"))) if p.exists()
    ]


@cache
def recorded(name: str) -> Profile:
    return vani.profile(SHARED / "traces" / name, files=None)


@cache
def with_dxt(name: str) -> Profile:
    return vani.profile(*logs_of(name), files=None)


@cache
def counted(name: str) -> Profile:
    """The profile of a twin from its counters alone, without DXT and the heat map."""
    readers = [DarshanReader(path) for path in logs_of(name)]
    for reader in readers:
        reader.__dict__["_records"] = replace(read_records(open_log(reader.path)), calls=None, hosts=(), heat=None)
    return profile_of_counts(readers, None, None, None, [])[0]


def files_of(profile: Profile) -> dict[str, FileEntity]:
    """Files by path; a name that contains numbers of the run has no twin."""
    return {file.path: file for file in profile.files}


_OF_FILE: dict[str, Callable[[FileEntity], Any]] = {
    "processes": lambda f: f.processes,
    "access": lambda f: f.access,
    "opens": lambda f: f.opens,
    "written": lambda f: f.io.bytes.written,
    "reads": lambda f: f.io.ops.read,
    "writes": lambda f: f.io.ops.write,
    "readers": lambda f: f.readers,
    "writers": lambda f: f.writers,
    "size": lambda f: f.size,
}


def agreement(
    names: Sequence[str], of: Callable[[str], Profile]
) -> tuple[dict[str, float], list[tuple[str, str, str]]]:
    """By attribute, the share of files that agree; then a list of (twin, attribute, difference)."""
    same, compared, differ = Counter[str](), Counter[str](), list[tuple[str, str, str]]()
    for name in names:
        mine, theirs = files_of(of(name)), files_of(recorded(name))
        for path in mine.keys() & theirs.keys():
            for attribute, value in _OF_FILE.items():
                ours, others = value(mine[path]), value(theirs[path])
                # Sizes of files that were not written are null.
                if attribute == "size" and (ours is None or others is None):
                    continue
                compared[attribute] += 1
                same[attribute] += ours == others
                if ours != others:
                    differ.append((name, attribute, f"{path}: {ours}, Recorder {others}"))
    return {name: same[name] / compared[name] for name in _OF_FILE if compared[name]}, differ


def recommendations_of(profile: Profile) -> dict[tuple[str, str], Recommendation]:
    """Recommendations by rule and target."""
    found = vani.advise(profile, system=SYSTEM).recommendations
    # Traces of older Recorders do not name the program.
    return {(one.rule, one.target.path or ""): one for one in found if one.rule != "MAT001"}


@dataclass
class Kept:
    """How much of the advice on Recorder's twins remains when only counts are known."""

    recorder: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    alike: int = 0
    """Remaining recommendations in which no value differs from the Recorder twin's."""
    left_out: int = 0
    """Of these, the ones with fewer values, because some depend on calls that are not counted."""
    more: Counter[str] = field(default_factory=Counter)
    """Recommendations that the Recorder twin does not get."""

    def share(self, without: frozenset[str] = frozenset()) -> float:
        told_ = sum(n for rule, n in self.recorder.items() if rule not in without)
        return sum(n for rule, n in self.kept.items() if rule not in without) / told_ if told_ else 1.0


_OF_RUN = ("bytes", "bytes_per_node", "io_time_per_process_s", "opens", "files", "apps")
"""Recommended figures that depend on the run itself, and so may differ between the separate runs of twins."""


def settings(one: Recommendation) -> dict[str, object]:
    """The settings of a recommendation."""
    return {name: value for name, value in one.recommended.items() if name not in _OF_RUN}


def advice_kept(names: Sequence[str], of: Callable[[str], Profile]) -> Kept:
    """Compare the advice on twins rule by rule and target by target."""
    found = Kept()
    for name in names:
        theirs, ours = recommendations_of(recorded(name)), recommendations_of(of(name))
        found.recorder.update(rule for rule, _ in theirs)
        found.more.update(rule for rule, _ in ours.keys() - theirs.keys())
        for key in theirs.keys() & ours.keys():
            found.kept[key[0]] += 1
            wanted, told_ = settings(theirs[key]), settings(ours[key])
            alike = all(wanted.get(name) == value for name, value in told_.items())
            found.alike += alike
            found.left_out += alike and len(told_) < len(wanted)
    return found
