"""The limits of a run of IO500, IOR or mdtest, and the settings that act on them.

There is no profile for rules to judge here. A recommendation has the id of the rule that explains its setting. Typical
results come from IO500 submissions, where each is one run with its own easy and hard phases.
"""


import posixpath
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from vani.advisors.catalogue import find
from vani.advisors.commands import comment, quoted_path
from vani.advisors.mpiio import cb_nodes, hint_lines
from vani.models.stripe_count import LUSTRE_MAX_STRIPES
from vani.schema import advice
from vani.schema.benchmark import Benchmark, BenchmarkPhase
from vani.schema.system import FileSystem, System
from vani.units import counted, format_number, format_rate, format_share

SUBMISSIONS: Final = "374 public submissions"
"""Number of IO500 submissions (before 2023) behind `TYPICAL`, in words."""

# The 10, 25, 50, 75 and 90 % quantiles over submissions (github.com/IO500/submission-data, f610b347).
TYPICAL: Final[Mapping[str, tuple[str, tuple[float, ...]]]] = {
    "ior-hard-write": ("ior-easy-write", (0.0054, 0.028, 0.082, 0.38, 0.88)),
    "ior-hard-read": ("ior-easy-read", (0.034, 0.11, 0.30, 0.54, 0.89)),
    "mdtest-hard-write": ("mdtest-easy-write", (0.037, 0.11, 0.23, 0.48, 0.81)),
    "mdtest-hard-stat": ("mdtest-easy-stat", (0.064, 0.17, 0.57, 0.96, 1.1)),
    "mdtest-hard-delete": ("mdtest-easy-delete", (0.028, 0.12, 0.30, 0.73, 1.0)),
    "mdtest-hard-read": ("mdtest-hard-stat", (0.22, 0.31, 0.56, 0.81, 1.1)),
    "ior-easy-read": ("ior-easy-write", (0.56, 0.83, 1.1, 1.4, 2.2)),
    "find": ("mdtest-easy-stat", (0.21, 0.47, 1.4, 3.5, 9.0)),
}
_LOW10, _LOW25, _MEDIAN, _TOP10 = 0, 1, 2, 4
_IN_SCORE: Final = {"bytes/s": 4, "operations/s": 8}
"""Number of phases whose geometric mean is one half of the score."""
_SHOWN: Final = 3
# Least share of a peak at which the network or the servers are busy, as IOR reaches it (our choice).
_BUSY: Final = 0.7
# Least share of a phase that is worth a sentence (our choice).
_OPENING: Final = 0.25
_SHOWS: Final = 1.01
_ONE_RUN: Final = "its gain is unknown until a run measures it"


def compared(result: Benchmark, system: System | None = None) -> Benchmark:
    """The result with its phases' rates per target and relative to each other, and what limited the run."""
    rates = {phase.name: phase.rate for phase in result.phases}
    disk = _disk(result, system)
    fastest: dict[str, BenchmarkPhase] = {}
    for phase in result.phases:
        kind = _what(phase)
        fastest[kind] = max(fastest.get(kind, phase), phase, key=lambda entry: entry.rate)
    phases = []
    for phase in result.phases:
        other, typical = TYPICAL.get(phase.name, (None, ())) if result.tool == "io500" else (None, ())
        if result.tool != "io500":
            best = fastest[_what(phase)]
            other = best.name if best is not phase else None
        share = phase.rate / rates[other] if other is not None and rates.get(other) else None
        at_median = None
        if share and typical and result.score and share < typical[_MEDIAN]:
            at_median = (typical[_MEDIAN] / share) ** (1 / (2 * _IN_SCORE[phase.unit]))
        targets = (disk.targets if phase.unit == "bytes/s" else disk.metadata_targets) if disk is not None else None
        phases.append(
            phase.model_copy(
                update={
                    "other": other if share is not None else None,
                    "share": share,
                    "typical": list(typical) or None,
                    "score_at_median": at_median,
                    "per_target": phase.rate / targets if targets else None,
                }
            )
        )
    judged = result.model_copy(update={"phases": phases})
    return judged.model_copy(update={"limits": [*_limits(judged, system, disk)]})


