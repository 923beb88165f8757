"""Users and paths as keyed hashes: equal names get equal hashes, which cannot be reversed without the key."""

import hashlib
import hmac
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final, TypeVar

from vani.centre.history import rows

_PATH = re.compile(r"""(?<![\w.<-])[/~][^\s'"`;,()\[\]{}<>|]*[^\s'"`;,.()\[\]{}<>|:]""")
_LETTERS = 16


_COLUMNS: Final[Mapping[type, Mapping[str, str]]] = {
    # An account can name a person, too.
    rows.AccountedJob: {"user": "user", "account": "user"},
    rows.Letter: {"application": "text", "user": "user", "setting": "text"},
    rows.Measurement: {"user": "user", "application": "text", "machine": "text", "setting": "document"},
    rows.Source: {"path": "path", "reason": "text"},
    rows.StoredRun: {"user": "user", "uid": "nothing", "application": "text", "mount": "path"},
    rows.Verdict: {"setting": "text", "why": "text", "lines": "texts"},
}
"""The columns of each kind of row that can contain names, and the method of `Names` that replaces them."""
Row = TypeVar("Row", bound=rows.AnyRow)


class PlainNames:
    """Leaves names unchanged."""

    key_id: str | None = None

    def path(self, path: str) -> str:
        return path

    def row(self, row: Row) -> Row:
        return row

    def packed_profile(self, content: bytes) -> bytes:
        return content


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
        return (name if re.fullmatch(rf"user-[0-9a-f]{{{_LETTERS}}}", name) else f"user-{self._hashed('user', name)}")

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

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self.text, texts))

    def document(self, text: str) -> str:
        """Replace paths and users within a JSON document."""
        return json.dumps(self.tree(json.loads(text)), sort_keys=True)

    def nothing(self, value: object) -> None:
        """Remove a value."""

    def row(self, row: Row) -> Row:
        """A row with all its names replaced."""
        values = {name: (getattr(row, name), how) for name, how in _COLUMNS[type(row)].items()}
        new = {name: None if old is None else getattr(self, how)(old) for name, (old, how) in values.items()}
        return type(row).of((row.values() | new).values())

    def packed_profile(self, content: bytes) -> bytes:
        """A packed profile with users and paths replaced, and without the job's user and command."""
        tree = json.loads(zlib.decompress(content))
        # A user may be a number here, and a command can contain any path in its options.
        tree["job"] |= dict.fromkeys({"user", "command"} & tree["job"].keys())
        return zlib.compress(json.dumps(self.tree(tree), separators=(",", ":")).encode())

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
            is_path = isinstance(value, str) and key in ("path", "dir", "pattern", "folder")
            yield from [value] if is_path else _paths_in(value)
    elif isinstance(tree, list):
        yield from chain.from_iterable(map(_paths_in, tree))
