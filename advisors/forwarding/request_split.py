"""FWD003: how a forwarding node divides its service between metadata and data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.placement import settable
from vani.advisors.rule import Evidence, Finding, Rule, Target, Verdict, figures, known_figures
from vani.units import counted, format_count, format_number, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class RequestSplit(Rule):
    """A job with many metadata operations shares a forwarding node that serves metadata first.

    Looks at
        The share of metadata in the job's operations, without seeks (which stay on the node) and flushing, and how many
        come per second; whether the job fills its forwarding nodes or shares one with other jobs.
    Why
        A forwarding server that always serves metadata first lets one such job stop the reads and writes of all jobs
        behind the same node.
    Recommends
        Serve metadata and other requests in the ratio P : (1 - P), where P is the share of metadata in the job's own
        operations, at most `most`. Alternatively, use separate forwarding nodes if some are free. The site sets it.
    Stays silent when
        The machine has no forwarding layer with a known ratio; the site is not known to be able to set the split
        (`forwarding.site_can_set`), or the layer is one of LNet routers; metadata is less than `min_share` of the
        operations, or fewer than `min_rate` a second; the job's nodes fill whole forwarding nodes; the operations are
        not known.
    Source
        AIOT, section III-B.2 (the text; its algorithm 2 has P the other way round) and figure 12: Macdrp became
        twice as fast, Quantum, which has the metadata, 5 % slower.
    Example
        Quantum on 512 nodes shares a forwarding node with Macdrp: with 80 % metadata, P = 0.8.
    """

    id = "FWD003"
    needs = ("job.nodes", "dataset.io.ops_share")
    sources = ("AIOT, section III-B.2",)

    # Half: most requests of the job are metadata.
    min_share = 0.5
    # AIOT gives no figure for "high MDOPS". A metadata server does about 10,000 to 100,000 per second (general
    # knowledge). A single job becomes noticeable at a hundredth to a tenth of that.
    min_rate = 1000
    # At least one of ten turns is left for other requests: P = 1 is the default to get rid of.
    most = 0.9

    def check(self, profile: Profile, system: System) -> Verdict:
        what = "forwarding nodes divide their service"
        layer = settable(system.forwarding, "request_split", what=what, routers="serve none")
        if isinstance(layer, str):
            return layer
        nodes, per_forwarder = profile.job.nodes or 1, layer.compute_nodes_per_io_node or 1
        io = profile.dataset.io
        # A seek stays on the compute node.
        seeks = io.metadata_kinds.seek.count if io.metadata_kinds is not None else 0
        metadata, sent = io.ops.metadata - seeks, io.ops.all - seeks
        share = metadata / sent if sent else 0.0
        if share < self.min_share:
            return f"{format_share(share)} of the operations are metadata"
        runtime = profile.workflow.runtime_s
        rate = metadata / runtime if runtime else 0.0
        if rate < self.min_rate:
            return f"{format_number(rate)} metadata operations per second do not crowd a forwarding node"
        if nodes % per_forwarder == 0:
            return "the job fills its forwarding nodes, so no other job shares them"
        split = round(min(share, self.most), 2)
        return [
            Finding(
                target=Target("job"),
                reason=(
                    f"{format_share(share)} of the job's operations are metadata, {format_count(round(rate))} per "
                    f"second, and its {counted(nodes, 'node', 'shares', 'share')} a forwarding node "
                    f"({per_forwarder} behind one) with other jobs. "
                    f"Serving metadata in {format_share(split)} of the turns, not first, "
                    "helps those; in AIOT's test the other job became twice as fast and this one 5 % slower. It gains "
                    "this job nothing."
                ),
                confidence=0.4,
                touched_s=0.0,
                recommended={"metadata_share": split},
                current={"metadata_share": None},
                evidence=[
                    Evidence("job.nodes", nodes),
                    *figures(io, "dataset.io", "ops.read", "ops.write", "ops.metadata"),
                    *known_figures(io, "dataset.io", "metadata_kinds.seek.count"),
                    *figures(layer, "system.forwarding", "compute_nodes_per_io_node"),
                ],
                apply=f"for the site: on the forwarding nodes of this job serve metadata : other requests as "
                f"{split:g} : {format_number(1 - split, 2)}, or give the job separate forwarding nodes",
            )
        ]
