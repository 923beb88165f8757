"""The seconds of a run that a part of its I/O costs: some files, one direction, or one kind of call.

For each part, a profile has the time in which any process is busy with it (`busy_s`) and the sum over processes
(`time_s`). Neither is the time that the run waits: if eight processes read their own files one after another, both
are eight times as long as each process's. The run waits for its slowest process. The time that this process spends on
the part is estimated as the larger of

    its share, if it does the same as the others:     slowest * time(part) / time(all)
    the mean over the processes that use the part:    time(part) / users

but at most busy(part) and its own I/O time. A file that a single process uses costs that process's time.
Instances of an app may run one after another, so for an app with several the estimate is the busy time.

Writes end in the node's memory unless the program flushes, and a flush waits until the bytes are on
the targets. Settings that change how fast they get there, such as a layout, act on `write_synced`, which is both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from vani.errors import InputError

if TYPE_CHECKING:
    from vani.schema.profile import App, ByKind, FileEntity, IOStats, Profile

Kind = Literal["read", "write", "write_synced", "metadata", "total"]
"""A kind of call. `write_synced` is writing and flushing, as in `bandwidth.write_synced`."""


def of_files_s(files: Sequence[FileEntity], profile: Profile, kind: Kind) -> float:
    """Seconds of the run that I/O on files costs. The files may belong to different apps, or to several at once."""
    return sum(files_s(app_files, app, kind) for app, app_files in _by_app(files, profile))


def files_s(files: Sequence[FileEntity], app: App | None, kind: Kind) -> float:
    """Seconds of the run that an app's I/O on files costs. `app` is None if unknown."""
    return cost_s([file.io for file in files], sum(file.processes for file in files), app, kind)


def cost_s(parts: Sequence[IOStats], users: int, app: App | None, kind: Kind) -> float:
    """Seconds of the run that parts of an app's I/O by `users` processes cost."""
    busy = _busy_s(parts, app, kind)
    if app is None:
        return busy
    slowest = app.balance.slowest_io_time_s if app.balance is not None else None
    if app.instances > 1 or slowest is None:
        return busy
    time, whole = sum(seconds_of(io.time_s, kind) for io in parts), seconds_of(app.io.time_s, "total")
    share = slowest * min(1.0, time / whole) if whole else 0.0
    mean = time / max(1, min(users, app.processes))
    return min(busy, slowest, max(share, mean))


def of_profile_s(profile: Profile, kind: Kind) -> float:
    """Seconds of the run that the I/O of all apps costs."""
    costs = sum(cost_s([app.io], app.processes, app, kind) for app in profile.apps)
    return min(costs, seconds_of(profile.workflow.io.busy_s, kind))


def app_share(app: App, kind: Kind) -> float:
    """Cost to the run, 0..1, of a second in which any process of an app is in such a call."""
    busy = seconds_of(app.io.busy_s, kind)
    return cost_s([app.io], app.processes, app, kind) / busy if busy else 1.0


def files_share(files: Sequence[FileEntity], profile: Profile) -> float:
    """Cost to the run, 0..1, of a second in which any process is in a call on these files."""
    by_app = list(_by_app(files, profile))
    busy = sum(_busy_s([file.io for file in app_files], app, "total") for app, app_files in by_app)
    return sum(files_s(app_files, app, "total") for app, app_files in by_app) / busy if busy else 1.0


def seconds(value: float | None) -> float:
    """A time from a profile that has times.

    Raises
    ------
    InputError
        The time is null, which contradicts the profile's run time.
    """
    if value is None:
        raise InputError("a time is null in a profile that has a run time", todo="make the profile again")
    return value


def seconds_of(times: ByKind, kind: Kind) -> float:
    """Seconds of a kind of call; 0 if null, because rules get profiles with times."""
    if kind == "write_synced":
        # The total counts simultaneous writes and flushes once.
        return min((times.write or 0.0) + (times.sync or 0.0), times.total or 0.0)
    return float(getattr(times, kind) or 0.0)


def _by_app(files: Sequence[FileEntity], profile: Profile) -> Iterator[tuple[App | None, list[FileEntity]]]:
    apps = {app.name: app for app in profile.apps}
    by_app: defaultdict[str, list[FileEntity]] = defaultdict(list)
    for file in files:
        # I/O on a file of several apps cannot be attributed to one of them.
        by_app[file.apps[0] if len(file.apps) == 1 else ""].append(file)
    for name, app_files in by_app.items():
        yield apps.get(name), app_files


def _busy_s(parts: Sequence[IOStats], app: App | None, kind: Kind) -> float:
    """Time in which any process is in such a call: the sum over the parts, at most the app's own busy time."""
    busy = sum(seconds_of(io.busy_s, kind) for io in parts)
    return busy if app is None else min(busy, seconds_of(app.io.busy_s, kind))
