"""What the gate compares: the figures of a profile or a trace, and what a policy asks of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vani.api.characterise import characterise
from vani.api.given import PathLike

if TYPE_CHECKING:
    from vani.engine.run import Progress
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
    profile: PathLike | Profile,
    columns: Collection[tuple[str, ...]],
    files: int,
    *,
    system: PathLike | System | None = None,
    progress: Progress | None = None,
) -> Figures:
    """A profile as a tree; a trace is held against a policy as its profile would be once it is written."""
    from vani.gate.profile_tree import path_text, read_bytes, read_figures  # noqa: PLC0415

    if not isinstance(profile, (str, Path)):
        return read_figures(profile.to_yaml().encode(), "profile", columns, model_files=files)
    path = Path(profile)
    if path.is_dir():
        made = characterise(path, files=None, system=system, progress=progress).profile
        content = made.to_yaml().encode()
    else:
        content = read_bytes(path, todo="name a profile or a trace")
    return read_figures(content, path_text(path), columns, model_files=files)


def lists_all_files(tree: Mapping[str, Any]) -> bool:
    """Whether a profile, as a tree, lists every file of its data set."""
    total = tree.get("dataset", {}).get("files")
    return isinstance(total, int) and len(tree.get("files", ())) >= total
