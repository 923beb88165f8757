"""Commands in front of a program, and scripts that start other programs."""

from __future__ import annotations

import pytest

from vani.collect.tracing.launchers import launches_in, starts_others
from vani.readers.programs import program_behind


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("./solver -n 4", "./solver"),
        ("timeout -k 5 60 ./solver", "./solver"),
        ("env -u X A=1 B=2 ./solver", "./solver"),
        ("nice -n 5 numactl -N 0 --membind=0 mpiexec -n 2 ./solver", "mpiexec"),
        ("taskset -c 0-3 ./solver", "./solver"),
        ("/usr/bin/time -v -o times ./solver", "./solver"),
        # Nothing is run.
        ("env A=1", "env"),
        ("timeout 60", "timeout"),
    ],
)
def test_program_behind_wrapper_commands_is_found(line, program):
    words = line.split()
    assert words[program_behind(words)] == program


def test_shells_and_scripts_of_theirs_start_others(tmp_path):
    script = tmp_path / "flow.sh"
    script.write_text("#!/usr/bin/env bash\nset -e\nmpiexec -n 2 ./a x &\nOMP_NUM_THREADS=2 srun -n 3 ./b\necho done\n")
    script.chmod(0o755)
    other = tmp_path / "solve.py"
    other.write_text("#!/usr/bin/env python3\nprint('srun -n 3')\n")
    other.chmod(0o755)
    assert starts_others([str(script)], "")
    assert starts_others(["bash", "flow.sh"], "")
    assert starts_others(["xargs", "./solve"], "")
    assert not starts_others([str(other)], "")
    assert not starts_others(["python3", str(script)], "")
    for command in ([str(script)], ["bash", "-x", str(script)]):
        assert launches_in(command, "") == ["mpiexec -n 2 ./a x", "srun -n 3 ./b"]
    assert launches_in(["sh", "-c", "./a; mpirun -n 2 ./b && echo"], "") == ["mpirun -n 2 ./b"]
