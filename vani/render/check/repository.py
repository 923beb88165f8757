"""Paths of a check relative to the root of the repository, as code hosts know them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.check import Check, Judgement, Source

def root_of(folder: Path) -> Path:
    """The nearest folder at or above `folder` that contains a git repository, or `folder` itself."""
    start = Path(os.path.realpath(folder))
    for place in (start, *start.parents):
        # `.git` is a file in a worktree or a submodule.
        if (place / ".git").exists():
            return place
    return start


def in_repository(check: Check, *, folder: Path) -> Check:
    """Return `check` with the paths of policy, profile and baselines relative to the repository's root.

    Annotations, code scanning and code quality reports know files only by these paths.

    Parameters
    ----------
    folder
        The base of relative paths: the command's working directory. Paths outside the repository are unchanged.
    """
    root = root_of(folder)
    known: dict[str, str] = {}

    def seen(path: str) -> str:
        if path not in known:
            known[path] = _relative(path, folder, root)
        return known[path]

    def source(original: Source) -> Source:
        return original.model_copy(update={"path": seen(original.path)})

    def judgement(original: Judgement) -> Judgement:
        if original.place is None:
            return original
        return original.model_copy(
            update={"place": original.place.model_copy(update={"path": seen(original.place.path)})}
        )

    return check.model_copy(
        update={
            "profile": source(check.profile),
            "policy": None if check.policy is None else source(check.policy),
            "baselines": [source(baseline) for baseline in check.baselines],
            "tuned": None if check.tuned is None else source(check.tuned),
            "judgements": [judgement(entry) for entry in check.judgements],
        }
    )


def _relative(path: str, folder: Path, root: Path) -> str:
    if not path or "\0" in path:
        return path
    whole = Path(folder) / path
    try:
        # The file itself may be a link to anywhere; the repository contains its name.
        whole = Path(os.path.realpath(whole.parent)) / whole.name
        return whole.relative_to(root).as_posix()
    except (ValueError, OSError):
        return path
