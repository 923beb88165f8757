"""The router, or the link, bridge and I/O node, of each compute node, from a site's CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vani.centre.write_time.models.placement import Groups, groups_of
from vani.errors import InputError, one_line
from vani.schema.host_list import expand

_MOST_NODES: Final = 1_000_000
_SHOWN: Final = 3


@dataclass(frozen=True)
class NodeMap:
    """The components between each node and the file system.

    Parameters
    ----------
    behind
        Names of a node's components by node, in the order of `kinds`.
    """

    kinds: tuple[str, ...]
    behind: Mapping[str, tuple[str, ...]]
    path: Path

    def groups(self, nodes: Sequence[str]) -> dict[str, Groups]:
        """The groups that a job's nodes form, by kind of component.

        Raises
        ------
        InputError
            A node is not in the map; the error names the first ones.
        """
        unknown = [node for node in nodes if node not in self.behind]
        if unknown:
            some = ", ".join(one_line(node) for node in unknown[:_SHOWN])
            more = f" and {len(unknown) - _SHOWN:,} more" if len(unknown) > _SHOWN else ""
            raise InputError(f"has no node {some}{more}", where=self.path, todo="add a row for each node")
        return {
            kind: groups_of(self.behind[node][number] for node in nodes)
            for number, kind in enumerate(self.kinds)
        }

    def of_job(self, hosts: str | None, count: int | None) -> list[str]:
        """The nodes of a job: those in a host list, or all mapped nodes.

        Parameters
        ----------
        hosts
            Host list in Slurm's notation: `nid[00001-00128]`.
        count
            Required number of nodes; None: any.

        Raises
        ------
        InputError
            The list is invalid, or the number of nodes differs.
        """
        nodes = expand(hosts) if hosts is not None else list(self.behind)
        if count is not None and len(nodes) != count:
            what = "--job-nodes" if hosts is not None else str(self.path)
            todo = "leave -n out" if hosts is not None else "name the job's nodes with --job-nodes"
            raise InputError(f"names {len(nodes):,} nodes where the job has {count:,}", where=what, todo=todo)
        return nodes


def read_mapping(path: Path, kinds: Sequence[str]) -> NodeMap:
    """Read a CSV file with a column `node` and one for each kind: `router`, or `io_node`, `bridge`, `link`.

    Raises
    ------
    InputError
        The file or a column is missing, a column or node occurs twice, or a cell is empty. The error names the
        line.
    """
    columns = [kind.lower().replace("/", "").replace(" ", "_") for kind in kinds]
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = ((reader.line_num, row) for row in reader if row and not row[0].startswith("#"))
            head = [name.strip() for name in next(rows, (1, []))[1]]
            places = [_place(name, head, path) for name in ("node", *columns)]
            behind = _components(rows, head, places, path)
    except FileNotFoundError:
        raise InputError("no such file", where=path) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read as CSV ({why})", where=path) from error
    if not behind:
        raise InputError("maps no node", where=path, todo="add a row for each node")
    return NodeMap(tuple(kinds), behind, path)


def _place(name: str, head: Sequence[str], path: Path) -> int:
    if head.count(name) != 1:
        what = f"column {name!r} appears twice" if name in head else f"has no column {name!r}"
        raise InputError(what, where=path, todo="start it with the names of the columns, each once")
    return head.index(name)


def _components(
    rows: Iterator[tuple[int, list[str]]], head: Sequence[str], places: Sequence[int], path: Path
) -> dict[str, tuple[str, ...]]:
    behind: dict[str, tuple[str, ...]] = {}
    for line, row in rows:
        where = f"{path}: line {line}"
        if len(row) != len(head):
            raise InputError(
                f"{len(row)} cells where there are {len(head)} columns", where=where, todo="complete it"
            )
        node, *components = (row[place].strip() for place in places)
        if not node or not all(components):
            raise InputError("has an empty cell", where=where, todo="fill it in or leave the row out")
        if node in behind:
            raise InputError(f"node {one_line(node)} appears twice", where=where, todo="leave one out")
        if len(behind) == _MOST_NODES:
            raise InputError(f"maps more than {_MOST_NODES:,} nodes", where=path, todo="leave some out")
        behind[node] = tuple(components)
    return behind
