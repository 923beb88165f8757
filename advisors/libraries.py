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

from vani.advisors.commands import SHELLS, comment, language_of
from vani.advisors.data_files import is_data
from vani.advisors.rule import Finding, Rule

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile


class Library:
    """A library, the signs of it, and its remedies by what a rule settles (`request_size`; `files__opening` is for
    both, `reuse_read` for reading alone).

    `sign` is an expression on paths and formats (as `format:hdf5`), `modules` names in `middleware.libraries`, any of
    which must be loaded. `claims` is true if the library is known to use files of any name.
    """

    def __init__(
        self, name: str, sign: str, modules: str, source: str, *, claims: bool = False, **remedies: str
    ) -> None:
        self.name, self.source, self.claims = name, source, claims
        # A path ends before its format.
        self.sign, self.modules = re.compile(sign.replace("$", r"(?= format:|$)")), frozenset(modules.split())
        self.remedies = {_OWN_ORDER: _ORDER} | {
            key.replace("_", "-"): text for keys, text in remedies.items() for key in keys.split("__")
        }


_OWN_ORDER, _ORDER = "order", "nothing: the order of accesses is that of the format"
_ONCE: Final = "open it once and keep it open for all records: "

LIBRARIES: Final = (
    Library(
        "Zarr", r"/\.z(array|group|attrs|metadata)$|/zarr\.json$", "zarr tensorstore",
        "https://zarr.readthedocs.io/en/stable/user-guide/consolidated_metadata/",
        opening__files="open the group before the loop, with all metadata in one file:\n"
        "zarr.consolidate_metadata(store) after the last array, zarr.open_consolidated(store)",
    ),
    Library(
        "Zarr", r"\.zarr(/|$)|/c(/\d+)+$|/(%d\.)+%d$", "zarr tensorstore",
        "https://zarr.readthedocs.io/en/stable/user-guide/performance/",
        files="larger chunks=, of 1 to 10 MB, or many chunks in one file (Zarr 3):\n"
        "  zarr.create_array(store, shape=..., chunks=(512, 512), shards=(8192, 8192), dtype=...)",
        reuse_read="blocks of whole chunks, block = array[i : i + array.chunks[0]], and their rows from memory, since\n"
        "array[i] reads and decompresses a whole chunk each time",
        reuse="each write of a part reads, changes and replaces its chunks: collect the steps of a chunk and assign\n"
        "them at once, array[t : t + n] = steps; or chunks of one step, chunks=(1, ny, nx)",
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
        opening="one connection for all queries and changes: db = sqlite3.connect(name) before the loop; and one\n"
        "transaction for many changes, since each one makes and removes a journal: with db: db.executemany",
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
        opening_write="np.save or np.savez after several steps, not after each; or all steps in one array of np.memmap",
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
        reuse_read="read each slab once and take all points from it, slab = variable[t0:t1]; or once, chunks that fit\n"
        "the reads: nccopy -c time/100,lat/10,lon/10 in.nc out.nc (chunksizes=); or a cache for chunks read again:\n"
        "variable.set_var_chunk_cache(64 << 20). Classic files have no chunks: nccopy -u or -k nc4",
        transfer="nc_var_par_access(ncid, varid, NC_COLLECTIVE) (netCDF4: variable.set_collective(True)), and each\n"
        "process's whole part in one nc_put_vara_all or assignment",
        opening=_ONCE + "netCDF4.Dataset(name, 'a') before the loop, variable[n] = step in it",
        request_size="many records in one assignment, variable[t : t + n] = steps (nc_put_vara); chunksizes= of 1 MiB",
        flush="one sync() for several steps, or close() alone, which writes everything",
        files="several steps in one file with an unlimited dimension: createDimension('time', None)",
    ),
    Library(
        "PyTables", r"format:hdf5|\.(hdf5?|h5)$", "tables", "https://www.pytables.org/usersguide/optimization.html",
        reuse_write__request_size_write__flush="rows in blocks, table.append(rows), and table.flush() once at the\n"
        "end, since each writes the table's chunk and index again; create_table(..., expectedrows=N) for its chunks",
        opening=_ONCE + "with tables.open_file(name, 'a') as file: around the loop\n"
        "(pandas: with pandas.HDFStore(name) as store:, and store.append of many rows in it)",
        reuse_read="whole columns or many rows in one call: table.read(), table.read_where(condition);\n"
        "chunks that fit: ptrepack --chunkshape=auto in.h5 out.h5",
    ),
    Library(
        "HDF5", r"format:hdf5|\.(h5part|h5ad|hdf5?|h5)$", "h5py hdf5",
        "https://docs.h5py.org/en/stable/high/file.html",
        opening=_ONCE + "with h5py.File(name, mode) as file: around the loop (H5Fopen once);\n"
        "in each worker of a DataLoader at its first sample: if self.file is None: self.file = h5py.File(name, 'r')",
        request_size_write="many records in one call: dset[i : i + n] = rows (H5Dwrite of n rows), no flush()\n"
        "after each, and chunks of as many, 64 KiB to 1 MiB: create_dataset(..., chunks=(n,)) (H5Pset_chunk)",
        request_size="many records in one call: dset[i : i + n] = rows (H5Dwrite of n rows), no flush() after each;\n"
        "many small data sets: one large one with an index, since each has headers of its own; a chunk larger than\n"
        "the cache is read row by row: h5py.File(name, rdcc_nbytes=16777216), or smaller chunks",
        reuse="many records in one call: dset[i : i + n] = rows; HDF5 reads and writes its sieve buffer, or a whole\n"
        "chunk, for each smaller one (H5Pset_sieve_buf_size, rdcc_nbytes=)",
        reuse_read="larger parts in one call: rows = dset[i : i + n], then use them from memory; chunks that fit the\n"
        "reads, once: h5repack -l CHUNK=...; or a cache for all chunks that are read again: rdcc_nbytes=, rdcc_nslots=",
        reading="H5Pset_all_coll_metadata_ops(fapl, 1): one process reads headers for all; or H5Dread on rank 0 of\n"
        "small data sets and attributes, and MPI_Bcast of their values",
        transfer="collective calls: H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE) for H5Dwrite and H5Dread (h5py: with\n"
        "dset.collective:), and each process's whole part in one call, as one hyperslab",
        flush="one file.flush() (H5Fflush) for several steps, or none: close() writes all",
        files="one file with a data set for all: dset[i] = row",
        claims=True,
    ),
    Library(
        "Arrow IPC", r"format:arrow|\.(arrow|feather)$", "pyarrow arrow", "https://arrow.apache.org/docs/python/ipc.html",
        request_size="record batches of 65,536 rows and more: writer.write_table(table.combine_chunks(),\n"
        "max_chunksize=65536); to read, pyarrow.memory_map(name)",
        opening=_ONCE + "one pyarrow.ipc.new_file(name, schema) for all batches",
    ),
    Library(
        "Parquet", r"format:parquet|\.parquet(/|$)", "pyarrow arrow pandas polars dask",
        "https://arrow.apache.org/docs/python/parquet.html",
        files="fewer partitions and files, of 128 MB to 1 GB: partition by fewer or coarser columns (a date, not a\n"
        "customer), pyarrow.dataset.write_dataset(..., min_rows_per_group=..., max_rows_per_file=...);\n"
        "Dask: df.repartition(partition_size='256MB')",
        request_size="for writing, collect 100,000 rows and more for each call, since each makes a row group:\n"
        "writer.write_table(pyarrow.concat_tables(tables)); for reading, ParquetFile(name, pre_buffer=True)",
        opening=_ONCE + "file = pq.ParquetFile(name), then file.read_row_group(i); one ParquetWriter for all batches",
        reuse_write__opening_write="with pq.ParquetWriter(name, schema) as writer: around the loop, not reading and\n"
        "writing all again, writer.write_table(table) in it (pandas: one to_parquet at the end)",
        reuse="read what is needed once, before the loop: pq.read_table(name, columns=[...], filters=[...])",
    ),
    Library(
        "safetensors", r"\.safetensors$", "", "https://huggingface.co/docs/safetensors/index",
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
        "joblib.Memory", r"/[0-9a-f]{32}/(output\.pkl|metadata\.json)$", "",
        "https://joblib.readthedocs.io/en/stable/memory.html",
        files__opening="cache a function of many items, not of one, since each result makes a folder and two files;\n"
        "or joblib.Memory($TMPDIR) on the node; or one file by key: SQLite in one transaction",
    ),
    Library(
        "pickle and joblib", r"\.(pkl|pickle|joblib)$", "", "https://joblib.readthedocs.io/en/stable/persistence.html",
        files="many objects in one file: pickle.dump of a list or dict; by key: shelve, or SQLite in one transaction",
        opening="one pickle.dump of a list or dict for all objects; of a state that changes, one after several steps",
        reuse="joblib.load or pickle.load once, before the loop",
        reuse_write="the new item alone: file = open(name, 'ab') before the loop, pickle.dump(item, file) in it, and\n"
        "pickle.load until EOFError to read; or save the whole after several items",
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
        request_size="one cube or table in place of many small HDUs: fits.writeto(name, numpy.stack(images));\n"
        "whole images and columns: fits_write_img, fits_write_col with fits_get_rowsize rows",
        reuse="fits.open(name, memmap=False) once, before the loop",
    ),
    Library(
        "NiBabel", r"\.nii(\.gz)?$", "nibabel", "https://nipy.org/nibabel/images_and_memory.html",
        reuse="data = numpy.asarray(img.dataobj) once, before the loop: each img.dataobj[...] decompresses from the\n"
        "start; or an uncompressed .nii, where it reads the slice alone; or install indexed_gzip",
        request_size="nothing: a .nii.gz is decompressed in small pieces, one after the other",
    ),
    Library(
        "htslib", r"\.(bam|cram|bcf|vcf\.gz|bai|crai|tbi|csi)$", "", "https://pysam.readthedocs.io/en/latest/usage.html",
        opening=_ONCE + "with pysam.AlignmentFile(name) as bam: around the loop, bam.fetch(...) in it;\n"
        "each open reads the header and the index again. samtools: all regions in one call, samtools view -L",
        reuse="regions in the order of the file, several in one call: samtools view -L regions.bed",
        request_size="nothing: a BAM file is read in blocks, by its index",
    ),
    Library(
        "Biopython", r"\.(fa|fna|faa|fasta|fastq|fq|gb|gbk|embl)$", "Bio", "https://biopython.org/wiki/SeqIO",
        reuse__opening="records = SeqIO.index(name, 'fasta') once, and records[key] in the loop: SeqIO.parse reads\n"
        "from the start; several files: SeqIO.index_db; all in memory: SeqIO.to_dict(SeqIO.parse(...))",
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
        opening=_ONCE + "with zipfile.ZipFile(name, mode) as archive: around the loop, and\n"
        "archive.read(member) or archive.writestr(member, data) in it (each open in mode 'a' writes all entries again)",
        reuse="one open, members in their order (for member in tar), or an index of member.offset_data by name;\n"
        "for archives that are read whole again and again, a copy on the node",
        order="members in the order of the archive",
        order_write="nothing: the size of a member is known, and written to its header, after its data",
    ),
    Library(
        "RocksDB and LevelDB", r"/\d{6}\.(sst|ldb|log)$", "rocksdb leveldb",
        "https://github.com/facebook/rocksdb/wiki/Basic-Operations",
        flush="many changes in one WriteBatch (plyvel: with db.write_batch(sync=True) as batch:), synced once;\n"
        "RocksDB: or WriteOptions.sync = false and one FlushWAL(true)",
        files="nothing: the files are those of the database",
        request_size="nothing: the database chooses the size of its blocks",
    ),
    Library(
        "dbm and shelve", r"\.(dbm?|dir|pag|gdbm)$", "dbm", "https://docs.python.org/3/library/shelve.html",
        flush="shelve.open(name, writeback=True) and one sync() at the end, or SQLite in one transaction",
        reuse__request_size="many entries at once, without sync() in the loop: dbm.dumb (.dat, .dir, .bak) writes its\n"
        "whole index again each time; or all in one value, or SQLite in one transaction",
        opening=_ONCE + "with shelve.open(name) as shelf: around the loop, without sync() in it: where dbm is\n"
        "dbm.dumb (.dat, .dir and .bak), each one writes the whole index again",
        claims=True,
    ),
)
"""In the order of recognition."""
_PYTHON: Final = frozenset(
    {"ASE", "Biopython", "joblib.Memory", "NiBabel", "NumPy", "pandas", "pickle and joblib", "PyTables",
     "safetensors", "tifffile"}
)
"""Libraries of Python alone: other languages use their formats, too."""

