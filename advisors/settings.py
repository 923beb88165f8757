"""Settings from `--config vani.toml`: the rules to evaluate, and their thresholds::

    [advise]
    ignore = ["POS"]

    [advise.thresholds.LUS002]
    reach = 0.8
    min_bytes = "1G"

Sizes may have units.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from vani.errors import InputError, nearest, refuse_named_pipe

_KEYS: Final = ("select", "ignore", "thresholds")
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Settings:
    """The table `[advise]`. Unset keys are None or empty."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    thresholds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_settings(path: Path) -> Settings:
    """Read the table `[advise]` of a TOML file. Other tables belong to other commands.

    Unknown rules and thresholds are detected when the rules are evaluated.

    Raises
    ------
    InputError
        The file does not exist or is not TOML, or `[advise]` has an unknown key.
    """
    return settings_of(_tables(path).get("advise", {}), path)


def settings_of(table: object, path: Path) -> Settings:
    """Convert the table `advise` of the file at `path`. See `read_settings` for errors."""
    if not isinstance(table, dict):
        raise InputError("`advise` is not a table", where=path, todo="write it as [advise]")
    for key in table:
        if key not in _KEYS:
            raise InputError(f"unknown key {key!r} in [advise]", where=path, todo=nearest(key, _KEYS))
    thresholds = table.get("thresholds", {})
    if not isinstance(thresholds, dict) or not all(
        isinstance(threshold, dict) for threshold in thresholds.values()
    ):
        todo = "write them as [advise.thresholds.LUS002] with a line `name = number` each"
        raise InputError("[advise.thresholds] contains no tables of rules", where=path, todo=todo)
    select = _words(table, "select", path)
    return Settings(select, _words(table, "ignore", path) or (), thresholds)


def _tables(path: Path) -> dict[str, Any]:
    refuse_named_pipe(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError("no such file", where=path) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read ({why})", where=path) from error
    if len(content) > _MAX_BYTES:
        raise InputError("is longer than 1 MiB", where=path, todo="name a TOML file of settings")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=path, todo="name a TOML file of settings") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"not TOML: {error}", where=path, todo="see https://toml.io") from None


def _words(table: Mapping[str, Any], key: str, path: Path) -> tuple[str, ...] | None:
    if key not in table:
        return None
    value = table[key]
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{key} in [advise] is not a list of rules", where=path, todo=f'write {key} = ["LUS"]')
    return tuple(words)
