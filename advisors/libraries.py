"""Libraries and programs that do a workload's I/O, and remedies in their own words.

A user of Zarr or SQLite calls neither `open` nor `fsync`, so code for these is no advice. The table is a literal of
Python because `vani explain` loads no parser. A remedy belongs to what a rule decides about a file (`Rule.settles`).
One that begins with "nothing: " is the reason why the library leaves nothing to decide.

A library is recognised by files (expressions on paths, formats by magic number or name) and by the packages and shared
libraries that the run loaded. If these are known, a file of a format does not suffice: its library must be among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vani.advisors.commands import comment
from vani.advisors.data_files import is_data
from vani.advisors.rule import Finding, Rule

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile


class Library:
    """A library, the signs of it, and its remedies by what a rule settles (`request_size` for request-size).

    `sign` is an expression on paths and formats (as `format:hdf5`), `modules` names in `middleware.libraries`, any of
    which must be loaded. `claims` is true if the library is known to use files of any name.
    """

    def __init__(
        self, name: str, sign: str, modules: str, source: str, *, claims: bool = False, **remedies: str
    ) -> None:
        self.name, self.source, self.claims = name, source, claims
        # A path ends before its format.
        self.sign, self.modules = re.compile(sign.replace("$", r"(?= format:|$)")), frozenset(modules.split())
        self.remedies = {_OWN_ORDER: _ORDER} | {key.replace("_", "-"): text for key, text in remedies.items()}


_OWN_ORDER, _ORDER = "order", "nothing: the order of accesses is that of the format"
_ONCE: Final = "open it once and keep it open for all records: "

LIBRARIES: Final = (
    Library(
        "Zarr", r"/\.z(array|group|attrs|metadata)$|/zarr\.json$", "zarr tensorstore",
        "https://zarr.readthedocs.io/en/stable/user-guide/consolidated_metadata/",
        opening="open the group before the loop, with all metadata in one file: zarr.consolidate_metadata(store)\n"
        "after the last array, zarr.open_consolidated(store)",
    ),
    Library(
        "Zarr", r"\.zarr(/|$)|/c(/\d+)+$|/(%d\.)+%d$", "zarr tensorstore",
        "https://zarr.readthedocs.io/en/stable/user-guide/performance/",
        files="larger chunks=, of 1 to 10 MB, or many chunks in one file (Zarr 3):\n"
        "  zarr.create_array(store, shape=..., chunks=(512, 512), shards=(8192, 8192), dtype=...)",
        reuse="each write of a part reads, changes and replaces its chunks: collect the steps of a chunk and assign\n"
        "them at once, array[t : t + n] = steps; or chunks of one step, chunks=(1, ny, nx), shards=(n, ny, nx)",
        request_size="larger chunks: chunks= of 1 to 10 MB; shards= if readers need small ones",
        opening="nothing: Zarr opens a file for each chunk by design",
        waiting="nothing: Zarr writes chunks by threads already",
        claims=True,
    ),
    Library(
        "LMDB", r"(^|/)(data|lock)\.mdb$|\.lmdb$", "lmdb", "https://lmdb.readthedocs.io/en/release/#transaction-class",
        flush="many changes in one transaction:\n"
        "  with env.begin(write=True) as txn:\n"
        "      for key, value in samples: txn.put(key, value)     # 1,000 and more for each begin\n"
        "where the last ones may be lost in a crash: lmdb.open(..., sync=False), env.sync() at the end",
        opening="open the environment once for each process: lmdb.open(path, readonly=True, lock=False)",
        reuse="many put in one env.begin(write=True): each commit writes the pages above its data again",
        request_size="nothing: LMDB writes pages",
        claims=True,
    ),
    Library(
        "SQLite", r"-(journal|wal|shm)$|\.(sqlite3?|db3?)$|/etilqs_\w+$", "sqlite3", "https://www.sqlite.org/faq.html#q19",
        flush="many changes in one transaction:\n"
        '  Python:  with db: db.executemany("INSERT INTO t VALUES (?, ?)", rows)   # no commit for each row\n'
        '  C:       sqlite3_exec(db, "BEGIN", 0, 0, 0);  for (...) { ... }  sqlite3_exec(db, "COMMIT", 0, 0, 0);\n'
        "fewer flushes for each commit: PRAGMA journal_mode=WAL (processes of one node only)",
        opening="one transaction for many changes, since each one makes and removes a journal: with db: db.executemany",
        order="an index on the columns that queries compare (CREATE INDEX), and PRAGMA cache_size=-65536",
        reuse="for reads: an index on the columns that queries compare (CREATE INDEX), and PRAGMA cache_size=-65536;\n"
        "for writes: one transaction for many changes, since each commit writes its pages twice",
        request_size="nothing: SQLite reads and writes pages",
    ),
    Library(
        "DuckDB", r"\.duckdb(\.wal)?$|\.wal$", "duckdb", "https://duckdb.org/docs/data/appender.html",
        flush="many rows in one statement or one transaction, since each INSERT is committed by itself:\n"
        '  con.execute("INSERT INTO t SELECT * FROM frame")    # of pandas, polars, Arrow; or an appender\n'
        '  con.execute("BEGIN"), all con.execute("INSERT ..."), con.execute("COMMIT")',
        request_size="nothing: the log of DuckDB gets one record for each transaction",
    ),
    Library(
        "tifffile", "format:tiff", "tifffile imageio", "https://github.com/cgohlke/tifffile#examples",
        opening=_ONCE + "imwrite(..., append=True) walks all earlier pages\n"
        "  with tifffile.TiffWriter(name) as tif:\n"
        "      for frame in frames: tif.write(frame, contiguous=True)\n"
        "for reading: with tifffile.TiffFile(name) as tif: tif.asarray(key=range(n))",
        reuse="one TiffWriter for all frames, in place of imwrite(..., append=True); one TiffFile for all reads",
        request_size="all frames in one call: tif.write(stack); tiles of 256 x 256 and more",
    ),
    Library(
        "GDAL", "format:tiff", "rasterio gdal", "https://gdal.org/en/stable/drivers/raster/gtiff.html",
        opening=_ONCE + "with rasterio.open(name) as src: around the loop",
        reuse="windows of whole tiles: for _, w in src.block_windows(1): src.read(window=w); GDAL_CACHEMAX=1024",
        request_size="tiles in place of strips: -co TILED=YES -co BLOCKXSIZE=512 -co BLOCKYSIZE=512",
    ),
    Library(
        "NumPy", "format:np[yz]", "numpy", "https://numpy.org/doc/stable/reference/generated/numpy.load.html",
        reuse="take the array out before the loop, x = data['x'] and then x[i]: data['x'] reads all of it each time;\n"
        "or np.save(name, x), and np.load(name, mmap_mode='r')",
        opening=_ONCE + "data = np.load(name) before the loop, or all arrays in one np.savez(name, **arrays)",
        files="one array in place of a file for each: np.save(name, np.stack(arrays)), np.load(name, mmap_mode='r')[i]",
        order="read the array once, x = np.load(name); with mmap_mode='r', indices in ascending order",
        request_size="whole arrays: np.load(name); array.tofile(file) for many rows at once",
    ),
    Library(
        "netCDF", "format:netcdf", "netCDF4 netcdf pnetcdf xarray",
        "https://docs.unidata.ucar.edu/netcdf-c/current/group__datasets.html",
        reuse="define all dimensions, variables and attributes, then leave define mode once, before any data\n"
        "(nc_enddef, ncmpi_enddef; netCDF4: createVariable and attributes before the first assignment), or reserve\n"
        "room for a header that grows: nc__enddef(ncid, 65536, 4, 0, 4); ds.set_fill_off() if all is written;\n"
        "many records in one assignment, variable[t : t + n] = steps, and sync() after several, not after each",
        opening=_ONCE + "netCDF4.Dataset(name, 'a') before the loop, variable[n] = step in it",
        request_size="many records in one assignment, variable[t : t + n] = steps (nc_put_vara); chunksizes= of 1 MiB",
        flush="one sync() for several steps, or close() alone, which writes everything",
        files="several steps in one file with an unlimited dimension: createDimension('time', None)",
    ),
    Library(
        "HDF5", r"format:hdf5|\.(h5part|h5ad|hdf5?|h5)$", "h5py hdf5 tables",
        "https://docs.h5py.org/en/stable/high/file.html",
        opening=_ONCE + "with h5py.File(name, 'a') as file: around the loop (H5Fopen once)",
        request_size="many records in one call: dset[i : i + n] = rows (H5Dwrite of n rows); a chunk larger than the\n"
        "cache is read row by row: h5py.File(name, rdcc_nbytes=16777216), or smaller chunks",
        reuse="many records in one call: dset[i : i + n] = rows; HDF5 reads and writes its sieve buffer, or a whole\n"
        "chunk, for each smaller one (H5Pset_sieve_buf_size, rdcc_nbytes=)",
        flush="one file.flush() (H5Fflush) for several steps, or none: close() writes all",
        files="one file with a data set for all: dset[i] = row",
        claims=True,
    ),
    Library(
        "Parquet", r"format:(parquet|arrow)|\.parquet(/|$)|\.feather$", "pyarrow arrow pandas polars dask",
        "https://arrow.apache.org/docs/python/parquet.html",
        files="fewer partitions and files, of 128 MB to 1 GB: pyarrow.dataset.write_dataset(...,\n"
        "max_rows_per_file=..., min_rows_per_group=...), few partitions; Dask: df.repartition(partition_size='256MB')",
        request_size="larger row groups: pq.write_table(table, name, row_group_size=1_000_000); pre_buffer=True",
        opening=_ONCE + "file = pq.ParquetFile(name), then file.read_row_group(i); one ParquetWriter for all batches",
        reuse="read what is needed once, before the loop: pq.read_table(name, columns=[...], filters=[...])",
    ),
    Library(
        "safetensors", r"\.safetensors$", "safetensors", "https://huggingface.co/docs/safetensors/index",
        opening=_ONCE + "with safe_open(name, framework='pt') as file: around the loop",
        order="read it whole and in order: safetensors.torch.load(open(name, 'rb').read()), or copy it near",
        reuse="load_file(name) once, before the loop",
    ),
    Library(
        "pandas", "format:csv", "pandas polars dask", "https://pandas.pydata.org/docs/user_guide/io.html",
        opening="pandas.concat(parts).to_csv(name) at the end, in place of to_csv(name, mode='a') in the loop",
        request_size="one to_csv for all rows, or to_parquet; read_csv with a larger chunksize=",
        reuse="read_csv(name, usecols=[...]) once, before the loop; or once to_parquet, and read that",
        files="one table, pandas.concat(parts).to_parquet(name), in place of a file for each part",
    ),
    Library(
        "pickle and joblib", r"\.(pkl|pickle|joblib)$", "", "https://joblib.readthedocs.io/en/stable/persistence.html",
        files="many objects in one file: pickle.dump of a list or dict; by key: shelve, or SQLite in one transaction",
        opening="one pickle.dump of a list or dict for all objects; of a state that changes, one after several steps",
        reuse="joblib.load or pickle.load once, before the loop",
        request_size="one pickle.dump(objects, file, protocol=5) of a list, in place of an object for each call",
    ),
    Library(
        "xarray", r"format:grib", "xarray", "https://docs.xarray.dev/en/stable/user-guide/io.html",
        files="one store: xarray.open_mfdataset(files).to_zarr(store, consolidated=True), chunks of 10 to 100 MB",
    ),
    Library(
        "PyTorch", r"\.(jpe?g|JPEG|png|webp|wav|flac|pt)$", "torch torchvision webdataset",
        "https://github.com/webdataset/webdataset",
        files="samples in shards: webdataset.ShardWriter('train-%06d.tar', maxcount=10000) once; then\n"
        "webdataset.WebDataset('train-{000000..000007}.tar', shardshuffle=8).shuffle(1000) in place of ImageFolder",
        opening="open in the worker, once: if self.file is None: self.file = open(...) in __getitem__;\n"
        "DataLoader(..., persistent_workers=True)",
    ),
    Library(
        "TensorFlow", r"\.(jpe?g|JPEG|png)$|format:tfrecord", "tensorflow",
        "https://www.tensorflow.org/tutorials/load_data/tfrecord",
        files="samples in TFRecord files of 100 MB: tf.io.TFRecordWriter(name); tf.data.TFRecordDataset(names)",
    ),
    Library(
        "images", r"\.(jpe?g|png|bmp|p[gp]m)$", "PIL cv2 imageio", "https://docs.h5py.org/en/stable/high/dataset.html",
        files="all images in one array: h5py, dset[i] = image with chunks=(1, ny, nx, 3), or Zarr with shards=",
    ),
    Library(
        "ADIOS2", r"\.bp\d?(/|$)|\.bp\.dir/", "adios2", "https://adios2.readthedocs.io/en/latest/engines/engines.html",
        opening="one io.Open for all steps, BeginStep and EndStep for each; no Mode::Append in the loop",
        request_size="Put(..., Mode::Deferred) and one EndStep; io.SetParameter('BufferChunkSize', '16777216')",
    ),
    Library(
        "FITS", "format:fits", "astropy cfitsio", "https://docs.astropy.org/en/stable/io/fits/",
        opening=_ONCE + "with fits.open(name) as hdus: around the loop, mode='append' to write (fits_open_file once)",
        request_size="whole images and columns: fits_write_img, fits_write_col with fits_get_rowsize rows",
        reuse="fits.open(name, memmap=False) once, before the loop",
    ),
    Library(
        "NiBabel", r"\.nii(\.gz)?$", "nibabel", "https://nipy.org/nibabel/images_and_memory.html",
        reuse="data = numpy.asarray(img.dataobj) once, before the loop: each img.dataobj[...] decompresses from the\n"
        "start; or an uncompressed .nii, where it reads the slice alone; or install indexed_gzip",
        request_size="nothing: a .nii.gz is decompressed in small pieces, one after the other",
    ),
    Library(
        "gzip", "format:gzip", "", "https://docs.python.org/3/library/gzip.html",
        reuse="a seek backwards decompresses all from the start: read in ascending order, or decompress once (gunzip)\n"
        "and seek in that; bgzip and indexed_gzip keep an index of places",
        request_size='larger pieces: gzip.open(open(name, "rb", buffering=4194304)); in C gzbuffer(file, 4194304)',
    ),
    Library(
        "Uproot and ROOT", r"format:root|\.root$", "uproot", "https://uproot.readthedocs.io/en/latest/basic.html",
        request_size="larger baskets: tree.extend({...}) with all entries of a step or more in one call;\n"
        'uproot.iterate(name, branches, step_size="100 MB") for reading',
        opening=_ONCE + "with uproot.open(name) as file: around the loop",
    ),
    Library(
        "ASE", r"\.(traj|(ext)?xyz)$", "ase", "https://ase-lib.org/ase/io/trajectory.html",
        opening='with Trajectory(name, "w") as traj: around the loop, traj.write(atoms) in it; or write(name, steps)',
    ),
    Library(
        "zipfile and tarfile", r"format:(zip|tar)", "", "https://docs.python.org/3/library/zipfile.html",
        opening=_ONCE + "with zipfile.ZipFile(name) as archive: around the loop, archive.read(member) in it",
        reuse="one open, members in their order (for member in tar), or an index of member.offset_data by name",
        order="members in the order of the archive",
    ),
    Library(
        "RocksDB and LevelDB", r"/\d{6}\.(sst|ldb|log)$", "rocksdb leveldb",
        "https://github.com/facebook/rocksdb/wiki/Basic-Operations",
        flush="many changes in one WriteBatch; or WriteOptions.sync = false and one FlushWAL(true)",
        files="nothing: the files are those of the database",
    ),
    Library(
        "dbm and shelve", r"\.(dbm?|dir|pag|gdbm)$", "dbm", "https://docs.python.org/3/library/shelve.html",
        flush="shelve.open(name, writeback=True) and one sync() at the end, or SQLite in one transaction",
        opening=_ONCE + "with shelve.open(name) as shelf: around the loop, without sync() in it: where dbm is\n"
        "dbm.dumb (.dat, .dir and .bak), each one writes the whole index again",
        claims=True,
    ),
)
"""In the order of recognition."""

_NOTHING: Final = "nothing: the program's own way of copying"
PROGRAMS: Final[Mapping[str, tuple[str, str]]] = {
    "tar": ("tar --blocking-factor=2048 -cf archive.tar FOLDER   # 1 MiB for each write", "request-size"),
    "dd": ("dd bs=4M ...; oflag=dsync waits after each block: conv=fsync waits once, at the end", "request-size flush"),
    "rsync": ("rsync --whole-file --inplace; many files: tar -cf - FOLDER | tar -xf - -C TARGET", "files opening"),
    "cp": ("cp -r of many small files: tar -cf - FOLDER | tar -xf - -C TARGET", "files"),
    "git": ("git gc, and git clone --depth 1 near the node: TMPDIR", "files opening"),
    "pip": ("pip install on the node, or once into a container or an image (SquashFS)", "files opening"),
    "gzip": ("pigz or zstd -T0 compress by several threads; gzip itself has no size of requests", ""),
    "h5repack": ("h5repack -l CHUNK=... -f GZIP=1: chunks of 1 MiB and more", "request-size reuse chunking"),
}
"""An option of a program that is not the user's own code, and what it decides."""


