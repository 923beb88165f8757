"""No reason that a rule gives for staying silent contradicts the profile that it read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vani
from vani.advisors.data_files import is_data
from vani.advisors.judge import advise_document
from vani.schema.profile import FileEntity, Profile
from vani.systems import load_system

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"


def data(profile: Profile) -> list[FileEntity]:
    return [file for file in profile.files if is_data(file.path)]


def joint(profile: Profile) -> set[str | None]:
    """Files that several processes access through MPI-IO."""
    return {
        row.file for row in profile.accesses or () if row.layer in ("mpiio", "pnetcdf") and (row.processes or 0) > 1
    }


def uses(profile: Profile, layer: str) -> bool:
    return any(row.layer == layer for row in (*(profile.interfaces or ()), *(profile.accesses or ())))


CLAIMS = {
    r"no file is shared by several processes through MPI-IO": lambda p: not {f.path for f in data(p)} & joint(p),
    r"every data file is shared by several processes through MPI-IO": lambda p: {f.path for f in data(p)} <= joint(p),
    r"no file is shared by processes of one app without MPI-IO": lambda p: not [
        f for f in data(p) if f.path not in joint(p) and f.processes > sum(a.instances for a in p.apps if a.name in f.apps)
    ],
    r"no file is shared by several processes$": lambda p: all(f.access != "shared" for f in data(p)),
    r"no file of the run is data of a program": lambda p: not data(p),
    r"no data file is read or written": lambda p: not any(f.io.ops.read + f.io.ops.write for f in data(p)),
    r"no app uses (MPI-IO|HDF5|stdio)": lambda p, name: not uses(p, name.lower().replace("-", "")),
    r"HDF5 is used without MPI-IO": lambda p: uses(p, "hdf5") and not uses(p, "mpiio"),
    r"no data of a program is in a file of HDF5": lambda p: all(f.format != "hdf5" for f in data(p)),
    r"no file of HDF5 or netCDF is written": lambda p: not [
        f for f in data(p) if f.format in ("hdf5", "netcdf") and f.writers
    ],
    r"no file that is read or written is flushed": lambda p: not any(f.io.ops.sync for f in data(p)),
    r"no file is only read": lambda p: not [f for f in data(p) if f.readers and not f.writers and f.role == "input"],
    r"no app reads what another app wrote": lambda p: not p.workflow.app_dependencies,
    r"no write of (\S+) is recorded": lambda p, app: not [a for a in p.apps if a.name == app and a.io.bytes.written],
    r"(\d+) processes of (\S+) write": lambda p, number, app: [
        a for a in p.apps if a.name == app and a.balance and a.balance.writing_processes == int(number)
    ],
    r"the run reads nothing that it wrote": lambda p: not (p.dataset.roles or {}).get("intermediate"),
}
"""Sentences of rules, and what must be true of the profile then."""

NAMES = [
    *(f"traces/{name}" for name in (
        "v3-mpiio-mix-4r", "v3-ior-ssf-hdf5-4r", "v3-netcdf-pnetcdf-4r", "v3-posix-mix-4r", "v3-dl-train-8r",
        "v3-workflow-coupled", "v3-cm1like-16r",
    )),
    *(f"cases/{name}-recorder" for name in ("h5sub", "nbio", "ompvind", "pympi", "fstream", "uring", "h5cache", "iwa")),
    *("cases/imbalanced-io.darshan", "cases/mltrain-random-4k.darshan", "cases/ior-fsync-each.txt"),
]  # fmt: skip
REPOSITORY = [
    *(ROOT / "tests/data/cases" / f"{name}-recorder" for name in ("indep", "iwa")),
    *sorted((ROOT / "tests/data/darshan").glob("*.darshan")),
]
SLOW = [pytest.param(SHARED / name, marks=pytest.mark.slow) for name in NAMES]


def contradictions(profile: Profile) -> list[str]:
    advice = advise_document(profile, load_system("generic-lustre"))
    return [
        f"{silent.rule}: {claim[0]}"
        for silent in advice.no_recommendation
        for part in silent.why.split("; ")
        for words, is_true in CLAIMS.items()
        if (claim := re.match(words, part)) and not is_true(profile, *claim.groups())
    ]


@pytest.mark.parametrize("path", [*REPOSITORY, *SLOW], ids=lambda path: path.stem)
def test_no_reason_contradicts_the_profile(path):
    if not path.exists():
        pytest.skip("the shared traces are not here")
    assert contradictions(vani.profile(path)) == []


def test_a_layout_comes_after_the_cure_of_small_requests():
    """Random reads of 4 kB take 90 % of the I/O time, and more targets do not change them."""
    log = SHARED / "cases" / "mltrain-random-4k.darshan"
    if not log.exists():
        pytest.skip("the shared logs are not here")
    advice = advise_document(vani.profile(log), load_system("perlmutter"))
    numbered = [entry.rule for entry in advice.recommendations if entry.rule != "MAT001"]
    assert numbered.index("POS005") < numbered.index("LUS008")
