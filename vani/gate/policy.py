"""The policy of a project, read from its file."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError
from vani.gate.asked import Asked, no_policy
from vani.gate.policy_checks import checks_of
from vani.gate.profile_tree import path_text, read_bytes
from vani.schema import policy as spec
from vani.schema.check import Source
from vani.schema.document import YAML, read_tree, validate
from vani.schema.policy import Policy
from vani.schema.toml_text import TOML

__all__ = ["read_policy"]

MAX_BYTES: Final = 1 << 20
"""Longer policies are refused: nobody writes a megabyte of settings by hand."""


def read_policy(path: Path) -> Asked:
    """Read a policy, TOML or YAML by its suffix, and hold all its paths and limits against the schema.

    A file without `schema` and `check`, such as a vani.toml for `vani advise` alone, asks what is asked without one.

    Raises
    ------
    DocumentError
        What is wrong, with its line.
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
    return checks_of(document, path, source, text, syntax)


def _refuse_near(tree: Mapping[str, Any], text: str, path: Path) -> None:
    """Refuse a file without `check` that was meant to have it: all that it asks would be passed over."""
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
        what = f"is not UTF-8 text (byte 0x{content[error.start]:02x})"
        raise DocumentError(what, where=f"{path}:{line}", todo="save it as UTF-8") from None
    if "\0" in text:
        raise DocumentError("is binary, not text", where=path, todo="name a policy")
    return text
