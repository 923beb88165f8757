"""Lines of code that compress: HDF5 and netCDF-4 filters by language, and libraries for files without filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.language import Language, code_lines

if TYPE_CHECKING:
    from vani.schema.dataset_facts import Codec

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
        text += comment(
            "readers of the files need the filter's plug-in, too (hdf5plugin, HDF5_PLUGIN_PATH)"
        )
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
