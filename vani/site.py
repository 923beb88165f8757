"""A centre's and a user's settings for all commands, and their sources; and the memory that a command may take.

For each setting, the first of these sources that has it counts:

1. the option of a command,
2. the environment: `VANI_SYSTEM`, `VANI_CACHE`, `VANI_HISTORY`,
3. the user's file: `$XDG_CONFIG_HOME/vani/config.toml`, by default `~/.config/vani/config.toml`,
4. the centre's file, named by `VANI_SITE`, by default `/etc/vani/site.toml`,
5. Vani's default.

Thresholds of rules are merged: a higher source overrides a lower one value by value.

A file for `--config` has a table for the user's choice. Sizes may have units::

    [advise]
    ignore = ["POS"]

    [advise.thresholds.LUS002]
    reach = 0.8
    min_bytes = "1G"
"""

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final, TypeVar

from vani.errors import InputError, nearest, one_line, refuse_named_pipe
from vani.units import format_bytes

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
    if not os.path.exists(path):  # noqa: PTH110 - false in the folder of another user, whose settings are not for this one
        folder = path.parent
        if os.environ.get("VANI_SITE") == str(path) and (os.access(folder, os.X_OK) or not folder.exists()):
            raise InputError("no such file", where=path, todo="VANI_SITE names it")
        return {}
    return _checked(read_toml(path, "`vani config` lists its settings"), path)


def read_toml(path: Path, todo: str) -> dict[str, Any]:
    """Read a TOML file of settings.

    Raises
    ------
    InputError
        The file does not exist, cannot be read, is too long (then with `todo`), or is not TOML.
    """
    import tomllib  # noqa: PLC0415 - most have no such file

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
        raise InputError("is longer than 1 MiB", where=path, todo=todo)
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=path, todo=todo) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"not TOML: {error}", where=path, todo="see https://toml.io") from None


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


_CHOICE: Final = ("select", "ignore", "thresholds")


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
    return settings_of(read_toml(path, "name a TOML file of settings").get("advise", {}), path)


def settings_of(table: object, path: Path) -> Settings:
    """Convert the table `advise` of the file at `path`. See `read_settings` for errors."""
    if not isinstance(table, dict):
        raise InputError("`advise` is not a table", where=path, todo="write it as [advise]")
    for key in table:
        if key not in _CHOICE:
            raise InputError(f"unknown key {key!r} in [advise]", where=path, todo=nearest(key, _CHOICE))
    thresholds = table.get("thresholds", {})
    if not isinstance(thresholds, dict) or not all(
        isinstance(threshold, dict) for threshold in thresholds.values()
    ):
        todo = "write them as [advise.thresholds.LUS002] with a line `name = number` each"
        raise InputError("[advise.thresholds] contains no tables of rules", where=path, todo=todo)
    select = _words(table, "select", path)
    return Settings(select, _words(table, "ignore", path) or (), thresholds)


def _words(table: Mapping[str, Any], key: str, path: Path) -> tuple[str, ...] | None:
    if key not in table:
        return None
    value = table[key]
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{key} in [advise] is not a list of rules", where=path, todo=f'write {key} = ["LUS"]')
    return tuple(words)


T = TypeVar("T", bytes, str)


class MemoryBudget:
    """Expected memory of a command against its limit: a base, and a factor by format times the decoded content.

    Only formats whose content stays in memory are counted; docs/scaling.md has the factors and how they were measured.
    """

    BASE: Final = 160 << 20
    _PLENTY: Final = 1 << 30
    _STEP: Final = 1 << 20

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, limit: int | None, usual: Callable[[], int | None] = lambda: None) -> None:
        """Begin a command: refuse its input beyond `limit` bytes; without one, warn once beyond the `usual` limit."""
        self._limit, self._usual, self._expected = limit, usual, self.BASE

    def expect(self, more: int, where: Path) -> None:
        """Expect `more` bytes.

        Raises
        ------
        InputError
            They exceed the limit, and the user gave it.
        """
        self._expected += more
        if self._limit is not None and self._expected > self._limit:
            fault = f"takes more than {format_bytes(self._limit)} of memory"
            raise InputError(fault, where=where, todo="give more with --memory, or leave it out")
        if self._limit is None and self._expected > self._PLENTY and self._expected > (most := self._usual() or inf):
            self._usual = lambda: None
            fault = f"takes more than {format_bytes(most)}, half of the memory (--memory SIZE refuses it)"
            print(f"vani: {one_line(str(where))}: {fault}", file=sys.stderr)  # noqa: T201

    def charged(self, pieces: Iterable[T], factor: int, where: Path) -> Iterator[T]:
        """The pieces, with `factor` bytes expected for each of theirs before more follow; raises like `expect`."""
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > self._STEP:
                self.expect(factor * size, where)
                size = 0
            yield piece


BUDGET: Final = MemoryBudget()
"""Of the running command."""
