"""BB004: space on a burst buffer that outlives the job, though nothing on it has to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import is_checkpoint
from vani.advisors.rule import Finding, Rule, Target, Verdict, figures
from vani.units import GiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import BurstBuffer, System

# Lines that request space which ends with the job, by type of burst buffer.
LINES = {
    "datawarp": (
        "#DW jobdw type=scratch capacity={capacity}GiB access_mode=striped",
        "# no `#BB create_persistent` and no `#DW persistentdw`; a site that never needs them sets "
        "Flags=DisablePersistent in burst_buffer.conf",
    ),
    "rabbit": (
        "#DW jobdw type=lustre capacity={capacity}GiB name=vani",
        "# no `#DW create_persistent`, and no copy_out of the listed files",
    ),
    "unifyfs": ("export UNIFYFS_CLIENT_FSYNC_PERSIST=off", "export UNIFYFS_CLEANUP=on"),
    "slurm": ('#SBATCH --bb="capacity={capacity}GiB access=striped type=scratch"',),
}
LINES["nnf"] = LINES["rabbit"]


class PersistenceOff(Rule):
    """Files on a burst buffer need not survive the run, but its space may be persistent.

    Looks at
        The run's output: files that it removes, or that one app hands on to another, compared with results and
        checkpoints; whether the machine has a burst buffer with persistent space (DataWarp, Rabbit, UnifyFS, a Slurm
        burst buffer).
    Why
        Persistence costs copies to where data survives, space that others wait for, and clean-up by hand.
    Recommends
        Space that ends with the job (DataWarp: `type=scratch` instead of a persistent reservation; UnifyFS: no persist
        at fsync) for these files. Copy out only the results.
    Stays silent when
        The machine has no such burst buffer; the run writes nothing, or less than `min_share` of what it
        writes is intermediate or temporary; the bytes are not known.
    Source
        Vani paper, section IV-D: "DisablePersistent" of DataWarp if nothing must survive. Slurm burst-buffer guide;
        UnifyFS documentation.
    Example
        Montage writes 25 GB of intermediate files and a mosaic of 5 MB: `#DW jobdw type=scratch`, and only the mosaic
        is staged out.
    """

    id = "BB004"
    settles = "persistence"
    sources = ("Vani paper, section IV-D", "Slurm burst-buffer guide", "UnifyFS documentation")

    # If results are the larger part, most of the data has to be copied out anyway. Montage: 95 % and more.
    min_share = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:
        buffer = _persistent(system)
        if buffer is None:
            return "the machine has no burst buffer whose space can outlive a job"
        index, near, key = buffer
        written = [(i, f) for i, f in enumerate(profile.files) if f.writers > 0 or f.role == "temporary"]
        if not written:
            return "the run writes no files"
        passing = [(i, f) for i, f in written if _need_not_survive(f)]
        if not passing:
            return "all that the run writes are results or checkpoints, which must survive"
        sizes = [_size(f) for _, f in written]
        if all(size is None for size in sizes):
            return "files[].size of the output is not known; supply a trace with sizes"
        total = sum(size or 0 for size in sizes)
        inner = sum(_size(f) or 0 for _, f in passing)
        share = inner / total if total else 1.0
        if share < self.min_share:
            return f"{format_share(1 - share)} of the output are results, which must survive"
        results = [(i, f) for i, f in written if not _need_not_survive(f)]
        capacity = max(1, -(-inner // GiB))
        order = sorted(passing, key=lambda pair: -(_size(pair[1]) or 0))
        evidence = figures(near, f"system.burst_buffers[{index}]", "type")
        for number, file in order[:5]:
            evidence += figures(file, f"files[{number}]", "path", "role")
        lines = [line.format(capacity=capacity) for line in LINES[key]]
        keep = comment(
            f"copy out the {format_count(len(results))} results alone: "
            + ", ".join(file.path for _, file in results[:5])
            + (", ..." if len(results) > 5 else "")
        )
        return [
            Finding(
                target=Target("job"),
                reason=(
                    f"{format_count(len(passing))} of {format_count(len(written))} files that the run writes "
                    f"({format_bytes(inner)}, {format_share(share)}) {'is' if len(passing) == 1 else 'are'} "
                    f"read or removed within the run and need not survive it: "
                    f"request space of {near.name} that ends with the job. The gain is not known: "
                    "measure both, or ask the site what persistence costs there."
                ),
                confidence=0.7,
                touched_s=0.0,
                recommended={"persistence": False, "type": "scratch", "copy_out": len(results)},
                current={"persistence": None},
                evidence=evidence,
                apply=lines + (keep if results else []),
                # A trial cannot show what a run loses with its node.
                settings=(),
                files=frozenset(file.path for _, file in passing),
            )
        ]


def _need_not_survive(file: FileEntity) -> bool:
    """True if the file is removed or passed on to another app. An app may keep results and states that it rereads."""
    handed_on = file.role == "intermediate" and len(file.apps) > 1
    return (handed_on or file.role == "temporary") and not is_checkpoint(file.path)


def _persistent(system: System) -> tuple[int, BurstBuffer, str] | None:
    for index, near in enumerate(system.burst_buffers):
        for key in LINES:
            if key in near.type.lower():
                return index, near, key
    return None


def _size(file: FileEntity) -> int | None:
    return max((n for n in (file.size, file.io.footprint.written) if n is not None), default=None)
