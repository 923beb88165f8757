"""CMP001: data that takes longer to move than to compress."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vani.advisors.access_table import Traffic
from vani.advisors.commands import Language, code_lines, comment, language_of
from vani.advisors.data_files import Access, Group, Item, by_folder, data_files
from vani.advisors.rule import Answer, Evidence, Finding, Gain, Rule, Value, Verdict, figures
from vani.models.savings import best_codec
from vani.models.staging import is_below
from vani.units import MiB, format_bytes, format_number, format_rate, format_share

if TYPE_CHECKING:
    from vani.schema.dataset_facts import Codec, Compression
    from vani.schema.profile import App, Profile
    from vani.schema.system import System


def compression_sample(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of a rule
    """Requirement: codecs were tried on a sample of the data. Return why not, or None if it is met."""
    sample = profile.dataset.compression
    if sample is None:
        return (
            "no sample of the data was compressed; supply --job job.yaml of `vani collect --dataset FOLDER`, where "
            "FOLDER contains the inputs, or what an earlier run wrote"
        )
    return None if sample.codecs else "no codec could compress the sample of the data"


class CompressibleData(Rule):
    """Data that compresses well takes longer to move than to compress.

    Looks at
        A sample of the data, which `vani collect --dataset` compresses with each codec that is installed: ratio and
        speed. The GPUs of the job. Files of the run below the sampled folder, of the sampled format, at least
        `min_bytes` together: the rate at which one process reads and writes them, and their share of the run, at least
        `min_share`.
    Why
        Each byte that is not moved saves its time on the file system, and costs the time of compressing it on the
        node. Which is longer depends on the data and on the storage.
    Recommends
        The codec with the least remaining time, if the transfer becomes at least `min_speedup` times as fast, with
        shuffling and chunks: HDF5 and netCDF-4 compress each chunk by a filter, others by a library.
    Stays silent when
        No sample was taken; it does not compress, such as compressed data; no file of the run has this format; the
        storage is faster than the codecs; the run is not bound by these files: its processors are busy with something
        else.
    Source
        Vani paper, section IV-D (compression, format of the data set). HDF5 documentation, "Using Compression in HDF5"
        and H5Pset_shuffle; netCDF documentation, nc_def_var_deflate. Model: `vani/models/savings.py`.
    Example
        32 processes write 100 GB of temperatures at 20 MB/s each. Shuffled and with gzip 1, they become 2.4 times
        smaller at 110 MB/s of a core: 60 % of the time is left:

            h5["t"] = t                                                                     # before
            h5.create_dataset("t", data=t, chunks=(1, 512, 512), shuffle=True,              # after
                              compression="gzip", compression_opts=1)
    """

    id = "CMP001"
    needs = (compression_sample,)
    settles = "compression"
    sources = (
        "Vani paper, section IV-D",
        "HDF5 documentation, Using Compression in HDF5",
        "netCDF documentation, nc_def_var_deflate",
    )

    # Xie et al., section IV-D: repetitions of a write differ by a factor of 1.3, so less would not show.
    min_speedup = 1.3
    # Half of the share that Xie et al. (section II) allow for all I/O, as in POS010.
    min_share = 0.05
    # The default chunk cache before HDF5 2.0, which must fit a whole chunk, and the size of the sample.
    chunk_bytes = 1 * MiB
    # Our choice: less is not worth a change of format.
    min_bytes = 64 * MiB

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - the run's own rate decides
        sample = profile.dataset.compression
        if sample is None:
            return "no sample of the data was compressed"
        best = max(codec.ratio for codec in sample.codecs)
        if best < self.min_speedup:
            return (
                f"the sample of {sample.root} does not compress: {format_bytes(sample.bytes)} become at best "
                f"{format_number(best)} times smaller"
            )
        items = data_files(
            profile, lambda file: is_below(file.path, sample.root) and _is_of(file.format, sample.format)
        )
        items = [item for item in items if _moves(item)]
        if not items:
            return f"the run reads and writes no {sample.format} file below {sample.root}, which was sampled"
        return self.among(self._judge(group, sample, profile) for group in by_folder(items, profile))

    def _judge(self, group: Group, sample: Compression, profile: Profile) -> Answer:
        first, gpus = group.items[0], profile.job.gpus_per_node
        group = replace(group, folder=first.part.folder or first.path.rpartition("/")[0] or ".")
        app, where = group.app, group.words
        moves = [move for item in group.items for move in _moves(item)]
        moved = sum(bytes_ for bytes_, _, _ in moves)
        if moved < self.min_bytes:
            return f"{format_bytes(moved)} move in {where}: too little"
        below = Traffic.on(profile, group.paths, reads=False).conversion
        if below is not None and below * self.min_speedup <= 1:
            return f"of what {where} is asked to store, {format_share(below)} reach MPI-IO: a library makes it smaller"
        choice = best_codec(_usable(sample, app, profile), moves)
        if choice is None:
            return f"the times of reading and writing {where} are not known"
        codec, rate = choice.codec, moved / sum(seconds for _, seconds, _ in moves)
        if choice.rest * self.min_speedup > 1:
            return (
                f"a process moves data of {where} at {format_rate(rate)}, and compressing costs more than it saves: "
                f"{codec_name(codec)} leaves {format_share(choice.rest)} of the time"
                + ("; GPUs of the job could compress faster, which was not tried" if profile.job.gpus_per_node else "")
            )
        used = [Access(item, reads) for item in group.items for reads in (True, False)]
        before = group.data_s(access for access in used if access.processes)
        run = (app.runtime_s if app is not None else None) or profile.workflow.runtime_s or 0.0
        if before < self.min_share * run:
            return (
                f"moving {where} takes {format_share(before / run if run else None)} of the run: its processors are "
                "busy with something else"
            )
        writers = [item.file.writers for item in group.items]
        above = {layer.layer for layer in profile.interfaces or () if app is None or layer.app == app.name}
        level: dict[str, Value] = {} if codec.level is None else {"level": codec.level}
        speed = codec.compress if any(writers) else codec.decompress
        return Finding(
            **group.affected,
            reason=f"A process moves data of {where} at {format_rate(rate)}. A sample of "
            f"{format_bytes(sample.bytes)} becomes {format_number(codec.ratio)} times smaller by {codec_name(codec)}, "
            f"at {format_rate(speed)} of a core: {format_share(choice.rest)} of the time is left.",
            confidence=0.5,
            touched_s=before,
            recommended={"codec": codec.name, "shuffle": codec.shuffle, "chunk_bytes": self.chunk_bytes, **level},
            current={"ratio": 1},
            evidence=[
                *figures(
                    codec, f"dataset.compression.codecs[{sample.codecs.index(codec)}]",
                    "name", "level", "shuffle", "ratio", "compress", "decompress",
                ),
                *group.figures("path", "io.bytes.total", "io.time_s.total"),
                *([Evidence("job.gpus_per_node", gpus)] if gpus else []),
            ],
            gain=Gain.at_best(
                "data_time_s",
                before,
                after=before * choice.rest,
                best=before * choice.best,
                method="bytes fewer by the ratio of the sample at the rate of the run, and compressing (or "
                "decompressing) on the core of each process; high: cores are idle meanwhile, low: requests do not wait "
                "for bytes",
            ),
            apply=lines(
                codec,
                sample.format,
                language_of(app, profile),
                # Several processes write a file through MPI-IO.
                parallel="mpiio" in above and max(writers) > 1,
            )
            # Section IV-D of the Vani paper maps compression to GPUs; no trace shows whether they idle.
            + (comment(f"the job has {gpus} GPUs per node: nvCOMP and hipCOMP compress there, where data is on them")
               if gpus else []),
        )


def _moves(item: Item) -> list[tuple[int, float, bool]]:
    rows = [(reads, Access(item, reads).row) for reads in (True, False)]
    return [(moved, time, reads) for reads, (moved, _, time) in rows if moved]


def _is_of(file_format: str | None, sampled: str) -> bool:
    """True if a file has the sampled format. NetCDF-4 files may have been recognised as HDF5."""
    arrays = ("hdf5", "netcdf")
    return file_format == sampled or (file_format in arrays and sampled in arrays)


def _usable(sample: Compression, app: App | None, profile: Profile) -> list[Codec]:
    """Codecs that all readers of the files have: only zlib for netCDF, and h5py's lzf only in Python."""
    if sample.format == "netcdf":
        return [codec for codec in sample.codecs if codec.name == "gzip"]
    is_python = language_of(app, profile) == "Python"
    return [codec for codec in sample.codecs if codec.name != "lzf" or is_python]


