"""Tarazu's layouts (table 8), their stripe sizes, and the configuration of its clients (figure 12)."""

from __future__ import annotations

import configparser
import math
from typing import Final

from vani.errors import InputError
from vani.models.pfl import Component, Layout
from vani.units import GiB, MiB, parse_bytes

_MOST: Final = 64

CONFIGURATION_1: Final = Layout(
    (Component(128 * MiB, 1), Component(512 * MiB, 3), Component(2 * GiB, 8), Component(None, 16))
)
"""Tarazu, table 8, configuration 1: 28 stripes."""

CONFIGURATION_2: Final = Layout((Component(128 * MiB, 1), Component(2 * GiB, 12), Component(None, 32)))
"""Tarazu, table 8, configuration 2: 45 stripes, more than the 35 targets of its testbed."""


def tarazu_stripe_sizes(layout: Layout, size: int) -> list[int]:
    """Stripe size of each component by Tarazu's rule, length / stripes, for a file that ends at `size`.

    Each target then stores one piece. Lustre refuses a component whose end is not a multiple of its stripe size, so
    these sizes serve only for comparison and not for layouts to set.
    """
    stripe_sizes = []
    for start, part in zip(layout.starts(), layout.components, strict=True):
        end = part.end if part.end is not None else max(size, start + 1)
        stripe_sizes.append(max(1, math.ceil((end - start) / max(1, part.count or 1))))
    return stripe_sizes


def parse_buckets(text: str, where: str) -> Layout:
    """Parse a layout from `[Client] Buckets = n` and `[Bucket_i] Extent, Stripe`. An extent of -1 ends with the file.

    Raises
    ------
    InputError
        The text is not such a configuration, or Lustre refuses the layout. The message contains `where`.
    """
    parser = configparser.ConfigParser(inline_comment_prefixes=("#", ";"), interpolation=None)
    try:
        parser.read_string(text)
        number = parser.getint("Client", "Buckets")
        if not 1 <= number <= _MOST:
            raise InputError(f"has {number:,} buckets", where=where, todo=f"give 1 to {_MOST}")
        parts = [_bucket(parser, f"Bucket_{bucket}") for bucket in range(1, number + 1)]
    except (configparser.Error, ValueError) as error:
        problem = str(error).replace("\n", " ")
        raise InputError(
            f"is not a configuration of Tarazu ({problem})",
            where=where,
            todo="give [Client] Buckets = n, then [Bucket_1] Extent = 128M, Stripe = 1, ... and Extent = -1 last",
        ) from None
    try:
        return Layout(tuple(parts))
    except InputError as error:
        raise InputError(error.what, where=where, todo=error.todo) from None


def _bucket(parser: configparser.ConfigParser, name: str) -> Component:
    end = parser.get(name, "Extent").strip()
    return Component(None if end == "-1" else parse_bytes(end), parser.getint(name, "Stripe"))
