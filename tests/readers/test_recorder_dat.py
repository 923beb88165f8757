"""recorder.dat, made and damaged by hand (format document, section 8): complete parts are read, the rest is named."""

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from reading import Reading, read_trace
from tiny_traces import sites_of, write_tiny

import vani
from vani.errors import TraceError, UnknownFormatError
from vani.readers.recorder.reader import RecorderReader

Section = tuple[int, int, bytes]
"""Type, rank and content."""
METADATA, TIMES, TABLE, GRAMMARS, GRAMMAR_OF_RANK, RANK_TABLE, RANK_GRAMMAR, CALL_SITES = range(8)

COMBINED = ["3.x-dat", "3.x-dat2", "3.x-dat2-sites"]
PER_RANK = ["3.x-dat-late", "3.x-dat2-sites-late"]
"""Rank 1 was late: its sections are empty, and its files are next to the container."""


def sections_of(directory: Path) -> list[Section]:
    data = (directory / "recorder.dat").read_bytes()
    (count,) = struct.unpack_from("<I", data, 12)
    entries = [struct.unpack_from("<IiQQ", data, 16 + 24 * i) for i in range(count)]
    return [(kind, rank, data[offset : offset + size]) for kind, rank, offset, size in entries]


def write_sections(directory: Path, sections: list[Section], *, version: int = 2) -> None:
    head, offset = [struct.pack("<8sII", b"RECORDER", version, len(sections))], 16 + 24 * len(sections)
    for kind, rank, content in sections:
        head.append(struct.pack("<IiQQ", kind, rank, offset, len(content)))
        offset += len(content)
    (directory / "recorder.dat").write_bytes(b"".join([*head, *(content for _, _, content in sections)]))


def change_entry(
    directory: Path, kind: int, *, rank: int = -1, offset: int | None = None, size: int | None = None
) -> None:
    """Change the place of a section in the table of sections."""
    file = directory / "recorder.dat"
    data = bytearray(file.read_bytes())
    (count,) = struct.unpack_from("<I", data, 12)
    for at in range(16, 16 + 24 * count, 24):
        found = struct.unpack_from("<IiQQ", data, at)
        if found[:2] == (kind, rank):
            new = (found[2] if offset is None else offset, found[3] if size is None else size)
            struct.pack_into("<QQ", data, at + 8, *new)
    file.write_bytes(data)


def rows(reading: Reading, *, without: tuple[str, ...] = ()) -> list[dict]:
    return [{k: v for k, v in row.items() if k not in without} for row in reading.calls.to_pylist()]


@pytest.fixture
def tiny(request, tmp_path) -> Path:
    write_tiny(tmp_path, request.param)
    return tmp_path


# ---------------------------------------------------------------- format and table of sections


@pytest.mark.parametrize("version", [0, 100, 2**32 - 1])
def test_impossible_format_is_refused_by_its_number(version, tmp_path):
    write_tiny(tmp_path, "3.x-dat2-sites")
    write_sections(tmp_path, sections_of(tmp_path), version=version)
    with pytest.raises(
        UnknownFormatError, match=rf"recorder\.dat of format {version}; known are 1 and 2; .*update"
    ):
        RecorderReader(tmp_path)


@pytest.mark.parametrize("version", [3, 99])
def test_compatible_newer_format_is_read_with_a_note(version, tmp_path):
    write_tiny(tmp_path, "3.x-dat2-sites")
    whole = read_trace(tmp_path)
    write_sections(tmp_path, [*sections_of(tmp_path), (8, -1, b"of a later version")], version=version)
    reading = read_trace(tmp_path)
    assert reading.calls == whole.calls
    assert reading.problems[0] == (
        f"{tmp_path}: recorder.dat is of format {version}, known are 1 and 2: read as 3.x-sites, which its metadata, "
        "call tables and grammars fit; what is new in it is passed over"
    )
    assert any("unknown type 8 passed over" in problem for problem in reading.problems)


def test_unsupported_newer_format_is_refused_with_the_contradiction(tmp_path):
    # Keys without call sites, as in format 1, are a changed layout.
    write_tiny(tmp_path, "3.x-dat")
    write_sections(tmp_path, sections_of(tmp_path), version=3)
    with pytest.raises(UnknownFormatError, match=r"recorder\.dat is of format 3, .*contradicts itself \(.*update"):
        RecorderReader(tmp_path)


