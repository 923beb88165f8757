"""A centre's and a user's settings for all commands, and their sources.

For each setting, the first of these sources that has it counts:

1. the option of a command,
2. the environment: `VANI_SYSTEM`, `VANI_CACHE`, `VANI_HISTORY`,
3. the user's file: `$XDG_CONFIG_HOME/vani/config.toml`, by default `~/.config/vani/config.toml`,
4. the centre's file, named by `VANI_SITE`, by default `/etc/vani/site.toml`,
5. Vani's default.

Thresholds of rules are merged: a higher source overrides a lower one value by value.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vani.errors import InputError, nearest, refuse_named_pipe

KEYS: Final[Mapping[str, str]] = {
    "system": "the machine: a bundled name or a system.yaml",
    "cache": "folder for decoded calls and measurements",
    "history": "the history of runs: a file or postgresql://...",
    "contact": "the contact, shown below advice and reports",
    "documentation": "address of the centre's pages about storage",
}
"""Settings that are a single text, and their meaning; there is also the table `[thresholds.RULE]`."""

SITE_FILE: Final = Path("/etc/vani/site.toml")
_VARIABLES: Final[Mapping[str, str]] = {
    "system": "VANI_SYSTEM", "cache": "VANI_CACHE", "history": "VANI_HISTORY",
}  # fmt: skip
_PATHS: Final = ("cache", "history")
_MAX_BYTES: Final = 1 << 20
_LONGEST: Final = 1000


@dataclass(frozen=True, eq=False)
class Setting:
    """A value and its source, the name of a variable or file; None and `default` if it is not set."""

    key: str
    value: str | None
    origin: str


def settings() -> list[Setting]:
    """All settings that are a single text, in the order of `KEYS`.

    Raises
    ------
    InputError
        A file cannot be read, is not TOML, or contains unknown settings.
    """
    return [setting(key) for key in KEYS]


def setting(key: str) -> Setting:
    """One setting. Raises like `settings`."""
    variable = _VARIABLES.get(key)
    if variable is not None and os.environ.get(variable):
        return Setting(key, os.environ[variable], variable)
    for path in _files():
        value = _read(path).get(key)
        if value is not None:
            return Setting(key, _placed(key, value, path), str(path))
    return Setting(key, None, "default")


def contact_lines() -> list[str]:
    """Contacts and further reading, as lines below advice and reports. Raises like `settings`."""
    labels = {"contact": "Questions", "documentation": "More about storage here"}
    lines = [(says, setting(key).value) for key, says in labels.items()]
    return [f"{says}: {value}" for says, value in lines if value is not None]


def thresholds() -> tuple[dict[str, dict[str, Any]], dict[tuple[str, str], str]]:
    """Thresholds by rule and name, and for each one the file that set it. Raises like `settings`."""
    by_rule: dict[str, dict[str, Any]] = {}
    origins: dict[tuple[str, str], str] = {}
    for path in reversed(_files()):
        for rule, values in _read(path).get("thresholds", {}).items():
            for name, value in values.items():
                by_rule.setdefault(rule, {})[name] = value
                origins[rule, name] = str(path)
    return by_rule, origins


def _files() -> list[Path]:
    """The user's file, then the centre's."""
    named = os.environ.get("VANI_SITE")
    base = os.environ.get("XDG_CONFIG_HOME")
    # The specification says that relative paths are ignored.
    own: list[Path] = []
    try:
        home = Path(base) if base and Path(base).is_absolute() else Path.home() / ".config"
        own = [home / "vani" / "config.toml"]
    except RuntimeError:
        pass  # A user that no table of users knows has no home, and no file there.
    return [*own, Path(named) if named else SITE_FILE]


def _placed(key: str, value: str, path: Path) -> str:
    """Resolve a path from a file relative to its folder; `~` is the user's home."""
    if key == "system" and (path.parent / value).is_file():
        return str(path.parent / value)
    if key not in _PATHS or "://" in value:
        return value
    return str(path.parent / Path(os.path.expandvars(value)).expanduser())


@functools.lru_cache(maxsize=8)
def _read(path: Path) -> Mapping[str, Any]:
    refuse_named_pipe(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get("VANI_SITE") == str(path):
            raise InputError("no such file", where=path, todo="VANI_SITE names it") from None
        return {}
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError) and not os.access(path.parent, os.X_OK):
            return {}  # The folder of another user, whose settings are not for this one.
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read ({why})", where=path) from error
    if len(content) > _MAX_BYTES:
        raise InputError("is longer than 1 MiB", where=path, todo="`vani config` lists its settings")
    import tomllib  # noqa: PLC0415 - most have no such file

    try:
        table = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=path) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"not TOML: {error}", where=path, todo="see https://toml.io") from None
    return _checked(table, path)


def _checked(table: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    known = (*KEYS, "thresholds")
    for key, value in table.items():
        if key not in known:
            raise InputError(f"unknown key {key!r}", where=path, todo=nearest(key, known))
        if key == "thresholds":
            if not isinstance(value, dict) or not all(isinstance(values, dict) for values in value.values()):
                todo = "write them as [thresholds.LUS002] with a line `name = number` each"
                raise InputError("[thresholds] contains no tables of rules", where=path, todo=todo)
        elif not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
            raise InputError(f"{key} is not text", where=path, todo=f"{key} is {KEYS[key]}")
        elif any(not letter.isprintable() for letter in value):
            raise InputError(f"{key} contains characters that do not print", where=path)
    return table
