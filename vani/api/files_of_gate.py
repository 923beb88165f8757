"""What `vani check` and its kin read beside profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from vani.api.figures import policy_asked
from vani.api.given import PathLike

__all__ = ["files_of_gate"]


def files_of_gate(
    policy: PathLike | None = None, *, baselines: Sequence[PathLike] | None = ()
) -> Iterator[Path]:
    """The files beside profiles that `check`, `diff` and `save_baseline` read, for what must not be written over.

    Parameters
    ----------
    policy, baselines
        As for `check`; without baselines (None) only the policy and what it names.

    Raises
    ------
    InputError
        The policy cannot be used.
    """
    from vani.gate import baselines as saved  # noqa: PLC0415 - loads the models
    from vani.systems import files_of_system  # noqa: PLC0415

    asked = policy_asked(policy, search=True)
    if asked.path is not None:
        yield asked.path
    if baselines is None:
        return
    yield from saved.chosen(asked, [str(one) for one in baselines], missing_ok=True)
    if asked.table.system is not None:
        named = asked.folder / asked.table.system
        yield from files_of_system(named if named.is_file() else asked.table.system)
