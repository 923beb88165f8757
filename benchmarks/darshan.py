"""`python -m benchmarks.darshan`: profiles of Darshan logs compared with PyDarshan's sums and Recorder twins.

It needs `../shared/data` (darshan-logs, aiio-darshan, darshan-twins, io500-trace-ds), `../shared/traces` and
PyDarshan. Advice is for `generic-lustre`.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

import vani
from benchmarks.darshan_twins import (
    DATA,
    MOST,
    NEED_ROLES,
    SYSTEM,
    advice_kept,
    agreement,
    counted,
    logs_of,
    twins,
    with_dxt,
)
from tests.traces.darshan_month import generate_month
from vani.readers.darshan.counters import counts_of
from vani.readers.darshan.log import open_log
from vani.readers.darshan.reader import DarshanReader
from vani.readers.darshan.records import MODULES, read_records
from vani.readers.darshan.totals import read_totals

LABELLED = DATA / "io500-trace-ds"
STREAMS = ("<STDIN>", "<STDOUT>", "<STDERR>")
PAIRS = {
    "ior": ("66186370", "66184525"),
    "h5bench": ("66082102", "66089597"),
    "write_3d_nc4": ("66168155", "66168349"),
}
"""Jobs in AIIO's logs before and after tuning."""
JOINS = ("POS002", "POS009", "MIO001")
"""Rules that merge small requests, which then also cross fewer stripe boundaries."""
OF_LABEL = {"small-io": JOINS, "misaligned-io": (*JOINS, "LUS001"), "random-access": ("POS005",)}
"""Rules by label; at least one of them must make a recommendation."""
Row = Sequence[object]


def logs() -> list[Path]:
    """All logs of the shared folders."""
    folders = ("darshan-logs", "aiio-darshan", "darshan-twins")
    return sorted(path for folder in folders for path in (DATA / folder).rglob("*.darshan"))


# Sums


@dataclass
class Sums:
    """A file's totals from PyDarshan's own counters."""

    read: int = 0
    written: int = 0
    reads: int = 0
    writes: int = 0
    opens: int = 0
    ranks: set[int] = field(default_factory=set)


def sums_of(path: Path) -> tuple[int, dict[str, Sums]]:
    """Number of processes in a log, and totals of counters by file; negative values were not counted."""
    from darshan.backend import cffi_backend as backend  # noqa: PLC0415 - slow

    log = backend.log_open(str(path))
    names, ranks = backend.log_get_name_records(log), backend.log_get_job(log)["nprocs"]
    found: defaultdict[str, Sums] = defaultdict(Sums)
    for module in {"POSIX", "STDIO"} & backend.log_get_modules(log).keys():
        while (record := backend.log_get_record(log, module, dtype="dict")) is not None:
            counters = {k.partition("_")[2]: max(0, int(v)) for k, v in record["counters"].items()}
            one = found[names.get(record["id"], f"(file {record['id']} without a name)")]
            one.read += counters["BYTES_READ"]
            one.written += counters["BYTES_WRITTEN"]
            one.reads += counters["READS"]
            one.writes += counters["WRITES"]
            twice = ("FILENOS", "DUPS") if module == "POSIX" else ("FDOPENS",)
            opens = counters["OPENS"] - sum(counters.get(name, 0) for name in twice)
            one.opens += max(0, opens)
            if opens > 0 or counters["READS"] or counters["WRITES"]:
                one.ranks.update(range(ranks) if record["rank"] < 0 else [record["rank"]])
    backend.log_close(log)
    return ranks, found