@pytest.mark.parametrize("tiny", [*COMBINED, *PER_RANK], indirect=True)
@pytest.mark.parametrize("place", [0, 3, 99])
def test_section_of_an_unknown_type_is_skipped_with_a_note(tiny, place):
    whole = read_trace(tiny)
    assert whole.problems == []
    sections = sections_of(tiny)
    version = (tiny / "recorder.dat").read_bytes()[8]
    sections[place:place] = [(8, -1, b"of a later version"), (8, 2, b"")]
    write_sections(tiny, sections, version=version)
    reading = read_trace(tiny)
    assert reading.calls == whole.calls
    assert reading.problems == [f"{tiny / 'recorder.dat'}: 2 sections of the unknown type 8 passed over"]
    profile = vani.profile(tiny)
    assert profile.traces[0].problems == reading.problems and profile.traces[0].complete is False


@pytest.mark.parametrize("sections", [[(8, -1, b"x")], [(8, -1, b"x"), (9, 0, b"y")], [(RANK_TABLE, -5, b"x")]])
def test_file_with_only_unknown_sections_is_refused(sections, tmp_path):
    write_sections(tmp_path, sections)
    with pytest.raises(TraceError, match=r"recorder\.dat: has no section for recorder\.mt"):
        RecorderReader(tmp_path)


@pytest.mark.parametrize("tiny", ["3.x-dat2-sites"], indirect=True)
def test_many_unknown_types_make_few_lines(tiny):
    write_sections(tiny, [*sections_of(tiny), *((100 + i, -1, b"") for i in range(1000))])
    problems = read_trace(tiny).problems
    assert len(problems) == 6 and problems[-1].endswith("sections of 1000 unknown types passed over in all")


@pytest.mark.parametrize("tiny", ["3.x-dat2-sites"], indirect=True)
def test_sections_without_a_rank_are_skipped(tiny):
    whole = read_trace(tiny)
    write_sections(tiny, [*sections_of(tiny), (RANK_TABLE, -1, b"x"), (CALL_SITES, -7, b"x")])
    reading = read_trace(tiny)
    assert reading.calls == whole.calls
    assert reading.problems == [f"{tiny / 'recorder.dat'}: 2 sections of no rank passed over"]


@pytest.mark.parametrize("tiny", ["3.x-dat2-sites", "3.x-dat2-sites-late"], indirect=True)
def test_sections_of_nonexistent_ranks_are_skipped(tiny):
    whole = read_trace(tiny)
    write_sections(
        tiny, [*sections_of(tiny), (CALL_SITES, 2, b""), (CALL_SITES, 3, b""), (RANK_TABLE, 77, b"x")]
    )
    reading = read_trace(tiny)
    assert reading.calls == whole.calls
    assert (
        reading.problems[-1]
        == f"{tiny / 'recorder.dat'}: has sections of rank 3, of 3 ranks in all: passed over"
    )


@pytest.mark.parametrize("tiny", [*COMBINED, *PER_RANK], indirect=True)
def test_first_non_empty_of_duplicate_sections_counts(tiny):
    whole, version = read_trace(tiny), (tiny / "recorder.dat").read_bytes()[8]
    sections = sections_of(tiny)
    kind = TABLE if any(kind == TABLE for kind, _, _ in sections) else RANK_TABLE
    name = "recorder.cst" if kind == TABLE else "0.cst"
    rank = -1 if kind == TABLE else 0
    write_sections(tiny, [(kind, rank, b""), *sections, (kind, rank, b"nonsense")], version=version)
    reading = read_trace(tiny)
    assert reading.calls == whole.calls
    assert reading.problems == [f"{tiny / 'recorder.dat'}: has several sections for {name}, the first counts"]


@pytest.mark.parametrize("tiny", COMBINED, indirect=True)
def test_overlapping_sections_are_reported(tiny):
    # The time stamps begin a few bytes early, in the names of functions, and cannot be read from there.
    data = (tiny / "recorder.dat").read_bytes()
    _, _, offset, size = struct.unpack_from("<IiQQ", data, 16 + 24)
    change_entry(tiny, TIMES, offset=offset - 8, size=size + 8)
    reading = read_trace(tiny)
    overlap = f"{tiny / 'recorder.dat'}: the section for recorder.ts overlaps what precedes it"
    assert reading.problems[0] == overlap and len(reading.problems) > 1


