"""Damage to valid inputs, as a pure function of a random generator: the same seed gives the same bytes."""

from __future__ import annotations

import io
import random
import re
import struct
import zlib
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["damaged"]

Files = dict[str, bytes]

_NUMBERS = [0, 1, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 10**18, 2**62, 2**63 - 1, -(2**63)]
_TEXTS = [
    b"-1", b"0", b"999999999999999999", b"9223372036854775807", b"18446744073709551615", b"99999999999999999999",
    b"%p", b"", b"[0_1]", b"1*r+0", b"/dev/null", b"\xff\xfe", b"a\nb", b"\x1b[31m",
]  # fmt: skip
_SCALARS = [
    "null", "-1", "0", "1e400", ".nan", "-.inf", "18446744073709551616", "9223372036854775807", '"\\0"', "[]", "{}",
    "&a [*a]", "*nobody", "!!python/name:os.system", "<<: {}", "true", "1e-320", "2026-01-01", "'", "\t", "a: b: c",
    "\u202e", '"\\ud800"', "999999999999999999999999", "~", "? ", "%YAML 9.9", "---",
]  # fmt: skip


def damaged(kind: str, files: Files, random_: random.Random) -> Files:
    """A copy of the files of a seed with one to three kinds of damage."""
    files = dict(files)
    ways = _WAYS[kind]
    for _ in range(random_.choice((1, 1, 1, 2, 3))):
        if files:
            random_.choice(ways)(files, random_)
    return files


def _pick(files: Files, random_: random.Random) -> str:
    return random_.choice(sorted(files))


