"""Plug-ins of other distributions, found by entry point, and the source of an unexpected exception."""

import functools
import sys
import traceback
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any, Final

from vani.errors import InputError

_GROUPS: Final = (
    "vani.readers", "vani.analyzers", "vani.advisors", "vani.commands", "vani.documents", "vani.extensions",
)  # fmt: skip
_ROOT: Final = Path(__file__).resolve().parent.parent


def plug_ins(group: str) -> EntryPoints:
    """The entry points of a group; all installed distributions are searched only once."""
    points: EntryPoints = _installed(tuple(sys.path)).select(group=group)
    return points


def centre() -> Any:
    """The package with a centre's functions, such as `history_top`, which registers as the extension `centre`.

    Raises
    ------
    InputError
        It is not installed.
    """
    for point in plug_ins("vani.extensions"):
        if point.name == "centre":
            return point.load()
    raise InputError("a history, plans and predictions are not installed", todo="pip install 'vani-io[centre]'")


@functools.cache
def _installed(_places: tuple[str, ...]) -> Any:
    # Python 3.11 returns another class than later versions.
    return entry_points()


def plug_in_of(error: BaseException) -> str | None:
    """Name of the distribution whose plug-in raised an exception, or called the code that did; None if none did."""
    return _source_of(error)[0]


def place_of(error: BaseException) -> str | None:
    """`file:line` of the plug-in from which an exception came, or of Vani's own source in a checkout.

    In a checkout, the code may be the user's own: a new file in `analyzers/measures` or in a family of rules is
    discovered automatically. None if Vani is installed and no plug-in was involved.
    """
    return _source_of(error)[1]


def is_of_contributor(error: BaseException) -> bool:
    """Whether an exception came from a file in the checkout that is new or changed since the last commit.

    False if Git is not available or the sources are not a separate repository.
    """
    import subprocess  # noqa: PLC0415 - every command loads this module

    place = place_of(error)
    if place is None:
        return False
    path = place.rpartition(":")[0]
    command = ["git", "-C", str(_ROOT), "status", "--porcelain", "--ignored", "--", path]
    try:
        status = subprocess.run(command, capture_output=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return bool(status.strip()) and (_ROOT / ".git").exists()


def described(error: BaseException) -> str:
    """Type and text of an exception, and its place if `place_of` knows it."""
    text = error.msg if isinstance(error, SyntaxError) else error
    place = place_of(error)
    return f"{type(error).__name__}: {text}" + (f" at {place}" if place is not None else "")


def _source_of(error: BaseException) -> tuple[str | None, str | None]:
    """The plug-in that caused an exception, and its place; the innermost of several frames counts."""
    # Vani's own distribution registers the parts of a centre, whose code is not another's.
    brought_by = {
        point.module.partition(".")[0]: point.dist.name if point.dist is not None else point.name
        for group in _GROUPS
        for point in plug_ins(group)
        if not point.module.startswith("vani.")
    }
    plug_in = place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in brought_by:
            plug_in, place = brought_by[package], f"{frame.f_code.co_filename}:{line}"
        elif plug_in is None and (path := _in_checkout(frame.f_code.co_filename)) is not None:
            place = f"{path}:{line}"
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{_in_checkout(error.filename) or error.filename}:{error.lineno}"
    return plug_in, place


def _in_checkout(name: str) -> Path | None:
    """A file of Vani's source, relative to the root of the checkout; None if Vani is installed."""
    if not (_ROOT / "pyproject.toml").is_file():
        return None
    path = Path(name).resolve()
    within = path.is_relative_to(_ROOT) and "site-packages" not in path.parts
    return path.relative_to(_ROOT) if within else None