def differences(path: Path) -> tuple[int, list[str]]:
    """Number of compared files in a log, and figures of the profile that differ from PyDarshan's totals."""
    ranks, own = sums_of(path)
    profile = vani.profile(path, files=None)
    wrong = (
        []
        if profile.workflow.processes == ranks
        else [f"{profile.workflow.processes} processes, not {ranks}"]
    )
    total, apart = profile.workflow.io, profile.excluded.io
    for name, mine, theirs in (
        ("bytes read", (total.bytes.read or 0) + (apart.bytes.read or 0), sum(s.read for s in own.values())),
        (
            "bytes written",
            (total.bytes.written or 0) + (apart.bytes.written or 0),
            sum(s.written for s in own.values()),
        ),
        ("reads", total.ops.read + apart.ops.read, sum(s.reads for s in own.values())),
        ("writes", total.ops.write + apart.ops.write, sum(s.writes for s in own.values())),
    ):
        if mine != theirs:
            wrong.append(f"{name} {mine}, not {theirs}")
    for file in profile.files:
        sums = own[file.path]
        mine = (
            file.io.bytes.read,
            file.io.bytes.written,
            file.io.ops.read,
            file.io.ops.write,
            file.opens,
            file.processes,
        )
        if mine != (sums.read, sums.written, sums.reads, sums.writes, sums.opens, len(sums.ranks)):
            wrong.append(f"{file.path}: {mine}")
    return len(profile.files), wrong


# Advice


def first_advice(job: str) -> str | None:
    """The rule of the first recommendation on an AIIO log."""
    profile = vani.profile(next((DATA / "aiio-darshan").glob(f"*_id{job}-*.darshan")))
    found = vani.advise(profile, system=SYSTEM).recommendations
    return next((one.rule for one in found if one.rule != "MAT001"), None)


def labelled() -> Iterator[tuple[Path, dict[str, bool]]]:
    """Labelled runs with their labels; names contain sizes in other units and end in the number of the repetition."""
    with (LABELLED / "io_issues_table.csv").open(encoding="utf-8") as file:
        labels = {
            _plain(row[""]): {k: v == "True" for k, v in row.items() if k} for row in csv.DictReader(file)
        }
    for path in sorted(LABELLED.rglob("*.txt.gz")):
        if _plain(path.name) in labels:
            yield path, labels[_plain(path.name)]


def _plain(name: str) -> str:
    name = re.sub(r"_?_\d*\.txt(\.gz)?$", "", name).rstrip("_")
    return name.replace("blockSize_1GB", "blockSize_1073741824").replace("MB_", "M_").replace("KB_", "K_")


def has_dxt(path: Path) -> bool:
    return DarshanReader(path)._records.calls is not None


# Tables


def main(argv: Sequence[str] | None = None) -> None:
    """Print the requested tables, by default all."""
    parts = {
        "speeds": _speeds,
        "sums": _sums,
        "twins": _twins,
        "advice": _advice,
        "tuned": _tuned,
        "labels": _labels,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks.darshan", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="tables; all by default")
    asked = parser.parse_args(argv).parts or list(parts)
    for part in asked:
        parts[part]()


def _table(title: str, head: Row, rows: Sequence[Row]) -> None:
    text = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*text, strict=True)]
    print(f"\n{title}\n")
    for row in text:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def pydarshan_reads(path: Path) -> None:
    """Read all records of the modules that Vani reads, like PyDarshan's own reports."""
    from darshan.backend import cffi_backend as backend  # noqa: PLC0415 - slow

    log = backend.log_open(str(path))
    backend.log_get_job(log)
    backend.log_get_mounts(log)
    backend.log_get_name_records(log)
    for module in backend.log_get_modules(log):
        if module in (*MODULES, "LUSTRE", "HEATMAP", "DXT_POSIX"):
            dxt = module.startswith("DXT")
            read = backend.log_get_dxt_record if dxt else backend.log_get_record
            while read(log, module, dtype="numpy") is not None:
                pass
    backend.log_close(log)


def speeds(paths: Sequence[Path]) -> list[Row]:
    """Processor time per log, the least of three: what is read, logs per second, median and maximum in ms."""
    vani.profile(paths[0])
    rows: list[Row] = []
    for name, read in (
        ("Vani: sums", read_totals),
        ("Vani: all records", lambda path: read_records(open_log(path))),
        ("Vani: records and counts", lambda path: counts_of(read_records(open_log(path)))),
        ("Vani: profile", vani.profile),
        ("PyDarshan: all records", pydarshan_reads),
    ):
        took = []
        read(paths[0])
        for path in paths:
            times = []
            for _ in range(3):
                begin = process_time()
                read(path)
                times.append(process_time() - begin)
            took.append(min(times))
        rows.append((name, f"{len(took) / sum(took):,.0f}", f"{1000 * median(took):.2f}", f"{1000 * max(took):.0f}"))
    return rows


