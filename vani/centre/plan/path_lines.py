"""Commands that apply a path's settings on forwarding nodes (as Lustre clients) and to folders of new files."""

from __future__ import annotations

import math
import posixpath
import shlex
from typing import TYPE_CHECKING, Final

from vani.units import MiB, lfs_size

if TYPE_CHECKING:
    from vani.centre.plan.path_settings import Settings
    from vani.centre.plan.schema.jobs import PlannedJob

_SLOTS: Final = 8
"""Lustre's default number of requests in flight from a client to each target."""
_MOST_SLOTS: Final = 256


def lines_of(settings: Settings, job: PlannedJob) -> list[str]:
    """Commands and hints. The folder of the job's files replaces DIR if jobs.yaml has it."""
    lines = []
    if settings.split:
        share = settings.split[0].metadata_share
        names = " ".join(part.forwarding for part in settings.split)
        slots = max(1, min(_MOST_SLOTS, round(_SLOTS * share / max(1 - share, 1 / _MOST_SLOTS))))
        lines += [
            f"# On {names}; LWFS takes P = {share:g} from its own server. For a Lustre client, limit requests "
            "in flight:",
            f"lctl set_param mdc.*.max_rpcs_in_flight={slots} osc.*.max_rpcs_in_flight={_SLOTS}",
        ]
    if settings.chunk is not None:
        lines += [
            "# On its forwarding nodes:",
            f"lctl set_param llite.*.max_read_ahead_per_file_mb={max(1, math.ceil(settings.chunk / MiB))}",
        ]
    folder = shlex.quote(posixpath.dirname(job.creations[0].path)) if job.creations else "DIR"
    count = "" if settings.count is None else f" -c {settings.count}"
    size = "" if settings.size is None else f" -S {lfs_size(settings.size)}"
    if settings.dom is not None:
        lines.append(f"lfs setstripe -E {lfs_size(settings.dom)} -L mdt -E -1{count or ' -c 1'}{size} {folder}")
    elif count:
        lines.append(f"lfs setstripe{count}{size} {folder}")
        if settings.size is not None:
            lines.append(f"# or as MPI-IO hints: striping_factor={settings.count} striping_unit={settings.size}")
    return lines
