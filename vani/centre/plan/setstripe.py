"""The `lfs setstripe` command that creates a file on chosen OSTs, for any layout that Lustre accepts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vani.centre.plan.placement.stripe_size import Writing, stripe_size_for
from vani.models.pfl import Component, Layout


def setstripe(path: str, layout: Layout, sizes: Mapping[int, int], osts: Mapping[int, Sequence[int]]) -> str:
    """The command, with every word quoted.

    It also sets components that the file is not expected to reach, without OSTs, in case the file grows.

    Parameters
    ----------
    sizes
        Stripe sizes of the components that the file reaches, by component number.
    osts
        OSTs by component number. Lustre chooses those of components without an entry.

    Raises
    ------
    InputError
        Lustre would refuse the layout.
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
