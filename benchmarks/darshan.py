"""`python -m benchmarks.darshan`: profiles of Darshan logs compared with PyDarshan's sums and Recorder twins.

Twins are programs that ran once under Recorder and once under Darshan: what agrees about files, and the advice on
either. It needs `../shared/data` (darshan-logs, aiio-darshan, darshan-twins, io500-trace-ds), `../shared/traces` and
PyDarshan. Advice is for `generic-lustre`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import vani
from benchmarks.data import DATA, SHARED, aiio, print_parts, print_table, rows_of, seconds
from benchmarks.gains import AIIO
from tests.traces.darshan_month import generate_month
from vani.cli.counted import profile_of_counts
from vani.readers.darshan.counters import counts_of
from vani.readers.darshan.log import open_log
from vani.readers.darshan.reader import DarshanReader
from vani.readers.darshan.records import MODULES, read_records
from vani.readers.darshan.totals import read_totals
from vani.schema.advice import Recommendation
from vani.schema.profile import Profile

TWINS = DATA / "darshan-twins"
SYSTEM = "generic-lustre"
LEAST_AGREEMENT = {
    "processes": 1.0, "access": 1.0, "opens": 0.98, "written": 0.99, "reads": 0.99, "writes": 0.99, "readers": 0.99,
    "writers": 0.99, "size": 0.96,
}  # fmt: skip
"""Minimum share of files that must agree, by attribute."""
NEED_ROLES = frozenset(["LUS008", "BB001", "BB002", "BB003", "BB004", "FWD002", "PFL002", "WFL001", "WFL002", "CKP001"])
"""Rules that need the purpose of a file, which counts do not show for written files."""


def twins() -> list[str]:
    """Names of the Recorder traces that have a twin."""
    names = [row["trace"] for row in rows_of(TWINS / "comparison.csv") if "/" not in row["trace"]]
    return [name for name in names if (SHARED / "traces" / name).is_dir()]


def logs_of(name: str) -> list[Path]:
    """Logs of a twin: one in total, or one per step."""
    return [*TWINS.glob(f"{name}.darshan"), *sorted(TWINS.glob(f"{name}.[0-9]*.darshan"))]


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


_OF_FILE = {name: attrgetter(name) for name in ("processes", "access", "opens", "readers", "writers", "size")} | {
    "written": attrgetter("io.bytes.written"), "reads": attrgetter("io.ops.read"), "writes": attrgetter("io.ops.write"),
}  # fmt: skip


def agreement(
    names: Sequence[str], of: Callable[[str], Profile]
) -> tuple[dict[str, float], list[tuple[str, str, str]]]:
    """By attribute, the share of files that agree; then a list of (twin, attribute, difference)."""
    same, compared, differ = Counter[str](), Counter[str](), list[tuple[str, str, str]]()
    for name in names:
        mine, theirs = ({file.path: file for file in one.files} for one in (of(name), recorded(name)))
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

LABELLED = DATA / "io500-trace-ds"
JOINS = ("POS002", "POS009", "MIO001")
"""Rules that merge small requests, which then also cross fewer stripe boundaries."""
OF_LABEL = {"small-io": JOINS, "misaligned-io": (*JOINS, "LUS001"), "random-access": ("POS005",)}
"""Rules by label; at least one of them must make a recommendation."""


def logs() -> list[Path]:
    """All logs of the shared folders."""
    folders = ("darshan-logs", "aiio-darshan", "darshan-twins")
    return sorted(path for folder in folders for path in (DATA / folder).rglob("*.darshan"))


Sums = tuple[int, int, int, int, int, int]
"""Bytes read and written, reads, writes, opens, and ranks of a file."""


def sums_of(path: Path) -> tuple[int, dict[str, Sums]]:
    """Number of processes in a log, and totals of PyDarshan's counters by file; negative values were not counted."""
    from darshan.backend import cffi_backend as backend  # noqa: PLC0415 - slow

    log = backend.log_open(str(path))
    names, processes = backend.log_get_name_records(log), backend.log_get_job(log)["nprocs"]
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    ranks: defaultdict[str, set[int]] = defaultdict(set)
    for module in {"POSIX", "STDIO"} & backend.log_get_modules(log).keys():
        while (record := backend.log_get_record(log, module, dtype="dict")) is not None:
            counters = {k.partition("_")[2]: max(0, int(v)) for k, v in record["counters"].items()}
            name = names.get(record["id"], f"(file {record['id']} without a name)")
            twice = ("FILENOS", "DUPS") if module == "POSIX" else ("FDOPENS",)
            counters["OPENS"] = max(0, counters["OPENS"] - sum(counters.get(other, 0) for other in twice))
            sums[name].update({key: counters[key] for key in _COUNTERS})
            if counters["OPENS"] or counters["READS"] or counters["WRITES"]:
                ranks[name].update(range(processes) if record["rank"] < 0 else [record["rank"]])
    backend.log_close(log)
    return processes, {name: (*(own[key] for key in _COUNTERS), len(ranks[name])) for name, own in sums.items()}


