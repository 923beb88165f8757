"""Baselines: the figures of earlier runs, gathered from profiles and saved in one small document.

Where runs agree the document holds one value, else a list with one for each, so that exact counts are there once and
git shows what changed. `runs_of` takes apart what `baseline_of` put together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError, InputError
from vani.gate.asked import Asked
from vani.gate.entities import IDENTITIES, Names
from vani.gate.policy_search import BASELINE, is_there
from vani.gate.profile_tree import Figures, Tree, path_text, read_bytes, read_figures
from vani.schema.baseline import Baseline, BaselineRun
from vani.schema.check import Source
from vani.schema.columns_of_files import Column
from vani.schema.document import loads
from vani.schema.lifts import profile_2
from vani.units import counted

__all__ = [
    "FILES",
    "Earlier",
    "baseline_of",
    "check_place",
    "expanded",
    "located",
    "place_of",
    "read_runs",
    "run_of",
    "runs_of",
]

FILES: Final = 100
"""A baseline keeps so many files and phases, those with the most I/O time: as many as `vani profile` lists files."""

FILE_COLUMNS: Final[tuple[Column, ...]] = (("io", "bytes"), ("io", "ops"), ("io", "time_s"))
"""Read of the files of a long profile that is itself used as a baseline to add to."""

_MAX_BYTES: Final = 64 << 20
_MAX_VALUES: Final = 5_000_000
# What says nothing about the program, what follows from other figures, and tables.
_LEFT_OUT: Final = {
    "schema", "generator", "traces", "provenance", "bounds", "timeline", "histogram", "common", "hints",
    "ops_share", "time_share",
}  # fmt: skip
_LEFT_OUT_OF_MANY: Final = {"metadata_kinds", "footprint", "past_end", "busy_s", "transfer_size", "bandwidth"}
_MANY: Final = ("files", "phases")
_IN_RUNS: Final = "in_runs"
_GLOB: Final = "*?["


@dataclass(frozen=True)
class Earlier:
    """A file with earlier runs."""

    source: Source
    runs: tuple[Tree, ...]
    made: tuple[BaselineRun, ...]
    is_saved: bool
    """A baseline, not a profile."""


# --- where baselines are ----------------------------------------------------------------------------


def located(asked: Asked, *, missing_ok: bool = False) -> list[Path]:
    """The files that a policy names, or its folder's .vani/baseline.yaml if that exists.

    With `missing_ok`, a name that stands for no file is passed over.

    Raises
    ------
    InputError
        A name that stands for no file.
    """
    named = asked.table.baseline
    if named is None:
        place = asked.folder / BASELINE
        return [place] if is_there(place) else []
    found: list[Path] = []
    for name in [named] if isinstance(named, str) else named:
        try:
            found += expanded(asked.folder, name, asked.where("baseline"))
        except InputError:
            if not missing_ok:
                raise
    return list(dict.fromkeys(found))


_DOCUMENTS: Final = (".yaml", ".yml", ".json")


def expanded(folder: Path, name: str, where: str = "") -> list[Path]:
    """The files that a name stands for: itself, the documents of a folder, or what a glob finds, by name."""
    path = folder / name
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.suffix in _DOCUMENTS and one.is_file())
        what = "holds no .yaml or .json file"
    elif any(sign in name for sign in _GLOB) and not path.exists():
        try:
            anchor = Path(path.anchor)
            found = sorted(one for one in anchor.glob(str(path.relative_to(anchor))) if one.is_file())
        except (ValueError, NotImplementedError, IndexError) as error:
            raise InputError(f"baseline {name!r} is not a glob ({error})", where=where) from error
        what = "fits no file"
    else:
        # A pipe such as that of `<(...)` is as good as a file.
        found, what = ([path] if path.exists() else []), "does not exist"
    if not found:
        todo = "make one with `vani baseline save PROFILE`"
        raise InputError(f"baseline {name!r} {what}", where=where, todo=todo)
    return found


def place_of(asked: Asked) -> Path:
    """Where the baseline of a project is saved.

    Raises
    ------
    InputError
        The policy names several files.
    """
    named = asked.table.baseline
    if named is None:
        return asked.folder / BASELINE
    names = [named] if isinstance(named, str) else named
    path = asked.folder / names[0] if len(names) == 1 else None
    if path is None or any(sign in names[0] for sign in _GLOB) or path.is_dir():
        raise InputError(
            "`baseline` names several files",
            where=asked.where("baseline"),
            todo="say which with -o FILE, or name one file",
        )
    return path


def chosen(asked: Asked, given: Sequence[str], *, missing_ok: bool = False) -> list[Path]:
    """The files to compare with: what was given, else what the policy names."""
    if not given:
        return located(asked, missing_ok=missing_ok)
    if missing_ok and not Path(given[0]).exists():
        return []
    return list(dict.fromkeys(path for name in given for path in expanded(Path(), name)))


def update_place(asked: Asked, given: Sequence[Path]) -> Path:
    """Which baseline is made anew: the one that was given, else the policy's.

    Raises
    ------
    InputError
        Several were given, or what is there is no baseline.
    """
    if len(given) > 1 or (given and given[0].is_dir()):
        raise InputError(
            "several baselines were given: which is to be made anew?", todo="give one --baseline FILE"
        )
    place = given[0] if given else place_of(asked)
    check_place(place)
    return place


def write(baseline: Baseline, path: Path) -> None:
    """Write a baseline, and make its folder if that is .vani.

    Raises
    ------
    InputError
        It cannot be written.
    """
    if path.parent.name == BASELINE.parent.name:
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be made ({error.strerror})", where=path.parent) from error
    baseline.save(path)


def check_place(path: Path) -> None:
    """Refuse to write over anything but a saved baseline.

    Raises
    ------
    InputError
        It is something else.
    """
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            begin = file.read(4096)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=path) from error
    kind = _kind(begin)
    if begin.strip() and kind != "vani.baseline":
        what = "a profile" if kind == "vani.profile" else "no baseline"
        raise InputError(
            f"is {what}: it is not overwritten",
            where=path,
            todo="save the baseline elsewhere with `vani baseline save PROFILE -o FILE`",
        )


def _kind(content: bytes) -> str:
    """What stands behind `schema:` at the beginning of a document, without its version."""
    for line in content[:4096].decode("utf-8-sig", "replace").splitlines():
        if line.startswith("schema:"):
            return line.removeprefix("schema:").strip().strip("\"'").partition("/")[0]
    return ""


# --- reading ----------------------------------------------------------------------------------------


def read_runs(path: Path, columns: Collection[Column], *, todo: str = "") -> Earlier:
    """Read a baseline or a profile; `todo` is what to do where that cannot be read.

    Raises
    ------
    DocumentError
        It is neither.
    """
    content = read_bytes(path, todo=todo)
    where = path_text(path)
    if _kind(content) == "vani.baseline":
        if len(content) > _MAX_BYTES:
            raise DocumentError(
                f"is longer than {_MAX_BYTES >> 20} MiB", where=path, todo="save it with fewer runs"
            )
        try:
            document = loads(content.decode("utf-8-sig"), Baseline, where=where)
        except UnicodeDecodeError:
            raise DocumentError("is not UTF-8 text", where=path) from None
        digest = hashlib.sha256(content).hexdigest()
        return Earlier(
            Source(path=where, sha256=digest),
            tuple(runs_of(document, where)),
            tuple(document.runs),
            is_saved=True,
        )
    figures = read_figures(content, where, columns)
    run = BaselineRun(version=figures.version, sha256=figures.sha256)
    return Earlier(Source(path=where, sha256=figures.sha256), (figures.tree,), (run,), is_saved=False)


# --- together ---------------------------------------------------------------------------------------


def baseline_of(runs: Sequence[tuple[BaselineRun, Tree]], strip: Sequence[str] = ()) -> Baseline:
    """One document of the trees of several runs."""
    names = Names()
    trees = [_reduced(tree, "", strip) for _, tree in runs]
    return Baseline(runs=[run for run, _ in runs], figures=_merged(trees, "", names))


def run_of(figures: Figures) -> tuple[BaselineRun, Tree]:
    """What a baseline keeps of a profile: its origin, and the tree of its most important files.

    The profile was read with `model_files=FILES` or more.
    """
    return BaselineRun(version=figures.version, sha256=figures.sha256), figures.model.model_dump(
        by_alias=True
    )


def _reduced(node: Any, key: str, strip: Sequence[str], left_out: Collection[str] = _LEFT_OUT) -> Any:
    """The tree without what no check compares, without nulls, and with the most important files and phases."""
    if isinstance(node, Mapping):
        kept = {
            name: _reduced(below, name, strip, left_out)
            for name, below in node.items()
            if name not in left_out and (not isinstance(below, list) or _holds_entities(name, below))
        }
        return {name: below for name, below in kept.items() if below is not None and below != {}}
    if not isinstance(node, list):
        return node
    order: Sequence[int] = range(len(node))
    if key in _MANY:
        left_out = {*left_out, *_LEFT_OUT_OF_MANY}
        order = sorted(order, key=lambda i: (-_io_time(node[i]), str(node[i].get("path")), i))[:FILES]
    reduced = [_reduced(node[i], "", strip, left_out) for i in order]
    if key not in ("files", "folders"):
        return reduced
    short = [str(identity[0]) for identity in Names(strip).identities(key, node)]
    return [one | {"path": short[i]} for i, one in zip(order, reduced, strict=True)]


def _holds_entities(key: str, items: Sequence[Any]) -> bool:
    return key in IDENTITIES and all(isinstance(one, Mapping) for one in items)


def _io_time(entry: Mapping[str, Any]) -> float:
    total = entry.get("io", {}).get("time_s", {}).get("total")
    return float(total) if isinstance(total, (int, float)) else 0.0


def _merged(nodes: Sequence[Any], key: str, names: Names) -> Any:
    """One tree of several; null in a run is null in all that is below."""
    known = [node for node in nodes if node is not None]
    if known and all(isinstance(node, Mapping) for node in known):
        keys = dict.fromkeys(name for node in known for name in node)
        return {
            name: _merged([None if n is None else n.get(name) for n in nodes], name, names) for name in keys
        }
    if key in IDENTITIES and any(isinstance(node, list) for node in known):
        return _merged_entities([node or [] for node in nodes], key, names)
    first = nodes[0]
    return first if all(type(node) is type(first) and node == first for node in nodes) else list(nodes)


def _merged_entities(lists: Sequence[list[Any]], key: str, names: Names) -> list[Any]:
    by_run = [dict(zip(names.identities(key, entities), entities, strict=True)) for entities in lists]
    merged = []
    for identity in dict.fromkeys(one for entities in by_run for one in entities):
        present = [number for number, entities in enumerate(by_run) if identity in entities]
        entity = _merged([by_run[number][identity] for number in present], "", names)
        merged.append(entity if len(present) == len(lists) else entity | {_IN_RUNS: present})
    return merged


# --- and apart --------------------------------------------------------------------------------------


def runs_of(document: Baseline, where: str) -> list[Tree]:
    """One tree for each run of a baseline.

    Raises
    ------
    DocumentError
        A list has not one value for each run.
    """
    count = len(document.runs)
    everyone = tuple(range(count))
    if _checked(document.figures, "", everyone, where) > _MAX_VALUES:
        raise DocumentError("holds too many figures", where=where, todo="save it with fewer runs")
    return [_lifted(_apart(document.figures, everyone, number)) for number in everyone]


def _checked(node: Any, key: str, present: tuple[int, ...], where: str) -> int:
    """How many values all runs have at a node and below, if it is as `_merged` makes it for the runs `present`."""
    if isinstance(node, Mapping):
        inside = (_checked(below, name, present, where) for name, below in node.items() if name != _IN_RUNS)
        return len(present) + sum(inside)
    if not isinstance(node, list):
        return len(present)
    if _holds_entities(key, node):
        return sum(_checked(one, "", _present(one, key, present, where), where) for one in node)
    if len(node) != len(present) or any(isinstance(one, (list, dict)) for one in node):
        raise _wrong(f"{key} holds {counted(len(node), 'value')} for {counted(len(present), 'run')}", where)
    return len(present)


def _present(entity: Mapping[str, Any], key: str, present: tuple[int, ...], where: str) -> tuple[int, ...]:
    if any(isinstance(entity.get(name), (list, dict)) for name in IDENTITIES[key]):
        raise _wrong(f"an entry of {key} has no name", where)
    if _IN_RUNS not in entity:
        return present
    there = entity[_IN_RUNS]
    known = set(present)
    if (
        not isinstance(there, list)
        or not there
        or not all(type(one) is int and one in known for one in there)
    ):
        raise _wrong(f"{_IN_RUNS} of an entry of {key} is not a list of runs", where)
    return tuple(there)


def _wrong(what: str, where: str) -> DocumentError:
    return DocumentError(what, where=where, todo="save the baseline anew with `vani baseline save`")


def _lifted(run: Tree) -> Tree:
    """A run with the shares of `vani.profile/2`, whose profile may have been of /1: that had no number for flushing."""
    ops: Any = run
    for key in ("workflow", "io", "ops"):
        ops = ops.get(key) if isinstance(ops, Mapping) else None
    if not isinstance(ops, Mapping) or "sync" in ops:
        return run
    return {key: below for key, below in profile_2(run).items() if key != "schema"}


def _apart(node: Any, present: Sequence[int], number: int) -> Any:
    """What run `number` has at a node at which the runs `present` are merged."""
    if isinstance(node, Mapping):
        return {name: _apart(below, present, number) for name, below in node.items() if name != _IN_RUNS}
    if not isinstance(node, list):
        return node
    if all(isinstance(one, Mapping) for one in node):
        inside = [(one, one.get(_IN_RUNS, present)) for one in node]
        return [_apart(one, there, number) for one, there in inside if number in there]
    return node[present.index(number)]
