"""Small programs that do I/O the costly way (`before`) and as the advice of a rule asks (`after`).

    python programs.py PAIR before|after FOLDER
"""

from __future__ import annotations

import ctypes
import gzip
import os
import pickle
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path


def flushes(folder: Path, *, after: bool) -> None:
    """Flush each record, or all of them once."""
    with (folder / "records").open("wb", buffering=0) as file:
        for _ in range(1 if after else 400):
            file.write(b"x" * (3_276_800 if after else 8192))
            os.fsync(file)


def commits(folder: Path, *, after: bool) -> None:
    """Commit each row, or all rows in one transaction."""
    db = sqlite3.connect(folder / "rows.db")
    db.execute("CREATE TABLE t (a INTEGER)")
    for row in range(300):
        db.execute("INSERT INTO t VALUES (?)", (row,))
        if not after:
            db.commit()
    db.commit()


def inserts(folder: Path, *, after: bool) -> None:
    """Insert rows into DuckDB, which commits each one, or all of them in one transaction."""
    import duckdb  # noqa: PLC0415

    db = duckdb.connect(folder / "rows.duckdb")
    db.execute("CREATE TABLE t (a INTEGER)")
    if after:
        db.execute("BEGIN")
    for row in range(300):
        db.execute("INSERT INTO t VALUES (?)", [row])
    if after:
        db.execute("COMMIT")


def compressed(folder: Path, *, after: bool) -> None:
    """Read places of a compressed file from its end to its start, or in ascending order and in large pieces."""
    places = range(0, 4_000_000, 250_000)
    with (folder / "noise.gz").open("rb", buffering=4 << 20 if after else -1) as packed, gzip.open(packed) as file:
        for place in places if after else reversed(places):
            file.seek(place)
            file.read(1000)


def before_compressed(folder: Path) -> None:
    """Make the file, outside of the trace."""
    with gzip.open(folder / "noise.gz", "wb", compresslevel=1) as file:
        file.write(os.urandom(4_000_000))


def opens(folder: Path, *, after: bool) -> None:
    """Open the file for each line of a log, or once."""
    name = folder / "log"
    if after:
        name.write_text("x" * 99_000)
        return
    for _ in range(3000):
        with name.open("a") as file:
            file.write("x" * 33)


def pieces(folder: Path, *, after: bool) -> None:
    """Write a large file in pieces of 1,000 bytes, or of 4 MB."""
    with (folder / "data").open("wb", buffering=0) as file:
        for _ in range(5 if after else 20_000):
            file.write(b"x" * (4_000_000 if after else 1000))


def again(folder: Path, *, after: bool) -> None:
    """Read a file of 8 MB a hundred times, or once."""
    name = folder / "table"
    name.write_bytes(bytes(8_000_000))
    with name.open("rb", buffering=0) as file:
        for _ in range(1 if after else 100):
            file.seek(0)
            file.read()


def levels(folder: Path, *, after: bool) -> None:
    """Change a value of each block of a field: a pass over the file for each of 64 levels, or all levels in one."""
    name = folder / "field"
    name.write_bytes(bytes(4 << 20))
    descriptor = os.open(name, os.O_RDWR)
    for _ in range(1 if after else 64):
        for place in range(0, 4 << 20, 1 << 18):
            block = bytearray(os.pread(descriptor, 1 << 18, place))
            block[:64] = bytes(64)
            os.pwrite(descriptor, block, place)


def header(folder: Path, *, after: bool) -> None:
    """Move the data behind a header that grows six times, from its end, or reserve room for the header."""
    name, size, piece = folder / "records", 8 << 20, 1 << 18
    name.write_bytes(bytes(size))
    descriptor = os.open(name, os.O_RDWR)
    for grown in range(0 if after else 6):
        for place in reversed(range(grown * 4096, size + grown * 4096, piece)):
            os.pwrite(descriptor, os.pread(descriptor, piece, place), place + 4096)
    os.pwrite(descriptor, b"x" * 4096 * 6, 0)


