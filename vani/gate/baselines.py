"""Baselines: figures of earlier runs, collected from profiles and saved in one small document.

A figure on which all runs agree is a single value; otherwise it is a list with one value per run. Exact counts
therefore appear once, and `git diff` shows what changed. `baseline_of` merges runs, and `runs_of` splits them again.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError, InputError, os_errors_as
from vani.gate import matching
from vani.gate.attribute import parse_attribute, resolve
from vani.gate.difference import value_at
from vani.gate.policy import BASELINE, PolicyChecks, checks_of_policy, is_there
from vani.gate.tolerance import OF_IO, Dimension, limits_of, shown
from vani.schema.check import Baseline, BaselineRun, Source
from vani.schema.document import YAML, loads, read_bytes, text_of
from vani.schema.saved_profile import Column
from vani.schema.settings import PathLike
from vani.systems import files_of_system
from vani.units import counted

FILES: Final = 100
"""Most files and phases in a baseline, those with most I/O time: as many as the files that `vani profile` lists."""

FILE_COLUMNS: Final[tuple[Column, ...]] = (("io", "bytes"), ("io", "ops"), ("io", "time_s"))
"""Columns of files to read from a long profile that is added to a baseline."""

_MAX_BYTES: Final = 64 << 20
_MAX_VALUES: Final = 5_000_000
# Figures that do not describe the program or follow from others, and tables.
_LEFT_OUT: Final = {
    "schema", "generator", "traces", "provenance", "bounds", "timeline", "histogram", "common", "hints",
    "ops_share", "time_share", "verdict", "unseen", "patterns", "mounts",
}  # fmt: skip
_LEFT_OUT_OF_MANY: Final = {"metadata_kinds", "footprint", "past_end", "busy_s", "transfer_size", "bandwidth"}
_MANY: Final = ("files", "phases")
_IN_RUNS: Final = "in_runs"
_CALLS: Final = ("workflow", "io", "ops")
_IO_TIME: Final = ("io", "time_s", "total")
_GLOB: Final = "*?["


@dataclass(frozen=True)
class EarlierRuns:
    """The earlier runs in one file."""

    source: Source
    runs: tuple[matching.Tree, ...]
    origins: tuple[BaselineRun, ...]
    is_saved: bool
    """True for a baseline, False for a profile."""


# --- where baselines are ----------------------------------------------------------------------------


_DOCUMENTS: Final = (".yaml", ".yml", ".json")


def expand_name(folder: Path, name: str, where: str = "") -> list[Path]:
    """A name's file, documents (of a folder) or matches (of a glob), sorted by name. InputError if there are none."""
    path = folder / name
    if path.is_dir():
        paths = sorted(entry for entry in path.iterdir() if entry.suffix in _DOCUMENTS and entry.is_file())
        problem = "contains no .yaml or .json file"
    elif any(sign in name for sign in _GLOB) and not path.exists():
        try:
            anchor = Path(path.anchor)
            paths = sorted(match for match in anchor.glob(str(path.relative_to(anchor))) if match.is_file())
        except (ValueError, NotImplementedError, IndexError) as error:
            raise InputError(f"baseline {name!r} is not a glob ({error})", where=where) from error
        problem = "matches no file"
    else:
        # A pipe, such as from `<(...)`, is as good as a file.
        paths, problem = ([path] if path.exists() else []), "does not exist"
    if not paths:
        todo = "make one with `vani check PROFILE --save`"
        raise InputError(f"baseline {name!r} {problem}", where=where, todo=todo)
    return paths


def baseline_path(policy: PolicyChecks) -> Path:
    """Path of the saved baseline of a project.

    Raises
    ------
    InputError
        The policy names several files.
    """
    named = policy.table.baseline
    if named is None:
        return policy.folder / BASELINE
    names = [named] if isinstance(named, str) else named
    path = policy.folder / names[0] if len(names) == 1 else None
    if path is None or any(sign in names[0] for sign in _GLOB) or path.is_dir():
        raise InputError(
            "`baseline` names several files",
            where=policy.where("baseline"),
            todo="choose one with -o FILE, or name one file",
        )
    return path


