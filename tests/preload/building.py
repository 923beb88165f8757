"""Builds the programs for the tests of the placement library in a folder of the test; a separate module for the benchmark."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "vani" / "centre" / "placement_library"


@dataclass(frozen=True)
class Built:
    """Paths of the library, of the stand-in for liblustreapi, and of the program that creates files."""

    library: Path
    lustreapi: Path
    calls: Path

    def environment(self, database: Path, log: Path, recorded: Path, **more: str) -> dict[str, str]:
        """The environment of programs under the library."""
        return {
            **os.environ,
            "LD_PRELOAD": str(self.library),
            "VANI_PLACE_DB": str(database),
            "VANI_PLACE_LIB": str(self.lustreapi),
            "VANI_PLACE_LOG": str(log),
            "STANDIN_LOG": str(recorded),
            **more,
        }


def missing() -> str | None:
    """Missing requirements for building and running."""
    if compiler() is None:
        return "there is no C compiler"
    if shutil.which("make") is None:
        return "there is no make"
    try:
        ctypes.CDLL("libsqlite3.so.0")
    except OSError:
        return "there is no libsqlite3.so.0"
    return None


def compiler() -> str | None:
    return next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)


def build(folder: Path, *flags: str) -> Built:
    cc = compiler()
    assert cc is not None
    command = ["make", "-s", "-C", str(SOURCES), "all", "stand-in", f"OUT={folder}", f"CC={cc}"]
    _run([*command, *([f"CFLAGS={' '.join(flags)}"] if flags else [])])
    made = Built(folder / "libvani_place.so", folder / "liblustreapi.so", folder / "calls")
    strict = ["-Wall", "-Wextra", "-Werror", "-pthread"]
    _run([cc, *strict, "-o", str(made.calls), str(HERE / "calls.c")])
    return made


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
