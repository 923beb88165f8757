"""FWD002: how far forwarding nodes read ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.placement import settable
from vani.advisors.rule import Evidence, Finding, Rule, Target, Verdict, figures
from vani.models.forwarding import prefetch_chunk
from vani.models.run_time import of_profile_s, seconds
from vani.units import MiB, counted, format_bytes, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class PrefetchChunk(Rule):
    """Forwarding nodes read ahead so much per file that they drop it before it is read, or too little.

    Looks at
        How many files the job reads, the usual size of a read, how many forwarding nodes serve the job, and how busy
        its own reads keep them.
    Why
        The read-ahead buffer of a forwarding node is shared by all files that are read through it. A chunk too
        large for its share evicts data that others of the same job have yet to read; one too small leaves
        the buffer unused.
    Recommends
        The chunk of AIOT's equation 2: prefetch buffer * forwarding nodes / files that are read. This applies only if
        the usual read is smaller than that, and the forwarding nodes are lightly loaded. An administrator sets it.
    Stays silent when
        The machine has no forwarding layer in front of Lustre, or its ratio is not known; the site is not known to be
        able to set the chunk (`forwarding.site_can_set`), or the layer is one of LNet routers; the job hardly reads;
        reads are as large as the chunk; the job's own reads load the forwarding nodes; the nodes or the sizes are not
        known.
    Source
        AIOT, equation 2 and figure 13 (Macdrp: the default read-ahead was too aggressive).
    Example
        256 nodes behind one forwarding node read 256 files, 64 KiB at a time: 64 MiB / 256 = 256 KiB per file.
    """

    id = "FWD002"
    needs = ("job.nodes",)
    sources = ("AIOT eq. 2",)

    # Former default of max_read_ahead_mb for a Lustre client, such as a forwarding node (general knowledge).
    prefetch_buffer = 64 * MiB
    # AIOT gives no figure for "lightly loaded". Below half of its bandwidth, a node can fetch unrequested data.
    light_load = 0.5
    # Removing less than a twentieth of the I/O time does not show between runs (see MAT001).
    min_share = 0.05

    def check(self, profile: Profile, system: System) -> Verdict:
        what = "far forwarding nodes read ahead"
        layer = settable(system.forwarding, "prefetch_chunk", what=what, routers="read nothing ahead")
        if isinstance(layer, str):
            return layer
        nodes, per_forwarder = profile.job.nodes or 1, layer.compute_nodes_per_io_node or 1
        if not any(disk.type == "lustre" for disk in system.file_systems):
            return "the forwarding nodes are not Lustre clients, whose read-ahead this is"
        io = profile.dataset.io
        share = seconds(io.time_s.read) / seconds(io.time_s.total) if seconds(io.time_s.total) else 0.0
        if share < self.min_share:
            return f"reads have {format_share(share)} of the I/O time"
        sizes = io.transfer_size.read
        if sizes is None or sizes.p50 is None:
            return "dataset.io.transfer_size.read is not known; supply a trace with sizes"
        forwarders = -(-nodes // per_forwarder)
        files = _read_files(profile)
        if not files:
            return "which files are read is not in the profile"
        chunk = prefetch_chunk(int(self.prefetch_buffer), forwarders, files)
        if sizes.p50 >= chunk:
            return f"reads of {format_bytes(sizes.p50)} are no smaller than the chunk of {format_bytes(chunk)}"
        rate, most = io.bandwidth.read, layer.bandwidth_per_io_node
        if rate is None or most is None:
            return "how loaded the forwarding nodes are is not known; supply their bandwidth in --system"
        load = rate / (most * forwarders)
        if load > self.light_load:
            return f"the job's own reads take {format_share(load)} of its forwarding nodes' bandwidth"
        per_file = max(1, chunk // MiB)
        return [
            Finding(
                target=Target("job"),
                reason=(
                    f"{counted(files, 'file', 'is', 'are')} read, {format_bytes(sizes.p50)} at a time, "
                    f"through {counted(forwarders, 'forwarding node')}: a share of "
                    f"{format_bytes(chunk)} of the read-ahead buffer "
                    f"({format_bytes(self.prefetch_buffer)}, Lustre's default) each. That "
                    "applies while other jobs leave these nodes lightly loaded. The gain is not known without "
                    "the present read-ahead."
                ),
                confidence=0.3,
                touched_s=of_profile_s(profile, "read"),
                recommended={"prefetch_chunk": chunk},
                current={"prefetch_chunk": None},
                evidence=[
                    Evidence("job.nodes", nodes),
                    *figures(io, "dataset.io", "transfer_size.read.p50", "bandwidth.read"),
                    *figures(layer, "system.forwarding", "compute_nodes_per_io_node", "bandwidth_per_io_node"),
                ],
                apply="for the site, on the forwarding nodes of this job:\n"
                f"lctl set_param llite.*.max_read_ahead_per_file_mb={per_file}",
            )
        ]


def _read_files(profile: Profile) -> int:
    listed = sum(1 for file in profile.files if file.readers > 0)
    if profile.lists_all_files or not listed:
        return listed
    roles = profile.dataset.roles or {}
    return max(listed, roles.get("input", 0) + roles.get("intermediate", 0))