@pytest.mark.parametrize("tiny", ["3.x-dat2"], indirect=True)
def test_section_inside_the_table_of_sections_is_reported(tiny):
    change_entry(tiny, TIMES, offset=0, size=48)
    assert "the section for recorder.ts overlaps what precedes it" in read_trace_problems(tiny)


def read_trace_problems(directory: Path) -> str:
    try:
        return " ".join(read_trace(directory).problems)
    except TraceError as error:
        return str(error)


@pytest.mark.parametrize("tiny", ["3.x-dat2-sites"], indirect=True)
@pytest.mark.parametrize(
    ("offset", "size"),
    [(2**64 - 1, 2**64 - 1), (0, 2**64 - 1), (2**63, 1), (10**6, 10), (2**64 - 10, 10), (None, 2**63)],
)
@pytest.mark.parametrize("kind", range(5))
def test_section_outside_the_file_is_reported_before_it_is_read(
    tiny, kind, offset, size, peak_memory
):
    change_entry(tiny, kind, offset=offset, size=size)
    names = ["recorder.mt", "recorder.ts", "recorder.cst", "ug.cfg", "ug.mt"]
    with peak_memory(below=64 << 20):
        assert names[kind] in read_trace_problems(tiny)


@pytest.mark.parametrize("tiny", ["3.x-dat2-sites"], indirect=True)
@pytest.mark.parametrize("count", [2**32 - 1, 2**31, 1000])
def test_impossible_number_of_sections_is_refused(tiny, count, peak_memory):
    data = bytearray((tiny / "recorder.dat").read_bytes())
    struct.pack_into("<I", data, 12, count)
    (tiny / "recorder.dat").write_bytes(data)
    with (
        peak_memory(below=64 << 20),
        pytest.raises(TraceError, match=rf"claims {count:,} sections in {len(data):,} bytes"),
    ):
        RecorderReader(tiny)


def test_unfinished_file_is_reported_as_unfinished(tmp_path):
    # The tracer writes zeros for the table, then the sections, then the table.
    write_tiny(tmp_path, "3.x-dat2-sites")
    data = bytearray((tmp_path / "recorder.dat").read_bytes())
    (count,) = struct.unpack_from("<I", data, 12)
    data[16 : 16 + 24 * count] = bytes(24 * count)
    (tmp_path / "recorder.dat").write_bytes(data)
    with pytest.raises(TraceError, match=r"recorder\.dat: has no sections, as a run leaves it that ended"):
        RecorderReader(tmp_path)


@pytest.mark.parametrize("content", [b"", b"RECORDER", b"RECORDER\2\0\0\0", b"NOTRECORDER" + bytes(64)])
def test_invalid_recorder_dat_is_refused(content, tmp_path):
    (tmp_path / "recorder.dat").write_bytes(content)
    with pytest.raises(TraceError, match="does not begin with RECORDER"):
        RecorderReader(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "recorder.dat")
    with pytest.raises(TraceError, match="is not a regular file"):
        RecorderReader(tmp_path)


def test_leftovers_of_an_earlier_run_are_not_part_of_the_trace(tmp_path):
    write_tiny(tmp_path, "3.0", ranks=2)
    write_tiny(tmp_path, "3.x-dat2-sites", ranks=3)
    reading = read_trace(tmp_path)
    assert reading.reader.ranks == 3 and reading.problems == []


# ---------------------------------------------------------------- cut off


@pytest.mark.parametrize("tiny", ["3.x-dat2-sites"], indirect=True)
@pytest.mark.parametrize("kind", range(8))
@pytest.mark.parametrize("part", [0, 0.5, 0.99])
def test_truncated_section_is_refused_or_listed_as_lost(
    tiny, kind, part
):
    data = (tiny / "recorder.dat").read_bytes()
    (count,) = struct.unpack_from("<I", data, 12)
    entries = [struct.unpack_from("<IiQQ", data, 16 + 24 * i) for i in range(count)]
    for _, rank, offset, size in (e for e in entries if e[0] == kind):
        (tiny / "recorder.dat").write_bytes(data[: offset + int(size * part)])
        text = read_trace_problems(tiny)
        names = ("recorder.mt", "recorder.ts", "recorder.cst", "ug.cfg", "ug.mt", "", "", f"{rank}.callsites")
        # A required part after the cut is named.
        assert (names[kind] in text or "is cut off before its section for" in text) and "\n" not in text


