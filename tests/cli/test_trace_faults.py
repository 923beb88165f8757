"""`vani trace` checks immediately whether its trace can be used. Programs imitate what Recorder does to a folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.preload.building import compiler
from tests.readers.strace_logs import strace_or_skip
from vani.schema.job import Job
from vani.schema.profile import Profile

DATA = Path(__file__).resolve().parents[1] / "data" / "traces"


@pytest.fixture(autouse=True)
def recorder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library that does nothing, in place of Recorder's."""
    cc = compiler()
    if cc is None:
        pytest.skip("there is no C compiler")
    library = tmp_path / "recorder" / "lib" / "librecorder.so"
    library.parent.mkdir(parents=True)
    (tmp_path / "empty.c").write_text("int nothing_of_recorder;\n")
    subprocess.run([cc, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "empty.c")], check=True)
    monkeypatch.setenv("RECORDER_ROOT", str(tmp_path / "recorder"))
    for name in ("RECORDER_INSTALL_PATH", "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)


def leaving(*files, status=0):
    """A program that leaves these files (name, content's path or text) in the trace's folder."""
    code = ["import os, shutil, sys", "folder = os.environ['RECORDER_TRACES_DIR']"]
    for name, content in files:
        if isinstance(content, Path):
            code.append(f"shutil.copyfile({str(content)!r}, os.path.join(folder, {name!r}))")
        else:
            code.append(f"open(os.path.join(folder, {name!r}), 'w').write({content!r})")
    return [sys.executable, "-c", "\n".join([*code, f"sys.exit({status})"])]


def whole(name):
    return [(path.name, path) for path in (DATA / name).iterdir() if path.is_file()]


def test_a_trace_that_can_be_used_leads_to_advice(run, desk):
    done = run("trace", "-o", "t", "--", *leaving(*whole("v3-noipc-rawts-ior-4r")))
    assert (done.status, done.err.splitlines()[1]) == (0, "Next   vani advise t --format text")


def test_leftovers_of_a_killed_run_are_reported_with_its_status(run, desk):
    strace_or_skip()
    command = leaving(("0.ts", ""), ("1.ts", ""), status=9)
    done = run("trace", "-q", "-o", "t", "--", *command)
    assert done.status == 9
    line, following = done.err.splitlines()[0], done.err[done.err.index("Next") :]
    assert line.startswith("vani: t: is what an aborted run leaves: ")
    assert line.endswith("; the program ended with status 9")
    assert following.startswith("Next   vani trace --tracer strace -- ")
    assert "vani advise" not in done.err


@pytest.mark.parametrize("files", [[], [("recorder.cst", "x"), ("recorder.ts", "y")]])
def test_unusable_trace_is_not_a_success(run, desk, files):
    done = run("trace", "-o", "t", "--", *leaving(*files))
    assert done.status == 2
    assert "vani advise" not in done.err


def test_a_folder_that_several_programs_wrote_into_is_not_good(run, desk):
    trace = whole("v3-noipc-rawts-ior-4r")
    others = [(name.replace("3.", "4."), path) for name, path in trace if name in ("3.cfg", "3.cst")]
    assert len(others) == 2
    done = run("trace", "-o", "t", "--", *leaving(*trace, *others))
    assert done.status == 2
    assert "several programs wrote into this folder" in done.err
    assert "1 rank of other runs mixed with the last run's (4 ranks)" in done.err


def test_a_shell_is_traced_with_strace_since_recorder_has_one_folder(run, desk):
    strace_or_skip()
    done = run("trace", "-o", "t", "--no-collect", "--", "sh", "-c", "echo x >a; echo y >b")
    assert done.status == 0
    assert "so strace was used" in done.err
    assert "by strace" in done.err
    assert run("profile", "t", "-q").status == 0


def test_recorder_refuses_a_script_and_names_its_launches(run, desk):
    (desk / "flow.sh").write_text("mpiexec -n 2 ./a\nmpiexec -n 3 ./b in.txt\n")
    done = run("trace", "--tracer", "recorder", "-o", "t", "--", "sh", "flow.sh")
    assert done.status == 2
    assert "(vani trace -- mpiexec -n 2 ./a, vani trace -- mpiexec -n 3 ./b in.txt)" in done.line
    assert not (desk / "t").exists()


def test_h5py_wheel_is_named_if_a_program_fails(run, desk):
    python = desk / "env" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    shutil.copyfile("/bin/sh", python)
    python.chmod(0o755)
    wheel = desk / "env" / "lib" / "python3.11" / "site-packages" / "h5py.libs"
    wheel.mkdir(parents=True)
    (wheel / "libhdf5-8b6fbd2d.so.310.0.0").touch()
    done = run("trace", "-o", "t", "--", str(python), "-c", 'touch "$RECORDER_TRACES_DIR/0.ts"; exit 134')
    assert done.status == 134
    assert "the h5py wheel contains its own HDF5" in done.err


MAPS_AND_VECTORS = """
f = os.open("plain", os.O_CREAT | os.O_TRUNC | os.O_RDWR)
os.write(f, b"x" * 1000)
f = os.open("vectors", os.O_CREAT | os.O_TRUNC | os.O_RDWR)
[os.pwritev(f, [b"y" * 5000], 5000 * i) for i in range(20)]
f = os.open("mapped", os.O_CREAT | os.O_TRUNC | os.O_RDWR)
os.truncate(f, 65536)
mmap.mmap(f, 65536)[:] = b"z" * 65536
"""


def test_check_counts_what_the_tracer_missed(run, desk):
    strace_or_skip()
    command = leaving(*whole("v3-posix-mix-nonmpi"))
    # Under strace, no variable names a folder for Recorder.
    traced, code = command[2].replace("os.environ['RECORDER_TRACES_DIR']", "sys.argv[1]"), MAPS_AND_VECTORS
    code = f"import os, mmap, sys\nif folder := os.environ.get('RECORDER_TRACES_DIR'): sys.argv.append(folder)\n{code}"
    code += "\n".join(["if len(sys.argv) > 1:", *(f"  {line}" for line in traced.splitlines())])
    done = run("trace", "-o", "t", "--check", "--no-collect", "--", sys.executable, "-c", code)
    rows = {line.split()[-1]: line.split() for line in done.err.splitlines() if line.endswith(("plain", "vectors"))}
    assert done.status == 0
    assert "Missed by Recorder, compared with a second run under strace:" in done.err
    assert rows[str(desk / "vectors")] == ["100", "kB", "0", "B", "20", "0", "B", str(desk / "vectors")]
    assert rows[str(desk / "plain")][:5] == ["1", "kB", "0", "B", "1"]
    assert f"{desk / 'mapped'}, mapped" in done.err
    assert sorted(path.name for path in desk.iterdir()) == ["mapped", "plain", "t", "vectors"]


def test_growth_of_files_shows_what_strace_misses(run, desk):
    strace_or_skip()
    code = f"import os, mmap\n{MAPS_AND_VECTORS}"
    done = run("trace", "-o", "t", "--tracer", "strace", "--check", "--", sys.executable, "-c", code)
    (line,) = [line for line in done.err.splitlines() if "mapped" in line and str(desk) in line]
    assert line.split() == ["0", "B", "0", "B", "0", "65.5", "kB", f"{desk / 'mapped'},", "mapped"]
    after = {Path(file.path).name: file for file in Job.load("t/job.yaml").files_after}
    assert {name: file.size for name, file in after.items()} == {"plain": 1000, "vectors": 100000, "mapped": 65536}
    assert all(file.allocated >= file.size and file.allocated_before == 0 for file in after.values())


def test_writes_under_another_name_of_a_file_are_not_unseen(run, desk):
    strace_or_skip()
    code = "import os; f = os.open('a', os.O_CREAT | os.O_WRONLY); os.write(f, b'x' * 100000); os.link('a', 'b')"
    code += "; f = os.open('b', os.O_WRONLY | os.O_APPEND); os.write(f, b'x' * 100000)"
    assert run("trace", "-o", "t", "--tracer", "strace", "--", sys.executable, "-c", code).status == 0
    assert run("profile", "t", "-o", "p.yaml", "-q").status == 0
    profile = Profile.load("p.yaml")
    assert (profile.unseen, profile.workflow.io.bytes.written) == ([], 200000)


def test_holes_and_reserved_space_are_no_bytes_of_data(run, desk):
    strace_or_skip()
    code = "import os; f = os.open('reserved', os.O_CREAT | os.O_WRONLY); os.posix_fallocate(f, 0, 1 << 20)"
    code += "; os.write(f, b'x' * 1000); f = os.open('sparse', os.O_CREAT | os.O_WRONLY)"
    code += "; os.pwrite(f, b'x' * 1000, 1 << 20)"
    assert run("trace", "-o", "t", "--tracer", "strace", "--", sys.executable, "-c", code).status == 0
    after = {Path(file.path).name: file for file in Job.load("t/job.yaml").files_after}
    assert {name: file.size for name, file in after.items()} == {"reserved": 1 << 20, "sparse": (1 << 20) + 1000}
    assert all(1000 <= file.allocated <= 2 << 16 for file in after.values())
    assert run("profile", "t", "-o", "p.yaml", "-q").status == 0
    assert Profile.load("p.yaml").unseen == []
