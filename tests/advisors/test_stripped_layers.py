"""Fewer records give no more patterns: a run without the records of one layer shows none that the whole run lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.advisors.shared_cases import unpacked
from tests.darshan_records import profiled
from tests.readers.test_darshan import log, module
from vani.advisors.judge import advise_document, diagnosis
from vani.analyzers.characterise import Options, characterise
from vani.calls import Flag, Layer
from vani.engine.cluster import open_executor
from vani.readers.darshan.log import open_log
from vani.readers.darshan.records import Records, read_records
from vani.readers.open import open_trace
from vani.readers.trace_reader import Piece
from vani.schema.profile import Profile
from vani.store.read import open_store
from vani.store.write import write_store
from vani.systems import load_system
from vani.units import KiB

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
CASES, DARSHAN = ROOT / "tests/data/cases", ROOT / "tests/data/darshan"

EXPLAINED = {
    ("mpiio", "low_level_interface"): "only the records of MPI-IO show that it shares the file",
    ("mpiio", "one_process_moves_all"): "only collective calls show that the one process is their aggregator",
    ("mpiio", "imbalance"): "the same of several aggregators",
    ("mpiio", "strided_access"): "only collective calls show that others share the file (then: interleaved_access)",
}
"""Patterns that may appear without the records of a layer, and why."""

LAYERS = {
    "hdf5": ({"H5F", "H5D"}, {Layer.HDF5, Layer.NETCDF}),
    "pnetcdf": ({"PNETCDF_FILE", "PNETCDF_VAR"}, {Layer.PNETCDF}),
    "mpiio": ({"MPI-IO"}, {Layer.MPIIO}),
    "stdio": ({"STDIO"}, {Layer.STDIO}),
}
"""Modules of Darshan and layers of calls by the layer that is stripped."""


class Stripped:
    """A trace without the calls of some layers, as if the tracer did not wrap them."""

    def __init__(self, path: Path, layers: set[Layer]) -> None:
        self._reader, self._layers = open_trace(path), [int(layer) for layer in layers]
        functions = self._reader.functions().to_pylist()
        self._names = {row["name"] for row in functions if row["layer"] in self._layers}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def facts(self) -> Sequence[tuple[str, Sequence[str], int]]:
        return [fact for fact in self._reader.facts() if fact[0] not in self._names]

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        for batch in self._reader.batches(ranks, piece):
            rest = self._without(batch.filter(pa.array(~np.isin(batch["layer"], self._layers))))
            if rest.num_rows:
                yield rest

    def _without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        within, layer, via = (np.asarray(batch[name], np.int64) for name in ("within", "layer", "via"))
        bits = [within >> number & 1 for number in self._layers]
        libraries = within & ~sum(1 << number for number in self._layers) & 0b111100
        outermost = np.where(libraries > 0, np.log2(np.maximum(libraries, 1)).astype(np.int64), layer)
        # The file-system calls inside a call of stdio are then the program's.
        nested = int(Flag.NESTED) if Layer.STDIO in self._layers else 0
        columns = {
            "within": within & ~sum(1 << number for number in self._layers),
            "via": np.where(np.isin(via, self._layers), outermost, via),
            "depth": np.maximum(np.asarray(batch["depth"], np.int64) - sum(bits), 0),
            "flags": np.asarray(batch["flags"], np.int64) & ~nested,
        }
        return pa.RecordBatch.from_arrays(
            [pa.array(columns[f.name], f.type) if f.name in columns else batch[f.name] for f in batch.schema],
            schema=batch.schema,
        )


def profile_of(path: Path, folder: Path, layer: str | None = None) -> Profile:
    modules, layers = LAYERS[layer] if layer else (set(), set())
    if path.suffix == ".darshan":
        records = read_records(open_log(path))
        return profiled(replace(records, modules={n: m for n, m in records.modules.items() if n not in modules}))
    trace = Stripped(path, layers)
    with open_executor("synchronous") as executor:
        write_store(trace, folder, version="0", executor=executor)
        return characterise([open_store(folder)], [trace.app], executor, version="0", options=Options())[0]


def names(profile: Profile) -> set[str]:
    return {seen.pattern for seen in diagnosis(profile)} - {"nothing_remarkable"}


FEW = [
    *(CASES / name for name in ("indep-recorder", "iwa-recorder")),
    *(DARSHAN / f"{name}.darshan" for name in ("v3-netcdf-pnetcdf-4r", "v3-posix-mix-1r")),
]
MANY = [
    *(SHARED / "traces" / f"v3-{name}" for name in (
        "bothpr-posix-mix-4r", "ior-hdf5-coll-8r", "ior-ssf-hdf5-4r", "ior-ssf-mpiio-coll-8r",
        "ior-ssf-mpiio-indep-8r", "mpiio-mix-4r", "mpitracing-cm1like-4r", "netcdf-pnetcdf-4r",
    )),
    *(SHARED / "traces-new" / f"n2-{name}" for name in ("hdf5-4r", "mpitracing-mpiio-4r")),
    *(SHARED / "cases" / f"{name}.tgz" for name in ("scorep-mixed", "scorep-mixed-linktime", "pfw-headers")),
    ROOT / "tests/data/dftracer/loader-3p",
    *(SHARED / "cases" / f"{name}-recorder" for name in ("h5align", "h5cache", "h5sub", "mpiind-view", "pympi")),
    SHARED / "cases/imbalanced-io.darshan",
    *sorted((SHARED / "data/aiio-darshan").glob("*.darshan")),
    *sorted((SHARED / "data/darshan-logs").glob("[!d]*/*[!0-7].darshan")),
]  # fmt: skip


@pytest.mark.parametrize(
    "path", [*FEW, *(pytest.param(path, marks=pytest.mark.slow) for path in MANY)], ids=lambda path: path.stem[:40]
)
def test_a_run_without_a_layer_shows_no_more_patterns(path, tmp_path):
    path = unpacked(path, tmp_path)
    whole = profile_of(path, tmp_path / "whole")
    shown, used = names(whole), {row.layer for row in whole.accesses or ()}
    if not used:
        pytest.skip("no data call is recorded")
    for layer in used & LAYERS.keys():
        more = names(profile_of(path, tmp_path / layer, layer)) - shown
        assert {name for name in more if (layer, name) not in EXPLAINED} == set(), layer


def openpmd(*, with_hdf5: bool) -> Records:
    """As in the public log of openPMD: HDF5's independent calls become small pieces, which MPI-IO sieves."""
    written, read, pieces = 129 * 10**9, 144 * 10**9, 30_000_000
    every = {"rank": -1}
    modules = {
        "POSIX": module("POSIX", [every | {
            "OPENS": 384, "READS": 275_000, "BYTES_READ": read, "MAX_BYTE_READ": written - 1,
            "WRITES": 300_000, "BYTES_WRITTEN": written, "MAX_BYTE_WRITTEN": written - 1,
            "SIZE_READ_100K_1M": 275_000, "SIZE_WRITE_100K_1M": 300_000, "SEQ_READS": 275_000, "SEQ_WRITES": 300_000,
            "F_READ_TIME": 9_000.0, "F_WRITE_TIME": 8_000.0, "F_META_TIME": 100.0,
        }]),
        "MPI-IO": module("MPIIO", [every | {
            "COLL_OPENS": 384, "INDEP_WRITES": pieces, "BYTES_WRITTEN": written, "BYTES_READ": 0,
            "SIZE_WRITE_AGG_1K_10K": pieces, "F_WRITE_TIME": 20_000.0,
        }]),
    }  # fmt: skip
    if with_hdf5:
        modules |= {
            "H5F": module("H5F", [every | {"OPENS": 384, "USE_MPIIO": 1}]),
            "H5D": module("H5D", [every | {"OPENS": 384, "WRITES": 3_840, "BYTES_WRITTEN": written, "BYTES_READ": 0}]),
        }
    return replace(log(384, ("/lustre/8a_parallel_3Db_0000001.h5",), **modules), end_s=206.0)


