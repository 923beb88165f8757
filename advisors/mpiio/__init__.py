"""Rules about MPI-IO hints and calls, the files that apps share through MPI-IO, and hints.

Sources of the limits of hints: the ROMIO users guide, HPE's intro_mpi and the Lustre manual. ROMIO silently ignores
unknown hints, so a wrong name must not leave this module.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.access_table import Traffic, joint_files, layers_of
from vani.advisors.commands import comment
from vani.advisors.data_files import LayerGroup, by_folder, data_files, functions_of, not_used
from vani.advisors.rule import PartRule
from vani.models.stripe_count import LUSTRE_MAX_STRIPES
from vani.units import GiB, KiB, MiB

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Interface, Profile
    from vani.schema.system import System


_SWITCH = re.compile("enable|disable|automatic")
_BOOLEAN = re.compile("true|false")
_CONFIG = re.compile(r"[A-Za-z0-9_.*-]+(:[0-9]+)?(,[A-Za-z0-9_.*-]+(:[0-9]+)?)*")


@dataclass(frozen=True)
class _Whole:
    least: int
    most: int
    multiple: int = 1

    def fits(self, text: str) -> bool:
        return (
            text.isascii()
            and text.isdigit()
            and self.least <= int(text) <= self.most
            and int(text) % self.multiple == 0
        )


# MPI_Info values are read with atoi, as an int of 32 bits.
_INT: Final = 2**31 - 1

HINTS: Final[Mapping[str, re.Pattern[str] | _Whole]] = {
    "cb_buffer_size": _Whole(1, _INT),
    "cb_nodes": _Whole(1, _INT),
    "cb_config_list": _CONFIG,
    "romio_cb_read": _SWITCH,
    "romio_cb_write": _SWITCH,
    "romio_ds_read": _SWITCH,
    "romio_ds_write": _SWITCH,
    "ind_rd_buffer_size": _Whole(1, _INT),
    "ind_wr_buffer_size": _Whole(1, _INT),
    "romio_no_indep_rw": _BOOLEAN,
    # lfs-setstripe(1): at most 2000 stripes of a multiple of 64 KiB below 4 GiB (below 2 GiB with atoi).
    "striping_factor": _Whole(1, 2000),
    "striping_unit": _Whole(64 * KiB, min(4 * GiB, _INT), 64 * KiB),
    "romio_lustre_co_ratio": _Whole(1, _INT),
    "romio_lustre_ds_in_coll": _SWITCH,
}
"""Valid values of each hint."""

CRAY: Final = frozenset({"striping_factor", "striping_unit", "cb_nodes"})
"""Hints in intro_mpi, in addition to those that begin with `romio_`."""

# Characters that are neither separators nor wildcards in MPICH_MPIIO_HINTS, and not special in sh.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+@%-]+")


def checked(hints: Mapping[str, str | int]) -> dict[str, str]:
    """Check hints and convert their values to text.

    Raises
    ------
    ValueError
        ROMIO has no such hint, or the value is invalid.
    """
    recommended = {}
    for key, value in hints.items():
        limit, text = HINTS.get(key), str(value)
        if limit is None:
            raise ValueError(f"no hint is called {key!r}")
        if not (limit.fits(text) if isinstance(limit, _Whole) else limit.fullmatch(text)):
            raise ValueError(f"hint {key} cannot be {text!r}")
        recommended[key] = text
    return recommended


_OMPIO: Final = {
    "cb_nodes": "io_ompio_num_aggregators",
    "cb_buffer_size": "io_ompio_bytes_per_agg",
    "romio_ds_write": "fbtl_posix_write_datasieving",
    "romio_ds_read": "fbtl_posix_read_datasieving",
}
"""Parameters of Open MPI's own MPI-IO, which reads no hints of ROMIO (Open MPI 5.0, documentation, section 11.9.1)."""
_OMPIO_VALUES: Final = {"enable": "true", "disable": "false"}


def hint_lines(hints: Mapping[str, str | int], path: str | None = None, profile: Profile | None = None) -> list[str]:
    """Lines for the job script: a hints file for ROMIO and the variable of Cray MPICH, or the parameters of OMPIO.

    Lines append to both, because several rules may set hints. `path` is the file that the hints are for, which only
    Cray's variable can distinguish. `profile` shows whether OMPIO did the I/O.
    """
    known = checked(hints)
    if profile is not None and "ompio" in (profile.middleware.libraries or ()):
        lines = comment("job script, Open MPI with its own MPI-IO (ompi_info --param io ompio --level 9):")
        for key, value in known.items():
            if key in _OMPIO:
                lines.append(f"export OMPI_MCA_{_OMPIO[key]}={_OMPIO_VALUES.get(value, value)}")
            elif not key.startswith("romio_cb_"):
                lines += comment(f"{key} has no parameter there: OMPI_MCA_io=^ompio takes Open MPI's ROMIO instead")
        return lines if len(lines) > 1 else comment("Open MPI's own MPI-IO joins collective calls without any hint")
    words = " ".join(f"'{key} {value}'" for key, value in known.items())
    lines = [
        *comment("job script, MPICH and other MPIs with ROMIO (ROMIO_PRINT_HINTS=1 shows the hints used):"),
        f"printf '%s\\n' {words} >> romio-hints",
        'export ROMIO_HINTS="$PWD/romio-hints"',
    ]
    cray = [f"{k}={v}" for k, v in known.items() if k in CRAY or k.startswith("romio_")]
    if cray:
        pattern = path if path is not None and _PLAIN_PATH.fullmatch(path) else "*"
        lines += [
            *comment("job script, Cray MPICH (MPICH_MPIIO_HINTS_DISPLAY=1 shows the hints used):"),
            'export MPICH_MPIIO_HINTS="${MPICH_MPIIO_HINTS:+$MPICH_MPIIO_HINTS,}'
            f'{pattern}:{":".join(cray)}"',
        ]
    return lines


