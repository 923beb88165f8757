"""The loop on a real CephFS: trace, advise, tune, apply, run again, and a sweep of layouts to judge the result.

    python ceph_loop.py [--osds 8] [--rate 16] [--files 3]

Four processes write one file of 64 MiB to a folder whose layout keeps it on one OSD. It needs what `cluster.py` needs,
MPICH, strace, and `vani-io[tune]`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from cluster import Cluster, cephfs, impossible

from vani.schema.tuned import Tuned

HERE = Path(__file__).resolve().parent
ONE_OSD = "stripe_unit=1048576 stripe_count=1 object_size=67108864"
DEFAULT = "stripe_unit=4194304 stripe_count=1 object_size=4194304"
LAYOUTS = (
    ONE_OSD,
    DEFAULT,
    "stripe_unit=2097152 stripe_count=1 object_size=2097152",
    "stripe_unit=1048576 stripe_count=1 object_size=1048576",
    "stripe_unit=1048576 stripe_count=2 object_size=67108864",
    "stripe_unit=1048576 stripe_count=4 object_size=67108864",
    "stripe_unit=1048576 stripe_count=8 object_size=67108864",
    "stripe_unit=65536 stripe_count=8 object_size=67108864",
    "stripe_unit=4194304 stripe_count=8 object_size=67108864",
)
"""Stripe unit, stripe count and object size in bytes."""


def without_programs() -> str:
    """Why the loop cannot run here; empty if it can."""
    missing = [program for program in ("mpicc.mpich", "mpiexec.mpich", "strace") if shutil.which(program) is None]
    return f"not installed: {', '.join(missing)}" if missing else impossible()


def compiled(folder: Path) -> Path:
    program = folder / "shared_file"
    subprocess.run(["mpicc.mpich", "-O2", str(HERE / "shared_file.c"), "-o", str(program)], check=True)
    return program


def command(program: Path, file: str) -> list[str]:
    return ["mpiexec.mpich", "-n", "4", str(program), file]


def folder_with(layout: str, parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    os.setxattr(folder, "ceph.dir.layout", layout.encode())
    return folder


def written_s(program: Path, folder: Path) -> float:
    """Seconds to write a new file in a folder, from the open to the close; the file is removed."""
    file = folder / "again"
    done = subprocess.run(command(program, str(file)), check=True, capture_output=True, text=True)
    file.unlink()
    return float(done.stdout)


def sweep(program: Path, parent: Path, files: int, layouts: Sequence[str] = LAYOUTS) -> dict[str, list[float]]:
    """Seconds for new files of each layout. The layouts take turns, so that all meet the same load of the machine."""
    folders = {layout: folder_with(layout, parent, f"sweep-{n}") for n, layout in enumerate(layouts)}
    seconds: dict[str, list[float]] = {layout: [] for layout in layouts}
    for _ in range(files):
        for layout, folder in folders.items():
            seconds[layout].append(written_s(program, folder))
    for folder in folders.values():
        folder.rmdir()
    return seconds


def vani(cluster: Cluster, desk: Path, *words: str) -> str:
    """The output of a command of Vani that runs in the folder `desk` and finds the cluster's `ceph`."""
    path = f"{cluster.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    line = [sys.executable, "-m", "vani", *words]
    done = subprocess.run(line, cwd=desk, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"vani {words[0]} failed: {done.stderr}")
    return done.stdout


def traced_and_tuned(cluster: Cluster, program: Path, data: Path, desk: Path) -> tuple[str, str]:
    """The advice for a traced run in the folder `data`, and the last lines of `vani tune` there."""
    trace = command(program, str(data / "traced"))
    vani(cluster, desk, "trace", "--tracer", "strace", "-o", "run.trace", "--", *trace)
    (data / "traced").unlink()
    vani(cluster, desk, "advise", "run.trace", "-o", "advice.yaml", "--script", "apply.sh")
    # Nine runs, because a hash places the objects of each new file.
    words = ["tune", "--data", str(data), "--profile", "run.trace", "--time", 'tail -n 1 "$VANI_LOG"', "--budget", "9"]
    screen = vani(cluster, desk, *words, "--", *command(program, "{data}/file"))
    return (desk / "advice.yaml").read_text(), screen


def tuned_layout(desk: Path) -> str:
    """The layout that `vani tune` proved, as in `LAYOUTS`; empty if it proved none."""
    if not (desk / "tuned.yaml").is_file():
        return ""
    tuned = Tuned.load(desk / "tuned.yaml")
    assert tuned.result is not None
    layout = tuned.setting(list(tuned.result.candidates)).layout
    return "" if layout is None else layout.rpartition(" -v ")[2].strip("'")


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune a program on a small CephFS.")
    parser.add_argument("--osds", type=int, default=8)
    parser.add_argument("--rate", type=int, default=16, help="MB/s of each OSD")
    parser.add_argument("--files", type=int, default=3, help="new files for each measured layout")
    words = parser.parse_args()
    if reason := without_programs():
        raise SystemExit(f"there is no CephFS here: {reason}")
    with tempfile.TemporaryDirectory() as name, cephfs(words.osds, words.rate) as cluster:
        desk, program = Path(name), compiled(Path(name))
        data = folder_with(ONE_OSD, cluster.mount, "run")
        before = [written_s(program, data) for _ in range(words.files)]
        _, screen = traced_and_tuned(cluster, program, data, desk)
        print(f"CephFS of {words.osds} OSDs of {words.rate} MB/s, a file on one OSD:\n{screen}")
        if not tuned_layout(desk):
            raise SystemExit("nothing was proven")
        print(vani(cluster, desk, "apply", "tuned.yaml"))
        after = [written_s(program, data) for _ in range(words.files)]
        print(f"before {_range(before)}, after {_range(after)}")
        print(vani(cluster, desk, "apply", "tuned.yaml", "--undo"))
        print("Sweep of layouts, seconds:")
        for layout, seconds in sweep(program, cluster.mount, words.files).items():
            mark = "   proven" if layout == tuned_layout(desk) else ""
            print(f"  {layout:<60} {_range(seconds)}{mark}")


def _range(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"


if __name__ == "__main__":
    main()
