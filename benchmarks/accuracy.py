"""Compares Vani's numbers with independent sources, and writes docs/accuracy.md.

    python -m benchmarks.accuracy [SHARED]

SHARED contains `traces`, `traces-parquet` and `data/darshan-twins`. By default it is `shared` next to the
repository, where the labelled runs of `benchmarks.diagnosis` are.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

import vani
from benchmarks import diagnosis, first_advice, gains
from benchmarks.data import ROOT, SHARED, rows_of
from tests.catalogue.__main__ import FOLDERS
from tests.catalogue.judged import judge_traces, tally
from tests.catalogue.labels import LABELS, read_labels
from vani.schema.profile import Profile
from vani.systems import load_system
from vani.units import counted

PAGE = ROOT / "docs" / "accuracy.md"
CM1 = Path("traces-parquet", "cm1-lassen")
NOT_IN_THE_TWIN = (
    "/tmp/", "/etc/", "/usr/", "/opt/", "/proc/", "/sys/", "/var/", "/dev/", "/home/", "/root/",
)  # fmt: skip

HEAD = """# Accuracy

Written by `python -m benchmarks.accuracy`; do not edit.

This page compares Vani with Darshan on the same programs, with the tables of the Vani paper, whose CM1 run is
available as a trace, and with labelled runs.

## Bytes requested and bytes moved

Recorder stores the size that a call requested, not the size that it returned. `past_end` is the requested part beyond
the end of the file, where the trace shows that end, so `bytes - past_end` is the best estimate of moved bytes.
Darshan counts moved bytes.

The programs ran twice, once under each tracer. Darshan recorded the job's directory only, so other files are left
out. Times are not compared.
"""

NOTES = """
Remaining differences between `bytes - past_end` and Darshan:

- **Existing inputs.** The trace does not show where such a file ends, so `past_end` is null (`?`). `vani collect`
  inside the job records the sizes in `job.yaml`.
- **Untraced writes** (`aio_write`, `pwritev`, `fprintf`, stores to mapped memory). A file that grew by them is longer
  than the trace shows. Files that were created and never visibly written therefore have an unknown end: 24 files in
  v3-medium-smallio-8r.
- **Untraced seeks** (`fseeko64` in CFITSIO). The next read is taken to follow the previous one.
- **Clocks.** Ranks start at moments that the trace does not store, so a read may appear before the write that it
  waited for.
"""

CM1_HEAD = """
## CM1: attribute by attribute

The trace is the same kind of run as the paper's: CM1 on Lassen, 32 nodes, 1,280 processes, POSIX calls only, with
times in float32.
"""


RULES_HEAD = """
## Rules: labelled traces

