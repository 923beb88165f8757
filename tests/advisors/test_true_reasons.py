"""No reason that a rule gives for staying silent contradicts the profile that it read."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path

import pytest

import vani
from tests.advisors.shared_cases import unpacked
from vani.advisors.data_files import is_data
from vani.advisors.judge import advise_document
from vani.schema.advice import Advice
from vani.schema.profile import FileEntity, Profile
from vani.systems import load_system
from vani.units import format_bytes, parse_bytes

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
    r"no file that is written or mapped is flushed": lambda p: not any(f.io.ops.sync for f in data(p)),
    r"no file is only read": lambda p: not [f for f in data(p) if f.readers and not f.writers and f.role == "input"],
    r"no app reads what another app wrote": lambda p: not p.workflow.app_dependencies,
    r"no write of (\S+) is recorded": lambda p, app: not [a for a in p.apps if a.name == app and a.io.bytes.written],
    r"(\d+) processes of (\S+) write": lambda p, number, app: [
        a for a in p.apps if a.name == app and a.balance and a.balance.writing_processes == int(number)
    ],
    r"the run reads nothing that it wrote": lambda p: not (p.dataset.roles or {}).get("intermediate"),
    r"calls of (MPI-IO|HDF5|stdio) are not recorded": lambda p, name: not uses(p, name.lower().replace("-", "")),
    r"no shared file of (\S+) or more is written by several processes": lambda p, size: not [
        f for f in data(p) if f.writers > 1 and f.access == "shared" and (f.size or 0) >= parse_bytes(size)
    ],
    r"no input of (\S+) or more is shared by processes": lambda p, size: not [
        f for f in data(p) if f.readers > 1 and f.role == "input" and (f.size or 0) >= parse_bytes(size)
    ],
    r"no file of one process has (\S+ \S+) or more": lambda p, size: not [
        f for f in data(p) if f.processes == 1 and f.writers and (f.size or 0) >= parse_bytes(size.replace(" ", ""))
    ],
    r"no file is read by all processes of a parallel app": lambda p: not [
        f for a in p.apps for f in data(p)
        if a.processes > a.instances == 1 and f.apps == [a.name] and f.readers == a.processes and not f.writers
        and f.io.footprint.read == f.size and (f.io.bytes.read or 0) >= a.processes * (f.size or 0) > 0
    ],
    r"(\S+) has one process$": lambda p, app: [a for a in p.apps if a.name == app and a.processes == 1],
    r"runs of (\S+) have fewer than ([\d,]+) processes": lambda p, app, number: [
        a for a in p.apps if a.name == app and a.processes < a.instances * int(number.replace(",", ""))
    ],
    r"no file is written$": lambda p: not any(f.io.bytes.written for f in data(p)),
    r"one process reads, or writes, a shared file": lambda p: [
        f for f in data(p) if f.access == "shared" and 1 in (f.readers, f.writers)
    ],
    r"no shared file is read or written$": lambda p: not [
        f for f in data(p) if f.path not in joint(p) and f.readers + f.writers > 2 * sum(a.instances for a in p.apps)
    ],
    r"files are flushed ([\d,]+) times": lambda p, number: p.workflow.io.ops.sync >= int(number.replace(",", "")) > 0,
    r"(\w+\.\w+|phases) is not known": lambda p, path: reduce(getattr, path.split("."), p) is None,
    r"files\[\]\.([\w.]+) (?:is|are) not known": lambda p, path: any(
        reduce(getattr, path.split("."), f) is None for f in p.files
    ),
    r"all processes run on one node": lambda p: p.job.nodes == 1 or p.workflow.processes == 1,
    r"(\S+) moves (\S+ \S+) through stdio": lambda p, app, size: size in {
        format_bytes(i.bytes.total) for i in p.interfaces if (i.app, i.layer) == (app, "stdio")
    } or size == "0 B",
    r"no folder has ([\d,]+) files or more$": lambda p, number: not [
        f for f in p.folders or () if f.files >= int(number.replace(",", "")) and is_data(f.path + "/x")
    ],
    r"most calls of MPI-IO are independent": lambda p: [
        i for i in p.interfaces if i.layer == "mpiio" and (i.collective_share or 0) < 0.5
    ],
    r"the data is on (\S+), which is (\w+) by the trace's mount table": lambda p, folder, kind: [
        m for m in p.storage.mounts if (m.dir, m.type) == (folder, kind)
    ],
    r"most reads stay within their files": lambda p: not [
        f for f in data(p) if 2 * (f.io.past_end.read or 0) >= (f.io.bytes.read or 0) > 0
    ],
    r"less than (\S+ \S+) are requested beyond": lambda p, size: not [
        f for f in data(p) if (f.io.past_end.read or 0) >= parse_bytes(size.replace(" ", ""))
    ],
    r"no app's files move (\S+ \S+) or more again, and each byte (\d+) times": lambda p, size, times: not [
        f for f in data(p) for moved, distinct in zip(f.io.bytes, f.io.footprint, strict=False)
        if moved[0] != "total" and moved[1] and distinct[1] and f.processes == 1
        and moved[1] - distinct[1] >= parse_bytes(size.replace(" ", "")) and moved[1] >= int(times) * distinct[1]
    ],
    r"what metadata servers answer takes (\S+) % of the I/O time": lambda p, part: (
        float(part) <= 100 * (p.workflow.io.time_share.metadata or 0.0) + 1
    ),
}  # fmt: skip
"""Sentences of rules, and what must be true of the profile then."""

REFUSED = {
    "README.md", "darshan-parser-total.txt", "dxt-text-without-segments.txt", "fort-recorder", "kill-recorder",
    "lammps-cnt.dxt.txt", "programs", "shared-cache-swap.sh", "two-recorder", "v3-killed-2r", "v3-truncated-s3dio-8r",
}  # fmt: skip
SHARED_INPUTS = [
    *(SHARED / "cases").glob("*"), *(SHARED / "traces").glob("v3-*"), *(SHARED / "traces-new").glob("n*"),
    *(SHARED / "data/aiio-darshan").glob("*.darshan"),
]  # fmt: skip
REPOSITORY = [
    *(ROOT / "tests/data/cases" / f"{name}-recorder" for name in ("indep", "iwa")),
    *sorted((ROOT / "tests/data/darshan").glob("*.darshan")),
    *(ROOT / "tests/data" / name for name in ("dftracer/loader-3p", "parquet/cm1-lassen")),
]
SLOW = [
    pytest.param(path, marks=pytest.mark.slow) for path in sorted(SHARED_INPUTS) if path.name not in REFUSED
]


def advised(profile: Profile) -> Advice:
    return advise_document(profile, load_system("generic-lustre"))


def contradictions(advice: Advice, profile: Profile) -> list[str]:
    return [
        f"{silent.rule}: {claim[0]}"
        for silent in advice.no_recommendation
        for part in silent.why.split("; ")
        for words, is_true in CLAIMS.items()
        if (claim := re.match(words, part)) and not is_true(profile, *claim.groups())
    ]


@pytest.mark.parametrize("path", [*REPOSITORY, *SLOW], ids=lambda path: path.stem[:40])
def test_no_reason_contradicts_the_profile(path, tmp_path):
    profile = vani.profile(unpacked(path, tmp_path))
    assert contradictions(advised(profile), profile) == []


def test_reasons_of_one_run_contradict_the_profile_of_another():
    """The claims distinguish runs: otherwise the test above could not fail."""
    one, other = (vani.profile(path) for path in (REPOSITORY[0], ROOT / "tests/data/traces/v3-posix-mix-4r"))
    assert len({found.split(":")[0] for found in contradictions(advised(one), other)}) >= 5
    assert len({found.split(":")[0] for found in contradictions(advised(other), one)}) >= 5


def test_a_layout_comes_after_the_cure_of_small_requests():
    """Random reads of 4 kB take 90 % of the I/O time, and more targets do not change them."""
    log = SHARED / "cases" / "mltrain-random-4k.darshan"
    if not log.exists():
        pytest.skip("the shared logs are not here")
    advice = advise_document(vani.profile(log), load_system("perlmutter"))
    numbered = [entry.rule for entry in advice.recommendations if entry.rule != "MAT001"]
    assert numbered.index("POS005") < numbered.index("LUS008")
