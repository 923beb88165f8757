"""Creations as a store of runs keeps them: columns as JSON, deflated."""

from __future__ import annotations

import json
import os
import zlib

import numpy as np

from vani.history.creations.series import LARGEST, NO_RANK, Creations
from vani.history.names import PlainNames

__all__ = ["hidden", "packed", "unpacked"]

_MOST_RANK = 1 << 28


def packed(creations: Creations) -> bytes:
    """Creations as bytes; paths that are no UTF-8 are escaped."""
    paths = [os.fsencode(path).decode(errors="backslashreplace") for path in creations.paths]
    tree = {
        "size": creations.sizes.tolist(),
        "rank": creations.ranks.tolist(),
        "stripes": creations.stripes.tolist(),
        "path": paths,
    }
    return zlib.compress(json.dumps(tree, separators=(",", ":")).encode())


def unpacked(content: bytes) -> Creations:
    """What was packed.

    Raises
    ------
    ValueError
        It is none.
    """
    try:
        tree = json.loads(zlib.decompress(content))
        columns = [np.array(tree[name], dtype=np.int64) for name in ("size", "rank", "stripes")]
        paths = tuple(tree["path"])
    except (zlib.error, KeyError, TypeError, OverflowError) as error:
        raise ValueError("no creations") from error
    sizes, ranks, stripes = columns
    wrong = (
        len({len(one) for one in columns} | ({len(paths)} if paths else set())) > 1
        or any(one.ndim != 1 for one in columns)
        or not all(isinstance(path, str) for path in paths)
        or bool(
            ((sizes < 0) | (sizes > LARGEST) | (ranks < NO_RANK) | (ranks > _MOST_RANK) | (stripes < 0)).any()
        )
    )
    if wrong:
        raise ValueError("no creations")
    return Creations(sizes, ranks, stripes, paths)


def hidden(content: bytes, names: PlainNames) -> bytes:
    """Packed creations whose paths are as `names` writes them."""
    if names.key_id is None:
        return content
    found = unpacked(content)
    return packed(Creations(found.sizes, found.ranks, found.stripes, tuple(map(names.path, found.paths))))