def files_to_compare(policy: PolicyChecks, given: Sequence[str], *, missing_ok: bool = False) -> list[Path]:
    """The given files, or those that a policy names, or its folder's .vani/baseline.yaml if that exists.

    With `missing_ok`, a name that matches no file is skipped.

    Raises
    ------
    InputError
        A name matches no file.
    """
    named = policy.table.baseline
    if not given and named is None:
        place = policy.folder / BASELINE
        return [place] if is_there(place) else []
    names = [named] if isinstance(named, str) else named or []
    folder, where = (Path(), "") if given else (policy.folder, policy.where("baseline"))
    paths: list[Path] = []
    for name in given or names:
        try:
            paths += expand_name(folder, name, where)
        except InputError:
            if not missing_ok:
                raise
    return list(dict.fromkeys(paths))


def path_to_update(policy: PolicyChecks, given: Sequence[Path]) -> Path:
    """Path of the baseline to update: the given one, or else the policy's.

    Raises
    ------
    InputError
        Several were given, or the existing file is not a baseline.
    """
    if len(given) > 1 or (given and given[0].is_dir()):
        problem = "several baselines were given, but only one can be replaced"
        raise InputError(problem, todo="give one --baseline FILE")
    place = given[0] if given else baseline_path(policy)
    refuse_to_overwrite(place)
    return place


def write(baseline: Baseline, path: Path) -> None:
    """Write a baseline. Create its folder if that is `.vani`.

    Raises
    ------
    InputError
        The baseline cannot be written.
    """
    if path.parent.name == BASELINE.parent.name:
        with os_errors_as(InputError, "cannot be made", where=path.parent):
            path.parent.mkdir(exist_ok=True)
    baseline.save(path)


def refuse_to_overwrite(path: Path) -> None:
    """Refuse to overwrite anything but a saved baseline.

    Raises
    ------
    InputError
        The file is not a saved baseline.
    """
    if not path.is_file():
        return
    with os_errors_as(InputError, "cannot be read", where=path), path.open("rb") as file:
        begin = file.read(4096)
    kind = _kind(begin)
    if begin.strip() and kind != "vani.baseline":
        problem = "a profile" if kind == "vani.profile" else "no baseline"
        raise InputError(
            f"is {problem}: it is not overwritten",
            where=path,
            todo="save the baseline elsewhere with `vani check PROFILE --save FILE`",
        )


def _kind(content: bytes) -> str:
    """Schema that a document declares at its beginning, without the version; empty if it declares none."""
    for line in content[:4096].decode("utf-8-sig", "replace").splitlines():
        if line.startswith("schema:"):
            return line.removeprefix("schema:").strip().strip("\"'").partition("/")[0]
    return ""


# --- reading ----------------------------------------------------------------------------------------


def read_runs(path: Path, columns: Collection[Column], *, todo: str = "") -> EarlierRuns:
    """Read a baseline or a profile. `todo` is the advice in the error if it cannot be read.

    Raises
    ------
    DocumentError
        The file is neither.
    """
    content = read_bytes(path, todo=todo)
    where = matching.path_text(path)
    if _kind(content) == "vani.baseline":
        if len(content) > _MAX_BYTES:
            raise DocumentError(
                f"is longer than {_MAX_BYTES >> 20} MiB", where=path, todo="save it with fewer runs"
            )
        text = text_of(content, where)
        document = loads(text, Baseline, where=where)
        runs = tuple(runs_of(document, where))
        if any(isinstance(ops := value_at(run, _CALLS), dict) and ops.get("sync") is None for run in runs):
            line = YAML.line_of(text, ("figures", *_CALLS))
            what = "is a baseline of profiles of an older version"
            todo = "make it again with `vani check PROFILE --save FILE`"
            raise DocumentError(what, where=f"{where}:{line}", todo=todo)
        source = Source(path=where, sha256=hashlib.sha256(content).hexdigest())
        return EarlierRuns(source, runs, tuple(document.runs), is_saved=True)
    figures = matching.read_figures(content, where, columns)
    run = BaselineRun(version=figures.version, sha256=figures.sha256)
    return EarlierRuns(Source(path=where, sha256=figures.sha256), (figures.tree,), (run,), is_saved=False)


