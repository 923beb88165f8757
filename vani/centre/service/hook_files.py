"""Settings that the hook applies in jobs, as a file for each user. `task_prolog` reads them."""

import json
import shlex
from pathlib import Path
from typing import Any, Final

from vani.atomic import write_text
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.service.layouts import LayoutAdvice
from vani.centre.service.task_prolog import HINTS

_EXPORT: Final = "export "


def write_hook_files(store: Store, layout: LayoutAdvice | None, folder: Path) -> int:
    """Write the layouts of folders, and the hints of judged applications, by user; return the number of users.

    Without a replay in which the hook is better than the default layout alone, all files are removed.
    """
    by_user: dict[str, dict[str, Any]] = {}
    if layout is not None and layout.hook_is_better:
        with store.reading() as connection:
            for verdict, run in read.verdicts(connection):
                own = by_user.setdefault(run.user, {"layouts": [], "hints": {}})
                if hints := _hints(verdict.lines):
                    own["hints"][run.application] = hints
            for entry in layout.hook_layouts:
                own = by_user.setdefault(entry.user, {"layouts": [], "hints": {}})
                own["layouts"].append({"folder": entry.folder, "options": entry.options.split()})
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)
    for old in folder.glob("*.json"):
        if old.stem not in by_user:
            old.unlink()
    for user, own in by_user.items():
        if "/" not in user and not user.startswith("."):
            write_text(folder / f"{user}.json", json.dumps(own) + "\n")
            # Its user reads it in a job, and it has nothing but layouts of the user's own folders.
            (folder / f"{user}.json").chmod(0o644)
    return len(by_user)


def _hints(lines: tuple[str, ...]) -> dict[str, str]:
    """Variables that advice exports, if the hook may set them."""
    words = (shlex.split(line.removeprefix(_EXPORT)) for line in lines if line.startswith(_EXPORT))
    pairs = (some[0].partition("=") for some in words if some)
    return {name: value for name, _, value in pairs if name in HINTS}