_NOTHING: Final = "nothing: the program's own way of reading and writing"
_ONE_PASS: Final = "one call for all, in place of a process for each: "
_ON_NODE: Final = "on the node, or once into a container or an image (SquashFS)"
_COPIES: Final = "nothing: the program reads each file once, as a copy near it would"
_AS_ARCHIVE: Final = "many small files: tar -cf - FOLDER | tar -xf - -C TARGET"
PROGRAMS: Final[Mapping[str, Mapping[str, str]]] = {
    "tar": {
        "request-size": "tar --blocking-factor=2048 -cf archive.tar FOLDER   # 1 MiB for each write",
        "reuse": f"{_ONE_PASS}tar -xf archive.tar MEMBER ... or tar -cf archive.tar -T LIST; each reads all of it",
        "files-write": "tar -xf archive.tar -C $TMPDIR unpacks on the node; tar -xOf archive.tar writes to a pipe",
    },
    "dd": {"location": _COPIES} | dict.fromkeys(
        ("request-size", "flush"),
        "dd bs=4M ...; oflag=dsync waits after each block: conv=fsync waits once, at the end",
    ),
    "rsync": {"files": f"rsync --whole-file --inplace; {_AS_ARCHIVE}", "location": _COPIES},
    "cp": {"files": f"cp -r of {_AS_ARCHIVE}", "location": _COPIES},
    "git": {"location": "nothing: a repository stays where its users expect it"} | dict.fromkeys(
        ("files", "opening", "reuse"),
        f"{_ONE_PASS}git add FOLDER; git gc packs what many have made; git clone --depth 1 $TMPDIR/NAME on the node",
    ),
    "pip": dict.fromkeys(("files", "opening"), f"pip install {_ON_NODE}"),
    "conda": dict.fromkeys(("files", "opening"), f"conda create {_ON_NODE}"),
    "gzip": {"reuse": f"{_ONE_PASS}gzip -dc FILE | grep -F -f PATTERNS; bgzip and tabix for parts of a file"},
    **{
        name: {
            "opening": "no close(file) after each line: awk keeps files open; sort by name if there are too many",
            "reuse": f"{_ONE_PASS}awk reads the file once, and finds all keys of an array",
        }
        for name in ("awk", "gawk", "mawk")
    },
    "ls": {"opening": "ls -f or ls -1 -U, less often: -l and colours query each file; on Lustre, lfs find"},
    "h5repack": dict.fromkeys(("request-size", "reuse"), "h5repack -l CHUNK=... -f GZIP=1: chunks of 1 MiB and more"),
    "unzip": dict.fromkeys(
        ("reuse", "opening"),
        f"{_ONE_PASS}unzip archive.zip MEMBER MEMBER ... -d $TMPDIR; each reads the directory of the archive",
    ),
    "grep": {"reuse": f"{_ONE_PASS}grep -F -f PATTERNS FILE, a pattern in each line of PATTERNS"},
    "sort": {"location": "sort -S 4G -T $TMPDIR: more memory, and temporary files on the node"},
    **{name: {} for name in ("rm", "find", "xargs", "mkdir", "mv", "ln", "touch", "chmod", "du")},
    "samtools": {"reuse": f"{_ONE_PASS}samtools view -L regions.bed, on a file with an index"},
    "cdo": {"reuse": f"{_ONE_PASS}cdo -second -first in.nc out.nc"},
} | {
    name: {"reuse": f"{_ONE_PASS}{text}"}
    for names, text in (
        ("sed", "sed -i -e FIRST -e SECOND FILE, or sed -f SCRIPT, with all edits or line numbers"),
        ("cat cut head tail wc md5sum", "keep in a variable, or on the node, what the loop needs of the file"),
        ("ncks ncea ncra nccopy ncdump h5dump", "name all variables at once, such as -v a,b,c"),
    )
    for name in names.split()
}
"""An option of a program that is not the user's own code, by what it decides."""


