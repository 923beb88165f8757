"""The executable's name, read off the name that Recorder gave the trace's folder (format document, section 2).

`<host>-<user>-<exe>-<pid>-HHMMSS.mmm` (2.5p) or `HHMMSS.mm-<host>-<user>-<exe>-<pid>` (2.5g, 3.0): any of the three
names may contain hyphens, and the folder does not show where one ends. In this order decide

1. a user without a name: getlogin(3) failed, and Recorder wrote `(null)` or `user-unknown`;
2. three words: one for each;
3. the paths of the trace: a folder on them that is named as the user is, such as `/home/alice`;
4. the words: a host continues while parts of host names follow, numbers (`login-01`, `ip-10-0-12-34`), places in a
   rack (`r2i0n4`) and usual names of nodes (`gpu-login`), after at most one other word; the next word is the
   user. So `n1-login-01-alice-xhpl` is xhpl, and `host-alice-my-solver` is my-solver.

Rules 3 and 4 may be wrong; the result states that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["AppName", "app_name", "app_of_folder"]

# Compiled on first use: most traces need few of them.
_DEFAULT_NAMES: Final = (
    r"(?P<names>.+-.+-.+)-\d+-\d{6}\.\d+",
    r"\d{6}\.\d+-(?P<names>.+-.+-.+)-\d+",
)
_NAMELESS: Final = r".+?-(?:\(null\)|user-unknown)-(?P<exe>.+)"
_HOST_PART: Final = (
    # A name of a user or a program begins with a letter; places of a rack are letters with few digits each.
    r"(?i)\d.*|[a-z]\d{1,3}|(?:[a-z]\d{1,4}){2,}"
    r"|(?:login|node|compute|cnode|head|front|frontend|backend|batch|debug|worker|master|service|server|host|nid|rack"
    r"|blade|chassis|vm|gpu|cpu|mic|knl|bigmem|ext|int|mom|viz|dm|dtn)\d*"
)
_COMMON_FOLDERS: Final = frozenset(
    {"bin", "case", "data", "home", "input", "job", "lib", "opt", "output", "project", "projects", "restart", "run",
     "runs", "scratch", "src", "test", "tests", "tmp", "user", "users", "usr", "var", "work"}
)  # fmt: skip
"""Folders of these names prove no user."""
_LONGEST_USER: Final = 3
"""Words of a user's name that are looked for in paths, at most."""


@dataclass(frozen=True, eq=False)
class AppName:
    """Name of an executable."""

    name: str
    doubt: str | None = None
    """Why it may be another one, as a sentence."""
    user: str | None = None
    """User who ran it; None where the folder's name does not show it."""


def app_of_folder(directory: str, holds: Callable[[str], bool] = lambda _: False) -> AppName:
    """Name the executable of a trace from its folder's name (contract, "app").

    Parameters
    ----------
    holds
        Returns whether a path of the trace leads through a folder of that name; called only if words are not enough.
    """
    for form in _DEFAULT_NAMES:
        match = re.fullmatch(form, directory)
        if match:
            return _executable(match["names"], holds)
    # Steps that run side by side often differ by a letter: 01a-sim, 01b-weather.
    stripped = re.sub(r"^\d+[A-Za-z]?[._-]+(?=[^\d._-])", "", directory)
    stripped = re.sub(r"^[\d._-]+(?=[^\d._-])", "", stripped)
    stripped = re.sub(r"(?<=[^\d._-])[._-]\d+$", "", stripped)
    return AppName(stripped or directory)


def app_name(directory: str) -> str:
    """Name the executable from the folder's name alone; see `app_of_folder`."""
    return app_of_folder(directory).name


def _executable(names: str, holds: Callable[[str], bool]) -> AppName:
    nameless = re.fullmatch(_NAMELESS, names)
    if nameless:
        return AppName(nameless["exe"])
    words = names.split("-")
    if len(words) == 3:
        return AppName(words[2], user=words[1])
    begin, end = _user_in_paths(words, holds) or _user_after_host(words)
    host, user, exe = ("-".join(part) for part in (words[:begin], words[begin:end], words[end:]))
    return AppName(
        exe,
        f"read off the name of the trace's folder, where host, user and program are joined by hyphens: taken as host "
        f"{host}, user {user}, program {exe}. If that is wrong, name it in job.yaml (`apps`)",
        user,
    )


def _user_in_paths(words: list[str], holds: Callable[[str], bool]) -> tuple[int, int] | None:
    """Place of the user's name: the first that folders have, and the longest there; None without any."""
    last = len(words) - 1
    for begin in range(1, last):
        for end in range(min(begin + _LONGEST_USER, last), begin, -1):
            user = "-".join(words[begin:end])
            common = not user or user in _COMMON_FOLDERS or re.fullmatch(_HOST_PART, user)
            if not common and holds(user):
                return begin, end
    return None


def _user_after_host(words: list[str]) -> tuple[int, int]:
    """Place of the word after the host's last part, with one word left for the program at least."""
    host = 1
    for end in range(2, len(words) - 1):
        if re.fullmatch(_HOST_PART, words[end - 1]) and end - host <= 2:
            host = end
    return host, host + 1
