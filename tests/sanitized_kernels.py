"""A pytest plug-in: tests use the kernels in the folder SANITIZED_KERNELS."""

from __future__ import annotations

import os
from pathlib import Path

from vani.kernels import build, library

build.LOAD_FROM = Path(os.environ["SANITIZED_KERNELS"])
assert library.available(), "the kernels in SANITIZED_KERNELS do not load"
