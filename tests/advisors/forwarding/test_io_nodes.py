"""The map that GekkoFWD's clients read."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter

import pytest

from vani.advisors.forwarding.io_nodes import map_lines


@pytest.mark.skipif(shutil.which("awk") is None, reason="there is no awk")
@pytest.mark.parametrize(("nodes", "io_nodes"), [(8, 1), (8, 2), (8, 8), (12, 4)])
def test_the_map_has_equal_blocks(nodes, io_nodes, tmp_path):
    hosts = " ".join(f"n{i}" for i in range(nodes))
    lines = map_lines(f"printf '%s\\n' {hosts}", nodes, io_nodes)
    subprocess.run(["sh", "-euc", "\n".join(lines)], check=True, cwd=tmp_path)
    rows = [line.split() for line in (tmp_path / "gkfs_forwarding.map").read_text().splitlines()]
    assert [row[0] for row in rows] == hosts.split()
    assert Counter(int(row[1]) for row in rows) == dict.fromkeys(range(io_nodes), nodes // io_nodes)
