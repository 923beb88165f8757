"""Where files can be, what fits, and the lines for each kind of tier."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from builders import io_stats, profile, system
from hypothesis import given
from hypothesis import strategies as st

from vani.advisors.burst_buffer.staging_lines import Plan, lines, place, shell_path
from vani.advisors.commands import LAUNCHERS
from vani.advisors.gains import SUPPLY, staging_gain
from vani.models import staging
from vani.models.calibration import ANCHOR, SPREAD
from vani.schema.profile import IOStats
from vani.units import GiB

PATHS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1).map(
    lambda name: f"/data/{name}"
)


def tier(type: str = "tmpfs", kind: str = "node_local", **more) -> staging.Tier:
    settings = {"dir": "/dev/shm", "uses_memory": False, "capacity": None, "read": None, "write": None} | more
    return staging.Tier(name="tier", kind=kind, type=type, **settings)


def plan(**more) -> Plan:
    settings = {"name": "in", "folders": ("/data/in",), "total": 8 * GiB, "per_node": 2 * GiB, "nodes": 4}
    return Plan(**(settings | {"launcher_name": "slurm"} | more))


def tiers(a_profile=None, a_system=None, **more):
    return staging.tiers(
        a_profile or profile(), a_system or system(), **({"spare": 0.2, "memory_share": 0.5} | more)
    )


def test_the_job_knows_its_nodes_better_than_the_machine():
    near = {"name": "nvme", "kind": "node_local", "type": "nvme", "dir": "/nvme", "capacity_per_node": 1000}
    machine = system(change={"burst_buffers": [near]})
    assert tiers(a_system=machine)[0].capacity == 800
    told = profile(change={"storage.node_local.capacity_per_node": 500})
    assert tiers(told, machine)[0].capacity == 400
    assert tiers(told, machine)[0].evidence == (("storage.node_local.capacity_per_node", 500),)


@pytest.mark.parametrize(("used", "capacity"), [(0.9, 80), (0.1, 400), (1.0, 0)])
def test_memory_in_use_leaves_less_for_files(used, capacity):
    measured = {"job.memory_per_node": 1000, "middleware.memory_used_share": used}
    assert tiers(profile(change=measured))[0].capacity == pytest.approx(capacity, abs=1)


def test_part_of_the_memory_is_used_by_default():
    told = profile(change={"job.memory_per_node": 1000})
    (found,) = tiers(told)
    assert (found.dir, found.capacity, found.evidence) == ("/dev/shm", 400, (("job.memory_per_node", 1000),))
    (found,) = tiers(profile(change={"job.node_local_bb_dirs": ["/local"]}))
    assert (found.dir, found.capacity, found.uses_memory) == ("/local", None, False)
    assert tiers(profile(change={"job.node_local_bb_dirs": []})) == []


@pytest.mark.parametrize(
    ("type", "in_memory"), [("tmpfs", True), ("ramfs", True), ("rootfs", True), ("ext4", False)]
)
def test_tmp_on_a_ram_disk_is_memory(type, in_memory):
    change = {
        "job.node_local_bb_dirs": ["/tmp"],
        "storage.node_local.dir": "/tmp",
        "storage.node_local.type": type,
    }
    (found,) = tiers(profile(change=change | {"job.memory_per_node": 1000}))
    assert (found.dir, found.type, found.uses_memory) == ("/tmp", type, in_memory)
    # The free size of a disk of unknown size is unknown; half of the memory is assumed to be free.
    assert found.capacity == (400 if in_memory else None)


def test_described_tmpfs_is_always_memory():
    near = {"name": "shm", "kind": "node_local", "type": "tmpfs", "dir": "/tmp"}
    assert tiers(a_system=system(change={"burst_buffers": [near]}))[0].uses_memory


def test_nearest_tier_with_room_is_chosen():
    small, large = tier(capacity=10), tier("datawarp", "shared", dir=None, capacity=1000)
    assert staging.choose([small, large], total=40, nodes=4, shared=False) is small
    assert staging.choose([small, large], total=41, nodes=4, shared=False) is large
    assert staging.choose([small, large], total=40, nodes=4, shared=True) is large
    assert staging.choose([small], total=10, nodes=1, shared=True) is small
    assert "seen by one node only" in staging.choose([small], total=4, nodes=4, shared=True)
    assert "do not fit" in staging.choose([small], total=41, nodes=4, shared=False)
    assert "no storage nearer" in staging.choose([], total=1, nodes=1, shared=False)


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/dev/shm/a", True),
        ("/tmp/a", True),
        ("/tmp/slow/a", False),
        ("/nvme/a", True),
        ("/local/a", True),
        ("/data/a", False),
    ],
)
def test_near_storage_is_recognised(path, near):
    told = profile(directory="/tmp/slow", file_system="fuse", change={"job.node_local_bb_dirs": ["/local"]})
    assert staging.is_near(path, told, system(node_local="/nvme")) is near


def test_time_on_a_tier_follows_from_rates_and_calls():
    one = tier(read=10.0, write=5.0)
    times = {"read": 100, "written": 50, "operations": 1e6, "nodes": 2, "concurrency": 4.0}
    assert staging.local_s(one, **times) == pytest.approx(5 + 5 + 0.5)
    assert staging.local_s(tier(read=10.0), **times) is None
    assert staging.local_s(tier(read=10.0), **(times | {"written": 0})) == pytest.approx(5.5)
    assert staging.concurrency(IOStats.model_validate(io_stats(time_s=8, busy_s=2))) == 4
    assert tier("datawarp", "shared", read=10.0, most_read=15.0).reads(4) == 15


def test_gain_follows_the_model_if_it_explains_the_trace():
    found = staging_gain("t", 40.0, 50.0, 10.0, "m", generic=False)
    assert (found.before_s, found.after_s) == (40.0, 8.0)
    assert (found.best_s, found.worst_s) == pytest.approx((8 / SPREAD, 8 * SPREAD))
    wider = staging_gain("t", 40.0, 50.0, 10.0, "m", generic=True)
    assert (wider.best_s, wider.worst_s) == pytest.approx((8 / SPREAD / ANCHOR, 8 * SPREAD * ANCHOR))


@pytest.mark.parametrize("expected_s", [26.6, 60.1, 0.0])
def test_no_gain_is_promised_if_the_model_does_not_explain_the_trace(expected_s):
    said = staging_gain("t", 40.0, expected_s, 10.0, "m", generic=False)
    assert said.startswith("the model expects")


def test_no_gain_is_promised_if_a_rate_is_missing():
    assert staging_gain("t", 40.0, None, 10.0, "m", generic=False) == SUPPLY
    assert staging_gain("t", 40.0, 40.0, None, "m", generic=False) == SUPPLY


def test_file_system_is_not_faster_than_the_nodes():
    machine = system(
        max_rate=10.0,
        change={"network": {"bandwidth_per_node": 3.0}, "file_systems[0].metadata_ops_per_s": 4.0},
    )
    given = {"read": 60, "written": 30, "metadata": 8}
    disk = machine.file_systems[0]
    assert staging.present_s(disk, profile(), machine, nodes=1, **given) == pytest.approx(20 + 10 + 2)
    assert staging.present_s(disk, profile(), machine, nodes=4, **given) == pytest.approx(6 + 3 + 2)
    assert staging.present_s(system().file_systems[0], profile(), system(), nodes=1, **given) is None


def test_common_folder():
    assert staging.common_folder(["/a/b/c", "/a/d"]) == "/a"
    assert staging.common_folder(["/a/b", "c"]) == "."
    assert staging.common_folder(["a/b", "c"]) == "."


def test_variables_in_folders_stay_variables():
    assert shell_path("/mnt/bb/$USER/my dir") == "/mnt/bb/\"$USER\"'/my dir'"
    assert shell_path("$DW_JOB_STRIPED/in") == '"$DW_JOB_STRIPED"/in'
    assert shell_path("/a/${USER}") == '/a/"${USER}"'
    assert shell_path("/a/$(rm -rf x)") == "'/a/$(rm -rf x)'"
    assert shell_path("/a\nb") is None


@pytest.mark.parametrize(
    ("type", "kind", "more", "wanted"),
    [
        (
            "datawarp",
            "shared",
            {},
            [
                "#DW jobdw type=scratch capacity=8GiB access_mode=striped",
                "#DW stage_in type=directory source=/data/in destination=$DW_JOB_STRIPED/in",
                '# give the program "$DW_JOB_STRIPED"/in instead of /data/in',
            ],
        ),
        (
            "datawarp",
            "shared",
            {"stage_in": False},
            [
                "#DW jobdw type=scratch capacity=8GiB access_mode=private",
                '# give the program "$DW_JOB_PRIVATE"/in instead of /data/in',
            ],
        ),
        (
            # For xfs, the capacity is that of one compute node.
            "rabbit",
            "shared",
            {"everywhere": True},
            [
                "#DW jobdw type=xfs capacity=2GiB name=vani",
                "#DW copy_in source=/data/in destination=$DW_JOB_vani/in/",
                '# give the program "$DW_JOB_vani"/in instead of /data/in',
            ],
        ),
        (
            "rabbit",
            "shared",
            {"stage_in": False, "stage_out": True, "launcher_name": "flux", "shared": True},
            [
                '#FLUX: -S dw="""',
                "#FLUX: #DW jobdw type=lustre capacity=8GiB name=vani",
                "#FLUX: #DW copy_out source=$DW_JOB_vani/in destination=/data/in",
                '#FLUX: """',
                '# give the program "$DW_JOB_vani"/in instead of /data/in',
            ],
        ),
        (
            "slurm",
            "shared",
            {"stage_in": False},
            [
                '#SBATCH --bb="capacity=8GiB access=private type=scratch"',
                "mkdir -p /dev/shm/in",
                "# give the program /dev/shm/in instead of /data/in",
            ],
        ),
        (
            "slurm_lua",
            "shared",
            {"stage_in": False},
            [
                "#BB_LUA pool=tier capacity=8G",
                "# the site's script defines further options and where the space is mounted",
                "mkdir -p /dev/shm/in",
                "# give the program /dev/shm/in instead of /data/in",
            ],
        ),
        (
            "beeond",
            "shared",
            {"stage_out": True},
            [
                'scontrol show hostnames "$SLURM_JOB_NODELIST" > beeond.nodes',
                "beeond start -n beeond.nodes -d /data/beeond -c /dev/shm -P -F -L /tmp",
                "# -d is a folder on a disk of each node: see the site's documentation",
                "mkdir -p /dev/shm/in",
                "beeond-cp copy -n beeond.nodes /data/in /dev/shm/in",
                "# give the program /dev/shm/in instead of /data/in",
                "beeond-cp copy -n beeond.nodes /dev/shm/in /data/in",
                "beeond stop -n beeond.nodes -L -d",
            ],
        ),
        (
            "unifyfs",
            "shared",
            {"stage_in": False, "dir": "/unifyfs"},
            [
                f"export UNIFYFS_LOGIO_SPILL_SIZE={4 * GiB}",
                "export UNIFYFS_LOGIO_SPILL_DIR=/dev/shm",
                "export UNIFYFS_CLIENT_FSYNC_PERSIST=off",
                "export UNIFYFS_CLEANUP=on",
                "export UNIFYFS_CLIENT_LOCAL_EXTENTS=on",
                "# each rank reads only its own data",
                'unifyfs start --share-dir="$PWD"',
                "# give the program /unifyfs/in instead of /data/in",
                "# a file that another node reads must be laminated (chmod a-w) first",
                "unifyfs terminate",
            ],
        ),
        (
            "gekkofs",
            "shared",
            {"dir": "/gkfs"},
            [
                'export LIBGKFS_HOSTS_FILE="$PWD"/gkfs_hosts.txt',
                'srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 gkfs_daemon -r /dev/shm/gkfs -m /gkfs '
                '-H "$LIBGKFS_HOSTS_FILE" &',
                "LD_PRELOAD=libgkfs_intercept.so cp -R /data/in/. /gkfs/in/",
                "# give the program /gkfs/in instead of /data/in",
                "# start the program with LD_PRELOAD=libgkfs_intercept.so; no rename and no links there",
            ],
        ),
    ],
)
def test_lines_of_each_store(type, kind, more, wanted):
    folder = more.pop("dir", "/dev/shm")
    settings = {"stage_in": True, "launcher_name": "pbs" if type == "rabbit" else "slurm"} | more
    assert lines(tier(type, kind, dir=folder), plan(**settings)) == wanted


