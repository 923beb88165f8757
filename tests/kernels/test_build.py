"""Kernels are built where there is a compiler, named after their sources, and never cause a failure."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vani import kernels
from vani.kernels import build

ROOT = Path(__file__).resolve().parents[2]
needs_compiler = pytest.mark.skipif(build.compiler() is None, reason="no C compiler is here")


MISSING = "none, numpy does their work"


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Nothing is loaded yet, and kernels are searched in `tmp_path`."""
    monkeypatch.setattr(build, "LOAD_FROM", tmp_path)
    monkeypatch.delenv("VANI_KERNELS", raising=False)
    build.load.cache_clear()
    kernels._functions.cache_clear()
    yield
    build.load.cache_clear()
    kernels._functions.cache_clear()


@pytest.mark.slow
@needs_compiler
def test_a_kernel_compiles_without_a_warning(tmp_path):
    assert build.compile_kernels(tmp_path, more_flags=["-Werror", "-pedantic"]).is_file()


@needs_compiler
@pytest.mark.slow
def test_compiled_kernels_are_loaded_and_replace_older_files(tmp_path, fresh):
    (tmp_path / "kernels-0123456789abcdef.so").write_bytes(b"")
    compiled = build.compile_kernels(tmp_path)
    assert [compiled] == list(tmp_path.iterdir())
    assert compiled == build.compiled_file(tmp_path)
    assert kernels.available()
    assert build.state() == "compiled"


def test_changed_sources_need_another_file(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    (tmp_path / "one.c").write_text("int one;")
    compiled = tmp_path / f"kernels-{build._digest_of_sources()}-0.so"
    compiled.write_bytes(b"")
    assert build.compiled_file(tmp_path) == compiled
    (tmp_path / "one.c").write_text("int two;")
    assert build.compiled_file(tmp_path) is None


def test_without_a_file_numpy_does_the_work(fresh):
    assert not kernels.available()
    assert kernels.call("times") is None
    assert build.state() == MISSING


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("damage", ["truncated", "empty", "foreign", "unreadable"])
def test_damaged_kernel_file_falls_back_to_numpy(damage, tmp_path, fresh):
    compiled = build.compile_kernels(tmp_path)
    content = compiled.read_bytes()
    compiled.unlink()
    if damage == "unreadable":
        compiled.mkdir()
    else:
        # A truncated file still has its headers, so that the system's loader would map it.
        compiled.write_bytes({"truncated": content[:4096], "empty": b"", "foreign": b"of another machine"}[damage])
    assert not kernels.available()
    assert build.state() == f"none ({compiled.name} is damaged; install Vani again), numpy does their work"


@pytest.mark.parametrize("content", [b"of another machine", Path(np.linalg._umath_linalg.__file__).read_bytes()])
def test_unloadable_kernel_file_falls_back_to_numpy(content, tmp_path, fresh):
    """The file was compiled for another machine, or lacks our functions."""
    name = f"kernels-{build._digest_of_sources()}-{build._digest(content)}.so"
    (tmp_path / name).write_bytes(content)
    assert build.state() == f"none ({name} does not load on this machine), numpy does their work"


@pytest.mark.slow
@needs_compiler
def test_vani_works_with_a_truncated_file(tmp_path):
    """In a separate process, which a signal would kill."""
    compiled = build.compile_kernels(tmp_path)
    compiled.write_bytes(compiled.read_bytes()[:4096])
    code = f"""
from pathlib import Path
from vani.kernels import build
build.LOAD_FROM = Path({str(tmp_path)!r})
from vani.cli.main import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert f"kernels: none ({compiled.name} is damaged; install Vani again)" in done.stdout


def test_kernels_can_be_switched_off(monkeypatch, fresh):
    monkeypatch.setenv("VANI_KERNELS", "0")
    assert not kernels.available()
    assert build.state() == "off (VANI_KERNELS=0)"


def test_nothing_is_built_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    assert build.compile_kernels(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("compiler", ["false", f"{shlex.quote(sys.executable)} -c pass"], ids=["false", "silent"])
def test_failing_compiler_is_reported_and_leaves_no_files(tmp_path, monkeypatch, compiler):
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(OSError, match="cannot compile the kernels: "):
        build.compile_kernels(tmp_path)
    assert list(tmp_path.iterdir()) == []


NO_HEADERS = """#!/bin/sh
echo "In file included from /src/activity.c:2:"
echo "/src/vani.h:5:20: fatal error: stdint.h: No such file or directory"
echo "compilation terminated."
exit 1
"""


@pytest.mark.parametrize(
    ("compiler", "told"),
    [
        (None, "No C compiler (cc): Vani works without its kernels, and takes longer"),
        ("exit 1", "exit status 1"),
        (NO_HEADERS, "/src/vani.h:5:20: fatal error: stdint.h: No such file or directory"),
    ],
    ids=["none", "silent", "no headers"],
)
def test_make_reports_in_one_line_that_kernels_cannot_be_compiled(tmp_path, compiler, told):
    for path in (*build.sources(), Path(build.__file__)):
        shutil.copy(path, tmp_path)
    (tmp_path / "bin").mkdir()
    if compiler is not None:
        (tmp_path / "bin" / "cc").write_text(f"#!/bin/sh\n{compiler}")
        (tmp_path / "bin" / "cc").chmod(0o755)
        told = f"Vani works without its kernels, and takes longer: cc cannot compile the kernels: {told}"
    environment = {name: value for name, value in os.environ.items() if name != "CC"}
    done = subprocess.run(
        [sys.executable, tmp_path / "build.py"],
        env=environment | {"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", told + "\n")
    assert list(tmp_path.glob("*kernels-*")) == []


def test_sources_stay_short():
    lines = {path.name: len(path.read_text().splitlines()) for path in build.sources()}
    assert {name: count for name, count in lines.items() if count > 300} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "tag"),
    [pytest.param(None, "linux", marks=needs_compiler), ("no-such-compiler", "any"), ("false", "any")],
)
def test_wheel_has_kernels_if_they_compile(tmp_path, compiler, tag):
    environment = os.environ | ({} if compiler is None else {"CC": compiler})
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))",
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    wheel = done.stdout.splitlines()[-1]
    assert re.fullmatch(rf"vani_io-[\d.]+-py3-none-{tag}\w*\.whl", wheel)
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(tmp_path / wheel)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(re.findall(r"vani/kernels/kernels-[\w-]+\.so", listed.stdout)) == (tag != "any")
