"""Tarazu's monitoring, an example: reports of servers become a snapshot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from vani.centre.plan.schema.snapshot import Snapshot

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "07-the-papers"))
import monitoring


def test_figures_of_a_silent_server_are_null_and_a_busy_metadata_server_is_noted():
    heard = {
        "oss0": (100.0, {"role": "oss", "cpu": 0.5, "memory": 0.25}),
        "oss1": (900.0, {"role": "oss", "cpu": 0.5, "memory": 0.25}),
        "mds": (900.0, {"role": "mds", "cpu": 0.7, "memory": 0.1}),
    }
    found = monitoring.snapshot_of(heard, ["oss0", "oss2"], now_s=1000.0)
    assert [(server.name, server.cpu) for server in found.oss] == [("oss0", None), ("oss1", 0.5)]
    assert [(gap.name, gap.reason) for gap in found.no_data] == [("oss0", "silent for three intervals"), ("oss2", "never heard")]
    assert found.notes == ["the metadata server uses 70 % of its processors: allot below 70 %"]


def test_collector_writes_what_a_server_reports(tmp_path):
    script, port = str(Path(monitoring.__file__)), "55701"
    collect = [sys.executable, script, "collect", "--once", "--expect", "oss0", "--port", port, "-o", str(tmp_path / "now.yaml")]
    with subprocess.Popen(collect) as collector:
        while collector.poll() is None:
            subprocess.run([sys.executable, script, "report", "--name", "oss0", "--count", "1", "--port", port], check=True, timeout=60)
    (server,) = Snapshot.load(tmp_path / "now.yaml").oss
    assert server.name == "oss0"
    assert 0 <= server.cpu <= 1
    assert json.loads(json.dumps(monitoring.load())).keys() == {"cpu", "memory"}
