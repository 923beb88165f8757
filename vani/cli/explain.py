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
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What is written.",
)
def rules(kind: str) -> None:
    """List the rules: id, name, family and what each finds."""
    from vani.advisors.catalogue import rules as catalogue  # noqa: PLC0415

    rows = [
        {"id": rule.id, "name": rule.name, "family": rule.family, "finding": rule.page().finding}
        for rule in catalogue()
    ]
    if kind == "json":
        from vani.render.json_text import json_text  # noqa: PLC0415

        thresholds = {rule.id: rule.thresholds() for rule in catalogue()}
        listed = [row | {"thresholds": thresholds[row["id"]]} for row in rows]
        click.echo(json_text(listed), nl=False)
        return
    wide = {key: max((len(row[key]) for row in rows), default=0) for key in ("name", "family")}
    for row in rows:
        name, family = row["name"].ljust(wide["name"]), row["family"].ljust(wide["family"])
        click.echo(f"{row['id']}  {name}  {family}  {row['finding']}")
