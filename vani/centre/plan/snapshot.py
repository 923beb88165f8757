"""A snapshot of the machine from the output of Lustre servers and clients."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from vani.centre.plan.schema.snapshot import Missing, Snapshot
from vani.errors import InputError
from vani.schema.document import read_bytes
from vani.schema.settings import PathLike
from vani.units import KiB

# Figures of OSTs and servers read so far; unknown ones remain None.

_TARGET: Final = re.compile(r"(?P<system>[\w.-]+?)-(?P<kind>OST|MDT)(?P<index>[0-9a-fA-F]{4})(?![0-9a-fA-F])")


@dataclass
class OfTarget:
    """Figures of one OST: its capacity in bytes, bytes that can still be written, its server, and its state."""

    size: int | None = None
    available: int | None = None
    server: str | None = None
    is_degraded: bool = False
    is_offline: bool = False


@dataclass
class OfServer:
    """Figures of one server: load average, processors, bytes of memory; `has_mdt` means that it serves metadata."""

    load: float | None = None
    processors: set[str] = field(default_factory=set)
    memory: float | None = None
    memory_available: float | None = None
    has_mdt: bool = False

    @property
    def cpu_share(self) -> float | None:
        """Load average divided by processors, at most 1."""
        if self.load is None or not self.processors:
            return None
        return min(1.0, self.load / len(self.processors))

    @property
    def memory_share(self) -> float | None:
        """Share of its memory that is in use."""
        if not self.memory or self.memory_available is None:
            return None
        return min(1.0, max(0.0, 1 - self.memory_available / self.memory))


@dataclass
class Figures:
    """All figures read: OSTs by file system and index, servers by name.

    `nameless` are figures of a server that its file does not name. `metadata_free` has the free bytes of the fullest
    metadata target by file system.
    """

    targets: dict[tuple[str, int], OfTarget] = field(default_factory=dict)
    servers: dict[str, OfServer] = field(default_factory=dict)
    nameless: OfServer = field(default_factory=OfServer)
    metadata_free: dict[str, int] = field(default_factory=dict)

    def target(self, system: str, index: int) -> OfTarget:
        """The figures of an OST."""
        return self.targets.setdefault((system, index), OfTarget())

    def take_sizes(self, sizes: Mapping[tuple[str, int], Mapping[str, int]]) -> None:
        """Take the bytes of OSTs by kind (capacity, available, free), where no other file gave them."""
        for place, by_kind in sizes.items():
            target = self.target(*place)
            if target.size is None and "capacity" in by_kind:
                target.size, target.available = by_kind["capacity"], by_kind.get("available", by_kind.get("free"))

    def server(self, name: str | None) -> OfServer:
        """The figures of a server."""
        return self.nameless if name is None else self.servers.setdefault(name, OfServer())


def target_of(text: str) -> tuple[str, str, int] | None:
    """File system, `OST` or `MDT`, and index of the first target named in a text: scratch-OST001f has index 31."""
    match = _TARGET.search(text)
    return (match["system"], match["kind"], int(match["index"], 16)) if match else None


# `lctl get_param` on servers (obdfilter, osd-*, mdt) and on clients (osc, mdc).

_PARAMETER: Final = re.compile(
    r"^(?P<kind>[\w-]+)\.(?P<name>[^\s=]*-(?:OST|MDT)[0-9a-fA-F]{4}[^\s=]*)\.(?P<key>\w+)=(?P<value>.*)$"
)
_CONNECTION: Final = re.compile(r"current_connection:\s*\"?([^\s\"]+)")
_STATE: Final = re.compile(r"^\s*state:\s*(\w+)")
_WORKING: Final = frozenset({"FULL", "IDLE"})
_SIZES: Final = {"kbytestotal": "capacity", "kbytesavail": "available", "kbytesfree": "free"}
_SERVED: Final = frozenset({"obdfilter", "osd-ldiskfs", "osd-zfs", "ofd", "ost"})


def read_lctl_parameters(text: str, figures: Figures, server: str | None) -> bool:
    """Read such parameters into `figures`; False if the text has none.

    `server` is the one that printed the text and serves its OSTs. On a client, an OST's server is
    known by its network address.
    """
    known = False
    inside: tuple[str, int] | None = None
    sizes: dict[tuple[str, int], dict[str, int]] = {}
    for line in text.splitlines():
        match = _PARAMETER.match(line)
        if match is None:
            if inside is not None:
                _read_import(line, figures, inside)
            continue
        inside = None
        named = target_of(match["name"])
        if named is None:
            continue
        known = True
        system, kind, index = named
        if kind == "MDT":
            if match["kind"] in {"mdt", "osd-ldiskfs", "osd-zfs", "mdd"}:
                figures.server(server).has_mdt = True
            continue
        place = (system, index)
        target = figures.target(*place)
        if match["kind"] in _SERVED and server is not None:
            target.server = server
        key, value = match["key"], match["value"].strip()
        if key in _SIZES and value.isdecimal():
            sizes.setdefault(place, {})[_SIZES[key]] = int(value) * KiB
        elif key == "degraded":
            target.is_degraded |= value == "1"
        elif key == "active":
            target.is_offline |= value == "0"
        elif key == "ost_conn_uuid" and value and target.server is None:
            target.server = value
        elif key == "import":
            inside = place
    figures.take_sizes(sizes)
    return known


def _read_import(line: str, figures: Figures, place: tuple[str, int]) -> None:
    target = figures.target(*place)
    if (match := _STATE.match(line)) is not None:
        target.is_offline |= match[1] not in _WORKING
    elif (match := _CONNECTION.search(line)) is not None and target.server is None and "@" in match[1]:
        target.server = match[1]


# `lfs df` on a client: sizes of OSTs in KiB, and flags of those that accept no new objects (lfs-df.1).

_LFS_DF: Final = re.compile(
    r"^(?P<name>[\w.-]+-(?:OST|MDT)[0-9a-f]{4})_UUID\s+(?P<total>\S+)\s+(?P<used>\S+)\s+(?P<free>\S+)\s+\S+%"
    r"\s+\S*\[(?:OST|MDT):\d+\]"
    r"\s*(?P<flags>[A-Za-z]*)\s*$"
)
_AWAY: Final = re.compile(r"^(?:(?P<system>\S+)-)?OST(?P<index>[0-9a-f]{4})(?:_UUID)?\s*:\s*\S")
_NO_OBJECTS: Final = frozenset("RSNI")
"""Read-only; no space; no precreation; no inodes."""


def read_lfs_df(text: str, figures: Figures, where: str) -> bool:
    """Read such lines into `figures`; False if the text has none.

    Raises
    ------
    InputError
        Sizes are rounded, as printed with `-h`.
    """
    known = False
    system: str | None = None
    for line in text.splitlines():
        if (match := _LFS_DF.match(line)) is not None:
            sizes = [match["total"], match["used"], match["free"]]
            if not all(size.isdecimal() for size in sizes):
                raise InputError(f"{sizes[0]!r} is rounded", where=where, todo="run `lfs df` without -h")
            named = target_of(match["name"])
            assert named is not None
            system = named[0]
            if named[1] == "MDT":
                free = int(sizes[2]) * KiB
                figures.metadata_free[system] = min(free, figures.metadata_free.get(system, free))
                continue
            target = figures.target(system, named[2])
            if target.size is None:
                # Reserved bytes count neither as used nor as available.
                target.size, target.available = int(sizes[0]) * KiB, int(sizes[2]) * KiB
            target.is_degraded |= "D" in match["flags"]
            target.is_offline |= bool(_NO_OBJECTS & set(match["flags"]))
            known = True
        elif (match := _AWAY.match(line)) is not None and (match["system"] or system) is not None:
            # An OST that does not answer is listed without its file system, after others of the same one.
            figures.target(match["system"] or system or "", int(match["index"], 16)).is_offline = True
            known = True
    return known


# Prometheus text format: metrics of Lustre exporters and of the node exporter.
#
# Names are those of HPE's and Whamcloud's exporters (kilobytes) and of later ones (kibibytes), which all mean KiB, and
# of Prometheus' node exporter. The label `instance` identifies a server in federated pages.

_METRIC: Final = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*$")
_LABEL: Final = re.compile(r"(\w+)=\"((?:[^\"\\]|\\.)*)\"")
_LUSTRE: Final = re.compile(r"lustre_(capacity|available|free)_ki(?:lo|bi)bytes")
_NODE: Final = {
    "node_load1": "load", "node_memory_MemTotal_bytes": "memory", "node_memory_MemAvailable_bytes": "memory_available",
}  # fmt: skip
"""Figures of a server by metric."""


def read_prometheus_text(text: str, figures: Figures, server: str | None) -> bool:
    """Read such metrics into `figures`; False if the text has none. `server` applies to those without `instance`."""
    known = False
    sizes: dict[tuple[str, int], dict[str, int]] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _METRIC.match(line)
        if match is None:
            continue
        name, labels = match["name"], dict(_LABEL.findall(match["labels"] or ""))
        value = _number(match["value"])
        host = labels.get("instance", "").rpartition(":")[0] or labels.get("instance") or server
        if name in _NODE or name == "node_cpu_seconds_total":
            known = True
            if value is not None and name in _NODE:
                setattr(figures.server(host), _NODE[name], value)
            elif value is not None and "cpu" in labels:
                figures.server(host).processors.add(labels["cpu"])
        elif name.startswith("lustre_"):
            named = target_of(labels.get("target", ""))
            known |= named is not None
            if named is None:
                continue
            system, kind, index = named
            if kind == "MDT":
                figures.server(host).has_mdt = True
                continue
            target = figures.target(system, index)
            if host is not None:
                target.server = host
            if value is None:
                continue
            if (size := _LUSTRE.fullmatch(name)) is not None:
                sizes.setdefault((system, index), {})[size[1]] = round(value) * KiB
            elif name == "lustre_degraded":
                target.is_degraded |= value == 1
    figures.take_sizes(sizes)
    return known


def _number(text: str) -> float | None:
    """A finite, nonnegative number; None for anything else, which was not measured."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number < 1 << 62 else None


