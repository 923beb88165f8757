"""What the gate compares: the figures of a profile or a trace, and what a policy asks of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vani.api.given import PathLike
from vani.api.run import Run
from vani.api.source import profile_of

if TYPE_CHECKING:
    from vani.gate.asked import Asked
    from vani.gate.profile_tree import Figures
    from vani.schema.profile import Profile
    from vani.schema.system import System

__all__ = ["figures_of", "lists_all_files", "policy_asked"]


def policy_asked(policy: PathLike | None, *, search: bool) -> Asked:
    """What a policy asks: that of a file, the nearest one, or the built-in list."""
    from vani.gate.asked import no_policy  # noqa: PLC0415
    from vani.gate.policy import read_policy  # noqa: PLC0415
    from vani.gate.policy_search import find_policy, project_folder  # noqa: PLC0415

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
    """A profile as a tree; a trace is held against a policy as its profile would be once it is written."""
    from vani.gate.profile_tree import path_text, read_bytes, read_figures  # noqa: PLC0415

    found = profile_of(run, source, system=system, files=None)
    where = path_text(source) if isinstance(source, (str, Path)) else "profile"
    if isinstance(found, (str, Path)):
        content = read_bytes(Path(found), todo="name a profile or a trace")
    else:
        content = found.to_yaml().encode()
    return read_figures(content, where, columns, model_files=files)


def lists_all_files(tree: Mapping[str, Any]) -> bool:
    """Whether a profile, as a tree, lists every file of its data set."""
    total = tree.get("dataset", {}).get("files")
    return isinstance(total, int) and len(tree.get("files", ())) >= total
