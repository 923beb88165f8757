"""`vani model design`: which writes are measured, the script that measures them, and what that saves."""

from __future__ import annotations

import csv
import os
import subprocess

import numpy as np
import pytest

pytest.importorskip("scipy")

from tests.history.write_time_machines import DrawnMachine, designed_writes, random_writes
from vani import centre
from vani.centre.write_time.choice import judge
from vani.centre.write_time.design import script_of
from vani.errors import InputError

IOR = r"""#!/bin/bash
count=$(cat "$COUNT" 2> /dev/null || echo 0); echo $((count + 1)) > "$COUNT"
echo "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter"
[ "$STEADY" ] && total=12.5 || total=$((10 + 30 * (count % 2)))
echo "write     100        1024       1024       0.1        9.0        0.2        $total   0"
echo "write     100        100        100        0.0        100        1"
"""


@pytest.mark.parametrize("system", ["titan", "cetus", "frontier-orion"])
def test_design_keeps_within_its_budget_at_the_four_largest_scales(system):
    design = centre.model_design(system=system, node_hours=300)
    assert sorted(design.limit_s) == [16, 32, 64, 128]
    assert 200 < design.node_hours <= 300
    counts = np.unique(design.nodes, return_counts=True)[1]
    assert len(set(counts.tolist())) == 1
    assert design.stripes.any() == (system != "cetus")


def test_design_is_drawn_again_from_its_seed():
    one, other, again = (centre.model_design(system="titan", node_hours=200, seed=seed) for seed in (1, 2, 1))
    assert script_of(one) == script_of(again) != script_of(other)


def test_machine_without_a_rate_of_writes_is_refused(tmp_path):
    (tmp_path / "ours.yaml").write_text("schema: vani.system/2\nname: ours\nfile_systems: [{name: a, type: nfs}]\n")
    with pytest.raises(InputError, match="no rate of writes is known of ours"):
        centre.model_design(system=str(tmp_path / "ours.yaml"), node_hours=100)


def test_budget_that_a_refusal_names_suffices():
    with pytest.raises(InputError) as refused:
        centre.model_design(system="titan", node_hours=1)
    enough = int(refused.value.todo.split()[1])
    assert len(centre.model_design(system="titan", node_hours=enough).nodes) == 16
    with pytest.raises(InputError):
        centre.model_design(system="titan", node_hours=enough - 1)


@pytest.mark.parametrize(("steady", "runs"), [("1", 3), ("", 9)])
def test_script_repeats_each_write_until_its_mean_has_converged(tmp_path, steady, runs):
    for name, text in (("mpirun", IOR), ("lfs", "#!/bin/bash\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    design = centre.model_design(system="titan", node_hours=100, folder=str(tmp_path / "a b"))
    (tmp_path / "writes.sh").write_text(script_of(design))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "COUNT": str(tmp_path / "count"), "STEADY": steady}
    for nodes in design.limit_s:
        subprocess.run(["bash", "writes.sh", str(nodes)], cwd=tmp_path, env=environment, check=True)
    rows = list(csv.DictReader((tmp_path / "writes.csv").read_text().splitlines()))
    assert len(rows) == runs * len(design.nodes)
    assert {float(row["seconds"]) for row in rows} == ({12.5} if steady else {10.0, 40.0})
    first = rows[0]
    assert float(first["bytes"]) == design.per_node[0] * design.nodes[0] * design.megabytes[0] * 2**20
    assert int(first["stripe_count"]) == design.stripes[0]
    assert not (tmp_path / "a b").exists() or not any((tmp_path / "a b").iterdir())


def test_script_refuses_nodes_that_were_not_designed(tmp_path):
    script = script_of(centre.model_design(system="titan", node_hours=100))
    command = ["bash", "-c", script, "writes.sh", "3"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "no writes on 3 nodes are designed\n")


@pytest.mark.slow
def test_designed_writes_need_a_tenth_of_the_node_hours_on_laws_that_chose_nothing():
    # The design was chosen on machines whose stages add up, or where the slowest limits.
    errors, node_hours = {}, {}
    for law in ("p-norm", "contended"):
        for system in ("titan", "cetus"):
            for seed in range(400, 405):
                machine = DrawnMachine(system, law, seed)
                test = machine.tested()
                for name, writes in (
                    ("random", random_writes(np.random.default_rng(seed))),
                    ("designed", designed_writes(system, np.random.default_rng(seed))),
                ):
                    train = machine.measured(writes, 240, seed)
                    scale = train.numbers["n"]
                    errors.setdefault(name, []).append(
                        [judge(method, train, scale, test).error for method in ("stage_sum", "bottleneck")]
                    )
                    node_hours[name] = node_hours.get(name, 0.0) + float((scale * train.seconds).sum())
    of_random, of_designed = (np.exp(np.log(np.array(errors[name])).mean()) for name in ("random", "designed"))
    # Runs decide the error, whichever way they are drawn; they differ by a quarter from draw to draw.
    assert of_designed < 1.25 * of_random, (of_designed, of_random)
    assert node_hours["designed"] < node_hours["random"] / 10, node_hours