def _bytes(content: bytes, random_: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(random_.choice((1, 1, 2, 4))):
        at = random_.randrange(len(changed) + 1)
        way = random_.randrange(6)
        if way == 0 and at < len(changed):
            changed[at] ^= 1 << random_.randrange(8)
        elif way == 1:
            changed[at:at] = random_.randbytes(random_.randint(1, 9))
        elif way == 2:
            del changed[at : at + random_.randint(1, 9)]
        elif way == 3:
            number = random_.choice(_NUMBERS)
            width = random_.choice((4, 8))
            at -= at % 4
            changed[at : at + width] = (number % 2 ** (8 * width)).to_bytes(width, "little")
        elif way == 4:
            del changed[at:]
        else:
            end = min(len(changed), at + random_.randint(1, 64))
            changed[at:at] = changed[at:end]
    return bytes(changed)


def _in_place(files: Files, random_: random.Random) -> None:
    name = _pick(files, random_)
    files[name] = _bytes(files[name], random_)


def _remove(files: Files, random_: random.Random) -> None:
    del files[_pick(files, random_)]


def _swap(files: Files, random_: random.Random) -> None:
    one, other = _pick(files, random_), _pick(files, random_)
    files[one], files[other] = files[other], files[one]


def _empty(files: Files, random_: random.Random) -> None:
    files[_pick(files, random_)] = b""


def _repeat(files: Files, random_: random.Random) -> None:
    files[_pick(files, random_)] *= 2


def _text(files: Files, random_: random.Random) -> None:
    """Replace a number written as text, which is what arguments of calls are."""
    name = _pick(files, random_)
    files[name] = _other_text(files[name], random_)


def _other_text(content: bytes, random_: random.Random) -> bytes:
    found = [m.span() for m in re.finditer(rb"\d{1,20}", content)]
    if not found:
        return content
    start, end = random_.choice(found)
    new = random_.choice(_TEXTS)
    if random_.random() < 0.5:
        new = new[: end - start].rjust(end - start, b"9")
    return content[:start] + new + content[end:]


def _inside(files: Files, random_: random.Random) -> None:
    """Damage the data below the compression, which is restored."""
    packed = [n for n, content in files.items() if _frames(content)]
    if not packed:
        _in_place(files, random_)
        return
    name = random_.choice(sorted(packed))
    frames = _frames(files[name])
    chosen = random_.randrange(len(frames))
    way = random_.choice((_bytes, _other_text))
    pieces = []
    for number, (head, inner) in enumerate(frames):
        if number == chosen:
            inner = way(inner, random_)  # noqa: PLW2901 - the frame that is damaged
            stream = zlib.compress(inner)
            head = struct.pack("<QQ", len(stream), len(inner))  # noqa: PLW2901
        else:
            stream = zlib.compress(inner)
            head = struct.pack("<QQ", len(stream), len(inner))  # noqa: PLW2901
        pieces.append(head + stream)
    files[name] = b"".join(pieces)


def _frames(content: bytes) -> list[tuple[bytes, bytes]]:
    """Heads and inflated contents of a file's zlib frames; empty if it contains anything else."""
    found, at = [], 0
    while at + 16 < len(content):
        (packed,) = struct.unpack_from("<Q", content, at)
        stream = content[at + 16 : at + 16 + packed]
        if len(stream) != packed or stream[:1] != b"\x78":
            return []
        try:
            found.append((content[at : at + 16], zlib.decompress(stream)))
        except zlib.error:
            return []
        at += 16 + packed
    return found


def _section(files: Files, random_: random.Random) -> None:
    """Damage the table of sections of a recorder.dat, or the content of a section."""
    if len(files.get("recorder.dat", b"")) < 40:
        _in_place(files, random_)
        return
    content = files["recorder.dat"]
    (count,) = struct.unpack_from("<I", content, 12)
    chosen = random_.randrange(min(count, 1000) + 1)
    if chosen == count or 16 + 24 * (chosen + 1) > len(content):
        at, size = 16, 24 * min(count, 1000)
    else:
        at, size = struct.unpack_from("<QQ", content, 16 + 24 * chosen + 8)
    part = {"part": content[at : at + size]}
    random_.choice((_inside, _in_place, _text))(part, random_)
    files["recorder.dat"] = content[:at] + part["part"][:size].ljust(size, b"\0") + content[at + size :]


def _cells(files: Files, random_: random.Random) -> None:
    """Change values, types or names in a Parquet file that remains one."""
    name = _pick(files, random_)
    try:
        table = pq.read_table(io.BytesIO(files[name]))
    except (pa.ArrowException, OSError):
        _in_place(files, random_)
        return
    if not table.num_columns or not table.num_rows:
        return
    column = random_.randrange(table.num_columns)
    label, values = table.column_names[column], table.column(column)
    way = random_.randrange(7)
    try:
        if way == 0:
            table = table.drop_columns([label])
        elif way == 1:
            table = table.append_column(label, values)
        elif way == 2:
            table = table.rename_columns(
                [
                    n if i != column else n + random_.choice(("", "x", "\n"))
                    for i, n in enumerate(table.column_names)
                ]
            )
        elif way == 3:
            table = table.set_column(
                column, label, values.cast(random_.choice((pa.string(), pa.float64(), pa.int64())))
            )
        elif way == 4:
            table = pa.concat_tables([table] * random_.choice((2, 50)))
        else:
            rows = values.to_pylist()
            for _ in range(random_.choice((1, 3))):
                rows[random_.randrange(len(rows))] = _cell(values.type, random_)
            table = table.set_column(column, label, pa.array(rows, values.type))
        written = io.BytesIO()
        pq.write_table(table, written)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return
    files[name] = written.getvalue()


def _cell(kind: pa.DataType, random_: random.Random) -> object:
    if random_.random() < 0.3:
        return None
    if pa.types.is_floating(kind):
        return random_.choice((float("nan"), float("inf"), -1.0, 1e308, -0.0))
    if pa.types.is_integer(kind):
        return random_.choice(_NUMBERS)
    return random_.choice(_TEXTS).decode("latin-1")


def _scalar(files: Files, random_: random.Random) -> None:
    """Replace the scalar after a key, an item or a comma in a YAML document."""
    name = _pick(files, random_)
    text = files[name].decode("utf-8", "surrogateescape")
    places = [m.span(1) for m in re.finditer(r"[:,\[-] ([^\s,\[\]{}]+)", text)]
    if places:
        start, end = random_.choice(places)
        text = text[:start] + random_.choice(_SCALARS) + text[end:]
    files[name] = text.encode("utf-8", "surrogateescape")


def _lines(files: Files, random_: random.Random) -> None:
    """Omit, repeat, move or re-indent a line of a document."""
    name = _pick(files, random_)
    lines = files[name].splitlines(keepends=True)
    if not lines:
        return
    at = random_.randrange(len(lines))
    way = random_.randrange(5)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines.insert(at, lines[at])
    elif way == 2:
        lines.insert(random_.randrange(len(lines)), lines.pop(at))
    elif way == 3:
        lines[at] = b"  " + lines[at]
    else:
        lines[at] = lines[at].lstrip()
    files[name] = b"".join(lines)


def _deep(files: Files, random_: random.Random) -> None:
    name = _pick(files, random_)
    depth = random_.choice((50, 5000, 100_000))
    files[name] += random_.choice((b"[", b"{a: ", b"- ")) * depth


_ANY: list[Callable[[Files, random.Random], None]] = [_in_place, _in_place, _remove, _swap, _empty, _repeat]
_WAYS: dict[str, list[Callable[[Files, random.Random], None]]] = {
    "recorder": [*_ANY, _text, _text, _inside, _inside, _inside, _section, _section],
    "parquet": [*_ANY, _cells, _cells, _cells, _cells, _cells, _cells],
    "store": [*_ANY, _in_place, _text, _cells, _cells],
    "plan": [*_ANY, _scalar, _scalar, _scalar, _scalar, _scalar, _scalar, _lines, _lines, _deep],
    "darshan": [_in_place, _in_place, _in_place, _empty, _repeat, _text, _text],
    "strace": [_in_place, _in_place, _empty, _repeat, _text, _text, _text, _lines, _lines],
    "dftracer": [*_ANY, _text, _text, _lines],
    "otf2": [*_ANY, _in_place, _in_place],
    "results": [_in_place, _empty, _repeat, _text, _text, _text, _lines],
    "centre": [_in_place, _empty, _repeat, _text, _text, _scalar, _lines, _deep],
    "tuned": [_in_place, _empty, _repeat, _scalar, _scalar, _scalar, _lines, _deep],
    "model": [_in_place, _empty, _repeat, _text, _text, _text, _lines],
    "document": [_in_place, _empty, _repeat, _scalar, _scalar, _scalar, _scalar, _lines, _lines, _deep],
}
