"""Self-attention over the last runs, after SASRec (Kang and McAuley), which AIOT names as its model.

One layer of causal attention with two heads over the last 32 runs. Ids have a meaning only within a category, so
the ids of a window are described by the number of other behaviours since they last occurred. The network predicts
the description that comes next, and is trained beforehand on the sequences of all categories. It needs JAX and
Optax (`vani-io[attention]`), and takes minutes.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from vani.centre.columns import Ints
from vani.centre.prediction.behaviour.predictors import Begin, Shares, recency_of

_WINDOW: Final = 32
_STRIDE: Final = 13
"""Runs between two windows. It has no factor 2, so that positions differ for sequences with a period of 2, 4 or 8."""
_KINDS: Final = 16
"""Number of kinds: behaviours by the number of others since their last occurrence, "longer ago", and "never"."""
_EMPTY: Final = _KINDS
_WIDTH: Final = 32
_HEADS: Final = 2
_STEPS: Final = 1500
_BATCH: Final = 128
_LEAST_RUNS: Final = 200
_REMEMBERED: Final = 64



def is_installed() -> bool:
    """Whether its libraries are installed."""
    return find_spec("jax") is not None and find_spec("optax") is not None


class _Attention:
    """Follows one category; `ask` gives the logits of the next kind, shape (kinds,)."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask
        self._latest_first: list[int] = []
        self._recency: list[int] = []

    def see(self, behaviour: int) -> None:
        self._recency = [*self._recency, _met(self._latest_first, behaviour)][-_WINDOW:]

    def predict(self) -> Shares:
        if not self._latest_first:
            return {}
        if self._ask is None:
            return {self._latest_first[0]: 0.5}
        window = np.full((1, _WINDOW), _EMPTY)
        window[0, _WINDOW - len(self._recency) :] = self._recency
        logits = np.asarray(self._ask(window), np.float64)[0]
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        return dict(zip(self._latest_first, shares[: _KINDS - 1].tolist(), strict=False))


def _met(latest_first: list[int], behaviour: int) -> int:
    """The number of others since a behaviour occurred; it becomes the first of the latest ones."""
    place = recency_of(latest_first, behaviour, _REMEMBERED)
    return _KINDS - 1 if place is None else min(place, _KINDS - 1)


def prepare(sequences: Sequence[Sequence[int]]) -> Begin:
    """Train on sequences; with too few runs, predict like the last value."""
    windows, wanted = _examples(sequences)
    ask = _learnt(windows, wanted) if len(windows) >= _LEAST_RUNS else None
    return lambda: _Attention(ask)


def _examples(sequences: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Windows, shape (examples, window), and the next kind at each position; -1 if there is none."""
    windows, wanted = [], []
    for sequence in sequences:
        latest_first: list[int] = []
        recency = [_met(latest_first, behaviour) for behaviour in sequence]
        for end in range(2, len(recency) + 1, _STRIDE):
            part = recency[max(0, end - _WINDOW - 1) : end]
            padding = _WINDOW + 1 - len(part)
            windows.append([_EMPTY] * padding + part[:-1])
            wanted.append([-1] * padding + part[1:])
    shape = (len(windows), _WINDOW)
    return np.array(windows, np.int64).reshape(shape), np.array(wanted, np.int64).reshape(shape)


def _learnt(windows: Ints, wanted: Ints) -> Any:
    import jax  # noqa: PLC0415 - an extra, loaded where it is used
    import jax.numpy as jnp  # noqa: PLC0415
    import optax  # noqa: PLC0415

    random = np.random.default_rng(1)

    def drawn(*shape: int) -> Any:
        return jnp.asarray(random.normal(0, shape[0] ** -0.5, shape), jnp.float32)

    weights = {
        "kinds": drawn(_KINDS + 1, _WIDTH), "places": drawn(_WINDOW, _WIDTH), "query": drawn(_WIDTH, _WIDTH),
        "key": drawn(_WIDTH, _WIDTH), "value": drawn(_WIDTH, _WIDTH), "wide": drawn(_WIDTH, 2 * _WIDTH),
        "narrow": drawn(2 * _WIDTH, _WIDTH), "out": drawn(_WIDTH, _KINDS),
    }  # fmt: skip
    causal = jnp.tril(jnp.ones((_WINDOW, _WINDOW), bool))

    def normed(values: Any) -> Any:
        return (values - values.mean(-1, keepdims=True)) / (values.std(-1, keepdims=True) + 1e-5)

    def heads(values: Any) -> Any:
        return values.reshape(*values.shape[:2], _HEADS, _WIDTH // _HEADS).swapaxes(1, 2)

    def logits(weights: Any, recency: Any) -> Any:
        at = weights["kinds"][recency] + weights["places"]
        inner = normed(at)
        query, key, value = (heads(inner @ weights[name]) for name in ("query", "key", "value"))
        fit = query @ key.swapaxes(2, 3) / (_WIDTH // _HEADS) ** 0.5
        seen = causal & (recency != _EMPTY)[:, None, None, :]
        mixed = jax.nn.softmax(jnp.where(seen, fit, -1e9), axis=-1) @ value
        at = at + mixed.swapaxes(1, 2).reshape(at.shape)
        at = at + jax.nn.relu(normed(at) @ weights["wide"]) @ weights["narrow"]
        return normed(at) @ weights["out"]

    def loss(weights: Any, recency: Any, next_: Any) -> Any:
        wanted = jnp.maximum(next_, 0)
        of_place = optax.softmax_cross_entropy_with_integer_labels(logits(weights, recency), wanted)
        return jnp.where(next_ >= 0, of_place, 0.0).sum() / jnp.maximum((next_ >= 0).sum(), 1)

    optimiser = optax.adamw(2e-3, weight_decay=1e-3)
    state = optimiser.init(weights)

    def stepped(weights: Any, state: Any, recency: Any, next_: Any) -> Any:
        change, state = optimiser.update(jax.grad(loss)(weights, recency, next_), state, weights)
        return optax.apply_updates(weights, change), state

    step = jax.jit(stepped)
    for _ in range(_STEPS):
        some = random.integers(0, len(windows), _BATCH)
        weights, state = step(weights, state, windows[some], wanted[some])
    return jax.jit(lambda recency: logits(weights, recency)[:, -1])
