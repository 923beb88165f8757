"""`vani explain` and `vani rules`: the explanation of a rule, and the list of rules."""

from __future__ import annotations

import click

from vani.cli.options import format_option
from vani.render.formats import RULES


@click.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """Explain RULE (LUS002, or stripe-count): what it checks, why, its source, an example."""
    from vani.advisors.catalogue import find, page_text  # noqa: PLC0415 - `vani --help` pays for no rule

    click.echo(page_text(find(rule)), nl=False)


@click.command()
@format_option(RULES, default="text")
def rules(kind: str) -> None:
    """List the rules: id, name, family and finding."""
    from vani.advisors.catalogue import rules as catalogue  # noqa: PLC0415

    rows = [
        {
            "id": rule.id,
            "name": rule.name,
            "family": rule.family,
            "finding": rule.page().finding,
            "thresholds": rule.thresholds(),
        }
        for rule in catalogue()
    ]
    click.echo(RULES.render(kind, rows), nl=False)