def offsets(folder: Path, *, after: bool) -> None:
    """Read pieces of 4 KiB in a random order, or in the order of the file."""
    name, order = folder / "table", list(range(3000))
    name.write_bytes(bytes(3000 * 16384))
    if not after:
        random.Random(1).shuffle(order)
    with name.open("rb", buffering=0) as file:
        for number in order:
            file.seek(number * 16384)
            file.read(4096)


def synchronous(folder: Path, *, after: bool) -> None:
    """Write through a descriptor with O_DSYNC, or without it and flush once."""
    descriptor = os.open(folder / "records", os.O_WRONLY | os.O_CREAT | (0 if after else os.O_DSYNC))
    for _ in range(400):
        os.write(descriptor, b"x" * 8192)
    os.fsync(descriptor)


def small_files(folder: Path, *, after: bool) -> None:
    """Write a file for each of 2,000 results, or one file with all of them."""
    if after:
        (folder / "results").write_bytes(b"x" * 2_000_000)
        return
    for number in range(2000):
        (folder / f"result{number}").write_bytes(b"x" * 1000)


def epochs(folder: Path, *, after: bool) -> None:
    """Read 1,000 samples of 8 KB in each of three epochs, from a file each or from one of all. An earlier run made them."""
    source = folder / ("packed" if after else "samples")
    for _ in range(3):
        for name in [source / "all"] if after else sorted(source.iterdir()):
            name.read_bytes()


def before_epochs(folder: Path) -> None:
    """Make the samples, outside of the trace."""
    for name in ("samples", "packed"):
        (folder / name).mkdir()
    for number in range(1000):
        (folder / "samples" / f"{number}.raw").write_bytes(b"x" * 8000)
    (folder / "packed/all").write_bytes(b"x" * 8_000_000)


def filled(folder: Path, *, after: bool) -> None:
    """Write one step after another into chunks of 64 steps, which HDF5 fills first, or into chunks of one step."""
    import h5py  # noqa: PLC0415 - other programs start without it
    import numpy as np  # noqa: PLC0415

    with h5py.File(folder / "steps.h5", "w") as file:
        steps = file.create_dataset("steps", (64, 512, 512), "f4", chunks=(1 if after else 64, 512, 512))
        for number in range(64):
            steps[number] = np.full((512, 512), number, "f4")


def rows(folder: Path, *, after: bool) -> None:
    """Write a field, and read rows of chunks that do not fit the cache, or with a cache for them."""
    import h5py  # noqa: PLC0415 - other programs start without it
    import numpy as np  # noqa: PLC0415

    with h5py.File(folder / "field.h5", "w") as file:
        file.create_dataset("field", data=np.zeros((2048, 4096)), chunks=(512, 4096))
    with h5py.File(folder / "field.h5", "r", rdcc_nbytes=(1 << 26) if after else (1 << 20)) as file:
        field = file["field"]
        for number in range(field.shape[0]):
            field[number]


def rank() -> int:
    """Number of this process among those of mpirun."""
    return int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))


def funnel(folder: Path, *, after: bool) -> None:
    """Rank 0 writes the data of four, or each writes its own."""
    if after or rank() == 0:
        with (folder / f"state{rank()}").open("wb", buffering=0) as file:
            for _ in range(16 if after else 64):
                file.write(b"x" * 4_194_304)


def uneven(folder: Path, *, after: bool) -> None:
    """Rank 1 writes ten times what the others write, or all write as much."""
    pieces = 20 if after else 68 if rank() == 1 else 4
    with (folder / f"part{rank()}").open("wb", buffering=0) as file:
        for _ in range(pieces):
            file.write(b"x" * 4_194_304)
            os.fsync(file)


def interleaved(folder: Path, *, after: bool) -> None:
    """Four ranks write records of 47,008 bytes in turn into one file, or a block of their own."""
    descriptor = os.open(folder / "shared", os.O_WRONLY | os.O_CREAT)
    for number in range(6 if after else 400):
        size = 4_194_304 if after else 47_008
        place = rank() * 6 + number if after else number * 4 + rank()
        os.pwrite(descriptor, b"x" * size, place * size)


