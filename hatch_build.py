"""Compiles the kernels into a wheel, or beside their sources for an editable install, where a C compiler is found.

The manual page that `make man` wrote goes into sdist and wheel; without one they are built without.
"""

from __future__ import annotations

import os
import re
import runpy
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelHook(BuildHookInterface):
    """Without a compiler, or where it fails, the wheel is of Python alone and does all with numpy."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        page = Path(self.root, "build", "man", "vani.1")
        if self.target_name == "sdist":
            if page.is_file():
                build_data["force_include"][str(page)] = "build/man/vani.1"
            return
        if page.is_file() and version != "editable":
            build_data["shared_data"][str(page)] = "share/man/man1/vani.1"
        folder = Path(self.root, "vani", "kernels")
        compile_kernels = runpy.run_path(str(folder / "build.py"))["compile_kernels"]
        # A file beside the sources is no part of a wheel: it may be older, or of another machine.
        self._work = tempfile.TemporaryDirectory(prefix="vani-kernels-")
        try:
            made = compile_kernels(folder if version == "editable" else Path(self._work.name))
        except OSError as error:
            self.app.display_warning(f"Vani is built without its kernels, and takes longer: {error}")
            return
        if made is None:
            self.app.display_warning(
                "No C compiler (cc): Vani is built without its kernels, and takes longer"
            )
        elif version != "editable":
            build_data["force_include"][str(made)] = f"vani/kernels/{made.name}"
            build_data["pure_python"] = False
            # Called through ctypes, it needs no header of Python and serves every version.
            platform = os.environ.get("VANI_WHEEL_PLATFORM") or sysconfig.get_platform()
            build_data["tag"] = f"py3-none-{re.sub('[^a-z0-9]', '_', platform.lower())}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if self.target_name != "sdist":
            self._work.cleanup()
