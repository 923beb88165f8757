"""Designs the samples of a write-time model: which writes to measure on a machine with a budget of node-hours.

The sampling of Xie et al. (IPDPS 2019, section IV-A) is semi-random: scales and processes per node are fixed in
advance, and the burst size and the stripe count are drawn from ranges (tables III and IV). A write is repeated until
its mean is within a tenth of the true one, or nine times. The paper needed 3,465 (Titan) and 4,715 (Cetus) converged
samples on 1 to 128 nodes, and its best models used those on 16 or 32 to 128. A design takes the four largest scales,
and only writes whose expected time, from the machine's description, is useful.
"""

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

import vani
from vani.advisors.commands import launcher_of
from vani.centre.columns import Floats, Ints
from vani.centre.write_time.samples import CONFIDENCE, error_allowed
from vani.errors import InputError
from vani.schema.settings import Option, Settings
from vani.schema.system import FileSystem, System
from vani.systems import load_system
from vani.units import MiB

BURSTS: Final = (
    (1, 5), (6, 25), (25, 100), (101, 250), (251, 500), (501, 1024), (1025, 2560), (2561, 5120), (5121, 7680),
    (7681, 10240),
)  # fmt: skip
"""Ranges of bytes per process, in megabytes (tables III and IV)."""
STRIPES: Final = ((1, 4), (5, 8), (9, 16), (17, 32), (33, 64))
"""Ranges of the stripe count (table IV)."""
REPETITIONS: Final = 9
"""A write that has not converged after this many runs is given up, as in the paper."""
_LEAST_RUNS: Final = 3
_PLANNED_RUNS: Final = 5
"""Runs per pattern for which the budget is planned; our choice, between the least and the most."""
_USEFUL_S: Final = (5.0, 300.0)
"""Below the paper's 5 s, caches decide the time. Longer writes cost more and show nothing else (our choice)."""
_START_S: Final = 5.0
"""Node time around each run, for the launcher (our choice)."""
_DRAWS: Final = 20
_CORES: Final = 16
"""Cores of a node if unknown, as on the paper's machines."""
_SCALES: Final = 4
"""The paper's best models (table V) were fitted to writes on 16 or 32 to 128 nodes."""
LEAST_EACH: Final = 4
"""Fewest patterns of a scale; with fewer, a scale that is left out says little (our choice)."""
_MOST_EACH: Final = 660
"""Most samples of a scale in the paper."""


class DesignSettings(Settings):
    """The machine and the budget of a design."""

    system: Annotated[str, Option(metavar="NAME|FILE")] = Field(
        description="The machine: a bundled name, or a system.yaml."
    )
    node_hours: Annotated[float, Field(gt=0, le=1e7), Option(metavar="H")] = Field(description="Budget in node-hours.")
    up_to: Annotated[int, Field(ge=2, le=65_536), Option(metavar="NODES")] = Field(
        128, description="Largest number of nodes to measure; models predict up to four times as many."
    )
    folder: Annotated[str, Option(metavar="DIR")] = Field(
        "vani-writes", description="Folder for the written files, on the file system to measure."
    )
    seed: int = Field(0, ge=0, description="Seed of what is drawn.")


@dataclass(frozen=True)
class Design:
    """Writes to measure, in the order of their runs at each scale.

    Parameters
    ----------
    nodes, per_node, megabytes, stripes
        Shape (patterns,): the paper's n, m, K and W; `stripes` is 0 where files have no stripe count.
    limit_s
        Seconds that a job may take, by number of nodes. Together they are within the budget.
    """

    system: System
    settings: DesignSettings
    nodes: Ints
    per_node: Ints
    megabytes: Floats
    stripes: Ints
    limit_s: dict[int, float]

    @property
    def node_hours(self) -> float:
        """Node-hours that the jobs take at most."""
        return sum(nodes * seconds for nodes, seconds in self.limit_s.items()) / 3600


