"""A pytest plug-in: tests use the kernels in the folder SANITIZED_KERNELS."""

from __future__ import annotations

import os
from pathlib import Path

from vani import kernels
from vani.kernels import build

build.LOAD_FROM = Path(os.environ["SANITIZED_KERNELS"])
assert kernels.available(), "the kernels in SANITIZED_KERNELS do not load"