# A snapshot of the machine from files with the output of its servers and clients.

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
        setattr(figures_of_server, "memory" if name == "Total" else "memory_available", int(size) * KiB)
    figures_of_server.processors.update(processors)
    return True


_MAX_BYTES: Final = 256 << 20
_NO_FIGURE: Final = re.compile(rb"[0-9]{400}")
"""No figure of a machine has this many digits, and Python refuses to read some thousands."""


def _read_snapshot(
    files: Sequence[tuple[Path, str | None]], time: datetime | None, file_system: str | None
) -> Snapshot:
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
            todo = "give what `lfs df`, `lctl get_param`, an exporter of Prometheus or /proc/loadavg printed"
            raise InputError("has no figures for a snapshot", where=path, todo=todo)
        if server is None and (figures.nameless.load is not None or figures.nameless.memory is not None):
            raise InputError("has a server's load without its name", where=path, todo=f"give it as NAME={path}")
    taken = time or datetime.fromtimestamp(min(int(path.stat().st_mtime) for path, _ in files), tz=UTC)
    free = [free for system, free in figures.metadata_free.items() if file_system in (None, system)]
    return _snapshot(figures, taken, _only(figures, file_system), min(free, default=None))


def _text(path: Path) -> str:
    content = read_bytes(path, most=_MAX_BYTES, todo="give the lines of OSTs that Lustre printed")
    if (match := _NO_FIGURE.search(content)) is not None:
        line = content.count(b"\n", 0, match.start()) + 1
        raise InputError("a number has hundreds of digits", where=f"{path}:{line}", todo="check its source")
    return content.decode(errors="backslashreplace")


