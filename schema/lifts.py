"""Lift parsed trees from one version of a document to the next (`vani.schema.document.LIFTS`).

The input of a step may be any tree. A step leaves unexpected parts unchanged, and the model then refuses them.
"""

from __future__ import annotations

from typing import Any

Doc = dict[str, Any]


def advice_2(tree: Doc) -> Doc:
    """`vani.advice/1` to `/2`: the verdict, which /1 did not have, stays null."""
    return {**tree, "schema": "vani.advice/2"}


def profile_2(tree: Doc) -> Doc:
    """`vani.profile/1` to `/2`: shares of the run follow one definition.

    What /1 did not measure stays absent and is null: flushing (counted as metadata then), calls by function, kinds
    of metadata operations, time in libraries, folders. `io_time_share` was a mean over processes.
    """
    lifted = {**tree, "schema": "vani.profile/2"}
    apps = [_app_2(app) for app in tree["apps"]] if isinstance(tree.get("apps"), list) else tree.get("apps")
    if "apps" in tree:
        lifted["apps"] = apps
    workflow = tree.get("workflow")
    if isinstance(workflow, dict):
        runtime = workflow.get("runtime_s")
        times = [_at(app, "balance", "slowest_io_time_s") for app in apps] if isinstance(apps, list) else []
        slowest = [time for time in times if isinstance(time, int | float)]
        lifted["workflow"] = workflow | {
            "io_time_share": _share(_at(workflow, "io", "busy_s", "total"), runtime),
            "io_time_share_slowest": _share(max(slowest, default=None), runtime),
        }
    return lifted


def profile_3(tree: Doc) -> Doc:
    """`vani.profile/2` to `/3`: the job's number has the name `id`.

    What /2 did not find stays absent and is null: unseen activity, the verdict, name patterns, mounts, bytes that
    calls of libraries requested.
    """
    lifted = {**tree, "schema": "vani.profile/3"}
    job = tree.get("job")
    if isinstance(job, dict) and "job_id" in job:
        lifted["job"] = {"id" if key == "job_id" else key: value for key, value in job.items()}
    return lifted


def system_2(tree: Doc) -> Doc:
    """`vani.system/1` to `/2`: curves of the forwarding layer state how they were measured.

    The one curve of /1 did not: its conditions are null, and it decides nothing until they are filled in.
    """
    lifted = {**tree, "schema": "vani.system/2"}
    layer = tree.get("forwarding")
    if isinstance(layer, dict) and isinstance(layer.get("curve"), list) and "curves" not in layer:
        points = layer["curve"]
        rest = {key: value for key, value in layer.items() if key != "curve"}
        lifted["forwarding"] = rest | ({"curves": [{"points": points}]} if points else {})
    return lifted


def _app_2(app: object) -> object:
    if not isinstance(app, dict):
        return app
    return app | {"io_time_share": _share(_at(app, "io", "busy_s", "total"), app.get("runtime_s"))}


def _at(tree: object, *path: str) -> object:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _share(part: object, whole: object) -> float | None:
    if not isinstance(part, int | float) or not isinstance(whole, int | float) or not whole > 0:
        return None
    # Rounded to nine digits as in written documents, so that reading and writing keeps values.
    return float(f"{max(0.0, min(1.0, part / whole)):.9g}")
