"""Lustre accepts every command that a rule prints, and each runs exactly as printed."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from functools import cache
from pathlib import Path

import pytest
from builders import profile, system
from lustre_grammar import NotLustre, check_command, check_cray_hints, check_hint
from test_cases import load_cases, plain, repeated

from vani.advisors.catalogue import find
from vani.advisors.judge import judge
from vani.schema.advice import ProfileRef, SystemRef

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "traces"
BUNDLED = [ROOT / "vani" / "demo", ROOT / "tests" / "data" / "traces"]

# From the manual pages, the Lustre manual and IO500 submissions.
RIGHT = [
    "lfs setstripe -c 1 DIR",
    "lfs setstripe -c 8 -S 4M DIR",
    "lfs setstripe -C 128 -S 1M DIR",
    "lfs setstripe -E 4M -c 1 -E 64M -c 4 -E -1 -c -1 FILE",
    "lfs setstripe -E 1M -L mdt -E -1 DIR",
    "lfs setstripe -E 1G -z 64M -E -1 -z 256M FILE",
    "lfs setstripe -E 256K -L mdt -E 8M -c 1 -S 1M -p performance -z 64M -E 128G -c 1 -S 1M -z 16G -p capacity "
    "-E -1 -z 256G -c 8 -S 1M -p capacity DIR",
    "lfs setstripe -N2 -c 4 DIR",
    "lfs setstripe -d DIR",
    "lfs setstripe -o 1,2-4,7 -c 5 FILE",
    "lfs setstripe --stripe-count 32 --stripe-size=4M DIR",
    "lfs migrate -E 1M -S 512K -c 1 -E -1 -S 1M -c 2 FILE",
    "lfs setdirstripe -D -c 4 -H crush DIR",
    "lfs mkdir -c -1 DIR",
    "lfs setstripe -c 4 'a b'\"'\"'c $(x)'",
]
WRONG = {
    "lfs setstripe -s 4M DIR": "unknown option",
    "lfs setstripe --size 4M DIR": "unknown option",
    "lfs setstripe -c 2001 DIR": "2000",
    "lfs setstripe -S 100K DIR": "64 KiB",
    "lfs setstripe -S 4G DIR": "4 GiB",
    "lfs setstripe -i 0 -c 1 DIR": "target 0",
    "lfs setstripe -c 4 -E 4M -E -1 DIR": "before the first -E",
    "lfs setstripe -E 64M -c 1 -E 4M -c 4 -E -1 DIR": "not behind",
    "lfs setstripe -E 4M -c 1 -E 64M -c 4 DIR": "eof",
    "lfs setstripe -E 1M -c 1 -E 2M -L mdt -E -1 DIR": "first component only",
    "lfs setstripe -E 2G -L mdt -E -1 DIR": "at most 1 GiB",
    "lfs setstripe -E 3M -S 2M -E -1 DIR": "multiple of the stripe size",
    "lfs setstripe -L mdt DIR": "needs a component",
    "lfs setstripe -c 4 -C 8 DIR": "exclude",
    "lfs setstripe -o 1,2 -c 3 DIR": "2 targets",
    "lfs setstripe -c 4": "0 paths",
    "lfs setstripe -c 4 a b": "2 paths",
    "lfs setstripe DIR": "sets nothing",
    "lfs setdirstripe -H md5 -c 2 DIR": "unknown hash",
    "lfs restripe DIR": "no 'restripe'",
}


@pytest.mark.parametrize("line", RIGHT)
def test_examples_in_the_manuals_are_accepted(line):
    check_command(line)


@pytest.mark.parametrize("line", WRONG)
def test_layouts_that_lustre_refuses_are_refused(line):
    with pytest.raises(NotLustre, match=re.escape(WRONG[line])):
        check_command(line)


def test_hints_are_known_by_name_and_value():
    check_hint("romio_ds_write", "disable")
    check_cray_hints("*:striping_factor=8:striping_unit=1048576:cray_cb_write_lock_mode=2,out*:cb_nodes=4")
    for name, value in (("romio_ds_write", "off"), ("cb_node", "4"), ("striping_unit", "4M")):
        with pytest.raises(NotLustre):
            check_hint(name, value)


def check_line(line: str) -> None:
    """Check a printed line: no control characters, and anything for Lustre or MPI-IO is in the grammar."""
    assert line.isprintable(), line
    # A batch directive, a comment, or text for the reader.
    if line.startswith("#"):
        return
    for command in re.findall(r"(?:^|&& |; |\|\| |\|\s*)(lfs (?:setstripe|migrate|setdirstripe|mkdir) .*?)(?=$| && |; | \|\| )", line):
        # A variable or a command substitution replaces a path.
        check_command(re.sub(r"\"?\$\{?\w+\}?\"?", "VAR", command))
    for value in re.findall(r"MPICH_MPIIO_HINTS=('[^']*'|\"[^\"]*\"|\S+)", line):
        # The value that the job's environment already has stays in front.
        check_cray_hints(shlex.split(value)[0].removeprefix("${MPICH_MPIIO_HINTS:+$MPICH_MPIIO_HINTS,}"))
    match = re.fullmatch(r"(?:echo |printf .* )?'?((?:romio_|cb_|striping_|cray_)\w+)[ =]([\w:*.-]+)'?(?: >>? .*)?", line)
    if match:
        check_hint(match[1], match[2], check_hint.__globals__["CRAY"])


@cache
def printed_lines() -> dict[str, list[str]]:
    """The lines that rules print, by case."""
    lines = {}
    for parameter in load_cases():
        recommendations = advise_case(*parameter.values).recommendations
        lines[parameter.id] = [line for recommendation in recommendations for line in recommendation.apply]
    return lines


def advise_case(rule, case):
    settings = plain(case.get("profile", {}))
    files = [made for one in settings.pop("files", []) for made in repeated(**one)]
    return judge(
        profile(files, **settings),
        system(**plain(case.get("system", {}))),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=[rule],
        thresholds={find(rule).id: case.get("thresholds", {})},
    )


@pytest.mark.slow
def test_commands_printed_by_rules_are_in_the_grammar():
    for lines in printed_lines().values():
        for line in lines:
            check_line(line)


@cache
def traces() -> list[Path]:
    folders = [SHARED] if SHARED.is_dir() else BUNDLED
    return sorted(path for folder in folders for path in folder.iterdir() if path.is_dir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["generic-lustre", "generic-gpfs", "frontier-orion", "lassen"])
def test_catalogue_prints_its_table_for_all_traces(name, tmp_path):
    import vani  # noqa: PLC0415
    from vani.errors import InputError  # noqa: PLC0415

    count = 0
    for trace in traces():
        try:
            found = vani.profile(trace, store=tmp_path / "store")
        except InputError:
            continue
        advice = vani.advise(found, system=name)
        count += 1
        for one in advice.recommendations:
            for line in one.apply:
                check_line(line)
    assert count


def test_demo_trace_gives_commands_in_the_grammar():
    import vani  # noqa: PLC0415

    trace = ROOT / "vani" / "demo" / "ior-shared-file-8r"
    for one in vani.advise(vani.profile(trace), system="generic-lustre").recommendations:
        for line in one.apply:
            check_line(line)


STAND_IN = """#!/bin/sh
{ for word in "$@"; do printf '%s\\037' "$word"; done; printf '\\036'; } >>"$RECORD"
"""


def stand_in(folder: Path) -> dict[str, str]:
    """An environment in which `lfs` records its arguments in $RECORD; see `recorded`."""
    program = folder / "bin" / "lfs"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    record = folder / "record"
    record.touch()
    return {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "RECORD": str(record)}


def recorded(environment: dict[str, str]) -> list[list[str]]:
    calls = Path(environment["RECORD"]).read_text().split("\036")[:-1]
    return [call.split("\037")[:-1] for call in calls]


@pytest.mark.slow
def test_a_printed_command_reaches_lfs_word_by_word(tmp_path):
    environment = stand_in(tmp_path)
    lines = [line for lines in printed_lines().values() for line in lines]
    commands = [line for line in lines if re.match(r"lfs (setstripe|migrate|setdirstripe|mkdir) ", line)]
    plain_lines = [line for line in commands if "$" not in line and "|" not in line]
    assert plain_lines
    subprocess.run(["sh", "-eu"], input="\n".join(plain_lines), text=True, check=True, env=environment)
    assert recorded(environment) == [check_command(line)[1:] for line in plain_lines]