def model_design(settings: DesignSettings | None = None, /, **fields: Any) -> Design:
    """Design the samples of a model for a machine.

    Raises
    ------
    InputError
        The machine is unknown, its description has no rate of writes, or the budget is too small for a model.
    """
    wanted = DesignSettings.of(settings, **fields)
    system = load_system(wanted.system)
    disk = next((disk for disk in system.file_systems if _costs(system, disk, 1, 1)), None)
    if disk is None:
        raise InputError(
            f"no rate of writes is known of {system.name}", where="--system",
            todo="give bandwidth_per_client, bandwidth_per_target or max_bandwidth in its system.yaml",
        )  # fmt: skip
    most = min(wanted.up_to, system.compute.nodes or wanted.up_to)
    scales = [2**power for power in range(most.bit_length())][-_SCALES:]
    draw = np.random.default_rng(wanted.seed)
    drawn = {nodes: patterns(system, disk, nodes, draw) for nodes in scales}
    rounds: list[list[Pattern]] = []
    spent = 0.0
    while len(rounds) < _MOST_EACH:
        rounds.append([next(drawn[nodes]) for nodes in scales])
        cost = sum(nodes * _planned(pattern) for nodes, pattern in zip(scales, rounds[-1], strict=True)) / 3600
        if len(rounds) > LEAST_EACH and spent + cost > wanted.node_hours:
            rounds.pop()
            break
        spent += cost
    if spent > wanted.node_hours:
        raise InputError(
            f"{wanted.node_hours:g} node-hours are too few for {LEAST_EACH} writes at each of {len(scales)} scales, "
            "and with fewer no model can be judged",
            where="--node-hours", todo=f"give {math.ceil(spent)} or more, or a smaller --up-to",
        )  # fmt: skip
    chosen = dict(zip(scales, zip(*rounds, strict=True), strict=True))
    rows = [(nodes, *pattern) for nodes, several in chosen.items() for pattern in several]
    nodes, per_node, megabytes, stripes, _ = (np.array(column) for column in zip(*rows, strict=True))
    limits = {nodes: sum(map(_planned, several)) for nodes, several in chosen.items()}
    return Design(system, wanted, nodes, per_node, megabytes, stripes, limits)


Pattern = tuple[int, float, int, float]
"""Processes per node, megabytes per process, stripe count, and expected seconds."""


def patterns(system: System, disk: FileSystem, nodes: int, draw: np.random.Generator) -> Iterator[Pattern]:
    """Draw writes with a useful expected time; if none is drawn, take the one that is nearest to it."""
    cores = (system.compute.cores_per_node or _CORES).bit_length()
    while True:
        yield min((_drawn(system, disk, nodes, cores, draw) for _ in range(_DRAWS)), key=_off)


def _planned(pattern: Pattern) -> float:
    """Seconds of a write with all its runs."""
    return _PLANNED_RUNS * (pattern[-1] + _START_S)


def _drawn(system: System, disk: FileSystem, nodes: int, cores: int, draw: np.random.Generator) -> Pattern:
    (low, high), (least, most) = BURSTS[draw.integers(len(BURSTS))], STRIPES[draw.integers(len(STRIPES))]
    per_node, size = 2 ** int(draw.integers(cores)), float(draw.integers(low, high + 1))
    stripes = min(int(draw.integers(least, most + 1)), disk.targets or most)
    rates = _costs(system, disk, nodes, stripes * nodes * per_node)
    return per_node, size, stripes if disk.type == "lustre" else 0, per_node * size * 1e6 * max(rates)


def _off(pattern: Pattern) -> float:
    """Factor by which the expected time is outside of the useful ones; 1 within them."""
    return max(_USEFUL_S[0] / pattern[-1], pattern[-1] / _USEFUL_S[1], 1.0)


def _costs(system: System, disk: FileSystem, nodes: int, objects: int) -> list[float]:
    """Seconds per byte of each node in each stage whose rate is known."""
    targets = min(disk.targets or objects, objects)
    layer = system.forwarding
    stages: list[tuple[float | None, float]] = [
        (disk.bandwidth_per_client.write, 1.0), (system.network.bandwidth_per_node, 1.0),
        (disk.max_bandwidth.write, nodes), (disk.bandwidth_per_target.write, nodes / targets),
    ]
    if layer is not None and layer.compute_nodes_per_io_node:
        behind = math.ceil(nodes / layer.compute_nodes_per_io_node)
        stages.append((layer.bandwidth_per_io_node, nodes / behind))
    return [share / rate for rate, share in stages if rate]


