"""Tables II to XI of the Vani paper for a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import vani
from vani.render.report.unknowns import unknowns

if TYPE_CHECKING:
    from vani.schema.profile import Profile

ATTRIBUTES: Final[dict[str, dict[str, list[str]]]] = {
    "II": {
        "# nodes": ["job.nodes"],
        "# cpu cores per node": ["job.cpu_cores_per_node"],
        "#gpu/node": ["job.gpus_per_node"],
        "# Node-local BB dir": ["job.node_local_bb_dirs"],
        "# Shared BB dir": ["job.shared_bb_dirs"],
        "PFS dir": ["job.pfs_dirs"],
        "Job time": ["job.time_limit_s"],
    },
    "III": {
        "# CPU cores used/node": ["workflow.cpu_cores_used_per_node"],
        "# GPUs used/node": ["workflow.gpus_used_per_node"],
        "# apps": ["workflow.apps"],
        "App data dependency": ["workflow.app_dependencies"],
        "FPP/shared file access": ["workflow.files.file_per_process", "workflow.files.shared"],
        "I/O amount": ["workflow.io.bytes.total"],
        "I/O ops dist (data, meta)": ["workflow.io.ops_share", "workflow.io.time_share"],
        "Runtime (sec)": ["workflow.runtime_s"],
    },
    "IV": {
        "# processes": ["apps[].processes"],
        "Process data dependency": ["apps[].process_dependencies"],
        "FPP/shared file access": ["apps[].files.file_per_process", "apps[].files.shared"],
        "I/O amount": ["apps[].io.bytes.total"],
        "I/O ops dist (data, meta)": ["apps[].io.ops_share", "apps[].io.time_share"],
        "Interface": ["apps[].interface"],
        "Runtime": ["apps[].runtime_s"],
    },
    "V": {
        "I/O amount": ["phases[].io.bytes.total"],
        "I/O ops dist (data, meta)": ["phases[].io.ops_share", "phases[].io.time_share"],
        "Frequency": ["phases[].frequency.kind", "phases[].frequency.ops_per_process", "phases[].frequency.size"],
        "Runtime": ["phases[].runtime_s"],
    },
    "VI": {
        "Data repr": ["interfaces[].data_representation.dims"],
        "Granularity (data, meta)": ["interfaces[].granularity.data", "interfaces[].granularity.metadata"],
        "Access pattern": ["interfaces[].access_pattern"],
        "Data dist": ["dataset.distribution"],
    },
    "VII": {
        "# extra cores for I/O/node": ["middleware.extra_cores_per_node"],
        "Granularity (data, meta)": ["middleware.granularity"],
        "Memory/node": ["middleware.memory_per_node"],
        "Access pattern": ["middleware.access_pattern"],
    },
    "VIII": {
        "# parallel ops (controller)": ["storage.node_local.parallel_ops"],
        "Capacity /node": ["storage.node_local.capacity_per_node"],
        "Max I/O bw/node": ["storage.node_local.max_bandwidth_per_node"],
        "Dir": ["storage.node_local.dir"],
    },
    "IX": {
        "# parallel servers": ["storage.shared.parallel_servers"],
        "Capacity /node": ["storage.shared.capacity"],
        "Max I/O BW": ["storage.shared.max_bandwidth"],
        "Dir": ["storage.shared.dir"],
    },
    "X": {
        "Format": ["dataset.format"],
        "Size (GB)": ["dataset.size"],
        "# of files": ["dataset.files"],
        "I/O (GB)": ["dataset.io.bytes.total"],
        "Time (sec)": ["dataset.io.time_s.total", "dataset.io.busy_s.total"],
        "I/O ops dist (data, meta)": ["dataset.io.ops_share", "dataset.io.time_share"],
        "File size dist (data,config)": ["dataset.size_distribution.p50", "dataset.size_distribution.histogram"],
    },
    "XI": {
        "Format": ["files[].format"],
        "Size (GB)": ["files[].size"],
        "I/O (GB)": ["files[].io.bytes.total"],
        "Time (sec)": ["files[].io.time_s.total", "files[].io.busy_s.total"],
        "I/O ops dist (data, meta)": ["files[].io.ops_share", "files[].io.time_share"],
        "Format attributes": ["files[].format_attributes"],
    },
}
"""Keys of the profile for each attribute, by table and the attribute's name in the paper."""


class VaniTables(NamedTuple):
    """Attributes by table and name, as the paper prints them.

    `values` has one figure for each attribute, in bytes and seconds regardless of the unit in its name. In tables IV,
    V, VI and XI it is a list over the entities. If an attribute covers several keys of the profile, it is a dictionary
    by key. `unknown` has the reason for each key that is null.
    """

    values: dict[str, dict[str, Any]]
    unknown: dict[str, str]


def vani_profile(trace: str | Path | Profile, **options: Any) -> VaniTables:
    """Characterise a trace with the entities and attributes of tables II to XI.

    Parameters
    ----------
    trace
        A trace, or the profile of one.
    options
        Options of `vani.profile`, such as `system` and `job`.

    Raises
    ------
    InputError
        The trace cannot be read.

    Examples
    --------
    The bundled trace of IOR with 8 processes that write and read one file:

    >>> import vani
    >>> tables = vani_profile(Path(vani.__file__).parent / "demo" / "ior-shared-file-8r", system="lassen")
    >>> tables.values["IV"]["# processes"], tables.values["IV"]["Interface"]
    ([8], ['posix'])
    >>> tables.values["IV"]["FPP/shared file access"]
    {'apps[].files.file_per_process': [0], 'apps[].files.shared': [1]}
    >>> tables.values["IX"]["Dir"]
    '/p/gpfs1'
    >>> tables.unknown["storage.shared.parallel_servers"]
    'system: lassen does not give it'
    """
    profile = vani.profile(trace, **options) if isinstance(trace, (str, Path)) else trace
    document = profile.model_dump(by_alias=True)
    values = {
        table: {
            name: _value(document, places[0])
            if len(places) == 1
            else {place: _value(document, place) for place in places}
            for name, places in attributes.items()
        }
        for table, attributes in ATTRIBUTES.items()
    }
    keys = {place for attributes in ATTRIBUTES.values() for places in attributes.values() for place in places}
    return VaniTables(values, {name: why for name, why in unknowns(profile).items() if _is_within(name, keys)})


def _is_within(attribute: str, keys: set[str]) -> bool:
    return any(key == attribute or key.startswith((f"{attribute}.", f"{attribute}[")) for key in keys)


def _value(item: Any, place: str) -> Any:
    """The value at a key of a document. Lists give a list over their entries, and null stays null."""
    name, _, rest = place.partition(".")
    below = item[name.removesuffix("[]")]
    if below is None or not rest:
        return below
    return [_value(entry, rest) for entry in below] if name.endswith("[]") else _value(below, rest)
