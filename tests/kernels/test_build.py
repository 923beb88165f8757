"""Kernels are built where a compiler is found, named for their sources, and never stand in the way."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vani.kernels import build
from vani.kernels import library as loader

ROOT = Path(__file__).resolve().parents[2]
needs_compiler = pytest.mark.skipif(build.compiler() is None, reason="no C compiler is here")


@pytest.fixture
def fresh(monkeypatch):
    """Nothing is loaded yet."""
    monkeypatch.setattr(loader, "_known", [])
    monkeypatch.delenv("VANI_KERNELS", raising=False)


@needs_compiler
def test_a_kernel_compiles_without_a_warning(tmp_path):
    assert (
        build.compile_kernels(tmp_path, more_flags=["-Werror", "-pedantic"]) == tmp_path / build.file_name()
    )


@needs_compiler
def test_what_was_compiled_is_loaded_and_takes_the_place_of_older_files(tmp_path, monkeypatch, fresh):
    (tmp_path / "kernels-0123456789abcdef.so").write_bytes(b"")
    made = build.compile_kernels(tmp_path)
    assert [made] == list(tmp_path.iterdir())
    monkeypatch.setattr(loader, "FOLDER", tmp_path)
    monkeypatch.setattr(loader, "file_name", lambda: made.name)
    assert loader.library() is loader.library() is not None
    assert loader.state() == "compiled"


def test_changed_sources_are_another_file(tmp_path):
    (tmp_path / "one.c").write_text("int one;")
    before = build.file_name(tmp_path)
    (tmp_path / "one.c").write_text("int two;")
    assert re.fullmatch(r"kernels-[0-9a-f]{16}\.so", before)
    assert build.file_name(tmp_path) != before


def test_a_file_that_does_not_load_leaves_the_work_to_numpy(tmp_path, monkeypatch, fresh):
    (tmp_path / "kernels-0.so").write_bytes(b"of another machine")
    monkeypatch.setattr(loader, "FOLDER", tmp_path)
    monkeypatch.setattr(loader, "file_name", lambda: "kernels-0.so")
    assert loader.library() is None
    assert loader.function("vani_times") is None
    assert loader.state() == "none, numpy does their work"


def test_kernels_can_be_switched_off(monkeypatch, fresh):
    monkeypatch.setenv("VANI_KERNELS", "0")
    assert loader.library() is None
    assert loader.state() == "off (VANI_KERNELS=0)"


def test_without_a_compiler_nothing_is_built(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    assert build.compile_kernels(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("compiler", ["false", f"{shlex.quote(sys.executable)} -c pass"], ids=["false", "silent"])
def test_a_compiler_that_fails_says_so_and_leaves_nothing(tmp_path, monkeypatch, compiler):
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(OSError, match="cannot compile the kernels: "):
        build.compile_kernels(tmp_path)
    assert list(tmp_path.iterdir()) == []


NO_HEADERS = """#!/bin/sh
echo "In file included from /work/activity.c:2:"
echo "/work/vani.h:5:20: fatal error: stdint.h: No such file or directory"
echo "compilation terminated."
exit 1
"""


@pytest.mark.parametrize(
    ("compiler", "told"),
    [
        (None, "No C compiler (cc): Vani works without its kernels, and takes longer"),
        ("exit 1", "exit status 1"),
        (NO_HEADERS, "/work/vani.h:5:20: fatal error: stdint.h: No such file or directory"),
    ],
    ids=["none", "silent", "no headers"],
)
def test_make_says_in_one_line_that_the_kernels_cannot_be_compiled(tmp_path, compiler, told):
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


def test_a_kernel_fits_in_the_head_and_has_a_module_of_its_name():
    files = [path for path in build.sources() if path.suffix == ".c"]
    assert files
    assert {path.name: lines for path in files if (lines := len(path.read_text().splitlines())) > 300} == {}
    assert [path.name for path in files if not path.with_suffix(".py").is_file()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "tag"),
    [pytest.param(None, "linux", marks=needs_compiler), ("no-such-compiler", "any"), ("false", "any")],
)
def test_a_wheel_has_kernels_where_they_compile(tmp_path, compiler, tag):
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
    assert len(re.findall(r"vani/kernels/kernels-\w+\.so", listed.stdout)) == (tag != "any")
