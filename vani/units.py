"""Sizes, times and rates in the form in which people write them."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal

KiB = 1 << 10
"""Bytes."""
MiB = 1 << 20
"""Bytes."""
GiB = 1 << 30
"""Bytes."""
TiB = 1 << 40
"""Bytes."""

_SUFFIXES = {"": 1, "K": KiB, "M": MiB, "G": GiB, "T": TiB, "P": 1 << 50}
_SIZE = r"\s*(\d+(?:\.\d+)?)\s*([KMGTP]?)(i?)(B?)\s*"


def parse_bytes(text: str | int) -> int:
    """Read a size: `4096`, `64K`, `1MiB`, `2GB`.

    Suffixes are binary, as in `lfs setstripe` (K = 1024), except that a `B` without an `i`
    is decimal, as in the papers (`2GB` = 2 * 10^9).

    Raises
    ------
    ValueError
        The text is not a size.
    """
    if isinstance(text, int):
        return text
    match = re.fullmatch(_SIZE, text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"not a size: {text!r}")
    number, letter, binary, byte = match.groups()
    decimal = bool(letter) and bool(byte) and not binary
    unit = 1000 ** " KMGTP".index(letter.upper()) if decimal else _SUFFIXES[letter.upper()]
    size = float(number) * unit
    if math.isinf(size):
        raise ValueError(f"not a size: {text[:40]!r}...")
    return round(size)


def format_bytes(size: float | None) -> str:
    """Write a size in decimal units with three digits: `1.23 GB`; `unknown` for None."""
    if size is None:
        return "unknown"
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if abs(size) < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{format_number(size)} EB"


def format_rate(rate: float | None) -> str:
    """Write a rate in bytes per second: `1.23 GB/s`; `unknown` for None."""
    return "unknown" if rate is None else f"{format_bytes(rate)}/s"


def format_seconds(seconds: float | None) -> str:
    """Write a duration: `12.3 s`, `4 min 10 s`, `2 h 5 min`, `1,200 days`; `unknown` for None."""
    if seconds is None or math.isnan(seconds):
        return "unknown"
    if seconds == 0:
        return "0 s"
    # Values that three digits would round up to 1000 use the next unit.
    if abs(seconds) < 0.9995e-3:
        return f"{format_number(seconds * 1e6)} µs"
    if abs(seconds) < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if abs(seconds) < 100:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole >= 1000 * 3600:
        return f"{round(whole / 86400):,} days"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def format_share(share: float | None) -> str:
    """Write a share 0..1 in percent: `12 %`, `0.6 %`; `unknown` for None."""
    if share is None:
        return "unknown"
    percent = share * 100
    return f"{format_number(percent, 2)} %" if percent < 10 else f"{percent:.0f} %"


def format_count(count: int | None) -> str:
    """Write a count with thousands separated: `1,234`; `unknown` for None."""
    return "unknown" if count is None else f"{count:,}"


def format_number(number: float, digits: int = 3) -> str:
    """Write a factor or an amount with `digits` digits and without an exponent: `0.52`, `1.9`, `3,360`.

    An exponent is used only from 10^12: `1.15e18`.
    """
    rounded = float(f"{number:.{digits}g}")
    if not math.isfinite(rounded) or abs(rounded) >= 1e12:
        return f"{rounded:.{digits}g}".replace("e+", "e")
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{Decimal(f'{rounded:.{digits}g}'):f}"


def format_value(value: float | str | bool | None, unit: str) -> str:
    """Write a value of a document: `unit` is bytes, seconds, rate or share; other numbers have none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return "unknown" if value is None else value
    forms = {"bytes": format_bytes, "seconds": format_seconds, "rate": format_rate, "share": format_share}
    if unit in forms:
        return forms[unit](value)
    return f"{value:,}" if isinstance(value, int) else format_number(value, 6)


def counted(count: int, noun: str, singular: str = "", plural: str = "") -> str:
    """Write a number of things: `1 file`, `1,234 files`, `2 processes`, `0 entries`.

    `noun` is singular; a verb after it is given in both forms: `1 file is`, `2 files are`.
    """
    if count != 1:
        ending = "es" if noun.endswith(("s", "sh", "ch")) else "s"
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else noun + ending
    return f"{count:,} {noun} {singular if count == 1 else plural}".rstrip()


def first_of(names: Sequence[str], most: int) -> str:
    """The first names, and the number of the others: `a, b and 3 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def lfs_size(size: int) -> str:
    """Write a size exactly, in the form that `lfs` reads: `4M`, `640K`, with K, M and G as powers of 1024."""
    for unit, letter in ((GiB, "G"), (MiB, "M"), (KiB, "K")):
        if size and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)
