"""`vani model fit`, `evaluate` and `predict --model` from a user's view."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from vani import centre
from vani.centre.write_time.schema import WriteModel

WRITES = Path(__file__).resolve().parents[2] / "examples" / "model" / "oprael-writes.csv"
ASKED = ("--set", "nodes=8", "--set", "processes=128", "--set", "bytes=64GiB", "--set", "stripe_count=8")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.yaml"
    path.write_text(centre.model_fit(WRITES, scale="bytes").to_yaml())
    return path


@pytest.mark.slow
def test_large_writes_are_predicted_from_small_ones(run):
    done = run("model", "evaluate", WRITES, "--scale", "bytes", "--up-to", "8GiB")
    assert (done.status, done.err) == (0, "")
    rows = [line for line in done.out.splitlines() if line.endswith("%")]
    whole = {line.split()[0]: int(line.rsplit("/", 1)[1].split()[0]) for line in rows}
    assert whole["relative_lasso"] >= 97
    assert whole["mean"] < 20 < whole["log_linear"] < 80


@pytest.mark.slow
def test_model_predicts_from_its_own_columns(run, fitted):
    done = run("model", "predict", "--model", fitted, *ASKED)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("nodes 8, processes 128, bytes 68.7 GB, stripe_count 8: ")
    done = run("model", "predict", "--model", fitted, *ASKED[:-1], "stripe_count=80")
    assert done.out.startswith("Outside of the model: stripe_count 80: the samples had 1 to 32.")
    done = run("model", "predict", "--model", fitted, *ASKED[:-3], "bytes=1TiB", *ASKED[-2:])
    assert done.out.startswith("Outside of the model: bytes")


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            ("--set", "colour=1"),
            "--set: the model has no column 'colour'; it has nodes, processes, bytes, stripe_count",
        ),
        (("-n", "3"), "-n: is for published models; give --set COLUMN=VALUE"),
        (("--system", "titan"), "name a model; give --model FILE or --system NAME"),
    ],
)
@pytest.mark.sampled(1)
def test_questions_outside_the_model_are_refused(run, fitted, more, line):
    done = run("model", "predict", "--model", fitted, *ASKED, *more)
    assert (done.status, done.line) == (2, line)


def test_missing_or_invalid_value_is_named(run, fitted):
    done = run("model", "predict", "--model", fitted, *ASKED[:-2])
    assert (done.status, done.line) == (2, "--set: no value of 'stripe_count'; give --set stripe_count=...")
    done = run("model", "predict", "--model", fitted, *ASKED[:-1], "stripe_count=-1")
    assert done.status == 2


def test_hand_edited_model_runs_no_code_and_is_refused(run, fitted, desk):
    model = WriteModel.load(fitted)
    for number, parameters in enumerate(
        [{}, {"coefficients": "os.system('true')", "intercept": 1}, {"intercept": "x"}]
    ):
        path = desk / f"{number}.yaml"
        path.write_text(model.model_copy(update={"method": "lasso", "parameters": parameters}).to_yaml())
        done = run("model", "predict", "--model", path.name, *ASKED)
        assert (done.status, "its parameters do not match lasso" in done.line) == (2, True)
    path.write_text(model.model_copy(update={"method": "magic"}).to_yaml())
    assert run("model", "predict", "--model", path.name, *ASKED).status == 2


HEAD = "nodes,bytes,seconds\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "is empty"),
        (HEAD, "has no samples"),
        ("nodes,bytes\n1,2\n", "neither a column `seconds`"),
        ("nodes,nodes,seconds\n1,1,1\n", "column 'nodes' appears twice"),
        (HEAD + "1,2\n", "s.csv:2: 2 cells where there are 3 columns"),
        (HEAD + "1,,3\n", "s.csv:2: no bytes"),
        (HEAD + "1,nan,3\n", "s.csv:2: bytes is nan"),
        (HEAD + "1,-5,3\n", "s.csv:2: bytes is -5"),
        (HEAD + "1,5,0\n", "s.csv:2: a seconds of 0"),
        (HEAD + "one,5,1\n", "nodes is 'one'"),
        (HEAD + "1,5,1\n" * 20, "1 samples"),
        (HEAD + "".join(f"4,{n},1\n" for n in range(1, 20)), "all samples are of one scale"),
        (",bytes,seconds\n1,2,3\n", "has a column without a name"),
        ("nodes,bytes,seconds,bandwidth\n1,2,3,4\n", "has two times of writes, 'seconds' and as 'bandwidth'"),
        (HEAD + "1,5,1e-300\n", "s.csv:2: a write of 1e-300 s"),
        (HEAD + "1,5,1e30\n", "s.csv:2: a write of 1e+30 s"),
        ("IOR-4.0.0: MPI Coordinated Test of Parallel I/O\n", "ends before its results: it is cut off"),
        ('{"tests": [{}]}', "is not IOR's JSON (KeyError"),
    ],
)
def test_unusable_samples_are_refused_and_no_model_is_written(run, desk, text, part):
    (desk / "s.csv").write_text(text)
    done = run("model", "fit", "s.csv", "-o", "m.yaml")
    assert (done.status, part in done.line) == (2, True), done.err
    assert not (desk / "m.yaml").exists()


@pytest.mark.parametrize(
    "text",
    [
        # Only the number of nodes differs; nothing matters at all; sizes of zero, and of 4 EiB.
        "nodes,bytes,x,seconds\n" + "".join(f"{n},1000,7,{n * 2}\n" for n in range(1, 21)),
        HEAD + "".join(f"{n},{b},5\n" for n in (1, 2, 4, 8) for b in (1, 2, 3)),
        HEAD + "".join(f"{n},{b},{1 + n}\n" for n in (1, 2, 4, 8) for b in (0, 1, 10**9, 2**62)),
        "nodes,machine,seconds\n" + "".join(f"{n},{m},{n + 1}\n" for n in (1, 2, 4, 8) for m in "ab"),
    ],
)
@pytest.mark.slow
def test_samples_at_the_edge_of_sense_give_a_model_that_answers(run, desk, text):
    (desk / "s.csv").write_text(text)
    done = run("model", "fit", "s.csv", "-o", "m.yaml")
    few = "samples of 48 or more: too few to choose a method by them. `vani model design` plans more."
    assert (done.status, done.err) == (0, f"{len(text.splitlines()) - 1} {few}\n")
    columns = text.splitlines()[0].split(",")[:-1]
    asked = [f"--set={name}={'a' if name == 'machine' else 8 if name == 'nodes' else 0}" for name in columns]
    assert run("model", "predict", "--model", "m.yaml", *asked).status == 0
    if "machine" in columns:
        # A machine that was never measured.
        done = run("model", "predict", "--model", "m.yaml", "--set", "nodes=8", "--set", "machine=c")
        assert (done.status, done.line) == (2, "--set: machine is 'c'; the samples had a, b")


def test_fewer_samples_than_features_are_not_trusted(run, desk):
    random = np.random.default_rng(0)
    rows = random.integers(1, 10, (8, 10))
    text = "nodes,a,b,c,d,e,f,g,h,seconds\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    (desk / "s.csv").write_text(text)
    done = run("model", "fit", "s.csv", "-o", "m.yaml")
    line = (
        "s.csv: 8 samples differ in 9 columns: any model would fit them; measure more writes, or leave columns out"
    )
    assert (done.status, done.out, done.line) == (2, "", line)
    assert not (desk / "m.yaml").exists()


def test_folder_and_binary_file_are_not_samples(run, desk):
    (desk / "folder").mkdir()
    assert (
        run("model", "fit", "folder").line == "folder: is a directory; name a CSV file, or what IOR printed"
    )
    (desk / "s.csv").write_bytes(b"nodes,seconds\n\xff\xfe,1\n")
    done = run("model", "fit", "s.csv")
    assert (done.status, done.line) == (2, "s.csv:2: is not UTF-8 text (byte 0xff); save it as UTF-8")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (("schema: vani.model/1", "schema: vani.model/2"), "vani.model/2"),
        (("scale: bytes", "scale: length"), "the scale 'length' is not one of the columns"),
        (("low: ", "low: 1000"), ""),
        (("method: ", "method: ["), ""),
        (("samples: 80", "samples: 0"), "samples"),
    ],
)
def test_a_model_of_another_version_or_that_contradicts_itself_is_refused(run, fitted, desk, change, part):
    (desk / "m.yaml").write_text(fitted.read_text().replace(*change))
    for command in (("predict", "--model", "m.yaml", *ASKED), ("show", "m.yaml")):
        done = run("model", *command)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert part in done.line


@pytest.mark.slow
def test_untrustworthy_fit_is_not_written(run, desk):
    rows = "".join(f"{n},{b},{1 + (n * b * 7919) % 997}\n" for n in (1, 2, 4, 8) for b in range(1, 12))
    (desk / "s.csv").write_text(HEAD + rows)
    done = run("model", "fit", "s.csv", "-o", "m.yaml")
    assert (done.status, "no method explains the largest scale" in done.line) == (2, True), done.err
    assert not (desk / "m.yaml").exists()


def test_unknown_method_and_scale_are_refused(run):
    assert "no method 'magic'" in run("model", "fit", WRITES, "--method", "magic").line
    assert "no column 'size'" in run("model", "fit", WRITES, "--scale", "size").line
    assert "--up-to: x is neither" in run("model", "evaluate", WRITES, "--up-to", "x").line
    assert "no samples are larger than 100" in run("model", "evaluate", WRITES, "--up-to", "100").line


@pytest.mark.slow
def test_runs_of_a_history_are_samples(run, desk):
    pytest.importorskip("sqlalchemy")
    from history.test_story import a_run  # noqa: PLC0415

    from vani.centre.history.runs import write  # noqa: PLC0415
    from vani.centre.history.runs.store import Store  # noqa: PLC0415

    runs = [
        a_run(
            10 * p + s,
            processes=2**p,
            bytes_written=s * 10**9,
            writes=s * 1000,
            stripes=4,
            slowest_s=1 + 8 * s / 2**p,
        )
        for p in range(5)
        for s in range(1, 7)
    ]
    with Store(desk / "h.sqlite").writing(make=True) as connection:
        write.add_runs(connection, runs)
    asked = ("model", "fit", "--application", "app", "--database", "h.sqlite")
    assert run(*asked, "-o", "m.yaml").status == 0
    model = WriteModel.load(desk / "m.yaml")
    assert (model.samples, model.scale) == (30, "processes")
    done = run(
        "model", "predict", "--model", "m.yaml", "--set", "processes=32", "--set", "bytes=6GB",
        "--set", "request=1MB", "--set", "stripe_count=4",
    )  # fmt: skip
    assert done.out.startswith("processes 32, bytes 6 GB, request 1 MB, stripe_count 4: 2.")
    assert run(*asked[:-2], "--database", "none.sqlite").status == 2
    done = run(*asked[:3], "ap", *asked[-2:])
    assert (done.status, done.line) == (2, "no runs of ap; `vani history top` lists applications and users")
    assert run("model", "fit").line == "no samples; name files of writes, or --application of a history"
    assert "name --application" in run("model", "fit", WRITES, "--user", "u").line


REPEATED = "nodes,bytes,seconds\n" + "".join(
    f"{n},{b * 10**9},{(1 + b / n) * factor}\n"
    for n in (1, 2, 4, 8, 16)
    for b in (1, 2, 4, 8)
    for factor in ((0.98, 1.0, 1.02) if b < 8 else (0.4, 1.0, 1.6))
)


@pytest.mark.slow
def test_unconverged_means_are_counted_separately(run, desk):
    (desk / "s.csv").write_text(REPEATED)
    assert run("model", "fit", "s.csv", "-o", "m.yaml").status == 0
    model = WriteModel.load(desk / "m.yaml")
    assert (model.samples, model.unconverged, model.confidence) == (15, 5, 0.9)
    done = run("model", "evaluate", "s.csv", "--up-to", "4")
    lines = done.out.splitlines()
    assert lines[0] == (
        "Off by at most 20 % / 30 %, fitted to 9 writes of smaller scales (3 more had not converged):"
    )
    assert lines[2].split()[-2:] == ["all", "unconverged"]
    assert next(line for line in lines if line.startswith("writes")).split() == ["writes", "3", "3", "6", "2"]
    line = run("model", "fit", "s.csv", "--confidence", "1.5").line
    assert line == "--confidence: is 1.5; give a number, 0.5 or more, below 1"
    (desk / "s.csv").write_text(REPEATED.replace("0.98", "0.1"))
    wide = "nodes,seconds\n" + "".join(f"{n},{s}\n" for n in range(1, 9) for s in (1, 9))
    (desk / "w.csv").write_text(wide)
    done = run("model", "fit", "w.csv", "-o", "w.yaml")
    assert (done.status, done.line) == (
        2,
        "w.csv: 8 of 8 samples have not converged; repeat these writes more often, or lower --confidence",
    )
    assert not (desk / "w.yaml").exists()


def test_bandwidths_have_ranges_and_nonbinding_ones_are_not_identified(run, desk):
    assert (
        run("model", "fit", WRITES, "--scale", "bytes", "--method", "stage_sum", "-o", "m.yaml").status == 0
    )
    done = run("model", "show", "m.yaml")
    assert (done.status, done.err) == (0, "")
    rows = {line.split("  ")[0]: line for line in done.out.splitlines()}
    assert rows["bytes/nodes"].split()[1:3] == ["926", "MB/s"]
    assert "MB/s to 1." in rows["bytes/nodes"]
    assert "not identified" in rows["processes"]
    assert "done" not in run("model", "show", "none.yaml").line
    assert run("model", "show", WRITES).status == 2


@pytest.mark.slow
def test_numbers_at_the_limits_of_floats_are_answered_in_a_line(run, tmp_path):
    # Formerly gave numpy warnings with paths of its modules.
    rows = [
        f"{nodes},{size},{seconds}"
        for nodes in (1, 2, 4, 8)
        for size, seconds in ((1e30, 1e-9), (1, 1e9), (1e29, 1), (1e-300, 1e8))
    ]
    (tmp_path / "w.csv").write_text("\n".join(["nodes,bytes,seconds", *rows]))
    with warnings.catch_warnings(record=True) as printed:
        warnings.simplefilter("always")
        done = run("model", "fit", tmp_path / "w.csv", "-o", tmp_path / "m.yaml")
    assert [str(warning.message) for warning in printed] == []
    assert done.status == 2
    assert "no method explains the largest scale" in done.line
