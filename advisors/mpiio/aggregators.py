"""MIO002: how many processes do the I/O of collective calls, and the size of their pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors import mpiio, rule
from vani.advisors.commands import comment
from vani.advisors.data_files import LayerGroup, extent
from vani.advisors.placement import Pieces, pieces_of
from vani.units import MiB, counted, format_bytes, format_count

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


# ROMIO's default `cb_buffer_size` (ADIOI_CB_BUFFER_SIZE_DFLT).
_BUFFER = 16 * MiB


class Aggregators(rule.MatchingRule):
    """Collective I/O goes through aggregators that fit neither the stripes of the file nor the processes.

    Looks at
        Shared files of at least `min_bytes` that are accessed by collective calls: the stripes that they have
        (or that LUS002 recommends), or the block of GPFS, the processes, the nodes, and the hints that the
        program sets.
    Why
        Two aggregators that share a target or a block take its lock from each other, and targets without an
        aggregator are idle.
    Recommends
        `cb_nodes`: on Lustre one for each stripe of the file, with `cb_config_list` where that is more than one per
        node; for fewer processes, as many as divide the stripes. `cb_buffer_size`: whole stripes or blocks, from 4 MiB
        on.
    Stays silent when
        No app uses MPI-IO or its calls are independent; the files are small; stripes or blocks are not known, or
        there is one stripe, which no number of aggregators makes faster; the program sets the same hints, or ROMIO
        uses them by default: an aggregator on each node, even if their number is unknown, and 16 MiB that are
        whole stripes. On GPFS `cb_nodes` stays one per node.
    Source
        ROMIO users guide (`cb_nodes`, `cb_config_list`, `cb_buffer_size`); its driver for Lustre cuts `cb_nodes` to the
        stripe count; Lustre manual, section 19.2 (one client per stripe).
    Example
        64 processes on 8 nodes, a file on 16 targets in stripes of 4 MiB: `cb_nodes 16`, `cb_buffer_size
        4194304`.
    """

    id = "MIO002"
    needs = ("interfaces", mpiio.mpiio_files)
    settles = "aggregators"
    sources = ("ROMIO users guide", "Lustre manual, section 19.2")

    # As in LUS002: below twice the 32 MiB that a client buffers per target, no layout makes a difference.
    min_bytes = 64 * MiB
    # Our choice: at least half of the calls, because aggregators do not help with the others.
    min_collective = 0.5

    def check(self, profile: Profile, system: System, layouts: rule.Layouts = rule.NO_LAYOUTS) -> rule.Verdict:
        return self.among(self._judge(use, profile, system, layouts) for use in mpiio.mpiio_uses(profile))

    def _judge(self, use: LayerGroup, profile: Profile, system: System, layouts: rule.Layouts) -> rule.Answer:
        if use.layer.collective_share is None:
            return use.missing("collective_share") or ""
        if use.layer.collective_share < self.min_collective:
            return "most calls of MPI-IO are independent: no aggregator takes part"
        use = use.of(item for item in use.items if (extent(item.file) or 0) >= self.min_bytes)
        if not use.items:
            return f"no shared file of MPI-IO has {format_bytes(self.min_bytes)} or more"
        pieces = pieces_of(use.items, profile, system, layouts)
        if isinstance(pieces, str):
            return pieces
        nodes = profile.job.nodes
        hints: dict[str, str | int] = {}
        if pieces.targets is not None:
            hints["cb_nodes"] = mpiio.cb_nodes(use.app.processes, pieces.targets)
            if hints["cb_nodes"] == 1:
                return f"{pieces.because}: one aggregator would write for all, so more stripes come first (LUS002)"
            if nodes and (hosts := mpiio.per_host(int(hints["cb_nodes"]), nodes)):
                hints["cb_config_list"] = hosts
        hints["cb_buffer_size"] = mpiio.buffer_size(pieces.size)
        own = mpiio.set_hints(use.layer, hints)
        if not own and hints.get("cb_nodes", nodes) == (nodes or hints.get("cb_nodes")) and _BUFFER % pieces.size == 0:
            usual = f"an aggregator on each node, and buffers of {format_bytes(_BUFFER)}"
            doubt = "; whether more per node are needed depends on the nodes: supply --job job.yaml"
            doubt = "" if nodes or pieces.targets is None else doubt
            return f"{pieces.because}: {usual}, are what ROMIO uses by default{doubt}"
        if own == {key: str(value) for key, value in hints.items()}:
            return "the program sets the fitting cb_nodes and cb_buffer_size itself"
        current: dict[str, rule.Value] = dict(own)
        if "cb_nodes" in hints and "cb_nodes" not in own and nodes is not None:
            # ROMIO's default, `cb_config_list *:1`: one per node.
            current["cb_nodes"] = nodes
        lines = mpiio.hint_lines(hints, use.path, profile)
        if own:
            lines = [*comment("the program sets some of these with MPI_Info_set: change them there"), *lines]
        return rule.Finding(
            **use.affected,
            reason=_sentence(use, pieces, hints),
            confidence=0.6 * pieces.certainty,
            touched_s=mpiio.in_mpiio_s(use),
            acts_on="libraries",
            recommended=dict(hints),
            current=current,
            evidence=[
                *use.layer_figures("collective_share"),
                *rule.figures(use.app, f"apps[{profile.apps.index(use.app)}]", "processes"),
                *rule.known_figures(profile, "", "job.nodes"),
                *pieces.evidence,
                *use.figures("path"),
            ],
            gain="supply the time of a run with these hints",
            apply=lines,
        )


def _sentence(use: LayerGroup, pieces: Pieces, hints: dict[str, str | int]) -> str:
    size = format_bytes(pieces.size)
    if pieces.targets is None:
        text = (
            f"{use.words}: the aggregators of {format_count(use.app.processes)} processes should "
            f"move whole blocks of {size} ({pieces.because})."
        )
    else:
        text = (
            f"{use.words} on {counted(pieces.targets, 'target')} in stripes of {size} ({pieces.because}): "
            f"{counted(int(hints['cb_nodes']), 'aggregator')} for {counted(use.app.processes, 'process')} share no "
            "target."
        )
    return text
