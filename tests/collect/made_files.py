"""FITS and classic netCDF files, made from their specifications and not by the libraries that read them."""

from __future__ import annotations

import struct

import numpy as np


def card(text):
    return text.ljust(80).encode()


def fits_header(*cards):
    """Cards and END, padded to blocks of 2,880 bytes."""
    text = b"".join(card(line) for line in (*cards, "END"))
    return text.ljust(-(-len(text) // 2880) * 2880)


def fits_cards(shape, bits, first="SIMPLE  =                    T"):
    """The cards that describe an array of `shape`, slowest axis first."""
    axes = [f"NAXIS{axis}  = {size:>20}" for axis, size in enumerate(reversed(shape), 1)]
    return [first, f"BITPIX  = {bits:>20}", f"NAXIS   = {len(shape):>20}", *axes]


def fits_data(values, type_):
    raw = np.ascontiguousarray(values, type_).tobytes()
    return raw.ljust(-(-len(raw) // 2880) * 2880, b"\0")


FITS = b"".join(card(line) for line in (*fits_cards((2, 4, 5), -32), "END"))
"""Only a header, not even padded."""


def netcdf(version, records=7):
    """Dimensions time (record), y = 3, x = 4; short t(time), double v(time, y, x), as specified.

    v[r, y, x] is 100 r + 10 y + x, except v[0, 0, 0], which is the fill value -1; t[r] is r.
    """

    def number(value):
        return struct.pack(">q" if version == 5 else ">i", value)

    def name(text):
        return number(len(text)) + text.encode().ljust(-(-len(text) // 4) * 4, b"\0")

    def tag(value):
        return struct.pack(">i", value)

    def variable(text, axes, code, attributes, size, begin):
        offset = struct.pack(">i" if version == 1 else ">q", begin)
        return (
            name(text) + number(len(axes)) + b"".join(map(number, axes)) + attributes + tag(code) + number(size) + offset
        )

    absent = tag(0) + number(0)
    title = tag(12) + number(1) + name("title") + tag(2) + number(3) + b"abc\0"
    fill = tag(12) + number(1) + name("_FillValue") + tag(6) + number(1) + struct.pack(">d", -1.0)
    dims = tag(10) + number(3) + name("time") + number(0) + name("y") + number(3) + name("x") + number(4)

    def header(begin):
        return (
            b"CDF"
            + bytes([version])
            + number(records)
            + dims
            + title
            + tag(11)
            + number(2)
            + variable("t", (0,), 3, absent, 4, begin)
            + variable("v", (0, 1, 2), 6, fill, 96, begin + 4)
        )

    body = b""
    for record in range(records):
        values = np.array([[100.0 * record + 10 * y + x for x in range(4)] for y in range(3)], ">f8")
        if record == 0:
            values[0, 0] = -1.0
        # A record contains a part of each variable, padded to 4 bytes.
        body += struct.pack(">hxx", record) + values.tobytes()
    return header(len(header(0))) + body