def codec_name(codec: Codec) -> str:
    """A codec in words."""
    level = "" if codec.level is None else f" {codec.level}"
    return f"{codec.name}{level}{' after shuffling' if codec.shuffle else ''}"


def lines(codec: Codec, file_format: str, language: Language | None, *, parallel: bool) -> list[str]:
    """Code that writes files of the format with the codec, as comments of sh.

    `parallel`: several processes write a file through MPI-IO.
    """
    if file_format not in ("hdf5", "netcdf"):
        return code_lines(_others(codec), language)
    text = code_lines(_netcdf(codec) if file_format == "netcdf" else _hdf5(codec), language)
    if parallel:
        text += comment(
            "several processes write one file: HDF5 1.10.2 or newer, and every write collective,\n"
            "  H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE), netCDF nc_var_par_access(ncid, varid, NC_COLLECTIVE);\n"
            "  a chunk should be the part of one process"
        )
    if codec.name in ("zstd", "lz4", "blosc"):
        text += comment("readers of the files need the filter's plug-in, too (hdf5plugin, HDF5_PLUGIN_PATH)")
    return text


def _hdf5(codec: Codec) -> dict[Language, str]:
    level = 4 if codec.level is None else codec.level
    shuffled = codec.shuffle
    calls = {
        "gzip": f"H5Pset_deflate(dcpl, {level});",
        "szip": "H5Pset_szip(dcpl, H5_SZIP_NN_OPTION_MASK, 32);",
        "lzf": "H5Pset_filter(dcpl, 32000, H5Z_FLAG_OPTIONAL, 0, NULL);  /* h5py's filter lzf, registered */",
        "zstd": f"unsigned level = {level};  H5Pset_filter(dcpl, 32015, H5Z_FLAG_OPTIONAL, 1, &level);",
        "lz4": "H5Pset_filter(dcpl, 32004, H5Z_FLAG_OPTIONAL, 0, NULL);",
        "blosc": "H5Pset_filter(dcpl, 32001, H5Z_FLAG_OPTIONAL, 0, NULL);",
    }
    options = {
        "gzip": f'compression="gzip", compression_opts={level}',
        "szip": 'compression="szip"',
        "lzf": 'compression="lzf"',
        "zstd": f"**hdf5plugin.Zstd(clevel={level})",
        "lz4": "**hdf5plugin.LZ4()",
        "blosc": "**hdf5plugin.Blosc()",
    }
    code: dict[Language, str] = {
        "C": "H5Pset_chunk(dcpl, rank, chunk);  /* about 1 MiB, the shape of one access */\n"
        + ("H5Pset_shuffle(dcpl);\n" if shuffled else "")
        + calls[codec.name]
        + "\nbefore H5Dcreate(file, name, type, space, lcpl, dcpl, dapl)",
        "Python": f"file.create_dataset(name, shape, dtype, chunks=chunk,{' shuffle=True,' if shuffled else ''} "
        f"{options[codec.name]})",
    }
    if codec.name == "gzip":
        code["Fortran"] = (
            "call h5pset_chunk_f(dcpl, rank, chunk, error)\n"
            + ("call h5pset_shuffle_f(dcpl, error)\n" if shuffled else "")
            + f"call h5pset_deflate_f(dcpl, {level}, error)"
        )
        repack = f"\nfiles that exist, once: h5repack{' -f SHUF' if shuffled else ''} -f GZIP={level} old.h5 new.h5"
        return {name: text + repack for name, text in code.items()}
    return code


