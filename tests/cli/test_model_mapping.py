"""`vani model predict --mapping`: the location of a job's nodes, read from a file of the site."""

from __future__ import annotations

import re

import pytest

TITAN = ("model", "predict", "--system", "titan", "-m", 8, "-K", "500MB", "-W", 4)
CETUS = ("model", "predict", "--system", "cetus", "-m", 8, "-K", "500MB")


@pytest.fixture
def titan(desk):
    rows = [f"nid{n:03},r{n // 32}" for n in range(128)]
    (desk / "map.csv").write_text("# Titan\nnode,router\n" + "\n".join(rows) + "\n")
    return "map.csv"


def test_mapped_nodes_have_one_time_with_the_interval_of_table_vi(run, titan):
    done = run(*TITAN, "--mapping", titan)
    assert (done.status, done.err) == (0, "")
    # 1.7826 + 0.174 - 0.04 + 2.91e-4 * 32 * 4000 + ...: by hand 40.9 s; 284 of 288 within 20 %.
    assert done.out.startswith(
        "128 nodes x 8 processes x 500 MB, 4 stripes per file: 40.9 s (34.1 s to 51.1 s)"
    )
    assert "mapped: 4 routers, at most 32 nodes each: 40.9 s" in done.out
    assert "98.6 % of the converged writes in the paper's test took 0.83 to 1.25 times" in done.out


def test_job_has_some_of_the_mapped_nodes(run, titan):
    done = run(*TITAN, "--mapping", titan, "--job-nodes", "nid[000-031,040]")
    assert done.out.startswith("33 nodes x")
    assert "mapped: 2 routers, at most 32 nodes each" in done.out


def test_packed_and_spread_enclose_the_mapped_value(run, titan):
    ends = run(*TITAN, "-n", 128).out
    assert "packed: 2 routers" in ends
    assert "2 min 12 s" in ends.splitlines()[0]
    assert "3.49 s" in ends.splitlines()[0]


def test_each_kind_of_component_of_cetus_is_a_column(run, desk):
    rows = [f"n{n},io{n // 64},b{n // 32},l{n // 16}" for n in range(64)]
    (desk / "map.csv").write_text("node,io_node,bridge,link\n" + "\n".join(rows) + "\n")
    done = run(*CETUS, "--mapping", "map.csv")
    assert (
        "at most 64 nodes each; 2 bridges, at most 32 nodes each; 4 links, at most 16" in done.out
    )


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            ("--job-nodes", "nid[126-131]"),
            "map.csv: has no node nid128, nid129, nid130 and 1 more; add a row for each node",
        ),
        (
            ("-n", 5),
            "map.csv: names 128 nodes where the job has 5; name the job's nodes with --job-nodes",
        ),
        (
            ("-n", 5, "--job-nodes", "nid[001-004]"),
            "--job-nodes: names 4 nodes where the job has 5; leave -n out",
        ),
        (("--job-nodes", "nid[5-"), None),
    ],
)
def test_unmapped_nodes_are_refused_in_one_line(run, titan, more, line):
    done = run(*TITAN, "--mapping", titan, *more)
    assert done.status == 2
    assert done.out == ""
    assert line is None or done.line == line
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "map.csv: has no column 'node'; start it with the names of the columns"),
        ("node,bridge\n", "map.csv: has no column 'router'; start it with the names of the columns"),
        ("node,router,node\n", "map.csv: column 'node' appears twice; leave one out"),
        ("node,router\n", "map.csv: maps no node; add a row for each node"),
        ("node,router\na,r\na,s\n", "map.csv:3: node a appears twice; leave one out"),
        ("# x\nnode,router\na,\n", "map.csv:3: has an empty cell; fill it in or leave the row out"),
        ("node,router\na\n", "map.csv:2: 1 cells where there are 2 columns; complete it, and quote cells with commas"),
    ],
)  # fmt: skip
def test_a_damaged_map_is_refused_by_its_line(run, desk, text, line):
    (desk / "map.csv").write_text(text)
    done = run(*TITAN, "--mapping", "map.csv")
    assert (done.status, done.line, done.out) == (2, line, "")


def test_job_nodes_need_an_existing_map(run, desk):
    assert run(*TITAN, "-n", 3, "--job-nodes", "n[1-3]").line == (
        "--job-nodes: needs a mapping; give --mapping FILE as well"
    )
    assert run(*TITAN, "--mapping", "none.csv").line == "none.csv: no such file; name a CSV file"


def fitted_to_titan(desk):
    """A model with the features of Titan, fitted to generated writes."""
    pytest.importorskip("scipy")
    pytest.importorskip("sklearn")
    from tests.history.write_time_machines import SMALL, TITAN, generated  # noqa: PLC0415
    from vani import centre  # noqa: PLC0415

    samples, _ = generated(TITAN, "bottleneck", SMALL, 40, 1)
    rows = [",".join([*samples.numbers, "seconds"])]
    rows += [
        ",".join(map(repr, map(float, row)))
        for row in zip(*samples.numbers.values(), samples.seconds, strict=True)
    ]
    (desk / "s.csv").write_text("\n".join(rows) + "\n")
    (desk / "m.yaml").write_text(centre.model_fit("s.csv", system="titan", method="bottleneck").to_yaml())


def test_fitted_model_of_a_machine_predicts_mapped_nodes_or_both_ends(run, desk, titan):
    fitted_to_titan(desk)
    asked = (
        "model", "predict", "--model", "m.yaml", "--set", "processes_per_node=8", "--set", "bytes_per_process=500MB",
        "--set", "stripe_count=4",
    )  # fmt: skip
    mapped = run(*asked, "--mapping", titan)
    assert (mapped.status, mapped.err) == (0, "")
    assert "s_r 32, n_r 4: " in mapped.out
    ends = run(*asked, "--set", "nodes=256")
    assert ends.out.splitlines()[-1] == (
        "Note: the placement of the job's nodes is not known: the range is from packed to spread."
    )
    first = ends.out.splitlines()[0]
    assert re.search(r"bytes_per_process 500 MB, stripe_count 4: [45]\.\d+ s to 2 min ", first), first
    told = run(*asked, "--set", "nodes=128", "--set", "s_r=32", "--set", "n_r=4")
    assert told.out == mapped.out
    done = run(*asked, "--mapping", titan, "--job-nodes", "nid[127-128]")
    assert (done.status, done.line) == (2, "map.csv: has no node nid128; add a row for each node")
    assert run(*asked).line == "--set: no value of 'nodes'; give --set nodes=..."
    assert (
        run(*asked, "--job-nodes", "nid1").line == "--job-nodes: needs a mapping; give --mapping FILE as well"
    )
