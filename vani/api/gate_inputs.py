"""Inputs of `vani check`, `diff` and `baseline`: figures of a profile or a trace, a policy, baselines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vani.api.arguments import PathLike
from vani.api.run import Run
from vani.api.source import profile_of
from vani.gate import baselines as saved
from vani.gate.policy_checks import PolicyChecks, no_policy
from vani.gate.policy_file import find_policy, project_folder, read_policy
from vani.gate.profile_tree import Figures, path_text, read_bytes, read_figures
from vani.systems import files_of_system

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

def checks_of_policy(policy: PathLike | None, *, search: bool) -> PolicyChecks:
    """Checks from the given policy, from the nearest one, or the built-in list."""
    path = Path(policy) if policy is not None else find_policy(Path()) if search else None
    return read_policy(path) if path is not None else no_policy(project_folder(Path()) if search else Path())


def figures_of(
    run: Run,
    source: PathLike | Profile,
    columns: Collection[tuple[str, ...]],
    files: int,
    *,
    system: PathLike | System | None = None,
) -> Figures:
    """The profile as a tree; a trace gets the figures that its saved profile would have."""
    profile = profile_of(run, source, system=system, files=None)
    where = path_text(source) if isinstance(source, (str, Path)) else "profile"
    if isinstance(profile, (str, Path)):
        content = read_bytes(Path(profile), todo="name a profile or a trace")
    else:
        content = profile.to_yaml().encode()
    return read_figures(content, where, columns, model_files=files)


def lists_all_files(tree: Mapping[str, Any]) -> bool:
    """Whether a profile tree lists every file of its data set."""
    total = tree.get("dataset", {}).get("files")
    return isinstance(total, int) and len(tree.get("files", ())) >= total


def files_of_gate(
    policy: PathLike | None = None, *, baselines: Sequence[PathLike] | None = ()
) -> Iterator[Path]:
    """The files other than profiles that `check`, `diff` and `save_baseline` read, and no output may overwrite.

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
    yield from saved.files_to_compare(checks, [str(baseline) for baseline in baselines], missing_ok=True)
    if checks.table.system is not None:
        named = checks.folder / checks.table.system
        yield from files_of_system(named if named.is_file() else checks.table.system)
