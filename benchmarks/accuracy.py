"""Compares Vani's numbers with independent sources, and writes the tables of docs/accuracy.md.

    python -m benchmarks.accuracy

The page's text is written by hand; each table stands between `<!-- NAME -->` and `<!-- end -->`. The traces and the
labelled runs are in `shared` next to the repository.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import vani
from benchmarks import diagnosis, first_advice, gains
from benchmarks.data import ROOT, SHARED, markdown, rows_of
from tests.catalogue.__main__ import FOLDERS
from tests.catalogue.judged import judge_traces, tally
from tests.catalogue.labels import LABELS, read_labels
from vani.schema.profile import Profile
from vani.systems import load_system
from vani.units import counted

PAGE = ROOT / "docs" / "accuracy.md"
NOT_IN_THE_TWIN = (
    "/tmp/", "/etc/", "/usr/", "/opt/", "/proc/", "/sys/", "/var/", "/dev/", "/home/", "/root/",
)  # fmt: skip

_BRACKETS = re.compile(r" *(\([^()]*\)|\[[^]]*\])")


def number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def in_the_job(profile: Profile) -> tuple[int, int | None, int]:
    """Bytes read, past the end and written, of the files that Darshan recorded."""
    files = [f for f in profile.files if not f.path.startswith(NOT_IN_THE_TWIN)]
    past = [f.io.past_end.read for f in files if f.io.bytes.read]
    known = [p for p in past if p is not None]
    read = sum(f.io.bytes.read or 0 for f in files)
    written = sum(f.io.bytes.written or 0 for f in files)
    return read, sum(known) if known or not past else None, written


def twins(store: Path) -> list[str]:
    """The table of the runs that Darshan recorded, too."""
    comparison = rows_of(SHARED / "data" / "darshan-twins" / "comparison.csv")
    rows = [row for row in comparison if "/" not in row["trace"]]
    lines = []
    exact = equal = 0
    for row in rows:
        read, past, written = in_the_job(vani.profile(SHARED / "traces" / row["trace"], store=store, files=None))
        moved = read - (past or 0)
        seen, put = int(row["darshan_bytes_read"]), int(row["darshan_bytes_written"])
        exact += moved == seen
        if (moved, written) == (seen, put):
            equal += 1
            continue
        share = f" ({(moved - seen) / seen:+.2%})" if seen and moved != seen else ""
        lines.append((
            row["trace"], number(read), number(past), number(seen), f"{moved - seen:+,}{share}",
            number(written), number(put), causes(row["explanation"]),
        ))  # fmt: skip
    head = ("run", "read: requested", "past end", "Darshan", "difference", "written: requested", "Darshan", "causes")
    summary = (
        f"Of {len(rows)} runs, `bytes - past_end` is exactly what Darshan saw read in {exact}. "
        f"Read and written bytes are equal in {equal}. The others:"
    )
    return [summary, "", *markdown(head, lines, last=1)]


def causes(explanation: str) -> str:
    """Why the bytes of the two tracers differ: the causes in an explanation, without counts and details."""
    parts = [part for part in explanation.replace("|", "/").split("]; ") if "bytes" in part.rpartition("[")[2]]
    named = [re.split("[:;]", _BRACKETS.sub("", part.rstrip("]") + "]"))[0] for part in parts]
    return "; ".join(dict.fromkeys(named)).replace("asks for", "requests")


def cm1_rows(p: Profile) -> list[tuple[str, ...]]:
    """CM1's column in the paper's tables next to ours: table, attribute, Vani, paper, why they differ."""
    io, app, files, dataset = p.workflow.io, p.apps[0], p.workflow.files, p.dataset
    balance, busy, ops, posix = app.balance, io.busy_s, io.ops, p.interfaces[0]
    reads = [f for f in p.phases if f.io.ops.read]
    largest = max(p.files, key=lambda f: f.size or 0)
    in_io, slowest_s = io.time_s.total, balance.slowest_io_time_s
    read, written = (f"{moved:,} B ({moved / 1e9:.3g} GB)" for moved in (io.bytes.read, io.bytes.written))
    rounded = "the same within rounding"
    return [
        ("II", "nodes, cores, GPUs, directories, job time", "null", "32, 40, 4, /p/gpfs1, 2 h",
         "not in a trace; from `vani collect` and `--system lassen`"),
        ("I, III", "run time", f"{p.workflow.runtime_s:.1f} s", "664 s",
         "from the start of the first clock to the end of the last call"),
        ("III, IV", "processes", f"{p.workflow.processes:,}", "1,280", "the same"),
        ("III", "files: one process / shared", f"{files.file_per_process} / {files.shared}", "737 / 37",
         "the same; /dev/null is excluded"),
        ("I, III", "read", read, "20 GB",
         f"{rounded}: 20.0 GiB requested, as every rank reads a small file through a 16 MiB buffer. At most "
         f"{io.footprint.read or 0:,} B are distinct"),
        ("I, III", "written", written, "1 GB", rounded),
        ("III, X", "operations, data / metadata, by number",
         f"{io.ops_share.data:.0%} / {io.ops_share.metadata:.0%}", "30 % / 70 %",
         f"{ops.read + ops.write:,} reads and writes, {ops.metadata:,} other calls on data-set files. The paper's text "
         "has 87.5 %"),
        ("text", "share of I/O time in metadata", f"{io.time_share.metadata:.1%}", "87.5 %",
         "of the sum over processes; of the time in which any process is busy it is "
         f"{busy.metadata / busy.total:.0%}. The paper does not define its denominator"),
        ("I", "I/O share of the run",
         f"{in_io / app.processes / app.runtime_s:.3%} mean of processes, {slowest_s / app.runtime_s:.2%} slowest "
         f"process, {busy.total / app.runtime_s:.2%} any process", "11 %",
         f"11 % of 664 s are the 73 s of table X. Ours: {in_io:.1f} s over all 1,280 processes, {slowest_s:.2f} s in "
         "the slowest"),
        ("X", "I/O time", f"{in_io:.1f} s summed, {busy.total:.2f} s union", "73 s", "as above"),
        ("text", "who writes", f"rank {balance.busiest_rank} alone ({balance.writing_processes} process)",
         "rank 0 alone", "the same"),
        ("IV", "interface", app.interface or "null", "POSIX", "the same"),
        ("V", "first phase: read", f"{sum(f.io.bytes.read or 0 for f in reads):,} B in {counted(len(reads), 'phase')}",
         "20 GB", f"no pause of all processes is longer than the gap of {app.phase_gap_s:.2f} s"),
        ("V", "first phase: length", " and ".join(f"{f.runtime_s:.3f} s" for f in reads), "0.3 s (text: 3 s)",
         "the phase includes the first output, and one rank's clock is 2 s early. The reads keep at least one process "
         f"busy for {busy.read:.3f} s"),
        ("V", "frequency", f"{reads[-1].frequency.ops_per_process:.2f} operations per process", "1 op", "the same"),
        ("text", "read rate", _or_null(io.bandwidth.read and f"{io.bandwidth.read / 1e9:,.0f} GB/s"), "64 GB/s",
         "requests over the time of reading exceed the rate of memory. 20 GB in 0.3 s are 64 GB/s"),
        ("text", "write rate", f"{(io.bandwidth.write or 0) / 1e9:.2f} GB/s", "64 MB/s",
         f"ours divides by the time in write calls ({io.time_s.write:.2f} s); the paper's must include more, such as "
         "open and close"),
        ("VI", "granularity, data and small", f"{posix.granularity.data:,} B, {posix.granularity.metadata:,} B",
         "4 KB - 16 MB",
         "writes by size: 375 below 1 KiB, 22 of 1-4 KiB, 1,092 of 4-16 KiB, 722 of 16-64 KiB, 55 of 16 MiB"),
        ("VI", "access pattern", _or_null(posix.access_pattern), "Seq", "consecutive is the strict form of it"),
        ("VI", "data representation", "null", "3D", "needs a library that describes its data"),
        ("VI", "data distribution", _or_null(dataset.distribution and dataset.distribution.name), "normal",
         "a trace has no values; `vani collect --dataset` samples them"),
        ("VII", "middleware: granularity, access pattern",
         "null, null" if p.middleware.granularity is None else f"{p.middleware.granularity.data:,} B",
         "4 KB - 16 MB, Seq", "no library above POSIX is in use; the paper repeats table VI"),
        ("X", "format", ", ".join(f"{k}: {n}" for k, n in dataset.format.items()), "bin",
         "two inputs have names of text files"),
        ("X", "size of the data set", f"{dataset.size or 0:,} B in {dataset.size_distribution.known} files",
         "20.32 GB", "the paper's is the total read; ours the extent of files, without two inputs of unknown size"),
        ("X", "files", f"{dataset.files}", "774", "the same"),
        ("XI", "largest file", f"{(largest.size or 0):,} B", "0.1 GB (text: 80 MB)", rounded),
        ("XI", "its time", f"{largest.io.time_s.total:.2f} s summed, {largest.io.busy_s.total:.2f} s union", "12 s",
         "the paper does not name the file; the file with most time has "
         f"{p.files[0].io.time_s.total:.1f} s summed over its 32 processes, nearly all in open"),
        ("XI", "format attributes", _or_null(largest.format_attributes), "NA", "raw files do not describe themselves"),
    ]  # fmt: skip


def _or_null(value: object) -> str:
    return "null" if value is None else str(value)


def cm1(store: Path) -> list[str]:
    """The table of CM1."""
    rows = cm1_rows(vani.profile(SHARED / "traces-parquet" / "cm1-lassen", store=store, files=None))
    return markdown(("table", "attribute", "Vani", "paper", "why they differ"), rows, left=5)


def labelled_traces(store: Path) -> list[str]:
    """Precision and recall of the rules, and the named patterns, on the traces labelled in `tests.catalogue`."""
    labels = read_labels(LABELS)
    traces = [place for name in FOLDERS for place in sorted((SHARED / name).glob("*/"))]
    judged = judge_traces(labels, traces, [(name, load_system(name)) for name in labels.machines], store)
    rows = []
    for machine in judged.machines:
        pathologies = [one for one in judged.pathologies if one.machine == machine]
        of = tally([one for one in judged.findings if one.machine == machine], pathologies)
        named = sum(bool(one.named_by) for one in pathologies)
        rows.append((
            machine, f"{of.right} of {of.right + of.wrong} ({of.precision:.0%})",
            f"{of.found} of {of.pathologies} ({of.recall:.0%})",
            f"{named} of {of.pathologies} ({named / of.pathologies:.0%})",
        ))  # fmt: skip
    return markdown(("judged as on", "precision", "recall", "named by the diagnosis"), rows, left=4)


def main() -> None:
    """Write the page's tables."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        tables = {"twins": twins(store), "cm1": cm1(store), "rules": labelled_traces(store)}
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in (tables | gains.tables() | diagnosis.tables() | first_advice.tables()).items():
        text = with_table(text, name, lines)
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


def with_table(page: str, name: str, lines: Sequence[str]) -> str:
    """A page with new lines between a table's marks."""
    mark, end = f"<!-- {name} -->\n", "<!-- end -->"
    head, _, rest = page.partition(mark)
    return "\n".join([head + mark, *lines, "", end + rest.partition(end)[2]])


if __name__ == "__main__":
    main()