_GENERAL: Final = frozenset({"posix", "folders"})
"""Families of rules that know no library. The others speak in the words of theirs."""
_STAGING: Final = frozenset({"burst_buffer"})
"""The family whose rules move files of known programs, too."""


def in_its_words(rule: type[Rule], finding: Finding, profile: Profile) -> Finding | str:
    """The finding with the remedy of the library that does the I/O, or the reason why this leaves nothing to do."""
    if rule.family not in _GENERAL | _STAGING:
        return finding
    name, remedy, source = _remedy(rule, finding, profile)
    if not remedy:
        return finding
    if remedy.startswith("nothing: "):
        return f"{finding.target.path or finding.target.app}: {remedy.removeprefix('nothing: ')}"
    lines = comment(f"in the words of {name} ({source}):\n" + "\n".join(f"  {line}" for line in remedy.splitlines()))
    # Flushing forces what a library caches out in small pieces.
    removes = finding.removes | ({"transfer"} if rule.settles == "flush" else set())
    return replace(finding, apply=lines, advice="", settings=(), removes=removes)


def _remedy(rule: type[Rule], finding: Finding, profile: Profile) -> tuple[str, str, str]:
    """The name, the remedy and the source; empty if there are none for what is to be decided."""
    settles = rule.settles
    if settles in _OWN_CODE and (programs := _programs(finding, profile)):
        keys = (f"{settles}-{finding.direction or 'write'}", settles)
        known = ((name, PROGRAMS[name][key]) for name in programs for key in keys if key in PROGRAMS[name])
        name, text = next(known, (programs[0], "" if settles == "location" else _NOTHING))
        return name, text, f"its manual page, {name}(1)"
    if rule.family in _STAGING:
        return "", "", ""
    library, is_sure = library_of(finding, profile)
    if library is None:
        return "", "", ""
    # What is read and written again is mostly changed.
    text = library.remedies.get(f"{settles}-{finding.direction or 'write'}") or library.remedies.get(settles, "")
    if not is_sure and text.startswith("nothing: "):
        return "", "", ""
    return library.name, text, library.source


