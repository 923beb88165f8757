"""In a cache folder of mode 1777, no user can change what another one reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "tests" / "data" / "traces"
A, B = TRACES / "v3-noipc-rawts-ior-4r", TRACES / "v3-posix-mix-4r"
ATTACKER, VICTIM = 54321, 54322

PROFILE = """
import sys, vani
from vani.readers.recorder.reader import RecorderReader
from vani.store import partial_results, stores
partial_results.FEWEST_CALLS = 0
stores.MemoryBudget = lambda room=stores.MemoryBudget: room(0)
RecorderReader.decodes_quickly = False
for trace in sys.argv[1:]:
    print(vani.profile(trace).to_yaml())
"""
"""Profile a trace with a store and partial results in the cache, however small the trace."""

ATTACKS = {
    "swap": "a, b = files[:2]; os.rename(a, t := a + '.t'); os.rename(b, a); os.rename(t, b)",
    "link": "a, b = files[:2]; os.unlink(a); os.symlink(b, a)",
    "hard link": "a, b = files[:2]; os.unlink(a); os.link(b, a)",
    "truncate": "[os.truncate(file, 100) for file in files]",
    "replace": "[(os.unlink(file), open(file, 'w').close(), os.chmod(file, 0o644)) for file in files]",
    "pipe": "[(os.unlink(file), os.mkfifo(file)) for file in files]",
    "folders": "[os.rename(folder, folder + '.old') for folder in folders]",
    "own folders": "[(os.rename(f, f + '.old'), shutil.copytree(f + '.old', f)) for f in folders]",
    "linked folders": "[(os.rename(f, f + '.old'), os.symlink(f + '.old', f)) for f in folders]",
}
FOLDERS = """
import os, sys
for name in ("results", "stores"):
    os.mkdir(os.path.join(sys.argv[1], name))
    os.chmod(os.path.join(sys.argv[1], name), 0o1777)
"""
ATTACK = """
import os, shutil, sys
for below in (f"user-{sys.argv[2]}", "results", "stores"):
    for where, folders, names in os.walk(os.path.join(sys.argv[1], below)):
        files = [os.path.join(where, name) for name in names]
        files = sorted((f for f in files if os.lstat(f).st_uid == int(sys.argv[2])), key=os.path.getmtime)
        folders = [os.path.join(where, folder) for folder in folders]
        try:
            ATTACK
        except (OSError, ValueError, shutil.Error):
            pass
folders = [os.path.join(sys.argv[1], name) for name in os.listdir(sys.argv[1])]
files = []
try:
    ATTACK
except (OSError, ValueError, shutil.Error):
    pass
"""


def run_as(
    user: int, code: str, *arguments: object, cache: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "VANI_CACHE": str(cache),
        "VANI_PARTIAL_RESULTS": "1",
    }
    return subprocess.run(
        ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", sys.executable, "-c", code]
        + [str(argument) for argument in arguments],
        cwd="/", env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def can_run_as_others() -> bool:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    return run_as(VICTIM, f"import vani.cli.profile; open({str(A / 'VERSION')!r}, 'rb')").returncode == 0


pytestmark = pytest.mark.skipif(
    not can_run_as_others(),
    reason="only root runs commands as other users, who must reach Python and the traces",
)


@pytest.fixture
def cache() -> Iterator[Path]:
    # Not one of pytest's folders, which other users cannot enter.
    with tempfile.TemporaryDirectory(prefix="vani-tests-") as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


def profiles(cache: Path) -> str:
    """The profiles of both traces, from the victim's view."""
    result = run_as(VICTIM, PROFILE, A, B, cache=cache)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def fresh() -> str:
    """Profiles made without any cache."""
    return profiles(Path("/proc/none"))


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_results_are_right_despite_other_users_changes_to_the_cache(cache, fresh, attack):
    # The attacker comes first, so that the shared folders would belong to the attacker.
    assert run_as(ATTACKER, FOLDERS, cache).returncode == 0
    assert profiles(cache) == fresh
    assert run_as(ATTACKER, ATTACK.replace("ATTACK", ATTACKS[attack]), cache, VICTIM).returncode == 0
    assert profiles(cache) == fresh


@pytest.mark.parametrize(
    "make",
    [
        "os.mkdir(own, 0o777); os.chmod(own, 0o777)",
        "os.mkdir(other, 0o777); os.chmod(other, 0o777); os.symlink(other, own)",
        "open(own, 'w').close()",
        "os.mkfifo(own)",
    ],
    ids=["folder", "link", "file", "pipe"],
)
@pytest.mark.slow
def test_private_folder_created_by_another_user_is_not_used(cache, fresh, make):
    names = f"import os; own, other = {str(cache / f'user-{VICTIM}')!r}, {str(cache / 'other')!r}; "
    assert run_as(ATTACKER, names + make).returncode == 0
    assert profiles(cache) == fresh
    assert not any((cache / "other").glob("*"))


@pytest.mark.slow
def test_results_belong_to_their_key_under_any_file_name(cache, fresh):
    profiles(cache)
    files = sorted((cache / f"user-{VICTIM}" / "results").iterdir())
    assert len(files) == 2
    first, second = (file.read_bytes() for file in files)
    files[0].write_bytes(second)
    files[1].write_bytes(first)
    assert profiles(cache) == fresh


@pytest.mark.slow
def test_inaccessible_cache_is_ignored(cache, fresh):
    cache.chmod(0o700)
    assert profiles(cache) == profiles(cache / "below") == fresh
