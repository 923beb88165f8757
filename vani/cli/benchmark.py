"""Uses IO500, IOR and mdtest results: for advice, to describe a machine, and to compare them with a trace."""

import hashlib
from pathlib import Path
from typing import Final

from vani.advisors.benchmark_result import compared, judge_benchmark, operations
from vani.errors import InputError
from vani.readers.benchmarks import is_result, outputs_of, read_result
from vani.schema.advice import Advice, ProfileRef, SystemRef
from vani.schema.benchmark import Agreement, Benchmark
from vani.schema.document import dumps
from vani.schema.profile import Profile
from vani.schema.settings import PathLike
from vani.schema.syntax import is_document
from vani.schema.system import System
from vani.systems import system_of
from vani.units import format_bytes, format_rate, format_share

_MAX_ENTRIES: Final = 1000
_CHUNK: Final = 1 << 20
_SAME: Final = 0.05
_KINDS: Final = {"file creation": "open", "file stat": "stat", "file removal": "remove"}
"""The mdtest operations, and the kind of metadata operation under which a profile counts each."""


def is_result_alone(path: Path) -> bool:
    """Whether a path is a benchmark result, rather than a document or a trace folder that contains such a text."""
    if path.is_file():
        return not is_document(path) and is_result(path)
    if not path.is_dir() or not is_result(path):
        return False
    from vani.readers.open import format_of  # noqa: PLC0415 - loads Arrow

    return format_of(path, named=True) is None and not any(
        format_of(entry, named=False) for entry in sorted(path.iterdir())[:_MAX_ENTRIES]
    )


def output_in_folder(path: Path) -> Path | None:
    """The IOR or mdtest output in a trace's folder, if there is exactly one."""
    try:
        some = [*outputs_of(path)] if path.is_dir() else []
    except OSError:
        # The trace's reader reports why the folder cannot be listed.
        return None
    return some[0] if len(some) == 1 else None


def benchmark_result(result: PathLike, *, system: PathLike | System | None = None) -> Benchmark:
    """Read IO500, IOR or mdtest results: rates per phase, their ratios, and what limited the run.

    Parameters
    ----------
    result
        An IO500 result folder, a folder with IOR and mdtest output, or one such output file.
    system
        The machine, for rates per target and for the limits of network and servers.

    Raises
    ------
    InputError
        There is no result, or the machine cannot be read.
    """
    return compared(read_result(_result(result)), system_of(system))


def measured_system(result: PathLike | Benchmark, *, system: PathLike | System | None = None) -> System:
    """Describe a machine by the figures that a benchmark measured there, merged into `system`.

    Raises
    ------
    InputError
        The result or the machine cannot be read.
    """
    measured = result if isinstance(result, Benchmark) else read_result(_result(result))
    from vani.collect.system import measured_system as described  # noqa: PLC0415 - loads numpy

    return described(measured, system_of(system))


def advise_result(result: PathLike, *, system: PathLike | System | None = None) -> Advice:
    """Advise on a benchmark's result: what limited it, and settings that act on it.

    Raises
    ------
    InputError
        There is no result, or the machine cannot be read.
    """
    path, machine = Path(result), system_of(system)
    files = [path] if path.is_file() else [*outputs_of(path), *path.glob("result_summary.txt")]
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            while chunk := opened.read(_CHUNK):
                digest.update(chunk)
    ref = SystemRef(
        name=None if machine is None else machine.name,
        sha256="" if machine is None else hashlib.sha256(dumps(machine).encode()).hexdigest(),
    )
    profile = ProfileRef(path=str(path), sha256=digest.hexdigest())
    return judge_benchmark(read_result(path), machine, ref=profile, system_ref=ref)


def with_agreement(advice: Advice, profile: Profile, output: Path) -> Advice:
    """Add to the advice how a traced IOR or mdtest run's own output agrees with its trace.

    Raises
    ------
    InputError
        The output cannot be read, or comes from IO500, which is more than one run.
    """
    result = benchmark_result(output)
    if result.tool == "io500":
        raise InputError("is a result of IO500, not of one run", where=output, todo="name the text of one phase")
    agreement = [*_agreements(result, profile)]
    problems = list(result.problems)
    if (traced := profile.workflow.processes) and result.processes and traced != result.processes:
        problems.append(
            f"{output.name} is of {result.processes} processes, the trace of {traced}: are they from the same run?"
        )
    update = {"agreement": agreement, "problems": problems}
    return advice.model_copy(update={"benchmark": result.model_copy(update=update)})


def _agreements(result: Benchmark, profile: Profile) -> list[Agreement]:
    io, tool = profile.workflow.io, {"ior": "IOR"}.get(result.tool, result.tool)
    agreement = []
    for phase in result.phases:
        what = next((kind for kind in ("write", "read", *_KINDS) if phase.name.endswith(f" {kind}")), None)
        if what in ("write", "read"):
            traced = io.bandwidth.read if what == "read" else io.bandwidth.write_synced or io.bandwidth.write
            moved = io.bytes.read if what == "read" else io.bytes.written
            time = "opening, closing and waiting for the slowest process"
            text = f"{format_rate(traced)}, {format_bytes(moved)} in all"
            own = format_rate(phase.rate)
        elif what is not None and io.metadata_kinds is not None:
            cost = getattr(io.metadata_kinds, _KINDS[what])
            traced = cost.count * profile.workflow.processes / cost.time_s if cost.time_s else None
            time = "other calls and waiting for the slowest process"
            text = f"{operations(traced or 0.0)} of {_KINDS[what]} on {profile.workflow.processes} processes"
            own = operations(phase.rate)
        else:
            continue
        if not traced:
            continue
        share = phase.rate / traced
        sentence = f"{tool} says {own} of {what}, {format_share(share)} of what the calls in the trace reach ({text})"
        if share < 1 - _SAME:
            sentence += f": its time includes {time}, too"
        elif share > 1 + _SAME:
            sentence += ": the trace includes more than this run, or tracing slowed its calls down"
        agreement.append(
            Agreement(what=what or "", benchmark=phase.rate, trace=traced, share=share, sentence=f"{sentence}.")
        )
    return agreement


def _result(path: PathLike) -> Path:
    if not is_result(Path(path)):
        raise InputError(
            "has no result of IO500, IOR or mdtest",
            where=path,
            todo="name the folder with result_summary.txt, or the text that `ior` or `mdtest` printed",
        )
    return Path(path)
