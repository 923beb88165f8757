"""Numbers with units, as people write them in policies: `1e5`, `4 MiB`, `10 s`, `10 %`, `2 GB/s`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from vani.units import format_bytes, format_number, format_rate, format_seconds, format_share, parse_bytes

Dimension = Literal["bytes", "seconds", "rate", "share", "count", "number", "text", "flag"]

QUANTITY: Final = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?)[ \t]*([A-Za-zµ%]+(?:/s)?)?", re.ASCII
)

_TIMES: Final = {
    "ns": Decimal("1e-9"), "us": Decimal("1e-6"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"),
    "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400),
}  # fmt: skip
_MEANINGS: Final = {
    "bytes": "a size", "seconds": "a time", "rate": "a rate", "share": "a share", "count": "a count",
    "number": "a number", "text": "text", "flag": "true or false",
}  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """A number in bytes, seconds or bytes per second, or a share. `dimension` is None for a bare number."""

    value: int | float
    dimension: Dimension | None
    text: str

    def fits(self, dimension: Dimension) -> bool:
        """True if the number can be compared with an attribute of this dimension. A bare number always can."""
        return self.dimension is None or dimension in (self.dimension, "number")

    def meaning(self) -> str:
        """The dimension in words: `a size`."""
        return _MEANINGS[self.dimension or "number"]


def parse_quantity(text: str) -> Quantity:
    """Parse a number with or without a unit. Sizes are as in `vani.units.parse_bytes`.

    Raises
    ------
    ValueError
        The text is not a number, its unit is unknown, or it is too large.
    """
    match = QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{_short(text)} is not a number with a unit such as 1e5, 4 MiB, 10 s, 10 %, 2 GB/s")
    number, unit = Decimal(match[1]), match[2]
    dimension: Dimension | None = None
    if unit is not None:
        factor, dimension = _unit(unit)
        number *= factor
    if abs(number) > Decimal("1e300"):
        raise ValueError(f"{_short(text)} is too large")
    is_whole = number == number.to_integral_value() and abs(number) < 1 << 63
    return Quantity(int(number) if is_whole else float(number), dimension, " ".join(text.split()))


def _unit(unit: str) -> tuple[Decimal, Dimension]:
    if unit == "%":
        return Decimal("0.01"), "share"
    if unit in _TIMES:
        return _TIMES[unit], "seconds"
    size, slash, _ = unit.partition("/s")
    try:
        return Decimal(parse_bytes(f"1{size}")), "rate" if slash else "bytes"
    except ValueError:
        known = "B, K or KiB, M or MiB, G or GiB, KB, MB, GB, .../s, ns, us, ms, s, min, h, d, %"
        raise ValueError(f"{_short(unit)} is not a unit; known are {known}") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def shown(value: float | str | bool | None, dimension: Dimension, *, exact: bool = False) -> str:
    """Format a value for people. `exact` keeps all digits, for values that would look the same otherwise."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if dimension == "bytes" and value == int(value):
        return f"{int(value):,} B" if exact or abs(value) < 1000 else format_bytes(value)
    if exact:
        return f"{value!r}" + {"seconds": " s", "rate": " B/s", "bytes": " B"}.get(dimension, "")
    if dimension == "bytes":
        return format_bytes(value)
    if dimension == "seconds":
        return "0 s" if value == 0 else format_seconds(value)
    if dimension == "rate":
        return format_rate(value)
    if dimension == "share":
        return format_share(value)
    return f"{value:,}" if isinstance(value, int) else format_number(value, 6)
