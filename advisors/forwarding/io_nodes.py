"""FWD001: how many I/O nodes serve a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.launchers import launcher_of
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Verdict
from vani.models import forwarding
from vani.models.run_time import of_profile_s
from vani.units import format_bytes, format_rate

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import Forwarding, System


class IONodes(Rule):
    """A job has more or fewer I/O nodes than its access pattern can use.

    Looks at
        Compute nodes, processes, whether they write a file each or share one, contiguous or strided, the usual size
        of a write; the numbers of I/O nodes that the machine offers, and whether jobs may do without.
    Why
        Too few I/O nodes are a bottleneck, too many add contention and stand idle; and direct access of
        all compute nodes can be faster than any of them, or crowd the file system. It depends on the pattern.
    Recommends
        The fewest I/O nodes within `tolerance` of the best bandwidth of the measured curve in the system description
        (`forwarding.curve`), else of the nearest access pattern of the bundled measurements, among the numbers that
        divide the compute nodes; 0 where the machine allows it and it is the best. As
        GekkoFWD's map file where the user can choose, else as what to ask the site for.
    Stays silent when
        The machine has no forwarding layer; the number of nodes, the bytes or the size of writes is not known; the job
        mostly reads (only writes are measured); no measured pattern is within `max_distance` doublings;
        no offered number divides the compute nodes; the job has that number already.
    Source
        Bez et al., PDSW 2020 (measurements on MareNostrum 4) and IPDPS 2021, sections 3 and 5. See
        `vani/models/forwarding.py`.
    Example
        32 nodes with 48 processes each that write 1 MiB at a time to one file, contiguous: the measured mean per
        number of I/O nodes decides; a job of 12 nodes cannot have 8.
    """

    id = "FWD001"
    name = "io-nodes"
    family = "forwarding"
    needs = ("job.nodes",)
    settles = "forwarding"
    sources = ("Bez et al., PDSW 2020", "Bez et al., IPDPS 2021, section 5.1")

    # Forwarded runs scatter by 0.14 (median of deviation / mean in the bundled measurements): less is no difference.
    tolerance = 0.10
    # Patterns are measured at each doubling of nodes, processes and (mostly) requests: one doubling off in each.
    max_distance = 3.0
    # Half: a job that mostly reads is another thing than what was measured.
    min_written = 0.5
    # Where the processes' writes have a constant stride more often than not, they are strided.
    strided = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:
        layer = system.forwarding
        if layer is None:
            return self.nothing("the machine has no forwarding layer, or it is not described; see --system")
        pattern = self._pattern(profile)
        if isinstance(pattern, str):
            return self.nothing(pattern)
        if layer.curve:
            points = {p.io_nodes: forwarding.Rate(p.bandwidth, p.deviation) for p in layer.curve}
            scenario, distance = forwarding.Scenario(pattern, points), 0.0
        else:
            scenario, distance = forwarding.nearest(pattern, forwarding.measured())
        if distance > self.max_distance:
            return self.nothing(
                f"no measured pattern is near: the nearest is {distance:.1f} doublings of nodes, processes and "
                "request size away"
            )
        offered = layer.choices or sorted(scenario.curve)
        allowed = forwarding.legal(pattern.nodes, offered, direct=layer.direct_access is True)
        count = forwarding.fewest(scenario.curve, allowed, self.tolerance)
        if count is None:
            return self.nothing(
                f"no offered number of I/O nodes that was measured divides {pattern.nodes} compute nodes"
            )
        now = _now(layer, pattern.nodes)
        if now == count:
            return self.nothing(f"the job has {_nodes(count)} already, the number to have")
        return [self._finding(pattern, scenario, distance, count, now, profile, system, layer)]

    def _pattern(self, profile: Profile) -> forwarding.Pattern | str:
        io, nodes = profile.dataset.io, profile.job.nodes or 1
        if io.bytes.written is None or io.bytes.read is None:
            return "dataset.io.bytes is not known; supply a trace that holds sizes"
        if not io.bytes.written or io.bytes.written < self.min_written * (io.bytes.read + io.bytes.written):
            return "the job mostly reads, and only writes have been measured by number of I/O nodes"
        sizes = io.transfer_size.write
        if sizes is None or not sizes.p50:
            return "dataset.io.transfer_size.write is not known; supply a trace that holds sizes"
        written = sum(file.io.bytes.written or 0 for file in profile.files)
        shared = sum(file.io.bytes.written or 0 for file in profile.files if file.access == "shared")
        is_shared = shared > written / 2 if written else profile.dataset.files == 1
        pattern = io.access_pattern
        return forwarding.Pattern(
            nodes=nodes,
            processes=max(nodes, profile.workflow.processes),
            layout="shared" if is_shared else "fpp",
            order="strided" if pattern is not None and pattern.strided >= self.strided else "contiguous",
            request=sizes.p50,
        )

    def _finding(
        self,
        pattern: forwarding.Pattern,
        scenario: forwarding.Scenario,
        distance: float,
        count: int,
        now: int | None,
        profile: Profile,
        system: System,
        layer: Forwarding,
    ) -> Finding:
        given = bool(layer.curve)
        here = given or system.name == "marenostrum4"
        near = scenario.pattern
        order = "one shared file" if pattern.layout == "shared" else "a file per process"
        reason = (
            f"{pattern.processes} processes on {pattern.nodes} nodes write {format_bytes(pattern.request)} at a time "
            f"to {order}{', strided' if pattern.order == 'strided' else ''}. "
        )
        reason += (
            "By the curve in the system description, "
            if given
            else f"For the nearest measured pattern ({near.processes} on {near.nodes} nodes, "
            f"{format_bytes(near.request)}), "
        )
        reason += f"{_nodes(count)} gave {format_rate(scenario.curve[count].mean)}"
        reason += (
            f" against {format_rate(scenario.curve[now].mean)} with {_nodes(now)}."
            if now in scenario.curve and now is not None
            else ". How many the job has now is not known."
        )
        if not here:
            reason += f" That was measured on MareNostrum 4, not on {system.name}."
        certainty = (0.6 if here else 0.35) * (1 - 0.1 * distance)
        source = "curve of the system description" if given else "Bez et al., PDSW 2020"
        known = now is not None and now in scenario.curve
        gain = self._gain(scenario, now, count, profile, source) if known and now is not None else None
        prefix = "system.forwarding"
        return Finding(
            target=Target("job"),
            reason=reason,
            confidence=round(certainty, 2),
            touched_s=of_profile_s(profile, "write"),
            recommended={"io_nodes": count},
            current={"io_nodes": now},
            evidence=[
                Evidence("job.nodes", pattern.nodes),
                Evidence("workflow.processes", profile.workflow.processes),
                Evidence("dataset.io.bytes.written", profile.dataset.io.bytes.written),
                Evidence("dataset.io.transfer_size.write.p50", pattern.request),
                Evidence(f"{prefix}.choices", list(layer.choices)),
                Evidence(f"{prefix}.direct_access", layer.direct_access),
            ],
            gain=gain,
            apply=_lines(pattern.nodes, count, layer, profile.job.scheduler),
        )

    def _gain(
        self, scenario: forwarding.Scenario, now: int, count: int, profile: Profile, source: str
    ) -> Gain | None:
        before = of_profile_s(profile, "write")
        least, expected, most = forwarding.speedups(scenario.curve, now, count)
        if not before:
            return None
        return Gain(
            metric="write_time_s",
            before_s=before,
            after_s=before / expected,
            best_s=before / most,
            worst_s=before / least,
            method=f"ratio of measured means with {_nodes(now)} and {_nodes(count)} "
            f"({source}); range: one standard deviation of the repetitions",
        )


def _now(layer: Forwarding, nodes: int) -> int | None:
    if layer.compute_nodes_per_io_node:
        return -(-nodes // layer.compute_nodes_per_io_node)
    # A layer that a user starts is not there until then.
    return 0 if layer.direct_access and layer.user_can_choose else None


def _nodes(count: int) -> str:
    return "direct access" if count == 0 else "1 I/O node" if count == 1 else f"{count} I/O nodes"


def _lines(nodes: int, count: int, layer: Forwarding, scheduler: str | None) -> list[str]:
    if not layer.user_can_choose:
        text = f"ask the site for {_nodes(count)} for this job"
        if layer.compute_nodes_per_io_node and count:
            text += f", or spread it over nodes behind {count} of them (each serves {layer.compute_nodes_per_io_node})"
        return comment(text)
    if count == 0:
        return [
            "unset LIBGKFS_FORWARDING_MAP_FILE",
            *comment("and start the program without libgkfs_intercept.so"),
        ]
    launcher = launcher_of(scheduler)
    return [
        *comment(
            f"GekkoFWD, on {_nodes(count)} beside the {nodes} compute nodes, from a folder that all nodes see:"
        ),
        *map_lines(launcher.hosts, nodes, count),
        *comment("start the program with LD_PRELOAD=libgkfs_intercept.so"),
    ]


def map_lines(hosts: str, nodes: int, io_nodes: int) -> list[str]:
    """Lines of sh that write GekkoFWD's map, equal blocks of clients to each I/O node, and name it.

    `hosts` is a command that prints the job's hosts, one a line. The map has a line `HOST INDEX` each and lies where
    all nodes see it; clients read it again every 10 s.
    """
    per = nodes // io_nodes
    return [
        f"{hosts} | awk '{{ print $1, int((NR - 1) / {per}) }}' > gkfs_forwarding.map",
        'export LIBGKFS_FORWARDING_MAP_FILE="$PWD"/gkfs_forwarding.map',
    ]