`python -m tests.catalogue` judges rules on Recorder traces of known programs. Labels name the problems of each
program, with reasons. Precision is the share of right recommendations, recall the share of labelled problems that a
rule reports. The diagnosis counts where it names a pattern that one of the problem's rules acts on. The traces are
small, often too small for a pattern.
"""

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


def twins(shared: Path, store: Path) -> list[str]:
    """The table of the runs that Darshan recorded, too."""
    comparison = rows_of(shared / "data" / "darshan-twins" / "comparison.csv")
    rows = [row for row in comparison if "/" not in row["trace"]]
    lines = [
        "",
        "| run | read: requested | past end | Darshan | difference | written: requested | Darshan | causes |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    exact = equal = 0
    for row in rows:
        read, past, written = in_the_job(vani.profile(shared / "traces" / row["trace"], store=store, files=None))
        moved = read - (past or 0)
        seen, put = int(row["darshan_bytes_read"]), int(row["darshan_bytes_written"])
        exact += moved == seen
        if (moved, written) == (seen, put):
            equal += 1
            continue
        share = f" ({(moved - seen) / seen:+.2%})" if seen and moved != seen else ""
        lines.append(
            f"| {row['trace']} | {number(read)} | {number(past)} | {number(seen)} | {moved - seen:+,}{share} "
            f"| {number(written)} | {number(put)} | {causes(row['explanation'])} |"
        )
    summary = (
        f"Of {len(rows)} runs, `bytes - past_end` is exactly what Darshan saw read in {exact}. "
        f"Read and written bytes are equal in {equal}. The others:"
    )
    return ["", summary, *lines]


def causes(explanation: str) -> str:
    """Why the bytes of the two tracers differ: the causes in an explanation, without counts and details."""
    parts = [part for part in explanation.replace("|", "/").split("]; ") if "bytes" in part.rpartition("[")[2]]
    named = [re.split("[:;]", _BRACKETS.sub("", part.rstrip("]") + "]"))[0] for part in parts]
    return "; ".join(dict.fromkeys(named)).replace("asks for", "requests")


def cm1_rows(p: Profile) -> list[tuple[str, ...]]:
    """CM1's column in the paper's tables next to ours."""
    io, app = p.workflow.io, p.apps[0]
    files = p.workflow.files
    balance = app.balance
    assert balance is not None
    assert io.bytes.read is not None
    assert io.bytes.written is not None
    assert io.ops_share is not None
    assert io.time_share is not None
    reads = [f for f in p.phases if f.io.ops.read]
    largest = max(p.files, key=lambda f: f.size or 0)
    gigabytes = io.bytes.read / 1e9, io.bytes.written / 1e9
    busy = io.busy_s
    settings = "not in a trace; from `vani collect` and `--system lassen`"
    return [
        ("II", "nodes, cores, GPUs, directories, job time", "null", "32, 40, 4, /p/gpfs1, 2 h", settings),
        (
            "I, III",
            "run time",
            f"{p.workflow.runtime_s:.1f} s",
            "664 s",
            "from the start of the first clock to the end of the last call",
        ),
        ("III, IV", "processes", f"{p.workflow.processes:,}", "1,280", "the same"),
        (
            "III",
            "files: one process / shared",
            f"{files.file_per_process} / {files.shared}",
            "737 / 37",
            "the same; /dev/null is excluded",
        ),
        (
            "I, III",
            "read",
            f"{io.bytes.read:,} B ({gigabytes[0]:.1f} GB)",
            "20 GB",
            "the same within rounding: 20.0 GiB requested, as every rank reads a small file through a 16 MiB buffer. "
            f"At most {io.footprint.read or 0:,} B are distinct",
        ),
        (
            "I, III",
            "written",
            f"{io.bytes.written:,} B ({gigabytes[1]:.2f} GB)",
            "1 GB",
            "the same within rounding",
        ),
        (
            "III, X",
            "operations, data / metadata, by number",
            f"{io.ops_share.data:.0%} / {io.ops_share.metadata:.0%}",
            "30 % / 70 %",
            f"{io.ops.read + io.ops.write:,} reads and writes, {io.ops.metadata:,} other calls on data-set files. The "
            "paper's text has 87.5 %",
        ),
        (
            "text",
            "share of I/O time in metadata",
            f"{io.time_share.metadata:.1%}",
            "87.5 %",
            "of the sum over processes; of the time in which any process is busy it is "
            f"{busy.metadata / busy.total:.0%}. The paper does not define its denominator",
        ),
        (
            "I",
            "I/O share of the run",
            f"{io.time_s.total / app.processes / app.runtime_s:.3%} mean of processes, "
            f"{balance.slowest_io_time_s / app.runtime_s:.2%} slowest process, "
            f"{busy.total / app.runtime_s:.2%} any process",
            "11 %",
            f"11 % of 664 s are the 73 s of table X. Ours: {io.time_s.total:.1f} s over all 1,280 processes, "
            f"{balance.slowest_io_time_s:.2f} s in the slowest",
        ),
        ("X", "I/O time", f"{io.time_s.total:.1f} s summed, {busy.total:.2f} s union", "73 s", "as above"),
        (
            "text",
            "who writes",
            f"rank {balance.busiest_rank} alone ({balance.writing_processes} process)",
            "rank 0 alone", "the same",
        ),
        ("IV", "interface", app.interface or "null", "POSIX", "the same"),
        (
            "V",
            "first phase: read",
            f"{sum(f.io.bytes.read or 0 for f in reads):,} B in {counted(len(reads), 'phase')}",
            "20 GB",
            f"no pause of all processes is longer than the gap of {app.phase_gap_s:.2f} s",
        ),
        (
            "V",
            "first phase: length",
            " and ".join(f"{f.runtime_s:.3f} s" for f in reads),
            "0.3 s (text: 3 s)",
            "the phase includes the first output, and one rank's clock is 2 s early. The reads keep at least one "
            f"process busy for {busy.read:.3f} s",
        ),
        ("V", "frequency", f"{reads[-1].frequency.ops_per_process:.2f} operations per process", "1 op", "the same"),
        (
            "text",
            "read rate",
            "null" if io.bandwidth.read is None else f"{io.bandwidth.read / 1e9:,.0f} GB/s",
            "64 GB/s",
            "requests over the time of reading exceed the rate of memory. 20 GB in 0.3 s are 64 GB/s",
        ),
        (
            "text",
            "write rate",
            f"{(io.bandwidth.write or 0) / 1e9:.2f} GB/s",
            "64 MB/s",
            f"ours divides by the time in write calls ({io.time_s.write:.2f} s); the paper's must include more, such "
            "as open and close",
        ),
        (
            "VI",
            "granularity, data and small",
            f"{p.interfaces[0].granularity.data:,} B, {p.interfaces[0].granularity.metadata:,} B",
            "4 KB - 16 MB",
            "writes by size: 375 below 1 KiB, 22 of 1-4 KiB, 1,092 of 4-16 KiB, 722 of 16-64 KiB, 55 of 16 MiB",
        ),
        (
            "VI",
            "access pattern",
            p.interfaces[0].access_pattern or "null",
            "Seq",
            "consecutive is the strict form of it",
        ),
        ("VI", "data representation", "null", "3D", "needs a library that describes its data"),
        (
            "VI",
            "data distribution",
            "null" if p.dataset.distribution is None else f"{p.dataset.distribution.name}",
            "normal",
            "a trace has no values; `vani collect --dataset` samples them",
        ),
        (
            "VII",
            "middleware: granularity, access pattern",
            "null, null" if p.middleware.granularity is None else f"{p.middleware.granularity.data:,} B",
            "4 KB - 16 MB, Seq",
            "no library above POSIX is in use; the paper repeats table VI",
        ),
        (
            "X",
            "format",
            ", ".join(f"{k}: {n}" for k, n in p.dataset.format.items()),
            "bin",
            "two inputs have names of text files",
        ),
        (
            "X",
            "size of the data set",
            f"{p.dataset.size or 0:,} B in {p.dataset.size_distribution.known} files",
            "20.32 GB",
            "the paper's is the total read; ours the extent of files, without two inputs of unknown size",
        ),
        ("X", "files", f"{p.dataset.files}", "774", "the same"),
        (
            "XI",
            "largest file",
            f"{(largest.size or 0):,} B",
            "0.1 GB (text: 80 MB)",
            "the same within rounding",
        ),
        (
            "XI",
            "its time",
            f"{largest.io.time_s.total:.2f} s summed, {largest.io.busy_s.total:.2f} s union",
            "12 s",
            "the paper does not name the file; the file with most time has "
            f"{p.files[0].io.time_s.total:.1f} s summed over its 32 processes, nearly all in open",
        ),
        (
            "XI",
            "format attributes",
            "null" if largest.format_attributes is None else f"{largest.format_attributes}",
            "NA",
            "raw files do not describe themselves",
        ),
    ]


def cm1(shared: Path, store: Path) -> list[str]:
    """The table of CM1."""
    rows = cm1_rows(vani.profile(shared / CM1, store=store, files=None))
    lines = [
        CM1_HEAD,
        "| table | attribute | Vani | paper | why they differ |",
        "| --- | --- | --- | --- | --- |",
    ]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def labelled_traces(shared: Path, store: Path) -> list[str]:
    """Precision and recall of the rules, and the named patterns, on the traces labelled in `tests.catalogue`."""
    labels = read_labels(LABELS)
    traces = [place for name in FOLDERS for place in sorted((shared / name).glob("*/"))]
    judged = judge_traces(labels, traces, [(name, load_system(name)) for name in labels.machines], store)
    lines = ["| judged as on | precision | recall | named by the diagnosis |", "| --- | --- | --- | --- |"]
    for machine in judged.machines:
        pathologies = [one for one in judged.pathologies if one.machine == machine]
        of = tally([one for one in judged.findings if one.machine == machine], pathologies)
        named = sum(bool(one.named_by) for one in pathologies)
        lines.append(
            f"| {machine} | {of.right} of {of.right + of.wrong} ({of.precision:.0%}) | {of.found} of {of.pathologies} "
            f"({of.recall:.0%}) | {named} of {of.pathologies} ({named / of.pathologies:.0%}) |"
        )
    return lines


def page(shared: Path) -> str:
    """The whole page."""
    with tempfile.TemporaryDirectory() as store:
        lines = [HEAD.rstrip(), *twins(shared, Path(store)), NOTES.rstrip(), *cm1(shared, Path(store))]
        lines += [RULES_HEAD, *labelled_traces(shared, Path(store))]
        lines += gains.section()
    lines += [*diagnosis.section(), *first_advice.section(first_advice.results())]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("shared", nargs="?", type=Path, default=SHARED)
    asked = parser.parse_args()
    if not asked.shared.is_dir():
        sys.exit(f"{asked.shared}: no such folder; name the one with traces and data/darshan-twins")
    PAGE.write_text(page(asked.shared), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
