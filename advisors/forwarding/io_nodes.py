"""FWD001: how many I/O nodes serve a job, or where its nodes are relative to fixed ones."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.advisors.commands import Launcher, comment, launcher_name, launcher_of, quoted_path
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, TunableSetting, Verdict, figures
from vani.models import forwarding
from vani.models.forwarding import STRIDED, Pattern, Traffic, pattern_of, traffic_of
from vani.models.run_time import of_profile_s
from vani.units import GiB, KiB, MiB, counted, format_bytes, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import Forwarding, System


class IONodes(Rule):
    """A job has more or fewer I/O nodes than its access pattern can use, or crowds those that it cannot choose.

    Looks at
        The direction of most bytes, compute nodes, processes (those that use the shared files, if known), whether they
        have a file each or share one, contiguous or strided, the usual size of a request; the numbers of I/O nodes that
        the machine offers, and whether jobs may bypass them. Where I/O nodes are fixed (LNet routers, Blue Gene's and
        Sunway's I/O nodes): the fewest that can serve the job, and how much of their bandwidth it uses.
    Why
        Too few I/O nodes are a bottleneck, too many add contention and are idle; and direct access of
        all compute nodes can be faster than any of them, or crowd the file system. It depends on the pattern, and on
        the machine: curves of one machine lose more than half of the bandwidth on another.
    Recommends
        Where users choose (GekkoFWD, DataWarp, IME): of the numbers that divide the compute nodes, the one that loses
        least over the curves measured on this machine near the pattern (`forwarding.curves` of the system description;
        MareNostrum 4's are bundled). Where they do not: spread the job's nodes over more I/O nodes by placing its ranks
        accordingly.
    Stays silent when
        The machine has no forwarding layer, or does not state whether users choose; the number of nodes, the bytes or
        the size of requests is not known; no curve is within a doubling of nodes, processes per node and request, or
        such curves contradict each other by more than `most_regret` (the rule then states what to measure, with the
        commands); the job's number loses less than `tolerance` more. Where the I/O nodes are fixed: the job uses less
        than `busy` of the bandwidth of the fewest I/O nodes that can serve it, or more than all of it; it has all I/O
        nodes already; its reads or writes take less than `least_s`.
    Source
        Bez et al., PDSW 2020 (measurements on MareNostrum 4) and IPDPS 2021, sections 3 and 5; for fixed I/O nodes
        Xie et al., section II. See `vani/models/forwarding.py`.
    Example
        32 nodes with 48 processes each that write 1 MiB at a time to one file, contiguous, on MareNostrum 4: 2 I/O
        nodes; a job of 12 nodes cannot have 8.
    """

    id = "FWD001"
    needs = ("job.nodes",)
    settles = "forwarding"
    sources = ("Bez et al., PDSW 2020", "Bez et al., IPDPS 2021, section 5.1", "Xie et al., section II")

    # Forwarded runs scatter by 0.14 (median of deviation / mean in the bundled measurements), the mean of five by
    # 0.06: less is not a difference.
    tolerance = 0.05
    # Our choice: an answer that loses more does not count. Held-out patterns lose 0.02 on average (docs/models.md).
    most_regret = 0.10
    # Accesses are strided if most of them have a constant stride.
    strided = STRIDED
    # Below half of their bandwidth, I/O nodes delay no job (FWD002 calls that lightly loaded).
    busy = 0.5
    # With less I/O, run times scatter by more than the placement of nodes can cost (our choice).
    least_s = 1.0

    def check(self, profile: Profile, system: System) -> Verdict:
        layer = system.forwarding
        if layer is None:
            return "the machine has no forwarding layer, or it is not described; see --system"
        traffic = traffic_of(profile)
        if traffic is None:
            return "dataset.io.bytes is not known; supply a trace with sizes"
        if not traffic.bytes:
            return "the job moves no bytes"
        if not layer.is_chosen_by_users:
            return self._placement(layer, traffic, profile)
        return self._count(layer, traffic, profile, system)

    def _count(self, layer: Forwarding, traffic: Traffic, profile: Profile, system: System) -> Verdict:
        pattern = pattern_of(traffic, profile, strided=self.strided)
        if isinstance(pattern, str):
            return pattern
        curves = forwarding.curves_of(system)
        offered = layer.choices or sorted({n for curve in curves for n in curve.curve}) or [0, 1, 2, 4, 8]
        allowed = forwarding.legal(pattern.nodes, offered, direct=layer.direct_access is True)
        if len(allowed) < 2:
            return (
                f"a job of {pattern.nodes} compute nodes has no choice: of the offered numbers of I/O nodes "
                f"({', '.join(map(str, offered))}) "
                + (f"only {allowed[0]} divides them" if allowed else "none divides them")
            )
        choice = forwarding.choose(pattern, curves, allowed, self.most_regret)
        if isinstance(choice, str):
            return self._refusal(choice, pattern, traffic, allowed, layer, profile, system)
        count, now = choice.io_nodes, _now(layer, pattern.nodes)
        if now is not None and now == count:
            return f"the job has {_nodes(count)} already, the number to have"
        if now is not None and now in choice.lost and choice.lost[now] - choice.lost[count] < self.tolerance:
            return (
                f"{_nodes(now)}, which the job has, lose{'s' if now < 2 else ''} "
                f"{format_share(choice.lost[now])} by the curves near its pattern, "
                f"{_nodes(count)} {format_share(choice.lost[count])}: no difference that shows"
            )
        return [self._finding(pattern, choice, allowed, now, traffic, profile, system, layer)]

    def _refusal(
        self,
        why: str,
        pattern: forwarding.Pattern,
        traffic: Traffic,
        allowed: list[int],
        layer: Forwarding,
        profile: Profile,
        system: System,
    ) -> str:
        if any(not curve.is_complete for curve in layer.curves):
            why += " (a curve of the description does not state how it was measured, and decides nothing)"
        path = max(profile.files, key=lambda file: file.io.bytes.total or 0).path if profile.files else "."
        how = measure_it(
            pattern,
            traffic.bytes,
            posixpath.dirname(path) or ".",
            allowed,
            launcher_of(launcher_name(profile, system)),
            layer.kind,
        )
        unknown = f"how many I/O nodes serve this job best on {system.name} is not known: {why}"
        return f"{unknown}; {_described(pattern)}; {how}"

    def _finding(
        self,
        pattern: forwarding.Pattern,
        choice: forwarding.Choice,
        allowed: list[int],
        now: int | None,
        traffic: Traffic,
        profile: Profile,
        system: System,
        layer: Forwarding,
    ) -> Finding:
        count, rates = choice.io_nodes, choice.rates
        near = choice.near[0].pattern
        reason = f"{_described(pattern)}. "
        reason += (
            f"By {counted(len(choice.near), 'curve')} measured on this machine near that pattern (nearest: "
            f"{near.processes:,} processes on {near.nodes} nodes, {format_bytes(near.request)}), "
            f"{_nodes(count)} reach{'es' if count < 2 else ''} {format_rate(rates[count].mean)}"
        )
        reason += (
            f" against {format_rate(rates[now].mean)} with {_nodes(now)}."
            if now is not None and now in rates
            else ". How many the job has now is not known."
        )
        if choice.lost[count] > 0:
            reason += f" It loses {format_share(choice.lost[count])} of the best one on average."
        unknown = [n for n in allowed if n not in choice.lost]
        if unknown:
            reason += f" With {' and '.join(map(_nodes, unknown))} nothing was measured."
        gain, why = self._gain(choice, now, count, traffic, profile)
        return Finding(
            target=Target("job"),
            reason=f"{reason} {why}".rstrip(),
            # Nine of ten held-out patterns lose at most a tenth, and the description may be wrong, too. Numbers that
            # were not measured may be better by any factor.
            confidence=round(0.6 * (1 - 0.1 * choice.distance) * (0.5 if unknown else 1), 2),
            touched_s=of_profile_s(profile, traffic.operation),
            recommended={"io_nodes": count},
            current={"io_nodes": now},
            evidence=[
                Evidence("job.nodes", pattern.nodes),
                Evidence("workflow.processes", profile.workflow.processes),
                Evidence(f"dataset.io.bytes.{traffic.attribute}", traffic.bytes),
                Evidence(f"dataset.io.transfer_size.{traffic.verb}.p50", pattern.request),
                *figures(layer, "system.forwarding", "choices", "direct_access"),
            ],
            gain=gain,
            apply=_lines(pattern.nodes, count, layer, launcher_of(launcher_name(profile, system))),
            settings=_tunable(layer, choice, allowed, now),
        )

    def _gain(
        self, choice: forwarding.Choice, now: int | None, count: int, traffic: Traffic, profile: Profile
    ) -> tuple[Gain | None, str]:
        """The expected gain, or None and a sentence with the reason."""
        before = of_profile_s(profile, traffic.operation)
        if now is None or now not in choice.rates or not before:
            return None, ""
        if traffic.rate is None:
            return None, "The gain is not known, nor is the rate that the job reached."
        by_curve = choice.rates[now].mean
        if not 1 / forwarding.ANCHOR <= traffic.rate / by_curve <= forwarding.ANCHOR:
            return None, (
                f"The gain is not known: the job reached {format_rate(traffic.rate)}, more than a "
                f"factor of {forwarding.ANCHOR:g} from the curve."
            )
        least, expected, most = forwarding.speedups(choice.rates, now, count)
        return Gain(
            metric=f"{traffic.operation}_time_s",
            before_s=before,
            after_s=before / expected,
            best_s=before / most,
            worst_s=before / least,
            method=f"ratio of measured means with {_nodes(now)} and {_nodes(count)}; range: 90 % of runs, by their "
            "deviation and the errors of held-out patterns",
        ), ""

    def _placement(self, layer: Forwarding, traffic: Traffic, profile: Profile) -> Verdict:
        """The verdict for fixed I/O nodes: a finding if the job's nodes crowd those that serve them."""
        servers = "LNet routers" if layer.kind == "lnet_routers" else "I/O nodes"
        fixed = f"how many {servers} serve a job is not the user's to choose here"
        if layer.user_can_choose is None and layer.kind is None:
            fixed = "that users can choose the number of I/O nodes is not in the system description"
        nodes, per, each = profile.job.nodes or 1, layer.compute_nodes_per_io_node, layer.bandwidth_per_io_node
        spent = of_profile_s(profile, traffic.operation)
        if spent < self.least_s:
            return f"{fixed}, and the job {traffic.verb}s for {format_seconds(spent)} only"
        if not per or not each:
            return f"{fixed}, and how many nodes share one, or its bandwidth, is not known"
        if traffic.rate is None:
            return f"{fixed}, and the rate that the job reached is not known"
        fewest = -(-nodes // per)
        existing = layer.io_nodes_in_use or layer.io_nodes
        few, es = ("one", "es") if fewest == 1 else (str(fewest), "")
        reached = traffic.rate / (fewest * each)
        if reached < self.busy:
            return (
                f"{fixed}, and no change is needed: the job moves {format_share(reached)} of what "
                f"{few} of them pass{es}, the fewest that can serve {counted(nodes, 'node')}"
            )
        if reached > 1:
            return f"{fixed}, and the job's nodes use more than {few} of them already"
        spread = min(2 * fewest, nodes, existing or 2 * fewest)
        if spread <= fewest:
            return f"{fixed}, and the job's nodes cannot use more than {few} of them"
        return [
            Finding(
                target=Target("job"),
                reason=(
                    f"{counted(per, 'compute node')} share one of the machine's {servers}, which users do not choose: "
                    f"the {nodes} nodes of this job use at least {few} of them. The job {traffic.verb}s "
                    f"{format_rate(traffic.rate)}, {format_share(reached)} of what {few} pass{es}; if its nodes are "
                    "close together, that slows it down. The trace does not record their places, so the gain is "
                    "not known."
                ),
                confidence=0.3,
                # The saving if all the time is spent waiting for I/O nodes.
                touched_s=spent * (1 - fewest / spread),
                recommended={"placement": f"spread over {spread} {servers} or more"},
                current={"placement": None},
                evidence=[
                    Evidence("job.nodes", nodes),
                    Evidence(f"dataset.io.bandwidth.{traffic.verb}", traffic.rate),
                    *figures(layer, "system.forwarding", "compute_nodes_per_io_node", "bandwidth_per_io_node"),
                ],
                apply=f"spread over {spread} {servers} or more: ask the batch system for nodes that are apart, or put "
                "fewer ranks on each of more nodes",
            )
        ]


def _described(pattern: forwarding.Pattern) -> str:
    verb = "write" if pattern.operation == "write" else "read"
    to = "to" if verb == "write" else "from"
    files = "one shared file" if pattern.layout == "shared" else "a file per process"
    return (
        f"{counted(pattern.processes, 'process')} on {counted(pattern.nodes, 'node')} "
        f"{verb}{'s' if pattern.processes == 1 else ''} {format_bytes(pattern.request)} at a time "
        f"{to} {files}{', strided' if pattern.order == 'strided' else ''}"
    )


def _now(layer: Forwarding, nodes: int) -> int | None:
    if layer.compute_nodes_per_io_node:
        return -(-nodes // layer.compute_nodes_per_io_node)
    # A layer that users start does not exist before that.
    return 0 if layer.direct_access else None


def _nodes(count: int) -> str:
    return "direct access" if count == 0 else "1 I/O node" if count == 1 else f"{count} I/O nodes"


def _tunable(
    layer: Forwarding, choice: forwarding.Choice, allowed: Sequence[int], now: int | None
) -> list[TunableSetting] | None:
    """Numbers of I/O nodes to try: first those that lose least according to the curves, then those without a curve."""
    if layer.variable is None:
        return None
    order = sorted(allowed, key=lambda n: (n != choice.io_nodes, choice.lost.get(n, math.inf), n))
    return [TunableSetting("environment", [{layer.variable: str(n)} for n in order if n != now])]


def _lines(nodes: int, count: int, layer: Forwarding, launcher: Launcher) -> list[str]:
    if layer.variable is not None:
        return [f"export {layer.variable}={count}"]
    if layer.kind == "datawarp":
        return comment(
            "DataWarp gives a job as many of its nodes as the capacity takes granules, one of each "
            f"(`dwstat pools` shows their size): request {count} granules"
            if count
            else "leave out the #DW lines, and write to the file system"
        )
    if layer.kind != "gekkofwd":
        return comment(f"give this job {_nodes(count)}, as the site's guide describes")
    if count == 0:
        return ["unset LIBGKFS_FORWARDING_MAP_FILE", *comment("and start the program without libgkfs_intercept.so")]
    return [
        *comment(
            f"GekkoFWD, on {_nodes(count)} in addition to the {nodes} compute nodes, from a folder that all nodes see:"
        ),
        *map_lines(launcher.hosts, nodes, count),
        *comment("start the program with LD_PRELOAD=libgkfs_intercept.so"),
    ]


def map_lines(hosts: str, nodes: int, io_nodes: int) -> list[str]:
    """Lines of sh that write GekkoFWD's map, with equal blocks of clients per I/O node, and export its name.

    `hosts` is a command that prints the job's hosts, one per line. The map has a line `HOST INDEX` for each, in a file
    that all nodes see. Clients reread it every 10 s.
    """
    per = nodes // io_nodes
    return [
        f"{hosts} | awk '{{ print $1, int((NR - 1) / {per}) }}' > gkfs_forwarding.map",
        'export LIBGKFS_FORWARDING_MAP_FILE="$PWD"/gkfs_forwarding.map',
    ]


_REPETITIONS = 5
"""Number of repetitions, as in the bundled curves."""


def measure_it(
    pattern: Pattern,
    bytes_moved: int,
    folder: str,
    numbers: Sequence[int],
    launcher: Launcher,
    kind: str | None,
) -> str:
    """A sentence with the runs to make, one for each of `numbers` of I/O nodes, and the values to enter."""
    run = ior(pattern, bytes_moved, folder, launcher)
    io_nodes = [n for n in numbers if n]
    ways = []
    if io_nodes and kind == "gekkofwd":
        ways.append(f"`{forwarded(run, pattern.nodes, io_nodes, launcher)}`")
    elif io_nodes:
        ways.append(f"with each of {', '.join(map(str, io_nodes))} I/O nodes `{' '.join(run)}`")
    if 0 in numbers:
        ways.append(f"for direct access `{' '.join(run)}`")
    return (
        f"measure it in a job of {pattern.nodes} nodes: {', and '.join(ways)}; then give the system description "
        f"what IOR prints as mean and deviation, in bytes per second: forwarding.curves: [{_entry(pattern, numbers)}]"
    )


def ior(pattern: Pattern, bytes_moved: int, folder: str, launcher: Launcher) -> list[str]:
    """Words of a command that imitates the job's I/O: the launcher, then IOR."""
    per_process = max(1, round(bytes_moved / pattern.processes / pattern.request))
    is_strided = pattern.layout == "shared" and pattern.order == "strided"
    request = pattern.request
    block, segments = (request, per_process) if is_strided else (request * per_process, 1)
    return [
        launcher.on_each(max(1, round(pattern.processes / pattern.nodes))),
        "ior -a POSIX",
        # 60 s as in the bundled measurements. -C reads data on another node than the writer's, so not from its memory.
        "-w -e -D 60" if pattern.operation == "write" else "-w -r -C -e",
        *(["-F"] if pattern.layout == "fpp" else []),
        f"-t {_size(request)} -b {_size(block)} -s {segments} -i {_REPETITIONS}",
        # If the folder cannot be printed, use the one in which the command starts.
        f"-o {quoted_path(posixpath.join(folder, 'ior.curve')) or 'ior.curve'}",
    ]


def forwarded(run: Sequence[str], nodes: int, numbers: Sequence[int], launcher: Launcher) -> str:
    """A line of sh that runs the command `run` through GekkoFWD with each of `numbers` of I/O nodes."""
    start, *program = run
    return (
        f"for n in {' '.join(map(str, numbers))}; do {launcher.hosts} | "
        f"awk -v per=$(({nodes} / n)) '{{ print $1, int((NR - 1) / per) }}' > gkfs_forwarding.map; "
        f'{start} env LIBGKFS_FORWARDING_MAP_FILE="$PWD"/gkfs_forwarding.map LD_PRELOAD=libgkfs_intercept.so '
        f"{' '.join(program)}; done"
    )


def _entry(pattern: Pattern, numbers: Sequence[int]) -> str:
    layout = "shared" if pattern.layout == "shared" else "file_per_process"
    points = ", ".join(f"{{io_nodes: {n}, bandwidth: ..., deviation: ...}}" for n in numbers)
    return (
        f"{{operation: {pattern.operation}, layout: {layout}, order: {pattern.order}, request: {pattern.request}, "
        f"nodes: {pattern.nodes}, processes_per_node: {max(1, round(pattern.processes / pattern.nodes))}, "
        f"points: [{points}]}}"
    )


def _size(size: int) -> str:
    """A size for IOR: a number, with a suffix if it is a multiple of a power of 1024."""
    for suffix, unit in (("g", GiB), ("m", MiB), ("k", KiB)):
        if size % unit == 0:
            return f"{size // unit}{suffix}"
    return str(size)
