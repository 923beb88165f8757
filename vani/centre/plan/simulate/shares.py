"""Splits files among the processes that move them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vani.centre.plan.simulate.layout import Component, pieces_of
from vani.centre.plan.simulate.rates import Ints


@dataclass(frozen=True)
class Part:
    """Bytes that a process moves at the same time, and their targets; none on the node or the metadata target."""

    bytes: float
    target: tuple[int, ...]
    share: tuple[float, ...]


def parts_of(
    size: float,
    parts: tuple[Component, ...],
    own: Sequence[Ints],
    place: int,
    users: int,
    *,
    in_turn: bool,
    strided: bool,
) -> list[Part]:
    """Parts that user number `place` of `users` moves: a range of the file, or a share of everything if `strided`."""
    begin, end = (0.0, size) if strided else (size * place / users, size * (place + 1) / users)
    file_parts = []
    for piece in pieces_of(parts, size, begin, end, in_turn=in_turn, strided=strided):
        on = piece.share > 0
        moved = piece.bytes / users if strided else piece.bytes
        share = np.round(piece.share[on], 12)
        file_parts.append(Part(moved, tuple(own[piece.component][on].tolist()), tuple(share.tolist())))
    return file_parts


def owners_of(files: int, processes: int) -> list[list[int]]:
    """Processes of each file. With more processes than files, several share a file; otherwise each has one or more."""
    if files >= processes:
        return [[n * processes // files] for n in range(files)]
    owners: list[list[int]] = [[] for _ in range(files)]
    for process in range(processes):
        owners[process * files // processes].append(process)
    return owners