def _speeds() -> None:
    with TemporaryDirectory() as folder:
        month = Path(folder) / "month"
        generate_month(month, 500, seed=1, damaged=0, copied=0)
        for title, paths in (("the shared logs", logs()), ("a generated month", sorted(month.rglob("*.darshan")))):
            _table(
                f"Processor time of {len(paths)} logs: {title}",
                ("", "logs per second", "median ms", "longest ms"),
                speeds(paths),
            )


def _sums() -> None:
    files, wrong, count = 0, [], 0
    for path in logs():
        compared, differ = differences(path)
        files += compared
        count += 1
        wrong += [f"{path.name}: {one}" for one in differ]
    _table(
        "Totals and files against PyDarshan's sums",
        ("logs", "files", "differences"),
        [(count, files, len(wrong))],
    )
    print("".join(f"    {one}\n" for one in wrong), end="")


def _twins() -> None:
    names = twins()
    counts, differ = agreement(names, counted)
    dxt, _ = agreement(names, with_dxt)
    _table(
        f"Files of {len(names)} twins: share that agrees with Recorder",
        ("attribute", "wanted", "counters", "with DXT"),
        [(name, f"{MOST[name]:.0%}", f"{counts[name]:.2%}", f"{dxt[name]:.2%}") for name in MOST],
    )
    for (name, attribute), number in sorted(Counter((n, a) for n, a, _ in differ).items()):
        print(
            f"    {name}: {attribute} of {number}, as {next(w for n, a, w in differ if (n, a) == (name, attribute))}"
        )


def _advice() -> None:
    names = twins()
    by_counts, by_dxt = advice_kept(names, counted), advice_kept(names, with_dxt)
    of_dxt = [name for name in names if any(has_dxt(path) for path in logs_of(name))]
    alone = advice_kept(of_dxt, with_dxt)
    rules = sorted(by_counts.recorder | by_counts.more | by_dxt.more)
    _table(
        "Advice on twins by rule",
        ("rule", "Recorder", "counters keep", "and more", "all logs with DXT read", "and more", "needs roles"),
        [
            (r, by_counts.recorder[r], by_counts.kept[r], by_counts.more[r], by_dxt.kept[r], by_dxt.more[r],
             "yes" if r in NEED_ROLES else "")
            for r in rules
        ],
    )  # fmt: skip
    kept = by_counts.kept.total()
    _table(
        "Advice on twins",
        ("", "wanted", "found"),
        [
            ("counters keep", "55 %", f"{by_counts.share():.1%}"),
            ("without rules that need roles", "75 %", f"{by_counts.share(NEED_ROLES):.1%}"),
            (f"DXT keeps, of {len(of_dxt)} twins that have it", "70 %", f"{alone.share():.1%}"),
            ("the same values of what counters keep", "97 %", f"{by_counts.alike / max(1, kept):.1%}"),
            (
                "of these without values that depend on removal",
                "",
                f"{by_counts.left_out / max(1, kept):.1%}",
            ),
        ],
    )


def _tuned() -> None:
    rows = [(name, first_advice(before), first_advice(after)) for name, (before, after) in PAIRS.items()]
    _table("First advice on runs before and after they were tuned", ("run", "before", "after"), rows)


def _labels() -> None:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    runs = list(labelled())
    for path, labels in runs:
        found_ = vani.advise(vani.profile(path), system=SYSTEM).recommendations
        # A gain below 1 % is not an issue, since all runs write a few lines of results.
        rules = {one.rule for one in found_ if one.severity != "info"}
        for label, of in OF_LABEL.items():
            found[label][f"{labels[label]} {not rules.isdisjoint(of)}"] += 1
    rows = [
        (label, n["True True"], n["True False"], n["False True"], n["False False"])
        for label, n in found.items()
    ]
    unlabelled = len(list(LABELLED.rglob("*.txt.gz"))) - len(runs)
    title = f"Labels of {len(runs)} runs ({unlabelled} others have none)"
    _table(title, ("label", "found", "missed", "false", "rightly silent"), rows)


if __name__ == "__main__":
    main()