_SUBMIT: Final = {
    "slurm": "sbatch --nodes={n} --time={m} --wrap 'bash {script} {n}'",
    "pbs": "qsub -l select={n} -l walltime={s} -- /bin/bash \"$PWD/{script}\" {n}",
    "lsf": "bsub -nnodes {n} -W {m} bash {script} {n}",
    "flux": "flux batch -N {n} -t {m}m --wrap bash {script} {n}",
}
_BY_SCALE: Final = """\
{n}) limit_s={limit} patterns='
{patterns}
' ;;"""
_SCRIPT: Final = r"""#!/bin/bash
# {patterns} writes for a model of {system}, by `vani model design` of Vani {version} (seed {seed}).
# At most {hours:.1f} node-hours of the budget of {budget:g}. Start it once at each scale, in a job of that many nodes:
#
{submit}
#
# Each write is repeated until its mean time has converged, {least} to {most} times. Then: vani model fit writes.csv
set -u
nodes=${{1:?give the number of nodes}} folder={folder} results=${{2:-writes.csv}}
case $nodes in
{scales}
*) echo "no writes on $nodes nodes are designed" >&2; exit 2 ;;
esac
[ -e "$results" ] || echo nodes,processes,bytes,{stripe_title}seconds > "$results"
for pattern in $patterns; do
    IFS=: read -r each size stripes <<< "$pattern"
    place=$folder/$nodes-$each-$size-$stripes times=
    for run in {runs}; do
        [ "$SECONDS" -lt "$limit_s" ] || {{ echo "the budget of $nodes nodes is used up" >&2; exit 0; }}
        mkdir -p "$place"{setstripe} || exit 1
        seconds=$({launch} ior -w -e -F -t 1m -b "${{size}}m" -o "$place/file" | awk '
            $1 == "access" {{ for (n = 1; n <= NF; n++) if ($n == "total(s)") total = n }}
            $1 == "write" && total && !seen++ {{ print $total }}')
        rm -rf "$place"
        [ -n "$seconds" ] || {{ echo "IOR printed no time for $pattern on $nodes nodes" >&2; break; }}
        echo "$nodes,$((nodes * each)),$((nodes * each * size * {MiB})),{stripe_cell}$seconds" >> "$results"
        times="$times $seconds"
        echo "$times" | awk '{{ for (n = 1; n <= NF; n++) {{ sum += $n; squares += $n * $n }}
            mean = sum / NF; if (NF < {least}) exit 1; spread = (squares / NF - mean * mean) / (NF - 1)
            exit !(spread <= ({allowed:.6f} * mean) ^ 2) }}' && break
    done
done
exit 0
"""


def script_of(design: Design, name: str = "writes.sh") -> str:
    """A shell script that measures the writes with IOR: in jobs of each scale, up to the time of its part."""
    system, settings = design.system, design.settings
    submit = _SUBMIT.get((system.launcher or system.scheduler or "").lower(), "bash {script} {n}")
    striped = bool(design.stripes.any())
    scales = []
    for nodes in design.limit_s:
        there = np.flatnonzero(design.nodes == nodes)
        patterns = [f"{design.per_node[n]}:{design.megabytes[n]:.0f}:{design.stripes[n]}" for n in there]
        words = {"n": nodes, "limit": math.floor(design.limit_s[nodes]), "patterns": _wrapped(patterns)}
        scales.append(_BY_SCALE.format(**words))
    lines = []
    for nodes, seconds in design.limit_s.items():
        # The job ends itself; its limit leaves time for the last run.
        minutes = math.ceil((seconds + 2 * _USEFUL_S[1]) / 60)
        clock = f"{minutes // 60:02d}:{minutes % 60:02d}:00"
        lines.append("#   " + submit.format(n=nodes, m=minutes, s=clock, script=shlex.quote(name)))
    return _SCRIPT.format(
        patterns=len(design.nodes), system=system.name, version=vani.__version__, seed=settings.seed,
        hours=design.node_hours, budget=settings.node_hours, submit="\n".join(lines), least=_LEAST_RUNS,
        most=REPETITIONS, folder=shlex.quote(settings.folder), scales="\n".join(scales),
        stripe_title="stripe_count," if striped else "", stripe_cell="$stripes," if striped else "",
        runs=" ".join(map(str, range(1, REPETITIONS + 1))), MiB=MiB, allowed=error_allowed(CONFIDENCE),
        setstripe=' && lfs setstripe -c "$stripes" -S 1M "$place"' if striped else "",
        launch=launcher_of(system.launcher or system.scheduler).command.replace("{n}", "$each"),
    )  # fmt: skip


def _wrapped(words: Sequence[str], each: int = 10) -> str:
    return "\n".join(" ".join(words[at : at + each]) for at in range(0, len(words), each))
