"""HD5007: HDF5 or netCDF writes fill values into a file before the program writes its data there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.advisors.access_table import Traffic
from vani.advisors.data_files import Access, Group, Item, by_folder, data_files, functions_of, listed
from vani.advisors.movers import gathers, is_moved_within
from vani.advisors.rule import Answer, Finding, Rule, Verdict
from vani.units import MiB, format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

_FORMATS: Final = frozenset({"hdf5", "netcdf"})
_SETS_FILL: Final = ("H5Pset_fill_time", "nc_set_fill", "nc_def_var_fill", "ncmpi_set_fill", "ncmpi_def_var_fill")

# Our choice: headers are the rest.
_NEARLY_ALL: Final = 0.9


class FillValues(Rule):
    """A library writes fill values to each data set first, so every byte of it is written twice.

    Looks at
        Files of HDF5 and netCDF that are written and not read back: `min_times` to `max_times` as many bytes written as
        distinct ones, and `min_bytes` more. If the trace has the bytes requested from the library, these must be fewer
        by as much.
    Why
        netCDF fills variables by default. HDF5 does so when the program sets a fill value; parallel HDF5 does it when
        a data set is made, whose space must be there at once. In a contiguous data set process 0 writes all of it while
        the others wait. The program's data then replaces every fill value.
    Recommends
        No fill values where the program writes every element: `H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER)`,
        `nc_set_fill(ncid, NC_NOFILL, &old)`. Elements that the program does not write are then undefined.
    Stays silent when
        No file of these formats is written, or bytes are written once; the program itself writes more than once, or
        sets the fill mode; files are read while they are written (chunks that are changed: HD5008, headers that grow:
        POS011).
    Source
        HDF5 reference manual, H5Pset_fill_time, and "H5Fill Behavior" (times of writing, serial and parallel).
        NetCDF users guide, nc_set_fill (by default NC_FILL). TraceBench: fill values written by process 0, 84 s;
        without, 10 s. AMReX on 2,688 processes: 5 min 3 s, and 3 min 56 s without (AMReX pull request 2450). On one
        local disk, 134 MB of 4 processes took no less time without, so no gain is promised.
    Example
        Four processes write 134 MB into contiguous data sets with a fill value: 268 MB are written, 168 MB of it by
        process 0.

            H5Dcreate2(file, name, type, space, lcpl, dcpl, dapl);    // before: fill values first
            H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);    // after; in netCDF: nc_set_fill(nc, NC_NOFILL, &old)
            H5Dcreate2(file, name, type, space, lcpl, dcpl, dapl);
    """

    id = "HD5007"
    settles = "fill"
    sources = ("HDF5 reference manual, H5Pset_fill_time", "NetCDF users guide, nc_set_fill")

    # Fill values double the written bytes. Half of that allows for data sets that are not filled.
    min_times = 1.5
    # Data, fill values, and headers that are rewritten at each flush.
    max_times = 2.5
    # As in POS011: a twentieth of a second at 300 MB/s for one process (OPRAEL).
    min_bytes = 16 * MiB
    # As in MIO003: if fewer bytes are read than this share of those written, they are headers.
    max_read = 0.1

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        written = data_files(profile, lambda file: file.format in _FORMATS and file.writers > 0)
        if not written:
            return "no file of HDF5 or netCDF is written"
        twice = [item for item in written if self._is_twice(item)]
        if not twice:
            known = any(item.io.footprint.written for item in written)
            return (
                "bytes of files of HDF5 and netCDF are written once, or read back as well"
                if known
                else "files[].io.footprint.written is not known; supply a trace with offsets"
            )
        return self.among(self._judge(group, profile) for group in by_folder(twice, profile))

    def _is_twice(self, item: Item) -> bool:
        writes, read = Access(item, reads=False), item.io.bytes.read or 0
        if not self.min_times <= writes.times <= self.max_times:
            return False
        # The buffer of netCDF's classic format reads bytes before it overwrites them.
        most = max(2 * writes.distinct, writes.bytes) if item.file.format == "netcdf" else self.max_read * writes.bytes
        return read <= most and not is_moved_within(item.file)

    def _judge(self, group: Group, profile: Profile) -> Answer:
        name = group.app.name if group.app is not None else "an app"
        traffic = Traffic.on(profile, group.paths, reads=False)
        if _more(group) < self.min_bytes:
            return f"less than {format_bytes(self.min_bytes)} are written again in one folder"
        if not functions_of(group.app, profile).isdisjoint(_SETS_FILL):
            return f"{name} sets the fill mode itself"
        if traffic.filling is not None and traffic.filling < self.min_times:
            return f"{name} requests all bytes written: it writes more than once itself"
        written, distinct = group.total("io.bytes.written"), group.total("io.footprint.written")
        text = (
            f"{format_bytes(written)} are written to {listed(group.folder, group.items)}, {format_bytes(distinct)} of "
            "them distinct"
        )
        if traffic.of_library:
            text += f", and the program requests {format_bytes(traffic.of_library)}: the library fills data sets first."
        else:
            text += ": each byte is written twice, as where a library fills data sets first."
        if (alone := _fills_alone(group, profile)) is not None:
            text += f" Process {alone} writes the fill values while the others wait."
        return Finding(
            **group.affected,
            reason=f"{text} How much less time it takes without them only a run shows.",
            confidence=0.8 if traffic.of_library else 0.5,
            touched_s=group.wall_s("write"),
            recommended={"fill": "never"},
            current={"written_bytes": written, "distinct_bytes": distinct},
            evidence=group.figures("path", "io.bytes.written", "io.footprint.written", "io.busy_s.write"),
            apply="in the program, where it writes every element (others are undefined then):\n"
            "  C, HDF5:      H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);   before H5Dcreate\n"
            "  Fortran:      call h5pset_fill_time_f(dcpl, H5D_FILL_TIME_NEVER_F, ierr)\n"
            "  h5py 3.12:    file.create_dataset(name, shape, dtype, fill_time='never')\n"
            "  C, netCDF:    nc_set_fill(ncid, NC_NOFILL, &old);            after nc_create\n"
            "  Fortran:      ierr = nf90_set_fill(ncid, NF90_NOFILL, old)\n"
            "  netCDF4:      dataset.set_fill_off()",
            # Without fill values, that process writes as much as the others.
            removes=frozenset() if alone is None else frozenset({"balance"}),
        )


def _more(group: Group) -> int:
    return group.total("io.bytes.written") - group.total("io.footprint.written")


def _fills_alone(group: Group, profile: Profile) -> int | None:
    """The process that writes nearly all fill values in addition to its own data; None if there is none."""
    app = group.app
    if app is None or app.balance is None or gathers(app, profile) or max(i.file.writers for i in group.items) < 2:
        return None
    # With all fill values and its part of the data it is this far above the mean.
    beyond = _more(group) * (1 - 1 / app.processes)
    is_one = app.balance.busiest_bytes - app.balance.mean_bytes >= _NEARLY_ALL * beyond
    return app.balance.busiest_rank if is_one else None
