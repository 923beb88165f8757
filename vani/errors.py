"""Errors that a user sees: one line each, with a place and a next step::

    VaniError                 a fault of Vani itself (exit status 3)
    └── InputError            wrong usage or bad input (exit status 2)
        ├── TraceError        a trace that cannot be read
        │   └── UnknownFormatError
        ├── StoreError        a store that cannot be read or written
        ├── NoRoomError       a place with no room left, or that cannot be written at all
        └── DocumentError     a YAML document that does not match its schema

The command line prints the line and exits with the error's `exit_code`.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_LINKED = ("schema", "analyzers", "advisors")


def one_line(text: str) -> str:
    """Make `text` safe to print on one line of a terminal by escaping control characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def nearest(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """The remedy for a name that does not exist: the closest existing one, or `otherwise`, or the list of all."""
    import difflib  # noqa: PLC0415 - needed only for misspelt names

    names = list(known)
    # `frontier` means `frontier-orion`, however long the rest of the name is.
    near = [other for other in names if name and other.startswith(name)][:1] or difflib.get_close_matches(
        name[:100], names, n=1, cutoff=0.6
    )
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(names)}" if otherwise is None else otherwise


class VaniError(Exception):
    """An error as one line for the user: the fault, its place, and the next step.

    Parameters
    ----------
    what
        The fault, in the user's words.
    where
        File, or file and line, or attribute; printed first.
    todo
        The user's next step; printed last.
    """

    exit_code = 3

    def __init__(self, what: str, *, where: str | Path = "", todo: str = "") -> None:
        self.what, self.where, self.todo = what, str(where), todo
        place = f"{where}: " if str(where) else ""
        super().__init__(one_line(place + what + (f"; {todo}" if todo else "")))

    def __reduce__(self) -> tuple[object, ...]:
        # Default pickling loses keyword-only arguments, and workers send errors back.
        return _rebuild, (type(self), self.what, self.where, self.todo)


def _rebuild(kind: type[VaniError], what: str, where: str, todo: str) -> VaniError:
    return kind(what, where=where, todo=todo)


def refuse_missing_links() -> None:
    """Raise InputError in a checkout without symbolic links, where git wrote text files instead of three folders."""
    package = Path(__file__).parent
    texts = [f"{package.name}/{name}" for name in _LINKED if (package / name).is_file()]
    if texts:
        raise InputError(
            "is a file of text in place of a symbolic link",
            where=texts[0],
            todo=f"in {package.parent}: `git config core.symlinks true && rm {' '.join(texts)} && git checkout vani`",
        )


class SelfCheckError(VaniError):
    """The numbers of a profile contradict each other, so nothing is written."""


class InputError(VaniError):
    """Wrong usage or bad input."""

    exit_code = 2


class TraceError(InputError):
    """A trace, or a part of it, cannot be read."""


class UnknownFormatError(TraceError):
    """The directory is not a trace that Vani can read."""


class StoreError(InputError):
    """A store of calls cannot be read or written."""


class NoRoomError(InputError):
    """A place cannot be written: it is full, over quota, read-only or another user's. Another place may work."""


class DocumentError(InputError):
    """A YAML document does not follow its schema."""


@contextmanager
def os_errors_as(kind: type[VaniError], what: str, *, where: str | Path = "", todo: str = "") -> Iterator[None]:
    """Raise an OSError of the block as an error of this kind, with the system's reason in brackets."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what} ({error.strerror})", where=where, todo=todo) from error


def refuse_named_pipe(path: Path) -> None:
    """Refuse a FIFO, on which reading would block forever; a shell's `<(command)` is allowed, because it has no name.

    Raises
    ------
    DocumentError
        The path is a FIFO.
    """
    try:
        is_pipe = stat.S_ISFIFO(path.stat().st_mode) and Path(os.path.realpath(path)).exists()
    except (OSError, ValueError):
        return
    if is_pipe:
        raise DocumentError("is a named pipe", where=path, todo="name a file")
