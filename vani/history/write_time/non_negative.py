"""Least squares with coefficients of 0 or more: a stage cannot give time back."""

from __future__ import annotations

import numpy as np

from vani.errors import InputError
from vani.history.write_time.samples import Floats

__all__ = ["non_negative_fit"]


def non_negative_fit(matrix: Floats, wanted: Floats, weights: Floats) -> Floats:
    """Minimise sum (weights * (matrix @ x - wanted))^2 over x >= 0.

    Parameters
    ----------
    matrix
        Shape (samples, features).
    wanted, weights
        Shape (samples,).

    Raises
    ------
    InputError
        scipy is not installed.
    """
    try:
        from scipy.optimize import nnls  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        raise InputError(
            "needs scipy", where="sum of stage times", todo="pip install 'vani-io[prediction]'"
        ) from None

    size = np.abs(matrix).max(axis=0)
    size[size == 0] = 1.0
    scaled = matrix / size * weights[:, None]
    # The normal equations: as many rows as features, however many samples there are.
    q, r = np.linalg.qr(scaled)
    found, _ = nnls(r, q.T @ (wanted * weights), maxiter=50 * matrix.shape[1])
    return np.asarray(found / size)