def test_truncation_within_the_last_ranks_loses_only_those(tmp_path):
    # Without inter-process compression the sections of the last rank are the last.
    write_tiny(tmp_path, "3.x-dat2-sites-late")
    late = {suffix: (tmp_path / f"1.{suffix}").read_bytes() for suffix in ("cst", "cfg", "callsites")}
    kinds = {RANK_TABLE: "cst", RANK_GRAMMAR: "cfg", CALL_SITES: "callsites"}
    sections = [(k, r, late[kinds[k]] if r == 1 else c) for k, r, c in sections_of(tmp_path)]
    for suffix in late:
        (tmp_path / f"1.{suffix}").unlink()
    write_sections(tmp_path, sections)
    whole = read_trace(tmp_path)
    data = (tmp_path / "recorder.dat").read_bytes()
    (tmp_path / "recorder.dat").write_bytes(data[:-5])
    reading = read_trace(tmp_path)
    counts = np.bincount(reading.column("rank"), minlength=3).tolist()
    assert counts == [*np.bincount(whole.column("rank")).tolist()[:2], 0]
    assert [p.split(",")[0] for p in reading.problems if p.startswith("rank")] == ["rank 2: left out"]
    profile = vani.profile(tmp_path)
    assert profile.traces[0].complete is False and profile.workflow.io.bytes.total > 0


# ---------------------------------------------------------------- ranks that were late


@pytest.mark.parametrize("tiny", PER_RANK, indirect=True)
def test_late_ranks_are_read_like_ranks_on_time(tiny):
    late = read_trace(tiny)
    assert late.problems == [] and late.piece.ranks_read == 3
    suffixes = {RANK_TABLE: "cst", RANK_GRAMMAR: "cfg", CALL_SITES: "callsites"}
    sections = []
    for kind, rank, content in sections_of(tiny):
        file = tiny / f"{rank}.{suffixes.get(kind, 'none')}"
        assert bool(content) == (rank != 1)
        sections.append((kind, rank, content or file.read_bytes()))
        file.unlink(missing_ok=True)
    write_sections(tiny, sections, version=(tiny / "recorder.dat").read_bytes()[8])
    assert read_trace(tiny).calls == late.calls


@pytest.mark.parametrize("tiny", PER_RANK, indirect=True)
@pytest.mark.parametrize("missing", ["cst", "cfg"])
def test_rank_without_records_is_reported_as_lost_and_others_are_read(tiny, missing):
    whole = read_trace(tiny)
    (tiny / f"1.{missing}").unlink()
    reading = read_trace(tiny)
    kept = [row for row in rows(whole) if row["rank"] != 1]
    assert len(rows(reading)) == len(kept) > 0
    assert reading.problems == [
        f"rank 1: left out, {tiny / 'recorder.dat'}: has an empty section for 1.{missing}, "
        "which is not next to it"
    ]
    quick = vani.profile(tiny, quick=True)
    assert quick.traces[0].problems == reading.problems and quick.traces[0].records == len(kept)


def test_late_rank_loses_call_sites_alone(tmp_path):
    # Rank 0 removes the call sites it finds when it is done.
    write_tiny(tmp_path, "3.x-dat2-sites-late")
    (tmp_path / "1.callsites").unlink()
    reading = read_trace(tmp_path)
    assert reading.piece.ranks_read == 3
    assert reading.problems == [
        f"rank 1: call sites left out, {tmp_path / 'recorder.dat'}: has an empty section for 1.callsites, "
        "which is not next to it"
    ]


@pytest.mark.parametrize("name", ["1.cst", "1.cfg", "1.callsites", "recorder.dat"])
def test_trace_digest_changes_with_a_file_next_to_it(name, tmp_path):
    write_tiny(tmp_path, "3.x-dat2-sites-late")
    before = RecorderReader(tmp_path).digest()
    assert RecorderReader(tmp_path).digest() == before
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b"\0")
    assert RecorderReader(tmp_path).digest() != before