_GENERAL: Final = frozenset({"posix", "folders"})
"""Families of rules that know no library. The others speak in the words of theirs."""


def in_its_words(rule: type[Rule], finding: Finding, profile: Profile) -> Finding | str:
    """The finding with the remedy of the library that does the I/O, or the reason why this leaves nothing to do."""
    if rule.family not in _GENERAL:
        return finding
    name, remedy, source = _remedy(rule.settles, finding, profile)
    if not remedy:
        return finding
    if remedy.startswith("nothing: "):
        return f"{finding.target.path or finding.target.app}: {remedy.removeprefix('nothing: ')}"
    lines = comment(f"in the words of {name} ({source}):\n" + "\n".join(f"  {line}" for line in remedy.splitlines()))
    # Flushing forces what a library caches out in small pieces.
    removes = finding.removes | ({"transfer"} if rule.settles == "flush" else set())
    return replace(finding, apply=lines, advice="", settings=(), removes=removes)


def _remedy(settles: str, finding: Finding, profile: Profile) -> tuple[str, str, str]:
    """The name, the remedy and the source; empty if there are none for what is to be decided."""
    apps = [finding.target.app] if finding.target.app else [app.name for app in profile.apps]
    if settles in _OWN_CODE and len(apps) == 1 and apps[0] in PROGRAMS:
        line, decides = PROGRAMS[apps[0]]
        return apps[0], line if settles in decides.split() else _NOTHING, f"its manual page, {apps[0]}(1)"
    library, is_sure = library_of(finding, profile)
    if library is None or settles not in library.remedies:
        return "", "", ""
    if not is_sure and library.remedies[settles].startswith("nothing: "):
        return "", "", ""
    return library.name, library.remedies[settles], library.source


