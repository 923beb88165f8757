"""Frames and files: sizes are checked before they are trusted."""

import os
import struct
import zlib

import pytest

from tests.traces.recorder_writer import zframe
from vani.errors import TraceError
from vani.readers.recorder.source import MAX_TABLE_BYTES, Inflater, inflate_frame, read_file


def test_frames_are_decoded_completely():
    contents = [b"", b"a", bytes(10_000), os.urandom(5000)]
    assert [inflate_frame(zframe(content), where="ug.cfg") for content in contents] == contents


def frame(packed: int, content: int, stream: bytes) -> bytes:
    return struct.pack("<QQ", packed, content) + stream


STREAM = zlib.compress(b"0123456789" * 100)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (STREAM[:8], "has no header"),
        (frame(len(STREAM) + 1, 1000, STREAM), "claims"),
        (frame(2**64 - 1, 1000, STREAM), "claims"),
        (frame(len(STREAM), 999, STREAM), "its header says 999"),
        (frame(len(STREAM), 1001, STREAM), "its header says 1,001"),
        (frame(len(STREAM), 2**64 - 1, STREAM), "claims to contain"),
        (frame(len(STREAM), MAX_TABLE_BYTES + 1, STREAM), "claims to contain"),
        (frame(len(STREAM) - 1, 1000, STREAM[:-1]), "its header says"),
        (frame(len(STREAM), 1000, STREAM[:-1] + b"\0"), "damaged"),
        (frame(len(STREAM), 1000, b"\0" * len(STREAM)), "damaged"),
        (frame(0, 0, b""), "its header says"),
    ],
)
def test_frame_that_contradicts_its_header_is_refused(content, message):
    with pytest.raises(TraceError, match=message):
        inflate_frame(content, where="0.cst")


@pytest.mark.parametrize("length", [1, 15, 16 + len(STREAM) - 1])
def test_frame_that_leads_out_of_the_file_is_refused(length):
    with pytest.raises(TraceError, match=r"ug\.cfg"):
        inflate_frame(zframe(b"0123456789" * 100)[:length], where="ug.cfg")


def test_stream_longer_than_its_frame_claims_is_not_inflated_further(peak_memory):
    # 16 GiB of zeros in 16 MiB: memory is limited to the size in the header. After a full flush a stream
    # repeats itself.
    packer = zlib.compressobj(1)
    begin, piece = (
        packer.flush(zlib.Z_FULL_FLUSH),
        packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH),
    )
    bomb = begin + piece * 1024
    with peak_memory(below=256 << 20), pytest.raises(TraceError, match="its header says 4,096"):
        inflate_frame(frame(len(bomb), 4096, bomb), where="0.cst")


def test_a_stream_is_read_piece_by_piece(tmp_path):
    content = os.urandom(1 << 20)
    packed = zlib.compress(content)
    (tmp_path / "recorder.ts").write_bytes(b"before" + packed + b"behind")
    inflater = Inflater(tmp_path / "recorder.ts", 6, len(packed))
    pieces = []
    while piece := inflater.read(100_003):
        pieces.append(piece)
    inflater.close()
    assert b"".join(pieces) == content and {len(p) for p in pieces[:-1]} == {100_003}


def test_truncated_stream_gives_its_content(tmp_path):
    content = os.urandom(1 << 20)
    packed = zlib.compress(content)
    (tmp_path / "recorder.ts").write_bytes(packed[:500_000])
    inflater = Inflater(tmp_path / "recorder.ts", 0, len(packed))
    found = inflater.read(1 << 21)
    assert 450_000 < len(found) < 500_000 and content.startswith(found) and inflater.read(1) == b""
    inflater.close()


def test_a_damaged_stream_is_named(tmp_path):
    packed = bytearray(zlib.compress(os.urandom(1 << 16), 0))
    packed[2] ^= 0xFF
    (tmp_path / "recorder.ts").write_bytes(packed)
    inflater = Inflater(tmp_path / "recorder.ts", 0, len(packed))
    with pytest.raises(TraceError, match=r"recorder\.ts: .*damaged"):
        inflater.read(1 << 17)
    inflater.close()


def test_special_file_is_refused_without_waiting(tmp_path):
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name, message in {
        "absent": "is missing", "directory": "is not a regular file", "pipe": "is not a regular file",
        "loop": "is missing", "dangling": "is missing",
    }.items():  # fmt: skip
        with pytest.raises(TraceError, match=message):
            read_file(tmp_path / name)


def test_file_too_large_for_memory_is_refused_without_reading_it(tmp_path):
    with (tmp_path / "0.cst").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TraceError, match="more than the"):
        read_file(tmp_path / "0.cst")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    (tmp_path / "0.cst").write_bytes(b"x")
    (tmp_path / "0.cst").chmod(0)
    with pytest.raises(TraceError, match="Permission denied"):
        read_file(tmp_path / "0.cst")
