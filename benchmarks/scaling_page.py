"""The tables of the page on scaling, and the page with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from benchmarks import scaling_model
from benchmarks.scaling_costs import STAGES
from benchmarks.scaling_model import CAP, Machine, Measured, predict, saturates
from benchmarks.scaling_runs import Run

__all__ = ["page_with", "tables"]

MIDDLE = scaling_model.Workload(calls=1e10, processes=1e4, files=1e4)
LARGE = scaling_model.Workload(calls=1e11, processes=1e5, files=1e6)
WORKERS = (1, 10, 100, 1000, 10_000)
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


def tables(document: Mapping[str, Any]) -> str:
    """The page's tables, in Markdown."""
    costs = Measured.of(document["costs"])
    where, ver = document["machine"], document["versions"]
    text = [
        f"Measured on {where['cores_usable']} cores of {where['processor'] or where['architecture']} "
        f"(load {where['load_1min']:.1f} when it began), Python {ver['python']}, Vani {ver['vani']}; "
        f"a generated trace of {document['calls']:,} calls of 64 processes on 64 files, and one of "
        f"{document['files']:,} files.",
        "",
        "### One and two workers",
        "",
        "| workers | calls | decode | survey | measure | overlap | together | processor s of all workers |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    runs = [Run(**r) for r in document["runs"]]
    text += [
        f"| {r.workers} | {r.calls:,} | "
        + " | ".join(f"{r.wall[s]:.2f} s" for s in STAGES)
        + f" | {r.seconds:.2f} s | {r.processor_s:.2f} |"
        for r in runs
    ]
    one, two, twice = runs
    text += [
        "",
        f"Strong scaling (the same trace): two workers are {one.seconds / two.seconds:.2f} times as fast as one, and "
        f"use {two.processor_s / one.processor_s:.2f} times its processor time. Weak scaling (twice the trace): two "
        f"workers take {twice.seconds / one.seconds:.2f} times as long as one on half of it, with "
        f"{twice.processor_s / one.processor_s:.2f} times its processor time.",
        "",
        "### What stages cost",
        "",
        "| stage | ns per call, one core | bytes on disk per call | partial result, bytes per part | "
        "and per file | combining, MB/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, cost in costs.stages.items():
        rate = f"{1e-6 / cost.combine_s_per_byte:,.0f}" if cost.combine_s_per_byte else "-"
        text.append(
            f"| {name} | {cost.seconds_per_call * 1e9:,.0f} | {cost.bytes_per_call:.1f} | "
            f"{cost.bytes_per_partial:,.0f} | {cost.bytes_per_file:,.0f}"
            + (
                f" + {cost.capped_per_file:,.0f}, at most {CAP * 1e-6:.0f} MB in all"
                if cost.capped_per_file
                else ""
            )
            + f" | {rate} |"
        )
    decode, inflate = document["decode_s_per_call"], document["inflate_s_per_call"]
    write = costs.stages["decode"].seconds_per_call - decode
    text += [
        "",
        f"Of decoding, {inflate * 1e9:.0f} ns are what zlib alone takes to inflate the time stamps (Vani inflates with "
        f"ISA-L), {decode * 1e9:.0f} ns the whole of it, and {max(0.0, write) * 1e9:.0f} ns writing Parquet. "
        f"A task costs the scheduler {costs.scheduler_s_per_task * 1e6:,.0f} µs and {costs.bytes_per_task:,.0f} bytes; "
        f"what tasks share goes to each worker once: {costs.stages['survey'].constants_per_file:,.0f} bytes per file, "
        f"in the second pass {costs.stages['measure'].constants_per_file:,.0f} and for a file that is written all "
        f"through the run {costs.stages['measure'].capped_constants_per_file:,.0f} more, at most {CAP * 1e-6:.0f} MB "
        f"in all. The client alone takes {costs.client_s:.1f} s, {costs.client_s_per_file * 1e6:,.0f} µs per file and "
        f"{costs.client_s_per_part * 1e6:,.0f} µs per part.",
    ]
    for trace in (MIDDLE, LARGE):
        text += _predicted(costs, trace)
    return "\n".join(text)


def _predicted(costs: Measured, trace: scaling_model.Workload) -> list[str]:
    calls = f"{trace.calls:.0e}".replace("e+", "e")
    text = [
        "",
        f"### {calls} calls of {trace.processes:,.0f} processes on {trace.files:,.0f} files",
        "",
        "| workers | " + " | ".join((*STAGES, "client alone")) + " | together | most of it |",
        "| ---: | " + "---: | " * (len(STAGES) + 2) + "--- |",
    ]
    for workers in WORKERS:
        terms = predict(costs, trace, workers, Machine())
        total = sum(t.seconds for t in terms)
        name, share = saturates(terms)
        text.append(
            f"| {workers:,} | "
            + " | ".join(_duration(t.seconds) for t in terms)
            + f" | {_duration(total)} | {name}, {share:.0%} |"
        )
    text += ["", "On 1,000 workers, stage by stage:", ""]
    text += [
        "| stage | limit | what else would take | after it | result |",
        "| --- | --- | --- | --- | ---: |",
    ]
    for term in predict(costs, trace, 1000, Machine()):
        rest = sorted(((s, n) for n, s in term.beside.items() if n != term.limit), reverse=True)
        text.append(
            f"| {term.stage} | {term.limit}, {_duration(term.beside[term.limit])} | "
            + (", ".join(f"{n} {_duration(s)}" for s, n in rest) or "-")
            + " | "
            + (", ".join(f"{n} {_duration(s)}" for n, s in term.after.items()) or "-")
            + f" | {term.result / 1e6:,.3g} MB |"
        )
    return text


def _duration(seconds: float) -> str:
    if seconds < 0.05:
        return "0 s"
    if seconds >= 7200:
        return f"{seconds / 3600:,.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:,.1f} min"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def page_with(page: str, measured: str) -> str:
    """The page with other tables between its marks.

    Raises
    ------
    ValueError
        It has no marks.
    """
    if page.count(_BEGIN) != 1 or page.count(_END) != 1:
        raise ValueError(f"the page needs one line {_BEGIN} and one line {_END}")
    return re.sub(
        f"{re.escape(_BEGIN)}.*{re.escape(_END)}",
        lambda _: f"{_BEGIN}\n{measured}\n{_END}",
        page,
        flags=re.DOTALL,
    )
