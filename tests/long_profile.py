"""A long profile, for tests of outputs that must stay fast and small."""

from __future__ import annotations

from pathlib import Path

from vani.schema.document import load
from vani.schema.profile import Profile


def long_profile(files: int) -> Profile:
    """A real profile extended to this many files, no two of which have equal times and bytes."""
    profile = load(Path(__file__).parent / "golden" / "v3-cm1like-16r.yaml", Profile)
    model = profile.files[0]
    made = []
    for number in range(files):
        io = model.io
        seconds = 1.0 - number / (2 * files)
        times = io.time_s.model_copy(update={"total": seconds, "write": seconds})
        moved = io.bytes.model_copy(update={"written": number, "total": number})
        io = io.model_copy(update={"time_s": times, "bytes": moved})
        made.append(
            model.model_copy(update={"path": f"/scratch/run/d{number // 1000}/out.{number:06d}", "io": io})
        )
    workflow = profile.workflow
    counts = workflow.files.model_copy(update={"total": files})
    workflow = workflow.model_copy(update={"files": counts})
    return profile.model_copy(update={"files": made, "workflow": workflow})