# ---------------------------------------------------------------- call sites


def put(content: bytes, at: int, *numbers: int) -> bytes:
    changed = bytearray(content)
    struct.pack_into(f"<{len(numbers)}I", changed, at, *numbers)
    return bytes(changed)


PATHS_END = 16 + len(b"/opt/bin/tiny\0/usr/lib/libmpich.so.12\0")
SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "version 0": lambda c: put(c, 0, 0),
    "version 2": lambda c: put(c, 0, 2),
    "no module": lambda c: put(c, 4, 0),
    "a module more": lambda c: put(c, 4, 3),
    "4 G of modules": lambda c: put(c, 4, 2**32 - 1),
    "no site": lambda c: put(c, 8, 0),
    "a site more": lambda c: put(c, 8, 3),
    "4 G of sites": lambda c: put(c, 8, 2**32 - 1),
    "no paths": lambda c: put(c, 12, 0),
    "a byte of paths more": lambda c: put(c, 12, PATHS_END - 15),
    "4 GB of paths": lambda c: put(c, 12, 2**32 - 1),
    "sizes that wrap": lambda c: put(c, 8, 2**32 - 1, 2**32 - 1),
    "a path without end": lambda c: c[: PATHS_END - 1] + b"x" + c[PATHS_END:],
    "a path too many": lambda c: c.replace(b"/bin/", b"/bin\0", 1),
    "a site in no module": lambda c: put(c, PATHS_END, 2),
    "a site in module 4 G": lambda c: put(c, PATHS_END + 12, 2**32 - 1),
    "cut off": lambda c: c[:-1],
    "cut within the head": lambda c: c[:9],
    "bytes too many": lambda c: c + b"\0",
}


@pytest.mark.parametrize("how", SPOILT)
def test_damaged_call_sites_lose_only_the_call_sites_of_their_rank(how, tmp_path, peak_memory):
    write_tiny(tmp_path, "3.x-dat2-sites")
    whole = read_trace(tmp_path)
    sections = [
        (k, r, SPOILT[how](c) if (k, r) == (CALL_SITES, 1) else c) for k, r, c in sections_of(tmp_path)
    ]
    write_sections(tmp_path, sections)
    with peak_memory(below=64 << 20):
        reading = read_trace(tmp_path)
    assert reading.calls == whole.calls
    (problem,) = reading.problems
    assert problem.startswith(f"rank 1: call sites left out, {tmp_path / 'recorder.dat'} (1.callsites): ")
    assert reading.reader.app == "tiny"


def test_paths_of_modules_may_contain_any_bytes(tmp_path):
    write_tiny(tmp_path, "3.x-dat2-sites")
    odd = b"/opt/\xff\xfe\n b\xc3\xbcn/ti\xf0ny \x1b[31m"
    content = sites_of(0).replace(b"/opt/bin/tiny", odd)
    content = put(content, 12, PATHS_END - 16 + len(odd) - len(b"/opt/bin/tiny"))
    write_sections(tmp_path, [(k, r, content if k == CALL_SITES else c) for k, r, c in sections_of(tmp_path)])
    reading = read_trace(tmp_path)
    assert reading.problems == []
    assert reading.reader.app == "ti\ufffdny \x1b[31m"
    profile = vani.profile(tmp_path)
    assert profile.apps[0].name == reading.reader.app
    store = tmp_path.with_name("store")
    vani.convert(tmp_path, store, call_sites=True)


@pytest.mark.parametrize("name", ["3.x-mt2-sites", "3.x-mt"])
def test_keys_of_several_files_reveal_whether_they_have_call_sites(name, tmp_path):
    calls = write_tiny(tmp_path, name)
    reading = read_trace(tmp_path)
    assert reading.problems == [] and reading.calls.num_rows == sum(map(len, calls))
    assert reading.reader.layout == ("3.x-sites" if "sites" in name else "3.x")


def test_trace_is_recognised_in_any_folder(tmp_path):
    write_tiny(tmp_path / "one", "3.x-dat2-sites")
    shutil.copytree(tmp_path / "one", tmp_path / "with a blank")
    assert read_trace(tmp_path / "with a blank").calls == read_trace(tmp_path / "one").calls