def judge_benchmark(
    result: Benchmark, system: System | None, *, ref: advice.ProfileRef, system_ref: advice.SystemRef
) -> advice.Advice:
    """Advice on a result: what limited the run, and the settings that act on it."""
    judged = compared(result, system)
    answers = [*_settings(judged, _disk(judged, system))]
    recommendations = [answer for answer in answers if isinstance(answer, advice.Recommendation)]
    order = ("high", "medium", "low")
    return advice.Advice(
        profile=ref,
        system=system_ref,
        benchmark=judged,
        recommendations=sorted(recommendations, key=lambda entry: order.index(entry.severity)),
        no_recommendation=[answer for answer in answers if isinstance(answer, advice.NoRecommendation)],
    )


def operations(rate: float) -> str:
    """Format a rate of operations: `1,230 operations/s`."""
    return f"{rate:,.0f} operations/s" if rate >= 100 else f"{format_number(rate)} operations/s"


def _what(phase: BenchmarkPhase) -> str:
    """Words for the operation of a phase, such as `write` or `file creation`."""
    return phase.name.partition(" ")[2]


def _rate(phase: BenchmarkPhase, rate: float | None = None) -> str:
    value = phase.rate if rate is None else rate
    return format_rate(value) if phase.unit == "bytes/s" else operations(value)


def _disk(result: Benchmark, system: System | None) -> FileSystem | None:
    """The file system of the benchmark's folder, or the first one of a generic machine, which has no mounts."""
    if system is None:
        return None
    if system.generic and system.file_systems:
        return system.file_systems[0]
    return system.file_system_for(result.folder) if result.folder and posixpath.isabs(result.folder) else None


def _limits(result: Benchmark, system: System | None, disk: FileSystem | None) -> Iterator[str]:
    by_name = {phase.name: phase for phase in result.phases}
    low = [p for p in result.phases if p.share is not None and p.typical and p.share < p.typical[_MEDIAN]]
    # Without a score, sort by the distance below the median.
    low.sort(key=lambda p: -(p.score_at_median or (p.typical or [0, 0, 0])[_MEDIAN] / (p.share or 1.0)))
    for phase in low[:_SHOWN]:
        yield _below(phase, by_name[phase.other or phase.name])
    if result.tool == "io500" and not low and any(phase.share is not None for phase in result.phases):
        yield f"No phase is further below its counterpart than in half of {SUBMISSIONS} to IO500."
    if result.tool != "io500":
        for phase in sorted((p for p in result.phases if p.share is not None), key=lambda p: p.share or 0.0)[:_SHOWN]:
            yield f"{phase.name} reaches {format_share(phase.share)} of {phase.other}: {_rate(phase)}, {_each(phase)}."
    for phase in result.phases:
        if _what(phase).startswith("file "):
            yield f"{phase.name}: {_rate(phase)}, {_each(phase)}."
    for direction in ("write", "read"):
        easy = by_name.get(f"ior-easy-{direction}") or max(
            (p for p in result.phases if p.unit == "bytes/s" and p.name.endswith(f" {direction}")),
            key=lambda p: p.rate,
            default=None,
        )
        if easy is not None:
            yield from _of_machine(easy, direction, system, disk)
    read = by_name.get("ior-easy-read")
    if read is not None and read.share and read.typical and read.share > read.typical[_TOP10]:
        yield (
            f"ior-easy-read is {format_number(read.share, 2)} times as fast as ior-easy-write, more than in nine "
            f"of ten of {SUBMISSIONS} to IO500: caches may have answered it."
        )
    for phase in result.phases:
        if (phase.opening_share or 0.0) >= _OPENING:
            yield f"In {phase.name}, {format_share(phase.opening_share)} of the time pass until all files are open."
    if not result.valid:
        yield (
            "IO500 calls the run invalid: where phases are shorter than its 300 s, caches may have answered them, and "
            "none of these figures applies to a longer run."
        )


def _below(phase: BenchmarkPhase, other: BenchmarkPhase) -> str:
    typical = phase.typical or []
    more = "half"
    if (phase.share or 0.0) < typical[_LOW10]:
        more = "90 %"
    elif (phase.share or 0.0) < typical[_LOW25]:
        more = "75 %"
    text = (
        f"{phase.name} reaches {format_share(phase.share)} of {other.name} ({_rate(phase)} of {_rate(other)}; "
        f"{_each(phase)}). Of {SUBMISSIONS} to IO500, {more} reach more, and half reach "
        f"{format_share(typical[_MEDIAN])}"
    )
    if (phase.score_at_median or 0.0) >= _SHOWS:
        text += f", which would make the score {phase.score_at_median:.2f} times as high"
    return text + "."


