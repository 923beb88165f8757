"""WFL001: apps that exchange files run on any free nodes."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vani.advisors.commands import Launcher, comment, launcher_name, launcher_of
from vani.advisors.rule import Finding, Rule, Target, Verdict, figures, known_figures
from vani.models.run_time import seconds
from vani.units import MiB, counted, format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import App, AppDependency, Profile
    from vani.schema.system import System

# Most edges in the evidence. More would not be read.
SHOWN = 10


class CoLocate(Rule):
    """Apps of a workflow that read other apps' output do not run on those apps' nodes.

    Looks at
        Which app reads what which app wrote, and how much; how many processes an instance of each has; how many
        nodes the job has.
    Why
        A file that is read on the node that wrote it can stay in that node's page cache or storage. On
        another node, it has to reach the servers and come back first.
    Recommends
        Groups of apps that exchange files: the steps that belong together on one node, or, if an app has more processes
        than a node has cores, all apps of the group on the same nodes in the same order of ranks. The lines fit the
        job's launcher.
    Stays silent when
        The workload is one app, or its apps exchange less than `min_bytes`; the job has one node.
    Source
        Vani paper, section IV-D (process placement by data dependency) and section V-B (Montage: intermediate files
        are produced and read within a node).
    Example
        mProject, mDiff, mBackground and mAdd exchange 59 MB: run one tile's whole chain on one node.
    """

    id = "WFL001"
    sources = ("Vani paper, section IV-D", "Vani paper, section V-B")

    # Less than one process's buffer for collective I/O (16 MiB, MPICH) does not show in a workflow's run time.
    min_bytes = 16 * MiB

    def check(self, profile: Profile, system: System) -> Verdict:
        edges = [edge for edge in profile.workflow.app_dependencies or () if edge.producer != edge.consumer]
        if not edges:
            return "no app reads what another app wrote"
        if profile.job.nodes == 1:
            return "the job has one node, so all apps share it"
        groups = [group for group in _groups(edges) if _read(group) >= self.min_bytes]
        if not groups:
            known = "" if _all_known(edges) else ", according to the trace"
            return f"the apps exchange less than {format_bytes(self.min_bytes)}{known}"
        return [self._finding(group, profile, system) for group in groups]

    def _finding(self, edges: Sequence[AppDependency], profile: Profile, system: System) -> Finding:
        apps = _in_order(edges, profile)
        by_name = {app.name: app for app in profile.apps}
        cores = profile.job.cpu_cores_per_node or system.compute.cores_per_node
        ranks = {name: _ranks(by_name.get(name)) for name in apps}
        widest = max(ranks.values())
        fits = cores is None or widest <= cores
        read = _read(edges)
        files = sum(edge.files for edge in edges)
        where = (
            "one node"
            if fits
            else f"the same nodes, rank by rank ({counted(widest, 'process')}, {counted(cores or 0, 'core')} per node)"
        )
        least = "" if _all_known(edges) else "at least "
        listed = ", ".join(_with_runs(name, by_name) for name in apps)
        reason = (
            f"{listed} exchange {counted(files, 'file')} ({least}{format_bytes(read)} read after another "
            f"wrote them). Run apps that exchange files on {where}, so the files can stay there."
        )
        gather = sorted(_gatherers(edges, by_name), key=apps.index)
        if gather and fits:
            reason += (
                f" {', '.join(gather)} read{'s' if len(gather) == 1 else ''} what many runs wrote: only steps before "
                "can be spread over nodes."
            )
        if profile.job.nodes is None:
            reason += " How many nodes the job has is not known; on one, no change is needed."
        reason += (
            " The gain depends on the clients' caches and is not known; BB002 gives the further gain of storage of "
            "the node."
        )
        launcher = launcher_name(profile, system)
        positions = [
            (number, edge)
            for number, edge in enumerate(profile.workflow.app_dependencies or ())
            if edge in edges
        ]
        evidence = [
            figure
            for number, edge in positions[:SHOWN]
            for figure in figures(edge, f"workflow.app_dependencies[{number}]", "producer", "consumer", "bytes_read")
        ]
        return Finding(
            target=Target("job"),
            reason=reason,
            # Readers and writers are known only by app, not by instance, and the trace does not have their nodes.
            confidence=0.6 if profile.job.nodes is not None else 0.4,
            touched_s=_touched(apps, profile),
            recommended={"apps": list(apps), "placement": "same_node" if fits else "same_nodes"},
            current={"placement": None},
            evidence=evidence + known_figures(profile, "", "job.nodes"),
            apply=_lines(apps, ranks, launcher_of(launcher), cores if not fits else None)
            if launcher is not None or profile.job.nodes is not None
            else comment("no scheduler is known: start these steps where the files of the step before are"),
        )


def _with_runs(name: str, by_name: Mapping[str, App]) -> str:
    app = by_name.get(name)
    return name if app is None or app.instances < 2 else f"{name} ({app.instances} runs)"


def _read(edges: Sequence[AppDependency]) -> int:
    """Bytes read over all edges. Unknown bytes count as 0."""
    return sum(edge.bytes_read or 0 for edge in edges)


def _all_known(edges: Sequence[AppDependency]) -> bool:
    return all(edge.bytes_read is not None for edge in edges)


def _groups(edges: Sequence[AppDependency]) -> list[list[AppDependency]]:
    """Edges by connected component of apps, the one with most bytes first."""
    import networkx as nx  # noqa: PLC0415 - the catalogue is imported without it

    graph: nx.Graph[str] = nx.Graph()
    graph.add_edges_from((edge.producer, edge.consumer) for edge in edges)
    groups = [[edge for edge in edges if edge.producer in apps] for apps in nx.connected_components(graph)]
    return sorted(groups, key=lambda group: (-_read(group), group[0].producer))


def _in_order(edges: Sequence[AppDependency], profile: Profile) -> list[str]:
    """Apps by start time, or, if that is unknown, producers before consumers, in profile order."""
    import networkx as nx  # noqa: PLC0415

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((edge.producer, edge.consumer) for edge in edges)
    apps = list(graph.nodes)
    if nx.is_directed_acyclic_graph(graph):
        apps = list(nx.lexicographical_topological_sort(graph, key=apps.index))
    begun: dict[str, float] = {}
    for phase in profile.phases or ():
        begun[phase.app] = min(phase.start_s, begun.get(phase.app, math.inf))
    return sorted(apps, key=begun.__getitem__) if begun.keys() >= set(apps) else apps


def _gatherers(edges: Sequence[AppDependency], by_name: Mapping[str, App]) -> list[str]:
    """Apps with one process that read the output of several runs of another app."""
    evidence = [
        edge.consumer
        for edge in edges
        if (producer := by_name.get(edge.producer)) is not None
        and (consumer := by_name.get(edge.consumer)) is not None
        and producer.instances > 1
        and consumer.processes == 1
    ]
    return list(dict.fromkeys(evidence))


def _ranks(app: App | None) -> int:
    """Number of processes per instance."""
    return max(1, round(app.processes / max(1, app.instances))) if app is not None else 1


def _touched(apps: Sequence[str], profile: Profile) -> float:
    """Time in which any of the apps reads, without writes, which remain."""

    reading = sum(seconds(app.io.busy_s.read) for app in profile.apps if app.name in apps)
    return min(reading, seconds(profile.workflow.io.busy_s.total))


def _lines(apps: Sequence[str], ranks: dict[str, int], launcher: Launcher, cores: int | None) -> list[str]:
    if cores is None:
        lines = comment("a chain of steps that exchange files, in a separate script, as one step on one node:")
        lines += comment(f"chain.sh runs {', '.join(apps)} one after another")
        return [*lines, launcher.chain.format(app="sh chain.sh")]
    nodes = -(-max(ranks.values()) // cores)
    lines = comment("the same nodes and the same order of ranks for each:")
    for name in apps:
        word = shlex.quote(name) if name.isprintable() else "PROGRAM"
        each = -(-ranks[name] // nodes)
        lines.append(launcher.wide.format(nodes=nodes, ranks=ranks[name], each=each, app=word))
    return lines