# --- merging runs ---------------------------------------------------------------------------------------


def baseline_of(runs: Sequence[tuple[BaselineRun, matching.Tree]], strip: Sequence[str] = ()) -> Baseline:
    """Merge the trees of several runs into one document."""
    names = matching.Names()
    trees = [_reduced(tree, "", strip) for _, tree in runs]
    return Baseline(runs=[run for run, _ in runs], figures=_merged(trees, "", names))


def run_of(figures: matching.Figures) -> tuple[BaselineRun, matching.Tree]:
    """The origin of a profile, and its tree with only the most important files.

    The profile must have been read with `model_files=FILES` or more.
    """
    run = BaselineRun(version=figures.version, sha256=figures.sha256)
    return run, figures.model.model_dump(by_alias=True)


def _reduced(node: Any, key: str, strip: Sequence[str], left_out: Collection[str] = _LEFT_OUT) -> Any:
    """The tree without nulls and figures that no check compares, and with only the most important files and phases."""
    if isinstance(node, Mapping):
        figures = {
            name: _reduced(below, name, strip, left_out)
            for name, below in node.items()
            if name not in left_out and (not isinstance(below, list) or _has_entities(name, below))
        }
        return {name: below for name, below in figures.items() if below is not None and below != {}}
    if not isinstance(node, list):
        return node
    order: Sequence[int] = range(len(node))
    if key in _MANY:
        left_out = {*left_out, *_LEFT_OUT_OF_MANY}
        times = [matching.number(value_at(entry, _IO_TIME)) or 0.0 for entry in node]
        order = sorted(order, key=lambda i: (-times[i], str(node[i].get("path")), i))[:FILES]
    reduced = [_reduced(node[i], "", strip, left_out) for i in order]
    if key not in ("files", "folders"):
        return reduced
    short = [str(identity[0]) for identity in matching.Names(strip).identities(key, node)]
    return [entity | {"path": short[i]} for i, entity in zip(order, reduced, strict=True)]


def _has_entities(key: str, items: Sequence[Any]) -> bool:
    return key in matching.IDENTITIES and all(isinstance(item, Mapping) for item in items)


def _merged(nodes: Sequence[Any], key: str, names: matching.Names) -> Any:
    """Merge several trees. A node that is null in a run is null below, too."""
    known = [node for node in nodes if node is not None]
    if known and all(isinstance(node, Mapping) for node in known):
        keys = dict.fromkeys(name for node in known for name in node)
        return {name: _merged([None if n is None else n.get(name) for n in nodes], name, names) for name in keys}
    if key in matching.IDENTITIES and any(isinstance(node, list) for node in known):
        return _merged_entities([node or [] for node in nodes], key, names)
    first = nodes[0]
    return first if all(type(node) is type(first) and node == first for node in nodes) else list(nodes)


def _merged_entities(lists: Sequence[list[Any]], key: str, names: matching.Names) -> list[Any]:
    by_run = [dict(zip(names.identities(key, entities), entities, strict=True)) for entities in lists]
    merged = []
    for identity in dict.fromkeys(entity for entities in by_run for entity in entities):
        present = [number for number, entities in enumerate(by_run) if identity in entities]
        entity = _merged([by_run[number][identity] for number in present], "", names)
        merged.append(entity if len(present) == len(lists) else entity | {_IN_RUNS: present})
    return merged


# --- splitting runs --------------------------------------------------------------------------------------


def runs_of(document: Baseline, where: str) -> list[matching.Tree]:
    """One tree for each run of a baseline.

    Raises
    ------
    DocumentError
        A list does not have one value for each run.
    """
    count = len(document.runs)
    everyone = tuple(range(count))
    if _checked(document.figures, "", everyone, where) > _MAX_VALUES:
        raise DocumentError("contains too many figures", where=where, todo="save it with fewer runs")
    return [_split(document.figures, everyone, number) for number in everyone]


