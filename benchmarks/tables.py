"""The figures of a run as tables for people; the JSON has all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from vani.errors import one_line

__all__ = ["show"]

_WIDTH = 120


def show(found: dict[str, Any]) -> None:
    """Print what was measured to stdout."""
    console = Console(
        markup=False, emoji=False, highlight=False, width=None if sys.stdout.isatty() else _WIDTH
    )
    machine = found["machine"]
    memory = machine["memory_bytes"]
    size = "memory unknown" if memory is None else f"{memory / 2**30:.1f} GiB"
    cores = f"{machine['cores_usable']} of {machine['cores']} cores"
    load = f"load {_number(machine['load_1min'])}"
    console.print(f"{machine['processor']}, {cores}, {size}, {machine['system']}, {load}")
    console.print(", ".join(f"{name} {text}" for name, text in found["versions"].items()))
    console.print(f"trace {one_line(found['trace']['name'])}: {found['trace']['calls']:,} calls\n")
    for part, printed in _PARTS.items():
        if part in found:
            printed(console, found[part])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3f}" if value < 100 else f"{value:,.0f}"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _millions(value: float | None) -> str:
    return _number(None if value is None else value / 1e6)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}x"


def _mib(value: int | None) -> str:
    return "" if value is None else f"{value / 2**20:,.0f}"


def _stages(console: Console, found: dict[str, Any]) -> None:
    whole = {"stage": "all", "group": "", "cpu_s": found["cpu_s"], "seconds": found["seconds"], "share": 1.0}
    whole["calls_per_s"] = found["calls"] / found["cpu_s"] if found["cpu_s"] else None
    heads = {
        "stage": ("stage", str),
        "group": ("of", str),
        "cpu_s": ("CPU s", _number),
        "calls_per_s": ("M calls/s", _millions),
        "share": ("share", _share),
        "seconds": ("s", _number),
    }
    _table(console, "Stages, on one core", heads, [*found["stages"], whole])


def _rates(console: Console, found: dict[str, Any]) -> None:
    names = {
        "zlib": ("inflate, zlib, M calls/s of one core", _millions),
        "isal": ("inflate, ISA-L, M calls/s of one core", _millions),
    }
    for command in ("convert", "profile"):
        names |= {
            f"{command}_x_isal": (f"vani {command}, processor time / inflate with ISA-L", _times),
            f"{command}_work_x_isal": ("    without start-up", _times),
            f"{command}_work_x_zlib": ("    without start-up / inflate with zlib", _times),
            f"{command}_start_s": ("    start-up, CPU s", _number),
            f"{command}_cpu": ("    M calls/s of one core", _millions),
            command: ("    M calls/s by the clock, all cores", _millions),
        }
    rows = []
    for name, (text, shown) in names.items():
        rows.append({"what": text} | {kind: shown(found[kind][name]) for kind in ("median", "best")})
    heads = {"what": ("", str), "median": ("median", str), "best": ("best", str)}
    _table(console, f"Rates, {len(found['rounds'])} rounds", heads, rows)
    console.print(f"kernels: {found['kernels']}{_pieces(found['kernel_pieces'])}\n")
    _note(console, found)


def _pieces(kernels: dict[str, list[int]]) -> str:
    """How much of `vani profile` they did, and what each left to numpy."""
    if not kernels:
        return ""
    used, declined = (sum(counts) for counts in zip(*kernels.values(), strict=True))
    told = ", ".join(f"{name} {left:,} of {done + left:,}" for name, (done, left) in kernels.items() if left)
    return (
        f"; {len(kernels)} of them did {used:,} of {used + declined:,} pieces of work of vani profile, "
        f"numpy did {told or 'none'}"
    )


_MEASURED = {
    "seconds": ("s", _number),
    "cpu_s": ("CPU s", _number),
    "peak_bytes": ("peak MiB", _mib),
}


def _commands(console: Console, found: list[dict[str, Any]]) -> None:
    heads = {
        "command": ("vani ...", str),
        **_MEASURED,
        "goal_s": ("goal s", _number),
        "calls_per_s": ("M calls/s", _millions),
    }
    _table(console, "Commands", heads, found)


def _memory(console: Console, found: dict[str, Any]) -> None:
    heads = {"stage": ("stage", str), "seconds": ("s", _number), "peak_bytes": ("peak MiB", _mib)}
    title = f"Memory of vani profile, {found['scheduler']}"
    _table(console, title, heads, [*found["stages"], {**found, "stage": "all"}])
    _note(console, found)


def _scaling(console: Console, found: list[dict[str, Any]]) -> None:
    heads = {
        "axis": ("in", str),
        "calls": ("calls", _count),
        "ranks": ("ranks", _count),
        "files": ("files", _count),
        "processors": ("processors", _count),
        "scheduler": ("scheduler", str),
        **_MEASURED,
        "calls_per_s": ("M calls/s", _millions),
    }
    _table(console, "Scaling of vani profile", heads, found)


def _peers(console: Console, found: dict[str, Any]) -> None:
    if found["runs"]:
        named = ", ".join(f"{p['name']} {p['version'] or '(version unknown)'}" for p in found["found"])
        heads = {
            "input": ("input", str),
            "calls": ("calls", _count),
            "tool": ("tool", str),
            "outcome": ("outcome", str),
            **_MEASURED,
            "calls_per_s": ("M calls/s", _millions),
            "said": ("last line", str),
        }
        _table(
            console, f"Side by side with {named}; ended after {found['limit_s']:g} s", heads, found["runs"]
        )
    if found["ratios"]:
        heads = {
            "input": ("input", str),
            "calls": ("calls", _count),
            "tool": ("tool", str),
            "beside": ("beside", str),
            "cpu_x": ("processor time", _times),
            "work_x": ("start-up apart", _times),
            "seconds_x": ("by the clock", _times),
            "peak_x": ("peak memory", _times),
        }
        _table(console, "How many times of Vani's they take", heads, found["ratios"])
    for one in found["skipped"]:
        console.print(f"{one['name']}: skipped, {one['note']}")


_PARTS = {
    "stages": _stages,
    "rates": _rates,
    "commands": _commands,
    "memory": _memory,
    "scaling": _scaling,
    "peers": _peers,
}


def _table(
    console: Console,
    title: str,
    heads: dict[str, tuple[str, Callable[[Any], str]]],
    rows: Iterable[dict[str, Any]],
) -> None:
    """One column per key of `heads`, which gives its heading and how its values are written; words stand left."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, pad_edge=False)
    for head, written in heads.values():
        table.add_column(head, justify="left" if written is str else "right", overflow="fold")
    for row in rows:
        table.add_row(*(one_line(written(row[key])) for key, (_, written) in heads.items()))
    console.print(table)


def _note(console: Console, found: dict[str, Any]) -> None:
    if "note" in found:
        console.print(f"{found['note']}\n")
