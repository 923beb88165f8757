"""Traces of a few hundred bytes in every layout, so that each byte can be damaged in turn."""

from pathlib import Path

from tests.traces.recorder_writer import Call, encode_call_sites, write_trace

FUNCTIONS = [
    "creat",
    "open",
    "close",
    "read",
    "write",
    "lseek",
    "pwrite",
    "MPI_File_open",
    "MPI_File_write_at",
    "MPI_Barrier",
]

PARTS_OF = {
    "2.3": ["VERSION", "recorder.mt", "0.cst", "0.cfg", "0.ts"],
    "2.5p-shared": ["VERSION", "recorder.mt", "0.cst", "0.cfg", "0.ts", "ug.mt"],
    "2.5g": ["VERSION", "recorder.mt", "recorder.cst", "recorder.ts", "ug.mt", "ug.cfg"],
    "2.5g-per-rank": ["VERSION", "recorder.mt", "0.cst", "0.cfg", "recorder.ts"],
    "3.0": ["VERSION", "recorder.mt", "recorder.cst", "recorder.ts", "ug.mt", "ug.cfg"],
    "3.x-mt": ["recorder.mt", "recorder.cst", "recorder.ts", "ug.mt", "ug.cfg"],
    "3.x-mt2-sites": ["recorder.mt", "recorder.cst", "recorder.ts", "ug.mt", "ug.cfg", "0.callsites"],
    "3.x-dat": ["recorder.dat"],
}
"""The files of a trace with one rank."""

# name -> settings of write_trace
TINY: dict[str, dict] = {
    "2.3": {"layout": "2.3"},
    "2.4": {"layout": "2.4"},
    "2.5p": {"layout": "2.5p"},
    "2.5p-shared": {"layout": "2.5p", "interprocess": True},
    "2.5g": {"layout": "2.5g"},
    "2.5g-per-rank": {"layout": "2.5g", "interprocess": False},
    "2.5g-patterns": {"layout": "2.5g", "interprocess_patterns": True, "intraprocess_patterns": True},
    "3.0": {"layout": "3.0"},
    "3.0-per-rank-raw-times": {"layout": "3.0", "interprocess": False, "compress_times": False},
    "3.0-patterns": {"layout": "3.0", "interprocess_patterns": True, "intraprocess_patterns": True},
    "3.x-mt": {"layout": "3.x-mt"},
    "3.x-dat": {"layout": "3.x-dat"},
    "3.x-dat-per-rank": {"layout": "3.x-dat", "interprocess": False},
    "3.x-dat-late": {"layout": "3.x-dat", "interprocess": False, "late": [1]},
    "3.x-mt2-sites": {"layout": "3.x-mt2"},
    "3.x-dat2": {"layout": "3.x-dat2"},
    "3.x-dat2-sites": {"layout": "3.x-dat2"},
    "3.x-dat2-sites-late": {"layout": "3.x-dat2", "interprocess": False, "late": [1]},
}
"""Names with `sites` have the call sites of `sites_of`."""

MODULES = ["/opt/bin/tiny", "/usr/lib/libmpich.so.12"]


def calls_of(rank: int, ranks: int) -> list[Call]:
    """18 calls (rank 0: 19): a private file written and read, a shared one written by MPI-IO, relative to time 0."""
    own, shared = f"/s/own.{rank}", "/s/shared"
    plain = [
        ("open", (own, "578", "420"), 0),
        *[("write", (own, "%p", "100"), 0)] * 4,
        ("lseek", (own, "0", "0"), 0),
        *[("read", (own, "%p", "150"), 0)] * 3,
        ("close", (own,), 0),
        ("MPI_Barrier", ("MPI_COMM_WORLD",), 0),
        ("MPI_File_open", ("MPI_COMM_WORLD", shared, "5", "%p", "0-0"), 0),
        ("open", (shared, "66", "420"), 1),
        *[
            call
            for block in range(2)
            for call in (
                (
                    "MPI_File_write_at",
                    ("0-0", str((block * ranks + rank) * 64), "%p", "64", "MPI_BYTE", "[0_0]"),
                    0,
                ),
                ("pwrite", (shared, "%p", "64", str((block * ranks + rank) * 64)), 1),
            )
        ],
        ("close", (shared,), 0),
    ]
    if rank == 0:
        plain.insert(0, ("creat", ("/s/log", "420"), 0))
    # A call inside an MPI-IO call was made by its library. The numbers of places differ between ranks.
    return [
        Call(function, args, depth, 0, 10 * i - 3 * depth, 10 * i + 5 - 4 * depth, site=(depth + rank) % 2)
        for i, (function, args, depth) in enumerate(plain)
    ]


def sites_of(rank: int) -> bytes:
    """Two places, one in the program and one in the library; only even ranks number them in this order."""
    places = [(0, 0x1234), (1, 0xABCDEF)]
    return encode_call_sites(MODULES, places if rank % 2 == 0 else places[::-1])


def write_tiny(directory: Path, name: str, *, ranks: int = 3, most: int = 19) -> list[list[Call]]:
    """Write the trace with that name, with the first `most` calls of each rank, and return its calls by rank."""
    calls = [calls_of(rank, ranks)[:most] for rank in range(ranks)]
    call_sites = [sites_of(rank) for rank in range(ranks)] if "sites" in name else None
    write_trace(directory, calls, functions=FUNCTIONS, call_sites=call_sites, **TINY[name])
    return calls