def _netcdf(codec: Codec) -> dict[Language, str]:
    level, shuffle = 4 if codec.level is None else codec.level, int(codec.shuffle)
    again = f"\nfiles that exist, once: nccopy -k nc4 -d {level}{' -s' if shuffle else ''} old.nc new.nc"
    return {
        "C": "nc_def_var_chunking(ncid, varid, NC_CHUNKED, chunk);  /* about 1 MiB; NC_NETCDF4 in nc_create */\n"
        f"nc_def_var_deflate(ncid, varid, {shuffle}, 1, {level});" + again,
        "Fortran": "ierr = nf90_def_var_chunking(ncid, varid, NF90_CHUNKED, chunk)\n"
        f"ierr = nf90_def_var_deflate(ncid, varid, {shuffle}, 1, {level})" + again,
        "Python": f"dataset.createVariable(name, dtype, dims, zlib=True, complevel={level}, shuffle={bool(shuffle)}, "
        f"chunksizes=chunk)" + again,
    }


def _others(codec: Codec) -> dict[Language, str]:
    """Code for files without filters: compress each piece with a library, or use a format with filters."""
    level = 3 if codec.level is None else codec.level
    pieces = {
        "gzip": f"compress2(out, &n, in, bytes, {level});",
        "zstd": f"n = ZSTD_compress(out, room, in, bytes, {level});",
        "lz4": "n = LZ4_compress_default(in, out, bytes, room);",
    }.get(codec.name, "n = blosc2_compress(5, 1, size of a value, in, bytes, out, room);")
    return {
        "C": f"in pieces of about 1 MiB, each with its length before it: {pieces}\n"
        "or HDF5 with a filter (H5Pset_deflate)",
        "Python": "zarr.create_array(store, shape=shape, chunks=chunk, dtype=dtype)  (zstd by default), or h5py with\n"
        'compression="gzip"; tables: Parquet with compression="zstd"',
        "Fortran": "netCDF-4: nf90_def_var_deflate after nf90_def_var_chunking",
    }