def _programs(finding: Finding, profile: Profile) -> list[str]:
    """The apps that use the finding's files, if all are known programs."""
    used = {name for file in profile.files if file.path in finding.files for name in file.apps}
    apps = sorted(used) or ([finding.target.app] if finding.target.app else [app.name for app in profile.apps])
    known = [name for name in apps if name in PROGRAMS]
    return known if all(name in PROGRAMS or name in SHELLS or name.endswith(".sh") for name in apps) else []


_OWN_CODE: Final = frozenset(
    {"opening", "request-size", "reuse", "order", "flush", "files", "waiting", "reading", "location"}
)


def library_of(finding: Finding, profile: Profile) -> tuple[Library | None, bool]:
    """The library to whose files most of the finding's calls go, and whether the files themselves show it."""
    loaded = set(profile.middleware.libraries or ())
    # Python imports its packages from files, so one that is not among them is not in use.
    known = bool(loaded) or any("/python3." in row.pattern for row in profile.patterns or ())
    app = next((app for app in profile.apps if app.name == finding.target.app), None)
    is_python = known or language_of(app, profile) == "Python"
    calls = {f"{file.path} format:{file.format}": file.io.ops.all for file in _files(finding, profile)}
    for library in LIBRARIES:
        if known and library.modules and loaded.isdisjoint(library.modules):
            continue
        if library.name in _PYTHON and not is_python:
            continue
        if 2 * sum(count for name, count in calls.items() if library.sign.search(name)) > sum(calls.values()):
            return library, True
    claiming = [candidate for candidate in LIBRARIES if candidate.claims and not loaded.isdisjoint(candidate.modules)]
    is_unnamed = all(name.endswith(("format:None", "format:bin")) for name in calls)
    return (claiming[0] if len(claiming) == 1 and calls and is_unnamed else None), False


def _files(finding: Finding, profile: Profile) -> list[FileEntity]:
    """The finding's files, or the file in which its app moves most."""
    data = [file for file in profile.files if is_data(file.path)]
    files = [file for file in data if file.path in finding.files]
    used = [file for file in data if finding.target.app in (None, *file.apps)]
    return files or ([max(used, key=lambda file: file.io.bytes.total or 0)] if used else [])
