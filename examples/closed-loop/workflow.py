"""The Montage workflow of the trace: mosaic of nine synthetic images, with the real programs.

    python workflow.py FOLDER [--near FOLDER NAME[,NAME...]]

`raw` with the images is made if it is not there. `--near` keeps the named folders (proj, diff, corr) on other
storage, as one does by hand: symbolic links lead there. Prints the seconds that the programs took.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = (
    "mImgtbl", "mMakeHdr", "mProject", "mOverlaps", "mDiff", "mFitExec", "mFitplane", "mBgModel", "mBackground",
    "mAdd", "mShrink",
)  # fmt: skip
GRID, PIXELS, PIXEL_DEG, OVERLAP = 3, 300, 1.0 / 3600, 60


def images(folder: Path) -> None:
    """Nine overlapping pieces of a sky with some stars, each with a background of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    step = PIXELS - OVERLAP
    rng = random.Random(7)
    width = step * GRID + PIXELS
    stars = [(rng.uniform(0, width), rng.uniform(0, width), rng.uniform(50, 500)) for _ in range(120)]
    for number in range(GRID * GRID):
        left, low = number % GRID * step, number // GRID * step
        rows = [[10.0 + number] * PIXELS for _ in range(PIXELS)]
        for x, y, light in stars:
            for row in range(max(0, int(y - low) - 6), min(PIXELS, int(y - low) + 7)):
                for column in range(max(0, int(x - left) - 6), min(PIXELS, int(x - left) + 7)):
                    away = (column + left - x) ** 2 + (row + low - y) ** 2
                    rows[row][column] += light * math.exp(-away / 4)
        _write_fits(folder / f"2mass-atlas-{number:03d}.fits", rows, left, low)


def _write_fits(path: Path, rows: list[list[float]], left: int, low: int) -> None:
    middle = ((PIXELS - OVERLAP) * GRID + OVERLAP) / 2
    cards = {
        "SIMPLE": "T", "BITPIX": -32, "NAXIS": 2, "NAXIS1": PIXELS, "NAXIS2": PIXELS,
        "CTYPE1": "'RA---TAN'", "CTYPE2": "'DEC--TAN'", "CRVAL1": 210.0, "CRVAL2": 54.0,
        "CRPIX1": middle - left, "CRPIX2": middle - low, "CDELT1": -PIXEL_DEG, "CDELT2": PIXEL_DEG,
        "CROTA2": 0.0, "EQUINOX": 2000.0,
    }  # fmt: skip
    head = "".join(f"{key:<8}= {value!s:>20}".ljust(80) for key, value in cards.items()) + "END".ljust(80)
    data = b"".join(struct.pack(f">{PIXELS}f", *row) for row in rows)
    blocks = [-(-len(part) // 2880) * 2880 for part in (head, data)]
    path.write_bytes(head.ljust(blocks[0]).encode() + data.ljust(blocks[1], b"\0"))


def run(folder: Path) -> float:
    """All steps in `folder`; seconds of the programs."""
    begin = time.perf_counter()
    step(folder, "mImgtbl raw raw.tbl")
    step(folder, "mMakeHdr raw.tbl template.hdr")
    names = [f"2mass-atlas-{number:03d}.fits" for number in range(GRID * GRID)]
    for name in names:
        step(folder, f"mProject raw/{name} proj/p{name} template.hdr")
    step(folder, "mImgtbl proj proj.tbl")
    step(folder, "mOverlaps proj.tbl diffs.tbl")
    pairs = [row[2:5] for row in table(folder / "diffs.tbl")]
    for plus, minus, diff in pairs:
        step(folder, f"mDiff proj/{plus} proj/{minus} diff/{diff} template.hdr")
    for _, _, diff in pairs:
        step(folder, f"mFitplane diff/{diff}")
    step(folder, "mFitExec diffs.tbl fits.tbl diff")
    step(folder, "mBgModel proj.tbl fits.tbl corrections.tbl")
    for number, *plane in table(folder / "corrections.tbl"):
        name = names[int(number)]
        step(folder, f"mBackground proj/p{name} corr/p{name} {' '.join(plane)}")
    step(folder, "mImgtbl corr corr.tbl")
    step(folder, "mAdd -p corr corr.tbl template.hdr mosaic.fits")
    step(folder, "mShrink mosaic.fits mosaic_small.fits 4")
    return time.perf_counter() - begin


def step(folder: Path, command: str) -> None:
    done = subprocess.run(command.split(), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or '"ERROR"' in done.stdout:
        raise SystemExit(f"{command}: {done.stdout}{done.stderr}")


def table(path: Path) -> list[list[str]]:
    """Rows of an IPAC table."""
    return [line.split() for line in path.read_text().splitlines() if line and line[0] not in "|\\"]


def prepare(folder: Path, near: Path | None, moved: list[str]) -> None:
    """Empty folders for what the steps make; those of `moved` as links to `near`."""
    if not (folder / "raw").is_dir():
        images(folder / "raw")
    for name in ("proj", "diff", "corr"):
        place = folder / name
        if place.is_symlink():
            place.unlink()
        shutil.rmtree(place, ignore_errors=True)
        if near is not None and name in moved:
            shutil.rmtree(near / name, ignore_errors=True)
            (near / name).mkdir(parents=True)
            os.symlink((near / name).resolve(), place)
        else:
            place.mkdir()


def missing() -> list[str]:
    """Programs that are not installed (Debian: the package `montage`)."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    near, moved = (Path(arguments[2]), arguments[3].split(",")) if arguments[1:2] == ["--near"] else (None, [])
    if missing():
        raise SystemExit(f"not installed: {', '.join(missing())} (Debian: apt install montage)")
    prepare(folder, near, moved)
    print(f"{run(folder):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
