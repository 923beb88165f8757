"""A stand-in for a training run: four workers load images, and a checkpoint is written in small pieces.

`python train.py [FOLDER]` makes its data in the folder (`train-data`) when it is not there.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

IMAGES, IMAGE_BYTES = 200, 20_000
EPOCHS, WORKERS = 2, 4
CHECKPOINT_BYTES, RECORD = 10_000_000, 500


def load(image: Path) -> int:
    """Read an image as a whole, as it should be."""
    return len(image.read_bytes())


def train(folder: Path) -> int:
    """Bytes that all epochs read."""
    images = sorted((folder / "images").glob("*.jpg"))
    read = 0
    with multiprocessing.get_context("fork").Pool(WORKERS) as workers:
        for _ in range(EPOCHS):
            read += sum(workers.imap_unordered(load, images, chunksize=10))
    with (folder / "model.pt").open("wb", buffering=0) as file:
        for _ in range(CHECKPOINT_BYTES // RECORD):
            file.write(b"\0" * RECORD)
    return read


if __name__ == "__main__":
    place = Path(sys.argv[1] if len(sys.argv) > 1 else "train-data")
    (place / "images").mkdir(parents=True, exist_ok=True)
    for number in range(IMAGES):
        image = place / "images" / f"{number:03}.jpg"
        if not image.exists():
            image.write_bytes(os.urandom(IMAGE_BYTES))
    print(f"{train(place):,} bytes read")
