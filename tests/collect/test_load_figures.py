"""A snapshot from the output of Lustre's servers and clients."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from vani.centre import plan_snapshot
from vani.errors import InputError

FIGURES = Path(__file__).resolve().parents[2] / "examples" / "plan" / "figures"
CLIENT, OSS1, OSS2 = FIGURES / "client.txt", FIGURES / "oss1.txt", FIGURES / "oss2.prom"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def written(tmp_path, text, name="figures.txt") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_lfs_df_gives_sizes_and_degraded_or_missing_osts():
    found = plan_snapshot([CLIENT], time=NOON)
    assert [(one.index, one.size, one.state) for one in found.ost] == [
        (0, 1 << 40, "ok"),
        (1, 1 << 40, "ok"),
        (2, 1 << 40, "ok"),
        (3, 1 << 40, "degraded"),
    ]
    # Reserved space cannot be written, and counts as used.
    assert found.ost[0].used == (1073741824 - 697932185) * 1024
    assert found.no_data[0].name == "OST 4"
    assert "does not answer" in found.no_data[0].reason


def test_network_address_replaces_an_unknown_server_name():
    assert {one.oss for one in plan_snapshot([CLIENT], time=NOON).ost} == {"10.0.0.11@o2ib", "10.0.0.12@o2ib"}
    named = plan_snapshot([f"oss1={OSS1}", f"oss2={OSS2}", CLIENT], time=NOON)
    assert [one.oss for one in named.ost] == ["oss1", "oss1", "oss2", "oss2"]


def test_loads_of_servers_are_shares_of_processors_and_memory():
    found = plan_snapshot([f"oss1={OSS1}", f"oss2={OSS2}"], time=NOON)
    one, other = found.oss
    assert (one.cpu, one.memory) == (pytest.approx(0.4), pytest.approx(0.3))
    assert other.cpu == pytest.approx(0.2)


def test_missing_figure_is_not_zero():
    found = plan_snapshot([f"oss2={OSS2}"], time=NOON)
    assert found.oss[0].memory is None
    assert [(one.name, one.reason) for one in found.no_data] == [("oss2", "has no load figure of its memory")]


def test_a_page_of_prometheus_for_several_servers_names_them(tmp_path):
    lines = []
    for number, host in enumerate(("a:9169", "b:9169")):
        label = f'component="ost",instance="{host}",target="fs-OST000{number}"'
        lines += [
            f"lustre_capacity_kibibytes{{{label}}} 1000",
            f"lustre_available_kibibytes{{{label}}} {400 + number}",
            f'node_load1{{instance="{host}"}} 1',
            f'node_cpu_seconds_total{{cpu="0",instance="{host}",mode="idle"}} 7',
        ]
    found = plan_snapshot([written(tmp_path, "\n".join(lines))], time=NOON)
    assert [(one.oss, one.used) for one in found.ost] == [("a", 600 * 1024), ("b", 599 * 1024)]
    assert [(one.name, one.cpu) for one in found.oss] == [("a", 1.0), ("b", 1.0)]


def test_the_metadata_server_is_known_by_its_targets(tmp_path):
    mds = written(
        tmp_path,
        "mdt.fs-MDT0000.job_stats=job_stats:\n0.5 0.4 0.3 1/99 12\nprocessor : 0\n"
        "MemTotal: 1000 kB\nMemAvailable: 250 kB\n",
    )
    found = plan_snapshot([f"mds0={mds}", f"oss1={OSS1}"], time=NOON)
    assert (found.mds.cpu, found.mds.memory) == (0.5, 0.75)
    assert [one.name for one in found.oss] == ["oss1"]


def test_disconnected_import_is_offline(tmp_path):
    text = (
        "osc.fs-OST0000-osc-ff.kbytestotal=1000\nosc.fs-OST0000-osc-ff.kbytesavail=10\n"
        "osc.fs-OST0000-osc-ff.import=\nimport:\n    name: fs-OST0000-osc-ff\n    state: DISCONN\n"
        '    connection:\n       current_connection: "10.0.0.5@tcp"\n'
    )
    only = plan_snapshot([written(tmp_path, text)], time=NOON).ost[0]
    assert (only.state, only.oss) == ("offline", "10.0.0.5@tcp")


def test_a_snapshot_is_as_old_as_its_oldest_file(tmp_path):
    old, new = (written(tmp_path, CLIENT.read_text(), name) for name in ("old.txt", "new.txt"))
    os.utime(old, (1_700_000_000, 1_700_000_000))
    assert plan_snapshot([old, new]).time == datetime.fromtimestamp(1_700_000_000, tz=UTC)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing of use\n", "has no figures for a snapshot"),
        ("fs-OST0000_UUID 9.3G 1.2G 8.1G 12% /fs[OST:0]\n", "run `lfs df` without -h"),
        (")-OST0000_UUID 9 1 8 12% /fs[OST:0]\n", "has no figures for a snapshot"),
        ("0.20 0.18 0.12 1/80 11206\n", "without its name"),
        (
            "obdfilter.a-OST0000.kbytestotal=9\nobdfilter.b-OST0000.kbytestotal=9\n",
            "choose one with --file-system NAME",
        ),
        (
            "obdfilter.a-OST0000.kbytestotal=9\nobdfilter.a-OST0000.kbytesavail=10\n",
            "has 10,240 of 9,216 bytes left",
        ),
    ],
)
def test_unreadable_input_is_refused_in_one_line(tmp_path, text, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        plan_snapshot([written(tmp_path, text)], time=NOON)


def test_one_of_several_file_systems_can_be_chosen(tmp_path):
    text = "".join(
        f"obdfilter.{name}-OST0000.kbytestotal=9\nobdfilter.{name}-OST0000.kbytesavail={number}\n"
        for number, name in enumerate("ab")
    )
    path = written(tmp_path, text)
    assert plan_snapshot([path], time=NOON, file_system="b").ost[0].used == 8 * 1024
    with pytest.raises(InputError, match="no OST of 'c' was found"):
        plan_snapshot([path], time=NOON, file_system="c")


def test_names_that_no_script_can_contain_are_refused(tmp_path):
    with pytest.raises(InputError, match="without quotes"):
        plan_snapshot([f"a'b={OSS1}"], time=NOON)


def test_invalid_text_and_numbers_are_harmless(tmp_path):
    path = tmp_path / "raw"
    path.write_bytes(
        b"\xff\xfe\0lustre_capacity_kilobytes\n"
        b'lustre_capacity_kilobytes{target="fs-OST0000"} NaN\n'
        b'lustre_capacity_kilobytes{target="fs-OST0001"} -5\n'
        b'lustre_capacity_kilobytes{target="fs-OST0002"} 1e300\n'
    )
    found = plan_snapshot([path], time=NOON)
    assert found.ost == []
    assert [one.name for one in found.no_data] == ["OST 0", "OST 1", "OST 2"]