_COUNTERS = ("BYTES_READ", "BYTES_WRITTEN", "READS", "WRITES", "OPENS")


def differences(path: Path) -> tuple[int, list[str]]:
    """Number of compared files in a log, and figures of the profile that differ from PyDarshan's totals."""
    processes, own = sums_of(path)
    profile = vani.profile(path, files=None)
    wrong = []
    if profile.workflow.processes != processes:
        wrong.append(f"{profile.workflow.processes} processes, not {processes}")
    every = [_moved(io) for io in (profile.workflow.io, profile.excluded.io)]
    for name, mine, theirs in zip(
        ("bytes read", "bytes written", "reads", "writes"),
        (sum(value or 0 for value in figures) for figures in zip(*every, strict=True)),
        (sum(figures) for figures in zip(*own.values(), strict=True)),
        strict=False,
    ):  # fmt: skip
        if mine != theirs:
            wrong.append(f"{name} {mine}, not {theirs}")
    for file in profile.files:
        mine = (*_moved(file.io), file.opens, file.processes)
        if mine != own.get(file.path, (0,) * 6):
            wrong.append(f"{file.path}: {mine}")
    return len(profile.files), wrong


def _moved(io: Any) -> tuple[int | None, ...]:
    """Bytes read and written, reads and writes."""
    return io.bytes.read, io.bytes.written, io.ops.read, io.ops.write


def first_advice(job: str) -> str | None:
    """The rule of the first recommendation on an AIIO log."""
    found = vani.advise(aiio(job), system=SYSTEM).recommendations
    return next((one.rule for one in found if one.rule != "MAT001"), None)


def labelled() -> Iterator[tuple[Path, dict[str, bool]]]:
    """Labelled runs with their labels; names contain sizes in other units and end in the number of the repetition."""
    rows = rows_of(LABELLED / "io_issues_table.csv")
    labels = {_plain(row[""]): {k: v == "True" for k, v in row.items() if k} for row in rows}
    for path in sorted(LABELLED.rglob("*.txt.gz")):
        if _plain(path.name) in labels:
            yield path, labels[_plain(path.name)]


def _plain(name: str) -> str:
    name = re.sub(r"_?_\d*\.txt(\.gz)?$", "", name).rstrip("_")
    return name.replace("blockSize_1GB", "blockSize_1073741824").replace("MB_", "M_").replace("KB_", "K_")


def pydarshan_reads(path: Path) -> None:
    """Read all records of the modules that Vani reads, like PyDarshan's own reports."""
    from darshan.backend import cffi_backend as backend  # noqa: PLC0415 - slow

    log = backend.log_open(str(path))
    backend.log_get_job(log)
    backend.log_get_mounts(log)
    backend.log_get_name_records(log)
    for module in backend.log_get_modules(log):
        if module in (*MODULES, "LUSTRE", "HEATMAP", "DXT_POSIX"):
            read = backend.log_get_dxt_record if module.startswith("DXT") else backend.log_get_record
            while read(log, module, dtype="numpy") is not None:
                pass
    backend.log_close(log)


