"""Writes the page of the bundled machines: `python docs/generators/machines.py [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from vani.schema.system import BurstBuffer, FileSystem, Rates, System
from vani.systems import known_systems, load_system
from vani.units import TiB, format_bytes, format_rate, lfs_size

_HEAD = """\
<!-- Made from `vani/systems/*.yaml` by `make docs`; edit those. -->

# Machines

Descriptions that come with Vani. `vani systems` lists them, `vani systems show NAME` prints one, and
`vani advise --system NAME` judges a profile by it. A figure is one that a public document gives, named under *Sources*;
unknown figures are empty (null), and advice that needs them states that. Rates of whole file systems are peaks unless a
source says otherwise. Sites change: `vani systems detect`, run on the machine, shows the present state.

Your own description only needs what differs:

```yaml
schema: vani.system/2
name: mine
base: lumi
file_systems:
- name: lumi-f
  stripe_count: 4
```

`vani systems detect --measure DIR --yes` adds what one node reaches there, with `--sweep` also on different numbers of
Lustre targets. It never sets `layout_policy` or
`striping_rules`: only people know what a site asks of its users. With `layout_policy: keep` no layout is set by hand,
except by `striping_rules`; else a composite default is judged by the component in which a file ends.
"""

_COLUMNS = (
    "machine",
    "file system",
    "data targets",
    "metadata targets",
    "metadata free",
    "Data-on-MDT",
    "default layout",
    "users may set it",
)


def page() -> str:
    """The page in Markdown: an overview of all machines, then each machine with its sources."""
    systems = [load_system(name) for name in known_systems()]
    overview = [
        f"| {' | '.join(_COLUMNS)} |",
        "| --- " * len(_COLUMNS) + "|",
        *(_row(system, disk) for system in systems for disk in system.file_systems if disk.type == "lustre"),
    ]
    parts = [_HEAD, "## Lustre at a glance\n\n" + "\n".join(overview) + "\n"]
    parts += [_section(system) for system in systems]
    return "\n".join(parts)


def _row(system: System, disk: FileSystem) -> str:
    cells = (
        system.name,
        disk.name,
        _text(disk.targets),
        _text(disk.metadata_targets),
        format_bytes(disk.metadata_free) if disk.metadata_free is not None else "",
        "" if disk.dom_size is None else "off" if disk.dom_size == 0 else f"up to {lfs_size(disk.dom_size)}",
        _layout(disk),
        {"keep": "no", "free": "yes", None: ""}[disk.layout_policy],
    )
    return f"| {' | '.join(cells)} |"


def _section(system: System) -> str:
    lines = [f"## {system.name}", "", f"{system.description}.", ""]
    compute = system.compute
    node = [
        f"{compute.nodes:,} nodes" if compute.nodes else "",
        f"{compute.cores_per_node} cores" if compute.cores_per_node else "",
        format_bytes(compute.memory_per_node) if compute.memory_per_node else "",
        f"{compute.gpus_per_node} GPUs" if compute.gpus_per_node else "",
        f"{system.network.type or 'network'} {_rate(system.network.bandwidth_per_node)}".strip()
        if system.network.type or system.network.bandwidth_per_node
        else "",
        f"scheduler {system.scheduler}" if system.scheduler else "",
    ]
    lines += _list([_joined(node), *map(_disk, system.file_systems), *map(_near, system.burst_buffers)])
    layer = system.forwarding
    if layer is not None:
        count = f"{layer.io_nodes} forwarding nodes" if layer.io_nodes else "forwarding nodes"
        kind = f" ({layer.kind.replace('_', ' ')})" if layer.kind else ""
        chosen = "a job may choose how many" if layer.user_can_choose else "a job cannot choose how many"
        lines += _list([f"{count}{kind}: {chosen}"])
    lines += ["", "Sources", "", *_list(f"`{path}`: {source}" for path, source in system.sources.items()), ""]
    return "\n".join(lines)


def _disk(disk: FileSystem) -> str:
    facts = [
        f"{disk.servers} servers" if disk.servers else "",
        f"{disk.targets} targets" if disk.targets else "",
        f"{disk.metadata_targets} metadata targets" if disk.metadata_targets else "",
        format_bytes(disk.capacity) if disk.capacity else "",
        _rates(disk.max_bandwidth),
        f"block {lfs_size(disk.block_size)}" if disk.block_size else "",
    ]
    pools = [
        _joined(
            [
                f"pool {pool.name}",
                pool.media or "",
                format_bytes(pool.capacity) if pool.capacity else "",
                _rates(pool.max_bandwidth),
            ]
        )
        for pool in disk.pools
    ]
    rules = [
        f"for {_from(rule.above)} `-c {rule.stripe_count}"
        + (f" -S {lfs_size(rule.stripe_size)}" if rule.stripe_size else "")
        + (f" -p {rule.pool}" if rule.pool else "")
        + "`"
        + (f": {rule.reason}" if rule.reason else "")
        for rule in disk.striping_rules
    ]
    where = f" at {', '.join(f'`{mount}`' for mount in disk.mounts)}" if disk.mounts else ""
    note = f" {disk.note}" if disk.note else ""
    line = f"**{disk.name}** ({disk.type}){where}: {_joined(facts) or 'nothing else is known'}.{note}"
    return "\n  - ".join([line, *pools, *rules])


def _near(near: BurstBuffer) -> str:
    facts = [
        "of a node" if near.kind == "node_local" else "of all nodes of a job",
        "in memory" if near.in_memory else "",
        f"{format_bytes(near.capacity_per_node)} per node" if near.capacity_per_node else "",
        f"{_rates(near.bandwidth_per_node)} per node" if _rates(near.bandwidth_per_node) else "",
        *(f"`{line}`" for line in near.request),
    ]
    where = f" at `{near.dir}`" if near.dir else ""
    return f"**{near.name}** ({near.type}){where}: {_joined(facts)}."


def _layout(disk: FileSystem) -> str:
    if disk.site_pfl:
        return f"`{disk.site_pfl}`"
    count = "" if disk.stripe_count is None else f"-c {disk.stripe_count}"
    size = "" if disk.stripe_size is None else f"-S {lfs_size(disk.stripe_size)}"
    words = " ".join(filter(None, (count, size)))
    return f"`{words}`" if words else ""


def _from(size: int) -> str:
    if not size:
        return "shared files"
    return f"shared files of {f'{size // TiB}T' if size % TiB == 0 else lfs_size(size)} and more"


def _rates(rates: Rates) -> str:
    if rates.read is not None and rates.read == rates.write:
        return format_rate(rates.read)
    pairs = (("read", rates.read), ("write", rates.write))
    return ", ".join(f"{name} {format_rate(rate)}" for name, rate in pairs if rate is not None)


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{format_rate(rate)} per node"


def _text(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)


def _list(lines: Iterable[str]) -> list[str]:
    return [f"- {line}" for line in lines if line]


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/machines.md").write_text(page(), encoding="utf-8")
