"""The `lfs setstripe` line that creates a file on chosen OSTs, for any layout that Lustre accepts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vani.models.pfl import Component, Layout
from vani.models.placement.stripe_size import Writing, stripe_size_for

__all__ = ["setstripe"]


def setstripe(path: str, layout: Layout, sizes: Mapping[int, int], osts: Mapping[int, Sequence[int]]) -> str:
    """The command, each word quoted.

    Components that the file is not expected to reach are set, too, without OSTs, for it may grow beyond.

    Parameters
    ----------
    sizes
        Stripe size by number of component, of those that the file reaches.
    osts
        Their OSTs; Lustre chooses those of a component that is not there.

    Raises
    ------
    InputError
        Lustre would refuse it.
    """
    parts: list[Component] = []
    for number, (start, part) in enumerate(zip(layout.starts(), layout.components, strict=True), start=1):
        if part.on_mdt:
            parts.append(part)
            continue
        size = part.size or sizes.get(number)
        if size is None:
            size, _ = stripe_size_for(Writing(), start, 0, part.end, max(1, part.count or 1))
        chosen = osts.get(number)
        if chosen is None:
            parts.append(replace(part, count=part.count or 1, size=size))
        else:
            parts.append(replace(part, count=len(chosen), size=size, osts=tuple(chosen)))
    return f"lfs setstripe {Layout(tuple(parts), layout.max_stripes).to_options()} {shlex.quote(path)}"
