"""Write times on Cetus and Titan: the Lasso models printed by Xie et al. (IPDPS 2019)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vani.centre.write_time.models.features import Write
from vani.centre.write_time.models.published import PUBLISHED, Placement, Published
from vani.errors import InputError, nearest


class Xie(NamedTuple):
    """Seconds for both extremes of the placement of compute nodes, in the broadcast shape of the arguments."""

    packed: NDArray[np.float64]
    """Nodes behind as few routers (Titan) or I/O nodes, bridges and links (Cetus) as possible."""
    spread: NDArray[np.float64]
    """Nodes behind as many as possible."""


def xie(system: str, n: ArrayLike, m: ArrayLike, K: ArrayLike, W: ArrayLike | None = None) -> Xie:  # noqa: N803 - the paper's symbols
    """Predict the mean time of a write, from the first open to the last close.

    Table V: t = intercept + sum of coefficient * feature, over the features of tables I (Cetus, GPFS) and II (Titan,
    Lustre). The models were fitted to writes of more than 5 s with a file per process on at most 128 nodes. With 200
    and 256 nodes, they were within 20 % for 97 % (Cetus) and 99 % (Titan) of the writes (table VI).

    Parameters
    ----------
    system
        `cetus` or `titan`.
    n, m, K
        Compute nodes, processes per node, and megabytes per process: numbers, or arrays that broadcast.
    W
        Stripe count of each file, on Titan only; None: 4, its default.

    Raises
    ------
    InputError
        The system is unknown, a figure is invalid, or there are stripes on Cetus.

    Examples
    --------
    Titan's row of table V by hand for n = 128, m = 8, K = 500, packed behind two routers (n_r = 2, s_r = 110). 4,096
    objects put five of 125 MB on the fullest of 1,008 OSTs and use all 144 OSSs:


    >>> t = xie("titan", 128, 8, 500, 4)
    >>> by_hand = (1.7826 + 3.485e-4 * 500 - 0.010 * 2 + 2.91e-4 * 110 * 4000 + 8.963e-5 * 625 + 1.463e-6 * 512000
    ...            + 2.116e-4 * 4000 + 9.315e-11 * 4000 * 440000 + 1.925e-10 * 440000 * 144)
    >>> abs(float(t.packed) - by_hand) < 1e-9
    True
    >>> [round(float(seconds), 1) for seconds in t]
    [131.8, 3.5]
    >>> xie("cetus", [128, 256], 16, 100).packed.round(1).tolist()
    [183.7, 191.9]
    """
    model = PUBLISHED.get(system)
    if model is None:
        raise InputError(f"is {system!r}", where="system", todo=nearest(str(system), PUBLISHED))
    if W is not None and model.stripes is None:
        raise InputError("is given", where="W", todo=f"leave it out: files of {system} have no stripe count")
    arrays = [_positive(n, "n"), _positive(m, "m"), _positive(K, "K", is_whole=False)]
    arrays.append(_positive(model.default_stripes if W is None else W, "W"))
    try:
        nodes, per_node, megabytes, stripes = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InputError(f"have the shapes {shapes}", where="n, m, K, W", todo="give shapes that fit") from None
    writes = [
        Write(int(a), int(b), float(c), int(d))
        for a, b, c, d in zip(nodes.flat, per_node.flat, megabytes.flat, stripes.flat, strict=True)
    ]
    return Xie(*(_seconds(model, writes, end).reshape(nodes.shape) for end in ("packed", "spread")))


def _seconds(model: Published, writes: list[Write], end: Placement) -> NDArray[np.float64]:
    return np.array(
        [sum(term.seconds for term in model.terms(write, model.ends(write.nodes)[end])) for write in writes]
    )


def _positive(values: ArrayLike, where: str, *, is_whole: bool = True) -> NDArray[np.float64]:
    todo = f"give {'whole numbers' if is_whole else 'numbers'} above 0, at most 1e9"
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("is not a number", where=where, todo=todo) from None
    wrong = ~((array > 0) & (array <= 1e9)) | (is_whole & (array != np.floor(array)))
    if np.any(wrong):
        raise InputError(f"is {array[wrong].flat[0]:g}", where=where, todo=todo)
    return array
