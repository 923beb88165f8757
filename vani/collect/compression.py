"""The ratio and speed of compressing a data set: every installed codec compresses a bounded sample of its bytes.

Chunk-sized pieces are spread over all bytes of the files of one format: these bytes are divided into as many equal
parts as pieces are wanted, and one piece begins at a random place in each part. Pieces are compressed as stored in the
files, each separately, so a file that is already compressed does not compress again. HDF5 files (including netCDF-4)
are tried with the filters that h5py has, others with Python libraries. All codecs get the same pieces, even if time
runs out.

Source of the shuffle filter: HDF5 documentation, H5Pset_shuffle.
"""

import os
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from vani.schema.dataset_facts import Codec, Compression

PIECE: Final = 1 << 20
"""Bytes: the default chunk cache before HDF5 2.0, which must fit a whole chunk."""
_FEWEST: Final = 64 << 10
"""Bytes: less is too little for a ratio, and useless for a speed."""
_SEED: Final = 20_260_101
"""The same data set gives the same sample."""
_TICK: Final = 1e-9

# Registered HDF5 filters (support.hdfgroup.org, "Registered Filter Plugins") with their default options.
_PLUGINS: Final = (("zstd", 3, 32015, (3,)), ("lz4", None, 32004, ()), ("blosc", None, 32001, ()))

Attempt = Callable[[bytes], tuple[int, float, float]]
"""Compresses and decompresses a piece: compressed bytes, seconds to compress, seconds to decompress."""


@dataclass(frozen=True)
class Sampled:
    """A file of the data set: path, size, format, and bytes per value (None if unknown)."""

    path: Path
    size: int
    format: str
    value_bytes: int | None


@dataclass
class _Trial:
    name: str
    level: int | None
    shuffle: bool
    library: str
    attempt: Attempt
    before: int = 0
    after: int = 0
    compress_s: float = 0.0
    decompress_s: float = 0.0
    failed: bool = field(default=False)

    def take(self, piece: bytes) -> None:
        try:
            after, compress_s, decompress_s = self.attempt(piece)
        except (OSError, RuntimeError, ValueError, TypeError):
            self.failed = True
            return
        self.before += len(piece)
        self.after += after
        self.compress_s += compress_s
        self.decompress_s += decompress_s

    def codec(self) -> Codec:
        return Codec(
            name=self.name,
            level=self.level,
            shuffle=self.shuffle,
            library=self.library,
            bytes=self.before,
            ratio=self.before / max(1, self.after),
            compress=self.before / max(_TICK, self.compress_s),
            decompress=self.before / max(_TICK, self.decompress_s),
        )


