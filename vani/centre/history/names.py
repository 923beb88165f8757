"""Users and paths as keyed hashes: equal names get equal hashes, which cannot be reversed without the key."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Any

_PATH = re.compile(r"""(?<![\w.<-])[/~][^\s'"`;,()\[\]{}<>|]*[^\s'"`;,.()\[\]{}<>|:]""")
_LETTERS = 16


class PlainNames:
    """Leaves names unchanged."""

    key_id: str | None = None

    def user(self, name: str) -> str:
        return name

    def path(self, path: str) -> str:
        return path

    def text(self, text: str) -> str:
        return text

    def tree(self, tree: Any) -> Any:
        return tree


class Names(PlainNames):
    """Replaces names with hashes.

    Parameters
    ----------
    key
        The secret key, which is never stored in the history.
    users
        Names to replace everywhere in texts.
    """

    def __init__(self, key: bytes, users: Iterable[str] = ()) -> None:
        self._key = key
        self.key_id = self._hashed("key", "")
        self._users = {name: self.user(name) for name in users if len(name) > 1}
        longest_first = sorted(self._users, key=lambda name: (-len(name), name))
        any_user = "|".join(map(re.escape, longest_first))
        self._words = re.compile(rf"(?<![A-Za-z0-9])(?:{any_user})(?![A-Za-z0-9])") if any_user else None

    def _hashed(self, kind: str, name: str) -> str:
        digest = hmac.new(self._key, f"{kind}\0{name}".encode(errors="surrogateescape"), hashlib.sha256)
        return digest.hexdigest()[:_LETTERS]

    def user(self, name: str) -> str:
        return (
            name
            if re.fullmatch(rf"user-[0-9a-f]{{{_LETTERS}}}", name)
            else f"user-{self._hashed('user', name)}"
        )

    def path(self, path: str) -> str:
        if path in ("", "/") or re.fullmatch(rf"/path-[0-9a-f]{{{_LETTERS}}}", path):
            return path
        return f"/path-{self._hashed('path', path)}"

    def text(self, text: str) -> str:
        """Replace paths and users within a text."""
        without_paths = _PATH.sub(lambda match: self.path(match[0]), text)
        if self._words is None:
            return without_paths
        return self._words.sub(lambda match: self._users[match[0]], without_paths)

    def tree(self, tree: Any) -> Any:
        """Replace paths and users in every text of a document; a text under `path` is a path."""
        literal = {path for path in _paths_in(tree) if len(path) > 1}
        return self._tree(tree, literal)

    def _tree(self, tree: Any, literal: set[str]) -> Any:
        if isinstance(tree, dict):
            return {self._leaf(key, literal): self._tree(value, literal) for key, value in tree.items()}
        if isinstance(tree, list):
            return [self._tree(value, literal) for value in tree]
        return self._leaf(tree, literal) if isinstance(tree, str) else tree

    def _leaf(self, text: str, literal: set[str]) -> str:
        return self.path(text) if text in literal else self.text(text)


def _paths_in(tree: Any) -> Iterable[str]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(value, str) and key in ("path", "dir", "pattern", "folder"):
                yield value
            else:
                yield from _paths_in(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _paths_in(value)