def _only(figures: Figures, wanted: str | None) -> Mapping[int, OfTarget]:
    """The OSTs of one file system."""
    systems = sorted({system for system, _ in figures.targets})
    if wanted is not None and wanted not in systems:
        there = ", ".join(systems[:5]) or "none"
        raise InputError(f"no OST of {wanted!r} was found", where="--file-system", todo=f"there is {there}")
    if wanted is None and len(systems) > 1:
        raise InputError(f"OSTs of {', '.join(systems[:5])} were found", todo="choose one with --file-system NAME")
    return {
        index: target
        for (system, index), target in sorted(figures.targets.items(), key=lambda item: item[0])
        if wanted in (None, system)
    }


def _snapshot(figures: Figures, time: datetime, targets: Mapping[int, OfTarget], metadata_free: int | None) -> Snapshot:
    lacks: list[tuple[str, str]] = []
    rows: list[dict[str, object]] = []
    for index, target in targets.items():
        if not target.size or target.available is None:
            away = " (it does not answer)" if target.is_offline else ""
            lacks.append((f"OST {index}", f"its size and free space are not known{away}: left out"))
            continue
        if target.available > target.size:
            what = f"OST {index} has {target.available:,} of {target.size:,} bytes left"
            raise InputError(what, todo="check its source")
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
    unknown = "its server is not known: `lctl get_param osc.*.ost_conn_uuid` shows it"
    lacks += [(f"OST {row['index']}", unknown) for row in rows if row["oss"] is None]
    metadata = [name for name, server in figures.servers.items() if name not in serving and server.has_mdt]
    strange = sorted(set(figures.servers) - serving - set(metadata))
    lacks += [(name, "serves no known OST: its load is left out") for name in strange]
    servers = {name: figures.servers.get(str(name), OfServer()) for name in sorted(map(str, serving))}
    lacks += [
        (name, f"has no load figure of its {what}")
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
            "no_data": [Missing(name=name, reason=reason) for name, reason in lacks],
            "mds": None
            if mds is None and metadata_free is None
            else {
                "cpu": None if mds is None else mds.cpu_share,
                "memory": None if mds is None else mds.memory_share,
                "free": metadata_free,
            },
        }
    )


# Implements `vani plan snapshot`.

def plan_snapshot(
    files: Sequence[PathLike], *, time: datetime | None = None, file_system: str | None = None
) -> Snapshot:
    """Make a snapshot from output of Lustre's servers and clients.

    Missing figures are listed in `no_data`.

    Parameters
    ----------
    files
        Paths, or `NAME=FILE` for the output of the server NAME.
    time
        Time of the output; None takes the modification time of the oldest file.
    file_system
        The file system whose OSTs are wanted; None if there is only one.

    Raises
    ------
    InputError
        A file cannot be read or has no figures, there are several file systems, or figures are impossible.
    """
    if not files:
        raise InputError("no file to read", todo="give what `lfs df` or `lctl get_param` printed")
    try:
        return _read_snapshot([named_file(file) for file in files], time, file_system)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = f"{place} is {str(first['input'])[:80]!r}: {first['msg']}"
        raise InputError(what, todo="correct the files or their names") from None


def named_file(given: PathLike) -> tuple[Path, str | None]:
    """A file and the server named before it; an existing path is a file even if it contains `=`."""
    text = str(given)
    name, sign, path = text.partition("=")
    if not sign or not name or Path(text).exists():
        return Path(text), None
    return Path(path), name