def read_by_all(folder: Path, *, after: bool) -> None:
    """Each of eight ranks reads the same table, or rank 0 alone (and would broadcast it)."""
    if after and rank():
        return
    with (folder / "table").open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def before_read_by_all(folder: Path) -> None:
    """Make the table, outside of the trace."""
    (folder / "table").write_bytes(bytes(48 << 20))


def computed(folder: Path, *, after: bool) -> None:
    """Read an input for each of eight steps and compute after it; after: have the next one read meanwhile."""
    names = sorted(folder.glob("input*"))
    for number, name in enumerate(names):
        if after and number + 1 < len(names):
            with names[number + 1].open("rb") as following:
                os.posix_fadvise(following.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
        with name.open("rb", buffering=0) as file:
            while file.read(4_194_304):
                pass
        time.sleep(0.06)


def before_computed(folder: Path) -> None:
    """Make the inputs, outside of the trace."""
    for number in range(8):
        (folder / f"input{number}").write_bytes(bytes(32 << 20))


def output(folder: Path, *, after: bool) -> None:
    """Write the output of four steps and compute after each; after: submit it, and wait before the next one."""
    size = 128 << 20
    libc, context = ctypes.CDLL(None, use_errno=True), ctypes.c_ulong()
    libc.syscall(_IO_SETUP, 8, ctypes.byref(context))
    block = ctypes.create_string_buffer(b"x" * size)
    descriptor = os.open(folder / "steps", os.O_WRONLY | os.O_CREAT)
    for number in range(4):
        if after:
            # struct iocb: data, key, rw_flags, IOCB_CMD_PWRITE (1), priority, descriptor, buffer, bytes, offset
            request = struct.pack("QIIHhIQQqQII", 0, 0, 0, 1, 0, descriptor, ctypes.addressof(block), size, number * size, 0, 0, 0)
            held = ctypes.create_string_buffer(request)
            libc.syscall(_IO_SUBMIT, context, 1, ctypes.byref(ctypes.c_void_p(ctypes.addressof(held))))
        else:
            os.pwrite(descriptor, block.raw[:size], number * size)
        time.sleep(0.6)


_IO_SETUP, _IO_SUBMIT = 206, 209


def environment(folder: Path, *, after: bool) -> None:
    """Six Pythons import 200 modules of an environment, from the shared folder or from the node, unpacked there once."""
    place = folder / "env/site-packages"
    if after:
        place = Path(tempfile.mkdtemp())
        with zipfile.ZipFile(folder / "env.zip") as archive:
            archive.extractall(place)
    code = f"import sys; sys.path.insert(0, {str(place)!r}); " + "; ".join(f"import module{n}" for n in range(200))
    started = [subprocess.Popen([sys.executable, "-S", "-c", code]) for _ in range(6)]
    for process in started:
        process.wait()
    if after:
        shutil.rmtree(place)


def before_environment(folder: Path) -> None:
    """Make the modules, outside of the trace."""
    modules = folder / "env/site-packages"
    modules.mkdir(parents=True)
    with zipfile.ZipFile(folder / "env.zip", "w") as archive:
        for number in range(200):
            (modules / f"module{number}.py").write_text(f"value = {number}\n")
            archive.write(modules / f"module{number}.py", f"module{number}.py")


def npz(folder: Path, *, after: bool) -> None:
    """Take rows of an array out of an archive of NumPy, from the archive each time or from the array."""
    import numpy as np  # noqa: PLC0415 - other programs start without it

    with np.load(folder / "table.npz") as data:
        rows = data["x"] if after else None
        for number in range(300):
            (data["x"] if rows is None else rows)[number]


def before_npz(folder: Path) -> None:
    """Make the archive, outside of the trace."""
    import numpy as np  # noqa: PLC0415

    np.savez(folder / "table.npz", x=np.zeros((1000, 1000)))


def csv_rows(folder: Path, *, after: bool) -> None:
    """Append each row to a table, or write all rows at the end."""
    import pandas as pd  # noqa: PLC0415

    parts = [pd.DataFrame({"step": [step], "energy": [1.5]}) for step in range(1500)]
    for part in [pd.concat(parts)] if after else parts:
        part.to_csv(folder / "energies.csv", mode="a", header=False, index=False)


def h5_records(folder: Path, *, after: bool) -> None:
    """Open a file of HDF5 for each of 1,500 records, or once for all of them."""
    import h5py  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    records = np.zeros((1500, 100))
    with h5py.File(folder / "records.h5", "w") as file:
        file["x"] = records
    for first in range(0, 1500, 1500 if after else 1):
        with h5py.File(folder / "records.h5", "a") as file:
            file["x"][first : first + (1500 if after else 1)] = 1.0


def members(folder: Path, *, after: bool) -> None:
    """Read 600 members of an archive three times, opened for each member or once."""
    if after:
        with zipfile.ZipFile(folder / "all.zip") as archive:
            for name in 3 * archive.namelist():
                archive.read(name)
        return
    for number in range(1800):
        with zipfile.ZipFile(folder / "all.zip") as archive:
            archive.read(f"{number % 600}")


def before_members(folder: Path) -> None:
    """Make the archive, outside of the trace."""
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for number in range(600):
            archive.writestr(f"{number}", "x" * 500)


def pickles(folder: Path, *, after: bool) -> None:
    """Store 2,000 objects in a file each, or in one."""
    objects = [{"number": number, "values": [0.5] * 60} for number in range(2000)]
    for name, thing in [("all", objects)] if after else enumerate(objects):
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(thing))


