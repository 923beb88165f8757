"""Workers as batch jobs, through dask-jobqueue."""

from __future__ import annotations

import shlex
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

from vani.engine.batch_system import BATCH_SYSTEMS
from vani.engine.scheduler import BatchJobs
from vani.errors import InputError


def speaks_tls(jobs: BatchJobs) -> bool:
    """Whether scheduler and workers should use TLS with a key created for them.

    They should, unless the option `tls` is false or Dask is configured otherwise, because anyone else who reaches the
    scheduler could make it run code as the user.
    """
    import dask  # noqa: PLC0415 - heavy, and needed for a cluster only

    configured = dask.config.get(f"jobqueue.{jobs.system}.scheduler-options", None) or {}
    keys = (
        "distributed.comm.require-encryption",
        "distributed.comm.tls.ca-file",
        "distributed.comm.tls.scheduler.cert",
        f"jobqueue.{jobs.system}.protocol",
        f"jobqueue.{jobs.system}.security",
    )
    own = {"protocol", "security"} & configured.keys() or any(dask.config.get(key, None) for key in keys)
    return bool(jobs.parsed.get("tls", True)) and not own


def open_jobs(jobs: BatchJobs, *, keys: Path | None = None) -> Any:
    """Start a scheduler in this process and submit jobs whose workers connect to it.

    Parameters
    ----------
    keys
        A folder with the TLS key and certificate, which jobs see under the same path and other users cannot read; it
        exists as long as the jobs run. With None, Dask's configuration determines how they communicate.

    Returns
    -------
    dask_jobqueue.JobQueueCluster
        `close()` cancels the jobs.

    Raises
    ------
    InputError
        dask-jobqueue or the batch system's commands are missing, or the batch system refuses the job.
    """
    options: dict[str, Any] = dict(jobs.parsed)
    command = BATCH_SYSTEMS[jobs.system].submit
    if shutil.which(command) is None:
        raise InputError(
            f"no {command} on the PATH",
            where=f"--cluster {jobs.system}",
            todo="run this where jobs are submitted, such as a login node",
        )
    import dask  # noqa: PLC0415 - heavy, and needed for a cluster only

    try:
        import dask_jobqueue  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError(
            f"--cluster needs dask-jobqueue ({error})", todo="pip install 'vani-io[cluster]'"
        ) from error
    for needed in ("cores", "memory"):
        if options.get(needed) is None and dask.config.get(f"jobqueue.{jobs.system}.{needed}", None) is None:
            raise InputError(
                f"the {needed} of a job: neither given nor configured",
                where=f"--cluster {jobs.system}",
                todo="try --cluster-option cores=8 --cluster-option memory=16GB",
            )
    own = {
        name.removeprefix("scheduler_"): options.pop(name)
        for name in ("scheduler_host", "scheduler_port")
        if name in options
    }
    configured = dask.config.get(f"jobqueue.{jobs.system}.scheduler-options", None) or {}
    options.pop("tls", None)
    if keys is not None:
        options["security"] = _new_key(jobs.system, keys)
    # Any free port, because two runs on one login node would compete for Dask's default port.
    options["scheduler_options"] = {"dashboard_address": ":0", **configured, **own}
    try:
        with warnings.catch_warnings():
            # Warnings about a dashboard that cannot be shown, and about names in the user's configuration.
            warnings.simplefilter("ignore")
            kind = getattr(dask_jobqueue, BATCH_SYSTEMS[jobs.system].cluster)
            answers: list[str | None] = []
            cluster = kind(job_cls=_reporting(kind.job_cls, answers), **options)
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        raise InputError(
            f"no cluster can be started ({_last_line(str(error))})",
            where=f"--cluster {jobs.system}",
            todo="correct the options",
        ) from error
    try:
        if jobs.workers is None:
            cluster.scale(jobs=1)
        else:
            cluster.scale(jobs.workers)
        while len(answers) < len(cluster.worker_spec):
            time.sleep(0.02)
        for refusal in filter(None, answers):
            raise InputError(
                f"{command} refuses the job ({refusal})",
                where=f"--cluster {jobs.system}",
                todo="correct the options, or Dask's jobqueue.yaml",
            )
    except BaseException:
        cluster.close()
        raise
    return cluster


def _new_key(system: str, folder: Path) -> Any:
    """A key and a certificate for one run, in files, because a job script names them.

    Raises
    ------
    InputError
        `cryptography` is missing, or no job script can name the folder.
    """
    from distributed.security import Security  # noqa: PLC0415 - heavy

    leave = "or use --cluster-option tls=false, which lets anyone who reaches the scheduler run code as you"
    if shlex.quote(str(folder)) != str(folder):
        # dask-jobqueue writes the path into the script without quoting.
        raise InputError(
            "the TLS key would be stored here, but a job script cannot contain this name",
            where=folder,
            todo=f"name another --store, {leave}",
        )
    try:
        security = Security.temporary()
    except ImportError as error:
        raise InputError(
            "its own cluster uses TLS, which needs the package cryptography",
            where=f"--cluster {system}",
            todo=f"pip install 'vani-io[cluster]', {leave}",
        ) from error
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    key.write_text(security.tls_worker_key)
    certificate.write_text(security.tls_worker_cert)
    roles = ("scheduler", "worker", "client")
    return Security(
        require_encryption=True,
        tls_ca_file=str(certificate),
        **{f"tls_{role}_key": str(key) for role in roles},
        **{f"tls_{role}_cert": str(certificate) for role in roles},
    )


def _reporting(job: Any, answers: list[str | None]) -> Any:
    """A job class that reports whether it was submitted; dask-jobqueue only logs refusals."""

    async def start(self: Any) -> None:
        try:
            await job.start(self)
        except (RuntimeError, ValueError, OSError) as error:
            answers.append(_last_line(str(error)))
            # Pretend that it runs, so that the others can be cancelled.
            self.status = Status.running
        else:
            answers.append(None)

    from distributed.core import Status  # noqa: PLC0415 - heavy

    return type(job.__name__, (job,), {"start": start})


def _last_line(text: str) -> str:
    """The last line that a command printed, from dask-jobqueue's report."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if line not in ("stderr:", "stdout:")]
    return said[-1][:300] if said else "no reason given"
