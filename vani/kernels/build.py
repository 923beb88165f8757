"""Compiles the kernels into one shared object, whose name identifies its sources, and loads it.

This file also runs as a script, in the build hook and in the Makefile, where Vani is not installed, so it uses only the
standard library.
"""

import ctypes
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
LOAD_FROM = FOLDER
"""Folders of the sources, and of the shared object that is loaded."""

# No operation may be fused, so that floating-point results equal numpy's. Wider instructions bring no gain.
FLAGS = (
    "-std=c11",
    "-O2",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
    "-Wall",
    "-Wextra",
)

_PATIENCE_S = 300.0


def sources() -> list[Path]:
    """C files that are compiled, and the headers that they include."""
    return sorted(path for path in FOLDER.iterdir() if path.suffix in {".c", ".h"})


def compiled_file(folder: Path) -> Path | None:
    """The shared object in a folder that was compiled from the current sources and flags; None if there is none.

    Its name contains a digest of the sources and flags, and one of its content: kernels-SOURCES-CONTENT.so.
    """
    return next(iter(sorted(folder.glob(f"kernels-{_digest_of_sources()}-*.so"))), None)


def is_intact(path: Path) -> bool:
    """Whether a shared object's content matches the digest in its name."""
    try:
        return path.stem.endswith(f"-{_digest(path.read_bytes())}")
    except OSError:
        return False


def _digest_of_sources() -> str:
    content = [" ".join(FLAGS).encode()]
    for path in sources():
        content += [f"{path.name} {path.stat().st_size}".encode(), path.read_bytes()]
    return _digest(b"\n".join(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def compiler() -> list[str] | None:
    """Words of the C compiler command, from CC if it is set; None without a compiler."""
    try:
        command = shlex.split(os.environ.get("CC", "")) or ["cc"]
    except ValueError:
        return None
    return None if shutil.which(command[0]) is None else command


def compile_kernels(into: Path, *, more_flags: Sequence[str] = ()) -> Path | None:
    """Compile all kernels into a file in the folder `into`, which replaces those of earlier sources.

    Returns
    -------
    Path or None
        The file; None without a compiler.

    Raises
    ------
    OSError
        The compiler fails, or the file cannot be written.
    """
    command = compiler()
    if command is None:
        return None
    # In the same folder, so that a rename replaces the old file atomically.
    with tempfile.TemporaryDirectory(dir=into, prefix=".kernels-") as folder:
        library = Path(folder) / "kernels.so"
        compile_units(command, [path for path in sources() if path.suffix == ".c"], library, more_flags)
        target = into / f"kernels-{_digest_of_sources()}-{_digest(library.read_bytes())}.so"
        library.replace(target)
    for old in into.glob("kernels-*.so"):
        if old != target:
            old.unlink(missing_ok=True)
    return target


def compile_units(command: Sequence[str], units: Sequence[Path], library: Path, more_flags: Sequence[str] = ()) -> None:
    """Compile C files into a shared object with the words of a compiler command.

    Raises
    ------
    OSError
        The compiler fails.
    """
    words = [*command, *FLAGS, *map(str, units), "-o", str(library), *more_flags]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=_PATIENCE_S,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{command[0]} takes more than {_PATIENCE_S:g} s") from error
    if done.returncode or not library.is_file():
        said = done.stdout.decode(errors="replace").strip()
        raise OSError(f"{command[0]} cannot compile the {library.stem}: {_reason(said, done.returncode)}")


def _reason(said: str, status: int) -> str:
    """A compiler's error in one line, which is enough for most users."""
    lines = said.splitlines()
    return next(
        (line.strip() for line in lines if "error" in line.lower()), (lines or [f"exit status {status}"])[0]
    )


FUNCTION = re.compile(r"^KERNEL vani_(\w+)\((.*?)\)\n\{", re.DOTALL | re.MULTILINE)
"""Name and parameters of a kernel in its source."""


class Loaded(NamedTuple):
    """The shared object, None if numpy does the work, and the reason as text."""

    library: ctypes.CDLL | None
    state: str


@cache
def load() -> Loaded:
    """Load the kernels if they match the current sources, are undamaged, and are not switched off."""
    if os.environ.get("VANI_KERNELS") == "0":
        return Loaded(None, "off (VANI_KERNELS=0)")
    path, reason = compiled_file(LOAD_FROM), ""
    if path is not None and not is_intact(path):
        # The system's loader would map a truncated file, and the process would crash on its first missing page.
        reason = f" ({path.name} is damaged; install Vani again)"
    elif path is not None:
        try:
            library = ctypes.CDLL(str(path.absolute()))
            for source in sources():
                for name, _ in FUNCTION.findall(source.read_text()):
                    getattr(library, f"vani_{name}")
            return Loaded(library, "compiled")
        except (OSError, AttributeError):
            reason = f" ({path.name} does not load on this machine)"
    return Loaded(None, f"none{reason}, numpy does their work")


def state() -> str:
    """Whether kernels are in use, as text for the user."""
    return load().state


def _main() -> None:
    """Compile next to the sources, for developers; Vani also works without kernels."""
    compiled = compiled_file(FOLDER)
    if compiled is not None and is_intact(compiled):
        return
    try:
        if compile_kernels(FOLDER) is None:
            sys.stderr.write("No C compiler (cc): Vani works without its kernels, and takes longer\n")
    except OSError as error:
        sys.stderr.write(f"Vani works without its kernels, and takes longer: {error}\n")


if __name__ == "__main__":
    _main()