def images(folder: Path, *, after: bool) -> None:
    """Append 250 images to a file of FITS one by one, or write them together."""
    import numpy as np  # noqa: PLC0415
    from astropy.io import fits  # noqa: PLC0415

    image = np.zeros((16, 16))
    fits.PrimaryHDU(image).writeto(folder / "night.fits")
    if after:
        fits.PrimaryHDU(np.stack([image] * 250)).writeto(folder / "cube.fits")
        return
    for _ in range(250):
        fits.append(folder / "night.fits", image)


def cached(folder: Path, *, after: bool) -> None:
    """Cache the result of each of 1,200 items, or of all of them together."""
    import joblib  # noqa: PLC0415

    memory = joblib.Memory(folder / "cache", verbose=0)
    if after:
        memory.cache(squares)(range(1200))
        return
    square = memory.cache(squares)
    for number in range(1200):
        square([number])


def squares(numbers: Sequence[int]) -> list[int]:
    return [number * number for number in numbers]


def row_groups(folder: Path, *, after: bool) -> None:
    """Write each of 3,000 tables of 20 rows as a row group of Parquet, or all of them together."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    table = pa.table({name: [0.5] * 20 for name in ("x", "y", "z")})
    with parquet.ParquetWriter(folder / "steps.parquet", table.schema) as writer:
        for part in [pa.concat_tables([table] * 3000)] if after else [table] * 3000:
            writer.write_table(part)


def record_batches(folder: Path, *, after: bool) -> None:
    """Write 10,000 record batches of 10 rows to a file of Arrow, or one of all rows."""
    import pyarrow as pa  # noqa: PLC0415

    table = pa.table({"x": [0.5] * 10, "y": [1.5] * 10})
    with pa.ipc.new_file(folder / "steps.arrow", table.schema) as writer:
        if after:
            writer.write_table(pa.concat_tables([table] * 10_000).combine_chunks())
        else:
            for _ in range(10_000):
                writer.write_table(table)


PROGRAMS = {name: program for name, program in globals().items() if callable(program) and name != "Path"}
"""Each function by its name; `before_NAME` prepares the folder of NAME."""

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](Path(sys.argv[3]), after=sys.argv[2] == "after")