def test_path_with_white_space_is_left_out_of_a_directive():
    for type in ("datawarp", "rabbit"):
        made = lines(tier(type, "shared"), plan(folders=("/data/my in",), stage_in=True, launcher_name="slurm"))
        assert "# a path that cannot be written here is left out: type it yourself" in made
        assert not any(line.startswith("#DW") and "my in" in line for line in made)


def test_requests_of_the_machine_come_first():
    assert lines(tier(request=("#SBATCH -C nvme",)), plan())[0] == "#SBATCH -C nvme"


@pytest.mark.parametrize("scheduler", [*LAUNCHERS, None, "other"])
@pytest.mark.parametrize("nodes", [1, 4, None])
@given(folder=PATHS)
@pytest.mark.sampled(10)
def test_lines_are_posix_sh_for_any_path(scheduler, nodes, folder):
    for type in ("tmpfs", "beeond", "unifyfs", "gekkofs", "slurm", "lua"):
        for more in ({"stage_in": True}, {"stage_out": True}, {"everywhere": True, "stage_in": True}, {}):
            made = lines(tier(type), plan(folders=(folder,), nodes=nodes, launcher_name=scheduler, **more))
            assert all(line.isprintable() for line in made)
            assert "\n" not in "".join(made)


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh")
@pytest.mark.parametrize(
    "folder", ["/data/it's", "/data/$(touch x)", "/data/a b;c", "/data/`x`", '/data/"q"']
)
def test_sh_reads_the_lines(folder, tmp_path):
    for type in ("tmpfs", "beeond", "unifyfs", "gekkofs", "slurm"):
        for more in ({"stage_in": True}, {"stage_out": True}, {"nodes": None, "launcher_name": None}):
            text = "\n".join(lines(tier(type), plan(folders=(folder,), **more)))
            done = subprocess.run(
                ["sh", "-n"], input=text, text=True, capture_output=True, cwd=tmp_path, check=False
            )
            assert done.returncode == 0, (text, done.stderr)


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh")
def test_each_process_copies_its_part(tmp_path):
    source, target = tmp_path / "my in", tmp_path / "there"
    for number in range(10):
        path = source / f"sub {number % 2}" / f"file {number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(number))
    made = lines(tier(dir=str(target)), plan(folders=(str(source),), stage_in=True))
    copy = next(line for line in made if "awk" in line)
    fake = tmp_path / "srun"
    fake.write_text('#!/bin/sh\nshift 2\nfor r in 0 1 2; do SLURM_PROCID=$r SLURM_NTASKS=3 "$@"; done\n')
    fake.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NUM_NODES": "1"}
    subprocess.run(["sh", "-euc", copy], check=True, env=env)
    found = sorted(path.read_text() for path in (target / "in").rglob("file*"))
    assert found == [str(number) for number in range(10)]


def test_folders_keep_their_places_below_each_other():
    two = plan(name="run", folders=("/data/run/proj", "/data/run/diff"))
    assert place(tier(), two, "/data/run/proj") == "/dev/shm/run/proj"
    assert place(tier(), plan(), "/data/in") == "/dev/shm/in"