def cb_nodes(ranks: int, targets: int) -> int:
    """`cb_nodes`: one aggregator per target, or the largest divisor of the targets if there are fewer ranks.

    ROMIO's driver for Lustre cuts the number to the stripes (`romio_lustre_co_ratio` is 1), and aggregators whose
    number does not divide the stripes write unequal shares.
    """
    targets = min(targets, LUSTRE_MAX_STRIPES)
    return max(d for d in range(1, min(ranks, targets) + 1) if targets % d == 0)


def per_host(count: int, nodes: int) -> str | None:
    """`cb_config_list` for more aggregators than nodes; None if the default `*:1`, one per node, is enough."""
    most = -(-count // nodes)
    return f"*:{most}" if most > 1 else None


def buffer_size(unit: int, least: int = 4 * MiB, most: int = 64 * MiB) -> int:
    """`cb_buffer_size` for stripes or blocks of `unit` bytes: whole ones of at least `least`, or parts above `most`."""
    size = unit * -(-least // unit)
    while size > most and size % 2 == 0:
        size //= 2
    return size


_ABOVE_MPIIO: Final = frozenset({"hdf5", "netcdf"})
_NETWORK_FILES: Final = frozenset({"nfs", "nfs4", "vast"})
# Our choice: twice as much is not just rounding to blocks.
_SIEVED: Final = 2.0
# Our choice: most of the calls, because aggregators do not help with the others.
_MOSTLY: Final = 0.5

def mpiio_files(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Requirement: files shared through MPI-IO. Return why there are none, or None if there are some."""
    return _why_none(profile, directly=False)


def direct_mpiio_files(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Requirement: files shared through MPI-IO without a library above it. Return why there are none, or None."""
    return _why_none(profile, directly=True)


def _why_none(profile: Profile, *, directly: bool) -> str | None:
    if not any(interface.layer == "mpiio" for interface in profile.interfaces or ()):
        return not_used(profile, "MPI-IO")
    if mpiio_uses(profile, directly=directly):
        return None
    if mpiio_uses(profile):
        return "files are shared through MPI-IO by a library above it alone"
    return "no file is shared by several processes through MPI-IO"


def mpiio_uses(profile: Profile, *, directly: bool = False) -> list[LayerGroup]:
    """Files that several processes of an app access through MPI-IO, by app and folder.

    `directly`: only those where the program or PnetCDF makes one call of MPI-IO for each data call.
    """
    mpiio = {
        interface.app: (interface, number)
        for number, interface in enumerate(profile.interfaces or ())
        if interface.layer == "mpiio"
    }
    joint, layers = joint_files(profile), layers_of(profile)
    # Logs may have no record of the data calls of HDF5.
    hdf5 = {row.app for row in profile.interfaces or () if row.layer == "hdf5"}

    def is_wanted(file: FileEntity) -> bool:
        is_above = not _ABOVE_MPIIO.isdisjoint(layers.get(file.path, ()))
        is_above = is_above or (file.format == "hdf5" and not hdf5.isdisjoint(file.apps))
        return file.path in joint and not (directly and is_above)

    shared = data_files(profile, is_wanted)
    return [
        LayerGroup(group.app, group.folder, group.items, *mpiio[group.app.name])
        for group in by_folder(shared, profile, among=mpiio)
        if group.app is not None and group.app.name in mpiio and group.app.processes > 1
    ]


def set_hints(layer: Interface, hints: Collection[str]) -> dict[str, str]:
    """Those of `hints` that the program itself sets. They override the environment."""
    return {key: value for key, value in (layer.hints or {}).items() if key in hints}


def collective_share(use: LayerGroup, profile: Profile, *, reads: bool) -> float | None:
    """Share of collective calls in the bytes of one direction on these files, or in all of the app if not known."""
    share = Traffic.on(profile, use.paths, reads=reads).collective
    return use.layer.collective_share if share is None else share


def calls_collectively_later(use: LayerGroup, profile: Profile) -> bool:
    """True if the program calls non-blocking collective functions (MPI_File_iwrite_all)."""
    called = functions_of(use.app, profile)
    return any(name.startswith("MPI_File_i") and name.removesuffix("_c").endswith("_all") for name in called)


def sieves(use: LayerGroup, profile: Profile, *, reads: bool) -> bool:
    """True if MPI-IO moves several times what independent calls request, because pieces have holes between them."""
    factor, share = Traffic.on(profile, use.paths, reads=reads).sieving, collective_share(use, profile, reads=reads)
    return factor is not None and factor >= _SIEVED and share is not None and share < _MOSTLY


def leaves_sieving(path: str, profile: Profile, system: System) -> bool:
    """True if a file is on NFS or VAST, for which sites ask to keep data sieving on (CSCS documentation)."""
    disk = system.file_system_for(path)
    return (disk.type if disk is not None else profile.storage.shared.type) in _NETWORK_FILES


def in_mpiio_s(use: LayerGroup) -> float:
    """Seconds of the run in MPI-IO calls on these files, including exchange and waiting."""
    times = (use.app.library_time_s or {}).get("mpiio")
    if times is None:
        return use.data_s()
    moved, total = use.total("io.bytes.read") + use.total("io.bytes.written"), use.layer.bytes.total
    return times.slowest * (min(1.0, moved / total) if total else 1.0)


class MPIIORule(PartRule):
    """A rule that judges the files of each folder that processes of an app share through MPI-IO."""

    needs = ("interfaces", mpiio_files)

    def parts(self, profile: Profile) -> list[LayerGroup]:
        return mpiio_uses(profile)