def test_a_pattern_that_only_appears_without_a_layer_is_found(tmp_path):
    """One of those in `EXPLAINED`: without them, the test above would fail."""
    path = DARSHAN / "v3-netcdf-pnetcdf-4r.darshan"
    more = names(profile_of(path, tmp_path, "mpiio")) - names(profile_of(path, tmp_path))
    assert more and {("mpiio", name) for name in more} <= EXPLAINED.keys()


@pytest.mark.parametrize("with_hdf5", [True, False])
def test_reads_that_no_program_requests_are_named_with_and_without_the_records_of_hdf5(with_hdf5):
    profile = profiled(openpmd(with_hdf5=with_hdf5))
    assert {"sieving", "independent_io", "shared_file"} <= names(profile)
    advice = advise_document(profile, load_system("generic-lustre"))
    [sieving] = [given for given in advice.recommendations if given.rule in ("MIO001", "MIO003")]
    assert "144 GB" in sieving.reason and sieving.severity in ("high", "medium", "low")
    assert not [why for why in advice.no_recommendation if "no file is shared by several processes through MPI-IO" in why.why]


def test_calls_that_stdio_joins_hide_no_small_requests():
    size = 2_000 * 4 * KiB
    rows = [{"READS": 2_000, "BYTES_READ": size, "MAX_BYTE_READ": size - 1, "SIZE_READ_1K_10K": 2_000, "F_READ_TIME": 5.0}]
    records = log(1, ("/s/a", "/s/b"), POSIX=module("POSIX", rows, [1]))
    lines = module("STDIO", [{"WRITES": 10**6, "BYTES_WRITTEN": 10**8, "F_WRITE_TIME": 1.0}], [2])
    for modules in (records.modules, {**records.modules, "STDIO": lines}):
        assert "small_requests" in names(profiled(replace(records, modules=modules)))
