"""`vani explain` and `vani rules`: what a rule looks at and why, and which rules there are."""

from __future__ import annotations

import click

__all__ = ["explain", "rules"]


@click.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """Explain RULE (LUS002, or stripe-count): what it looks at, why, its source, an example."""
    from vani.advisors.catalogue import find, page_text  # noqa: PLC0415 - `vani --help` pays for no rule

    click.echo(page_text(find(rule)), nl=False)


@click.command()
def rules() -> None:
    """List the rules: id, name and what each finds."""
    from vani.advisors.catalogue import rules as catalogue  # noqa: PLC0415

    found = catalogue()
    wide = max((len(rule.name) for rule in found), default=0)
    for rule in found:
        click.echo(f"{rule.id}  {rule.name:<{wide}}  {rule.page().finding}")
