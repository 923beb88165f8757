"""A snapshot of the machine from files with the output of its servers and clients."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from vani.centre.plan.load.load_figures.figures import Figures, OfServer, OfTarget
from vani.centre.plan.load.load_figures.lctl_parameters import read_lctl_parameters
from vani.centre.plan.load.load_figures.lfs_df import read_lfs_df
from vani.centre.plan.load.load_figures.prometheus_text import read_prometheus_text
from vani.centre.plan.schema.snapshot import Missing, Snapshot
from vani.errors import InputError
from vani.units import KiB

_LOAD: Final = re.compile(r"^(\d+\.\d+) \d+\.\d+ \d+\.\d+ \d+/\d+ \d+\s*$", re.MULTILINE)
_MEMORY: Final = re.compile(r"^Mem(Total|Available):\s+(\d+) kB\s*$", re.MULTILINE)
_PROCESSOR: Final = re.compile(r"^(?:processor\s*:\s*|cpu(?=\d+ \d+ \d+ ))(\d+)", re.MULTILINE)


def read_proc_files(text: str, figures: Figures, server: str | None) -> bool:
    """Read such files into `figures`; False if the text has none."""
    load, memory, processors = _LOAD.search(text), _MEMORY.findall(text), _PROCESSOR.findall(text)
    if not (load or memory or processors):
        return False
    figures_of_server = figures.server(server)
    if load is not None:
        figures_of_server.load = float(load[1])
    for name, size in memory:
        if name == "Total":
            figures_of_server.memory = int(size) * KiB
        else:
            figures_of_server.memory_available = int(size) * KiB
    figures_of_server.processors.update(processors)
    return True


_MOST_BYTES: Final = 256 << 20
_NO_FIGURE: Final = re.compile(rb"[0-9]{400}")
"""No figure of a machine has this many digits, and Python refuses to read some thousands."""


def read_snapshot(
    files: Sequence[tuple[Path, str | None]],
    *,
    time: datetime | None = None,
    file_system: str | None = None,
) -> Snapshot:
    """Make a snapshot; missing figures are listed under `no_data`.

    Parameters
    ----------
    files
        Files, each with the server that printed it; None for a client or an unknown server.
    time
        Time of printing; None uses the oldest file's modification time.
    file_system
        The file system whose OSTs are wanted; None if there is only one.

    Raises
    ------
    InputError
        A file cannot be read or has no figures, there are several file systems, or figures are impossible.
    """
    figures = Figures()
    for path, server in files:
        text = _text(path)
        if server is None:
            figures.nameless = OfServer()
        known = [
            read_lfs_df(text, figures, str(path)),
            read_lctl_parameters(text, figures, server),
            read_prometheus_text(text, figures, server),
            read_proc_files(text, figures, server),
        ]
        if not any(known):
            raise InputError(
                "has no figures for a snapshot",
                where=path,
                todo="give what `lfs df`, `lctl get_param`, an exporter of Prometheus or /proc/loadavg printed",
            )
        if server is None and (figures.nameless.load is not None or figures.nameless.memory is not None):
            raise InputError(
                "has a server's load without its name",
                where=path,
                todo=f"give it as NAME={path}",
            )
    taken = time or datetime.fromtimestamp(min(int(path.stat().st_mtime) for path, _ in files), tz=UTC)
    return _snapshot(figures, taken, _only(figures, file_system))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise InputError("no such file", where=path) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read ({why})", where=path) from error
    if len(content) > _MOST_BYTES:
        raise InputError(f"is longer than {_MOST_BYTES >> 20} MiB", where=path, todo="give only the lines of OSTs")
    if (match := _NO_FIGURE.search(content)) is not None:
        line = content.count(b"\n", 0, match.start()) + 1
        raise InputError(
            "a number has hundreds of digits", where=f"{path}:{line}", todo="check its source"
        )
    return content.decode(errors="backslashreplace")


def _only(figures: Figures, wanted: str | None) -> Mapping[int, OfTarget]:
    """The OSTs of one file system."""
    systems = sorted({system for system, _ in figures.targets})
    if wanted is not None and wanted not in systems:
        there = ", ".join(systems[:5]) or "none"
        raise InputError(f"no OST of {wanted!r} was found", where="--file-system", todo=f"there is {there}")
    if wanted is None and len(systems) > 1:
        raise InputError(
            f"OSTs of {', '.join(systems[:5])} were found", todo="choose one with --file-system NAME"
        )
    return {
        index: target
        for (system, index), target in sorted(figures.targets.items(), key=lambda item: item[0])
        if wanted in (None, system)
    }


def _snapshot(figures: Figures, time: datetime, targets: Mapping[int, OfTarget]) -> Snapshot:
    lacks: list[Missing] = []
    rows: list[dict[str, object]] = []
    for index, target in targets.items():
        if not target.size or target.available is None:
            away = " (it does not answer)" if target.is_offline else ""
            lacks.append(_missing(f"OST {index}", f"its size and free space are not known{away}: left out"))
            continue
        if target.available > target.size:
            raise InputError(
                f"OST {index} has {target.available:,} of {target.size:,} bytes left",
                todo="check its source",
            )
        rows.append(
            {
                "index": index,
                "oss": target.server,
                "size": target.size,
                "used": target.size - target.available,
                "state": "offline" if target.is_offline else "degraded" if target.is_degraded else "ok",
            }
        )
    serving = {row["oss"] for row in rows} - {None}
    lacks += [
        _missing(
            f"OST {row['index']}", "its server is not known: `lctl get_param osc.*.ost_conn_uuid` shows it"
        )
        for row in rows
        if row["oss"] is None
    ]
    metadata = [name for name, server in figures.servers.items() if name not in serving and server.has_mdt]
    strange = sorted(set(figures.servers) - serving - set(metadata))
    lacks += [_missing(name, "serves no known OST: its load is left out") for name in strange]
    servers = {name: figures.servers.get(str(name), OfServer()) for name in sorted(map(str, serving))}
    lacks += [
        _missing(name, f"has no load figure of its {what}")
        for name, server in servers.items()
        for what, share in (("processors", server.cpu_share), ("memory", server.memory_share))
        if share is None
    ]
    mds = figures.servers[metadata[0]] if len(metadata) == 1 else None
    return Snapshot.model_validate(
        {
            "time": time,
            "oss": [
                {"name": name, "cpu": server.cpu_share, "memory": server.memory_share}
                for name, server in servers.items()
            ],
            "ost": rows,
            "no_data": lacks,
            "mds": None if mds is None else {"cpu": mds.cpu_share, "memory": mds.memory_share},
        }
    )


def _missing(name: str, reason: str) -> Missing:
    return Missing(name=name, reason=reason)