def try_codecs(
    root: str, files: Sequence[Sampled], wanted: int, seconds: float, problems: list[str]
) -> Compression | str:
    """Compress `wanted` bytes of the files with each codec, within the given seconds; a sentence if that is impossible.

    `problems` gets the files that cannot be read.
    """
    ends_at = time.monotonic() + seconds
    kinds: dict[str, int] = {}
    for file in files:
        kinds[file.format] = kinds.get(file.format, 0) + file.size
    if sum(kinds.values()) < _FEWEST:
        return f"the examined files have less than {_FEWEST >> 10} KiB"
    kind = max(kinds, key=lambda name: kinds[name])
    alike = [file for file in files if file.format == kind and file.size]
    pieces, sources = _draw(alike, -(-wanted // PIECE), ends_at, problems)
    total = sum(map(len, pieces))
    if total < _FEWEST:
        return f"{total:,} bytes of {kind} files could be read, too few for a ratio"
    known = {file.value_bytes for file in alike if file.value_bytes}
    value_bytes = known.pop() if len(known) == 1 else None
    trials = _trials(kind, value_bytes)
    for piece in pieces:
        for trial in trials:
            if not trial.failed:
                trial.take(piece)
        if time.monotonic() > ends_at:
            break
    return Compression(
        root=root,
        format=kind,
        files=sources,
        pieces=len(pieces),
        piece=PIECE,
        bytes=total,
        value_bytes=value_bytes,
        codecs=[trial.codec() for trial in trials if trial.before and not trial.failed],
    )


def _draw(files: Sequence[Sampled], count: int, ends_at: float, problems: list[str]) -> tuple[list[bytes], int]:
    """Pieces in random order, and the number of files from which they come."""
    random = np.random.default_rng(_SEED)
    behind = np.cumsum(np.array([file.size for file in files], np.int64))
    total = int(behind[-1])
    edges = np.linspace(0, total, count + 1)
    places = np.minimum(edges[:-1] + random.random(count) * np.diff(edges), total - 1).astype(np.int64)
    pieces: dict[tuple[int, int], bytes] = {}
    for place in random.permutation(places).tolist():
        number = int(np.searchsorted(behind, place, side="right"))
        file = files[number]
        # A piece starts where its file still has a whole piece; values are aligned to 8 bytes in these formats.
        begin = max(0, min(place - (int(behind[number]) - file.size), file.size - PIECE)) // 8 * 8
        if (number, begin) in pieces:
            continue
        try:
            with file.path.open("rb") as opened:
                piece = os.pread(opened.fileno(), PIECE, begin)
        except OSError as error:
            problems.append(f"{file.path}: {error.strerror or error}")
            continue
        if piece:
            pieces[number, begin] = piece
        if time.monotonic() > ends_at:
            break
    return list(pieces.values()), len({number for number, _ in pieces})


def _trials(kind: str, value_bytes: int | None) -> list[_Trial]:
    if kind in ("hdf5", "netcdf"):
        with suppress(ImportError):
            return _filters(value_bytes or 1)
    trials = [_Trial("gzip", level, False, "zlib", _gzip(level)) for level in (1, 4)]
    return trials + _arrow() + _blosc(value_bytes or 1)


def _timed(compress: Callable[[bytes], Any], decompress: Callable[[Any, int], Any]) -> Attempt:
    def attempt(piece: bytes) -> tuple[int, float, float]:
        begin = time.perf_counter()
        packed = compress(piece)
        middle = time.perf_counter()
        decompress(packed, len(piece))
        return len(packed), middle - begin, time.perf_counter() - middle

    return attempt


def _gzip(level: int) -> Attempt:
    return _timed(lambda piece: zlib.compress(piece, level), lambda packed, _: zlib.decompress(packed))


def _arrow() -> list[_Trial]:
    """Codecs with which Arrow was built."""
    import pyarrow as pa  # noqa: PLC0415 - slow to load

    trials = []
    for name, arrow_name, level in (("zstd", "zstd", 3), ("lz4", "lz4_raw", None)):
        if pa.Codec.is_available(arrow_name):
            codec = pa.Codec(arrow_name, level)
            attempt = _timed(codec.compress, codec.decompress)
            trials.append(_Trial(name, level, False, "pyarrow", attempt))
    return trials


def _blosc(value_bytes: int) -> list[_Trial]:
    try:
        import blosc2  # noqa: PLC0415 - seldom installed
    except ImportError:
        return []
    # One core, like the others.
    blosc2.set_nthreads(1)
    attempt = _timed(
        lambda piece: blosc2.compress(piece, typesize=value_bytes, codec=blosc2.Codec.LZ4),
        lambda packed, _: blosc2.decompress(packed),
    )
    return [_Trial("blosc", None, value_bytes > 1, "blosc2", attempt)]


def _filters(value_bytes: int) -> list[_Trial]:
    """Available HDF5 filters that compress, with shuffling if values have several bytes.

    Raises
    ------
    ImportError
        h5py is missing.
    """
    import h5py  # noqa: PLC0415 - slow to load

    # Importing it registers further filters; others come from HDF5_PLUGIN_PATH.
    with suppress(ImportError):
        import hdf5plugin  # noqa: F401, PLC0415

    type_ = np.dtype(f"u{value_bytes}") if value_bytes in (1, 2, 4, 8) else np.dtype("u1")
    shuffles = (False, True) if type_.itemsize > 1 else (False,)
    ways: list[tuple[str, int | None, Any, Any]] = [
        *(("gzip", level, "gzip", level) for level in (1, 4)),
        ("lzf", None, "lzf", None),
    ]
    if _encodes_szip(h5py):
        ways.append(("szip", None, "szip", ("nn", 32)))
    ways += [
        (name, level, number, options)
        for name, level, number, options in _PLUGINS
        if h5py.h5z.filter_avail(number)
    ]
    return [
        _Trial(name, level, shuffle, "h5py", _filter(h5py, type_, filter_, options, shuffle=shuffle))
        for name, level, filter_, options in ways
        for shuffle in shuffles
        # These reorder bytes themselves.
        if not (shuffle and name in ("szip", "blosc"))
    ]


def _encodes_szip(h5py: Any) -> bool:
    szip = h5py.h5z.FILTER_SZIP
    if not h5py.h5z.filter_avail(szip):
        return False
    return bool(h5py.h5z.get_filter_info(szip) & h5py.h5z.FILTER_CONFIG_ENCODE_ENABLED)


def _filter(h5py: Any, type_: np.dtype, filter_: Any, options: Any, *, shuffle: bool) -> Attempt:
    def attempt(piece: bytes) -> tuple[int, float, float]:
        values = np.frombuffer(piece, type_, len(piece) // type_.itemsize)
        # Without a chunk cache, data passes the filter both when it is written and when it is read.
        with h5py.File("sample", "w", driver="core", backing_store=False, rdcc_nbytes=0) as file:
            dataset = file.create_dataset(
                "values",
                values.shape,
                type_,
                chunks=values.shape,
                compression=filter_,
                compression_opts=options,
                shuffle=shuffle,
            )
            begin = time.perf_counter()
            dataset[...] = values
            middle = time.perf_counter()
            dataset[...]
            return dataset.id.get_storage_size(), middle - begin, time.perf_counter() - middle

    return attempt
