"""A folder in which programs create files under the library, and records of how they were created."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from building import Built

from vani.centre.placement_library.database import store
from vani.centre.placement_library.interactions import Interaction

ROW = Interaction("/", None, 1, 0, None, 1 << 20, 2, None, (7, 5))
PLAIN = "plain [0,-1) 2x1048576:7,5"
CALLS = [
    "open",
    "open64",
    "openat",
    "openat64",
    "read-only",
    "nothing",
    "only-read",
    "creat",
    "creat64",
    "fopen",
    "fopen-a",
]
CALLS += ["fopen-x", "fopen64", "freopen", "freopen64", "masked", "fopen-masked", "freopen-masked"]
UNPRIVILEGED = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


@dataclass(frozen=True)
class Desk:
    """A folder in which programs create files, and records of how they were created."""

    built: Built
    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "place.sqlite"

    def plan(self, *names: str, **more: object) -> None:
        store(
            [replace(ROW, file=str(self.folder / "work" / name), **more) for name in names],
            str(self.database),
        )

    def run(self, *command: str | Path, library: bool = True, cwd: str = "work", **more: str):
        place = self.folder / cwd
        env = self.built.environment(self.database, self.folder / "log", self.folder / "recorded", **more)
        if not library:
            del env["LD_PRELOAD"]
        # Other users may be unable to run the tests' interpreter.
        user = {} if command[0] == sys.executable else UNPRIVILEGED
        done = subprocess.run(
            [str(one) for one in command],
            cwd=place,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **user,
        )
        assert done.returncode == 0, done.stderr
        return done

    def placed(self) -> dict[str, str]:
        """The requested layouts, by the name that the stand-in was given."""
        recorded = self.folder / "recorded"
        lines = recorded.read_text().splitlines() if recorded.exists() else []
        parts = [line.split(" ", 4) for line in lines]
        found = {name: layout for _, name, _, _, layout in parts}
        assert len(found) == len(lines), "a file was made twice"
        return found

    def told(self) -> list[str]:
        """Lines of the log, without the numbers of processes and this folder."""
        log = self.folder / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.split(" ", 1)[1].replace(f"{self.folder}/work/", "") for line in lines]