def _each(phase: BenchmarkPhase) -> str:
    """A phase's rate per node, process and target, for those whose number is known."""
    per_node = phase.per_node if phase.nodes != 1 else None
    parts = (("node", per_node), ("process", phase.per_process), ("target", phase.per_target))
    known = [f"{_rate(phase, rate)} per {what}" for what, rate in parts if rate is not None]
    return ", ".join(known) or "by an unknown number of processes"


def _of_machine(
    phase: BenchmarkPhase, direction: str, system: System | None, disk: FileSystem | None
) -> Iterator[str]:
    """Sentences on the share of the network's and the servers' bandwidth that a phase without contention reaches."""
    network = system.network.bandwidth_per_node if system is not None else None
    peak = None
    if disk is not None:
        per_target, whole = getattr(disk.bandwidth_per_target, direction), getattr(disk.max_bandwidth, direction)
        peak = whole or (per_target * disk.targets if per_target and disk.targets else None)
    shares = [
        (phase.per_node / network, "of what a node's network gives", "more nodes reach more")
        if network and phase.per_node
        else None,
        (phase.rate / peak, "of what the file system gives", "its servers are the limit") if peak else None,
    ]
    known = [share for share in shares if share is not None]
    each = f"{phase.name} reaches {_rate(phase)}, {_each(phase)}"
    if not known:
        yield f"{each}. Network and servers to compare it with are not known: --system NAME describes them."
        return
    words = " and ".join(f"{format_share(share)} {what}" for share, what, _ in known)
    over = [what for share, what, _ in known if share > 1]
    busy = [conclusion for share, _, conclusion in known if _BUSY <= share <= 1]
    if over:
        conclusion = "the description is too low, or a cache answered"
    else:
        idle = "neither is busy: more processes on a node, larger transfers or more targets may help"
        conclusion = busy[-1] if busy else idle
    yield f"{each}: {words}; {conclusion}."


class _Setting(NamedTuple):
    """A setting that acts on a phase: the reason, the present and the recommended values, and the lines that set it."""

    reason: str
    current: dict[str, object]
    recommended: dict[str, object]
    apply: list[str]


def _settings(result: Benchmark, disk: FileSystem | None) -> Iterator[advice.Recommendation | advice.NoRecommendation]:
    if result.tool != "io500":
        return
    by_name = {phase.name: phase for phase in result.phases}
    hard = _low(by_name, "ior-hard-write", "ior-hard-read")
    create = _low(by_name, "mdtest-hard-write", "mdtest-hard-delete")
    small = _low(by_name, "mdtest-hard-read", "mdtest-hard-write")
    for rule, test, phase, setting_of in (
        ("MIO001", "ior-hard", hard, _collective),
        ("LUS004", "ior-hard", hard, _overstriped),
        ("LUS007", "mdtest-hard", create, _striped_folder),
        ("LUS006", "mdtest-hard", small, _on_metadata_target),
    ):
        if phase is None:
            yield advice.NoRecommendation(rule=rule, why=f"{test} is not below the median of public submissions")
        elif isinstance(setting := setting_of(result, disk), str):
            yield advice.NoRecommendation(rule=rule, why=setting)
        else:
            yield _recommendation(rule, result, phase, setting)


def _low(by_name: Mapping[str, BenchmarkPhase], *names: str) -> BenchmarkPhase | None:
    """The phase that is farthest below the median; None if none is below it."""
    present = [by_name[name] for name in names if name in by_name]
    low = [p for p in present if p.share is not None and p.typical and p.share < p.typical[_MEDIAN]]
    return min(low, key=lambda p: (p.share or 0.0) / (p.typical or [1.0])[_MEDIAN], default=None)


def _collective(result: Benchmark, disk: FileSystem | None) -> _Setting | str:
    if result.collective:
        return "ior-hard calls MPI-IO collectively already"
    hints: dict[str, str | int] = {"romio_cb_write": "enable"}
    if disk is not None and disk.targets and result.processes:
        hints["cb_nodes"] = cb_nodes(result.processes, disk.targets)
    return _Setting(
        "Its records of 47,008 bytes are interleaved with other processes' records in one file. Collective MPI-IO "
        "calls gather them before writing.",
        {"API": result.api, "collective": result.collective},
        {"API": "MPIIO", "collective": True} | hints,
        [*comment("in the ini file:\n[ior-hard]\nAPI = MPIIO\ncollective = TRUE"), *hint_lines(hints)],
    )


