"""`vani systems`."""

from __future__ import annotations

import sys

import click

__all__ = ["systems"]


@click.command()
def systems() -> None:
    """List the machines whose descriptions are bundled, for --system."""
    from vani.systems import known_systems, load_system  # noqa: PLC0415

    for name in known_systems():
        system = load_system(name)
        sys.stdout.write(f"{name:<20} {system.description or system.name}\n")
