"""The policy of a project: finds and reads its file, and finds its saved baseline."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError, InputError
from vani.gate.policy_checks import PolicyChecks, no_policy
from vani.gate.policy_compiler import compile_checks
from vani.gate.profile_tree import path_text, read_bytes
from vani.schema import policy as spec
from vani.schema.check import Source
from vani.schema.document import YAML, read_tree, validate
from vani.schema.policy import Policy
from vani.schema.settings import PathLike
from vani.schema.syntax.toml_reader import TOML

FILE_NAMES: Final = ("vani.toml", ".vani.yaml")
BASELINE: Final = Path(".vani/baseline.yaml")
MAX_BYTES: Final = 1 << 20
"""Longest accepted policy: no user writes a megabyte of settings by hand."""


def find_policy(start: Path) -> Path | None:
    """The nearest policy, from the folder `start` upwards.

    The search ends at the top of a repository (with `.git`), the home directory or the root.

    Raises
    ------
    InputError
        A folder has both kinds of policy file.
    """
    for folder in _upwards(start):
        names = [name for name in FILE_NAMES if is_there(folder / name)]
        if len(names) > 1:
            raise InputError(
                f"contains both {' and '.join(names)}",
                where=folder,
                todo="keep one of them, or name one with --policy",
            )
        if names:
            return Path(os.path.relpath(folder / names[0], start))
    return None


def checks_of_policy(policy: PathLike | None, *, search: bool) -> PolicyChecks:
    """Checks from the given policy, else with `search` from the nearest one, else the built-in list."""
    path = Path(policy) if policy is not None else find_policy(Path()) if search else None
    return read_policy(path) if path is not None else no_policy(project_folder(Path()) if search else Path())


def project_folder(start: Path) -> Path:
    """Folder of a project without a policy: the nearest one upwards with a saved baseline, or else `start`."""
    for folder in _upwards(start):
        if is_there(folder / BASELINE):
            return Path(os.path.relpath(folder, start))
    return Path()


def is_there(path: Path) -> bool:
    """True if there is a file of this name.

    Raises
    ------
    InputError
        The name belongs to something else, such as a broken link, which was probably meant to be read.
    """
    if path.is_file():
        return True
    if not os.path.lexists(path):
        return False
    problem = (
        "is a directory"
        if path.is_dir()
        else "is a broken link"
        if path.is_symlink()
        else "is not a file"
    )
    raise InputError(problem, where=path, todo="remove it, or replace it by a file")


def read_policy(path: Path) -> PolicyChecks:
    """Read a policy, TOML or YAML depending on its suffix, and validate its paths and limits against the schema.

    A file without `schema` and `check`, such as a vani.toml for `vani advise` alone, has the checks of `no_policy`.

    Raises
    ------
    DocumentError
        The policy is invalid. The message has the line.
    """
    text = _text(path)
    source = Source(path=path_text(path), sha256=hashlib.sha256(text.encode()).hexdigest())
    syntax = TOML if path.suffix == ".toml" else YAML
    tree = syntax.parse(text, str(path))
    if syntax is TOML and isinstance(tree, dict) and not {"schema", "check"} & tree.keys():
        _refuse_near(tree, text, path)
        advise = tree.get("advise") if isinstance(tree.get("advise"), dict) else None
        return replace(no_policy(path.parent), path=path, source=source, advise=advise)
    tree = read_tree(text, Policy, where=str(path), syntax=syntax)
    document = validate(tree, Policy, text=text, where=str(path), syntax=syntax)
    return compile_checks(document, path, source, text, syntax)


def _refuse_near(tree: Mapping[str, Any], text: str, path: Path) -> None:
    """Refuse a file with a misspelt or missing `check`, whose checks would silently be ignored."""
    inside = {field.alias or name for name, field in spec.CheckTable.model_fields.items()}
    for name in tree:
        near = f"check.{name}" if name in inside else None
        if difflib.get_close_matches(name[:100], ["check"], n=1, cutoff=0.75):
            near = "check"
        if near is not None:
            where = f"{path}:{TOML.line_of(text, (name,))}"
            raise DocumentError(
                f"unknown key {name!r} at the top", where=where, todo=f"did you mean {near!r}?"
            )


def _text(path: Path) -> str:
    if not os.path.lexists(path):
        raise DocumentError("no such file", where=path)
    if path.is_dir():
        raise DocumentError("is a directory", where=path, todo="name a policy: vani.toml or .vani.yaml")
    content = read_bytes(path, todo="name a policy", most=MAX_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"is not UTF-8 text (byte 0x{content[error.start]:02x})"
        raise DocumentError(problem, where=f"{path}:{line}", todo="save it as UTF-8") from None
    if "\0" in text:
        raise DocumentError("is binary, not text", where=path, todo="name a policy")
    return text


def _upwards(start: Path) -> list[Path]:
    start = start.resolve()
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises if there is none
    folders = []
    for folder in (start, *start.parents):
        folders.append(folder)
        if (folder / ".git").exists() or folder == home:
            break
    return folders