def _checked(node: Any, key: str, present: tuple[int, ...], where: str) -> int:
    """Number of values over all runs at a node and below. Raises unless `_merged` may have made it for `present`."""
    if isinstance(node, Mapping):
        inside = (_checked(below, name, present, where) for name, below in node.items() if name != _IN_RUNS)
        return len(present) + sum(inside)
    if not isinstance(node, list):
        return len(present)
    if _has_entities(key, node):
        return sum(_checked(entity, "", _present(entity, key, present, where), where) for entity in node)
    if len(node) != len(present) or any(isinstance(value, (list, dict)) for value in node):
        raise _wrong(f"{key} has {counted(len(node), 'value')} for {counted(len(present), 'run')}", where)
    return len(present)


def _present(entity: Mapping[str, Any], key: str, present: tuple[int, ...], where: str) -> tuple[int, ...]:
    if any(isinstance(entity.get(name), (list, dict)) for name in matching.IDENTITIES[key]):
        raise _wrong(f"an entry of {key} has no name", where)
    if _IN_RUNS not in entity:
        return present
    run_numbers = entity[_IN_RUNS]
    known = set(present)
    if (
        not isinstance(run_numbers, list)
        or not run_numbers
        or not all(type(number) is int and number in known for number in run_numbers)
    ):
        raise _wrong(f"{_IN_RUNS} of an entry of {key} is not a list of runs", where)
    return tuple(run_numbers)


def _wrong(problem: str, where: str) -> DocumentError:
    return DocumentError(problem, where=where, todo="save the baseline again with `vani check PROFILE --save`")


def _split(node: Any, present: Sequence[int], number: int) -> Any:
    """The values of run `number` at a node that merges the runs `present`."""
    if isinstance(node, Mapping):
        return {name: _split(below, present, number) for name, below in node.items() if name != _IN_RUNS}
    if not isinstance(node, list):
        return node
    if all(isinstance(entity, Mapping) for entity in node):
        inside = [(entity, entity.get(_IN_RUNS, present)) for entity in node]
        return [_split(entity, run_numbers, number) for entity, run_numbers in inside if number in run_numbers]
    return node[present.index(number)]


def files_of_gate(policy: PathLike | None = None, *, baselines: Sequence[PathLike] | None = ()) -> Iterator[Path]:
    """The files other than profiles that `check` and `diff` read, and no output may overwrite.

    Parameters
    ----------
    policy, baselines
        As for `check`; with None for the baselines, only the policy and its files.

    Raises
    ------
    InputError
        The policy cannot be used.
    """
    checks = checks_of_policy(policy, search=True)
    if checks.path is not None:
        yield checks.path
    if baselines is None:
        return
    yield from files_to_compare(checks, [str(baseline) for baseline in baselines], missing_ok=True)
    if checks.table.system is not None:
        named = checks.folder / checks.table.system
        yield from files_of_system(named if named.is_file() else checks.table.system)


_SHOWN: Final = (
    "workflow.processes",
    "workflow.runtime_s",
    "workflow.files.total",
    *(f"{entity}.{key}" for entity in ("workflow", "apps[*]") for key in OF_IO),
)


def key_figures(runs: Sequence[matching.Tree]) -> list[tuple[str, str]]:
    """Attributes and their values as text: one value, or the median with the minimum and maximum."""
    names = matching.Names()
    rows: dict[str, str] = {}
    lone = all(len(run.get("apps") or ()) == 1 for run in runs)
    for text in _SHOWN:
        if lone and text.startswith("apps"):
            continue
        for leaf in resolve(parse_attribute(text))[1]:
            for run in runs:
                for match in matching.matches(leaf, run, names, "baseline"):
                    name = matching.trail_text(match.trail)
                    if name not in rows:
                        values = [matching.find(match.trail, run, names)[1] for run in runs]
                        rows[name] = _spread(values, leaf.dimension)
    files = [len(run["files"]) for run in runs if isinstance(run.get("files"), list)]
    rows["remaining files"] = _spread(files, "count")
    return list(rows.items())


def _spread(values: Sequence[Any], dimension: Dimension) -> str:
    known = [value for value in map(matching.number, values) if value is not None]
    if not known:
        return "unknown"
    if min(known) == max(known):
        return shown(known[0], dimension)
    middle = limits_of(known, relative=0, absolute=0).center
    return f"{shown(middle, dimension)} ({shown(min(known), dimension)} to {shown(max(known), dimension)})"