_OWN_CODE: Final = frozenset({"opening", "request-size", "reuse", "order", "flush", "files", "waiting", "reading"})


def library_of(finding: Finding, profile: Profile) -> tuple[Library | None, bool]:
    """The library to whose files most of the finding's calls go, and whether the files themselves show it."""
    loaded = set(profile.middleware.libraries or ())
    # Python imports its packages from files, so one that is not among them is not in use.
    known = bool(loaded) or any("/python3." in row.pattern for row in profile.patterns or ())
    calls = {f"{file.path} format:{file.format}": file.io.ops.all for file in _files(finding, profile)}
    for library in LIBRARIES:
        if known and library.modules and loaded.isdisjoint(library.modules):
            continue
        if 2 * sum(count for name, count in calls.items() if library.sign.search(name)) > sum(calls.values()):
            return library, True
    claiming = [candidate for candidate in LIBRARIES if candidate.claims and not loaded.isdisjoint(candidate.modules)]
    is_unnamed = all(name.endswith(("format:None", "format:bin")) for name in calls)
    return (claiming[0] if len(claiming) == 1 and calls and is_unnamed else None), False


def _files(finding: Finding, profile: Profile) -> list[FileEntity]:
    """The finding's files, or the file in which its app moves most."""
    if files := [file for file in profile.files if file.path in finding.files]:
        return files
    used = [file for file in profile.files if finding.target.app in (None, *file.apps) and is_data(file.path)]
    return [max(used, key=lambda file: file.io.bytes.total or 0)] if used else []