def speeds(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """Processor time per log, the least of three: what is read, logs per second, median and maximum in ms."""
    vani.profile(paths[0])
    rows: list[tuple[str, ...]] = []
    for name, read in (
        ("Vani: sums", read_totals),
        ("Vani: all records", lambda path: read_records(open_log(path))),
        ("Vani: records and counts", lambda path: counts_of(read_records(open_log(path)))),
        ("Vani: profile", vani.profile),
        ("PyDarshan: all records", pydarshan_reads),
    ):
        read(paths[0])
        took = [min(seconds(partial(read, path), 3)) for path in paths]
        rows.append((name, f"{len(took) / sum(took):,.0f}", f"{1000 * median(took):.2f}", f"{1000 * max(took):.0f}"))
    return rows


def _speeds() -> None:
    with TemporaryDirectory() as folder:
        month = Path(folder) / "month"
        generate_month(month, 500, seed=1, damaged=0, copied=0)
        for title, paths in (("the shared logs", logs()), ("a generated month", sorted(month.rglob("*.darshan")))):
            name = f"Processor time of {len(paths)} logs: {title}"
            print_table(name, ("", "logs per second", "median ms", "longest ms"), speeds(paths))


def _sums() -> None:
    compared = {path: differences(path) for path in logs()}
    wrong = [f"{path.name}: {one}" for path, (_, differ) in compared.items() for one in differ]
    files = sum(files for files, _ in compared.values())
    head = ("logs", "files", "differences")
    print_table("Totals and files against PyDarshan's sums", head, [(len(compared), files, len(wrong))])
    print("".join(f"    {one}\n" for one in wrong), end="")


def _twins() -> None:
    names = twins()
    counts, differ = agreement(names, counted)
    dxt, _ = agreement(names, with_dxt)
    title = f"Files of {len(names)} twins: share that agrees with Recorder"
    rows = [(of, f"{least:.0%}", f"{counts[of]:.2%}", f"{dxt[of]:.2%}") for of, least in LEAST_AGREEMENT.items()]
    print_table(title, ("attribute", "wanted", "counters", "with DXT"), rows)
    first = {(name, attribute): what for name, attribute, what in reversed(differ)}
    for (name, attribute), number in sorted(Counter((n, a) for n, a, _ in differ).items()):
        print(f"    {name}: {attribute} of {number}, as {first[name, attribute]}")


def _advice() -> None:
    names = twins()
    by_counts, by_dxt = advice_kept(names, counted), advice_kept(names, with_dxt)
    of_dxt = [name for name in names if any(DarshanReader(path)._records.calls is not None for path in logs_of(name))]
    alone = advice_kept(of_dxt, with_dxt)
    rows = [
        (rule, by_counts.recorder[rule], by_counts.kept[rule], by_counts.more[rule], by_dxt.kept[rule],
         by_dxt.more[rule], "yes" if rule in NEED_ROLES else "")
        for rule in sorted(by_counts.recorder | by_counts.more | by_dxt.more)
    ]  # fmt: skip
    head = ("rule", "Recorder", "counters keep", "and more", "all logs with DXT read", "and more", "needs roles")
    print_table("Advice on twins by rule", head, rows)
    kept = max(1, by_counts.kept.total())
    print_table("Advice on twins", ("", "wanted", "found"), [
        ("counters keep", "55 %", f"{by_counts.share():.1%}"),
        ("without rules that need roles", "75 %", f"{by_counts.share(NEED_ROLES):.1%}"),
        (f"DXT keeps, of {len(of_dxt)} twins that have it", "70 %", f"{alone.share():.1%}"),
        ("the same values of what counters keep", "97 %", f"{by_counts.alike / kept:.1%}"),
        ("of these without values that depend on removal", "", f"{by_counts.left_out / kept:.1%}"),
    ])  # fmt: skip


def _tuned() -> None:
    rows = [(name, first_advice(before), first_advice(after)) for name, (before, after, _) in AIIO.items()]
    print_table("First advice on runs before and after they were tuned", ("run", "before", "after"), rows)


def _labels() -> None:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    runs = list(labelled())
    for path, labels in runs:
        found_ = vani.advise(vani.profile(path), system=SYSTEM).recommendations
        # A gain below 1 % is not an issue, since all runs write a few lines of results.
        rules = {one.rule for one in found_ if one.severity != "info"}
        for label, of in OF_LABEL.items():
            found[label][f"{labels[label]} {not rules.isdisjoint(of)}"] += 1
    outcomes = ("True True", "True False", "False True", "False False")
    rows = [(label, *(numbers[one] for one in outcomes)) for label, numbers in found.items()]
    unlabelled = len(list(LABELLED.rglob("*.txt.gz"))) - len(runs)
    title = f"Labels of {len(runs)} runs ({unlabelled} others have none)"
    print_table(title, ("label", "found", "missed", "false", "rightly silent"), rows)


PARTS = {"speeds": _speeds, "sums": _sums, "twins": _twins, "advice": _advice, "tuned": _tuned, "labels": _labels}


if __name__ == "__main__":
    print_parts(PARTS)
