"""`vani advise` on results of IO500, IOR and mdtest."""

from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"
IO500 = DATA / "results" / "io500"


def test_command_reads_the_machine_it_wrote(run, desk):
    assert run("advise", IO500, "-o", "a.yaml", "--write-system", "s.yaml", "-q").status == 0
    done = run("advise", IO500, "--system", "s.yaml", "--format", "text")
    assert done.status == 0 and "Machine: measured" in done.out
    assert run("advise", DATA / "traces" / "v3-posix-mix-4r", "--write-system", "t.yaml").line.startswith("--write-system needs")


def test_unreadable_result_is_reported_in_one_line(run, desk):
    (desk / "cut.txt").write_text("IOR-4.1.0: MPI Coordinated Test of Parallel I/O\n")
    done = run("advise", "cut.txt")
    assert done.status == 2
    assert done.line == "cut.txt: ends before its first result (IOR and mdtest print them at the end); give the whole output, or run it again"