def _overstriped(result: Benchmark, disk: FileSystem | None) -> _Setting | str:
    if disk is None or disk.type != "lustre":
        return _not_lustre(disk)
    if not disk.targets:
        return "the number of targets is not known; supply it in --system"
    if disk.overstriping is False:
        return "Lustre is too old here for several objects per target"
    rounds = int(find("LUS004").thresholds()["per_target"])
    count = min(rounds * disk.targets, LUSTRE_MAX_STRIPES, disk.max_stripe_count or LUSTRE_MAX_STRIPES)
    return _Setting(
        f"Records of all processes are in one file on {counted(disk.targets, 'target')}: {count} objects let more of "
        "their locks travel at a time.",
        {"stripe_count": disk.stripe_count},
        {"overstripe_count": count, "stripe_size": 1 << 20},
        _for_folder(result, "ior-hard", f"lfs setstripe -C {count} -S 1M"),
    )


def _striped_folder(result: Benchmark, disk: FileSystem | None) -> _Setting | str:
    if disk is None or disk.type != "lustre":
        return _not_lustre(disk)
    if (disk.metadata_targets or 0) < 2:
        return "there is one metadata target, or their number is not known"
    return _Setting(
        "All processes make their files in one folder, whose names one metadata target keeps: "
        f"{disk.metadata_targets} can share them.",
        {"directory_stripe_count": None},
        {"directory_stripe_count": disk.metadata_targets},
        _for_folder(result, "mdtest-hard", f"lfs mkdir -c {disk.metadata_targets}"),
    )


def _on_metadata_target(result: Benchmark, disk: FileSystem | None) -> _Setting | str:
    if disk is None or disk.type != "lustre":
        return _not_lustre(disk)
    if not disk.dom_size:
        return "the largest Data-on-MDT component is not known, or it is off; supply `dom_size` in --system"
    return _Setting(
        "Its files of 3,901 bytes are on a data target each, which is a trip more than their names cost.",
        {"stripe_count": disk.stripe_count},
        {"layout": "-E 64K -L mdt -E -1 -c 1"},
        _for_folder(result, "mdtest-hard", "lfs setstripe -E 64K -L mdt -E -1 -c 1"),
    )


def _not_lustre(disk: FileSystem | None) -> str:
    if disk is None:
        return "the type of the file system is not known; name the machine with --system"
    return f"the data is on {disk.type}, not on Lustre"


def _for_folder(result: Benchmark, name: str, command: str) -> list[str]:
    quoted = quoted_path(posixpath.join(result.folder or ".", name))
    lines = comment("in the setup of io500.sh, for the folder that this run will use, before anything is in it")
    return [*lines, f"{command} {quoted}"] if quoted else lines


def _recommendation(rule: str, result: Benchmark, phase: BenchmarkPhase, setting: _Setting) -> advice.Recommendation:
    typical = phase.typical or [0.0, 0.0, 0.0]
    share = phase.share or 0.0
    severity: advice.Severity = "high" if share < typical[_LOW10] else "medium" if share < typical[_LOW25] else "low"
    number = [entry.name for entry in result.phases].index(phase.name)
    page = find(rule)
    folder = posixpath.join(result.folder or ".", phase.name.rpartition("-")[0])
    return advice.Recommendation(
        rule=rule,
        name=page.name,
        severity=severity,
        confidence=0.5,
        target=advice.Target(kind="directory", path=folder),
        current=setting.current,  # type: ignore[arg-type]
        recommended=setting.recommended,  # type: ignore[arg-type]
        evidence=[
            advice.Evidence(attribute=f"benchmark.phases[{number}].{name}", value=getattr(phase, name))
            for name in ("name", "rate", "share")
        ],
        reason=f"{phase.name} reaches {format_share(phase.share)} of {phase.other}. {setting.reason}",
        expected=advice.Direction(why_no_number=_ONE_RUN),
        apply=setting.apply,
        source=list(page.sources),
    )
