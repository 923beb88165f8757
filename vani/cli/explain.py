"""`vani explain`: the explanation of a rule, and the list of rules."""

from __future__ import annotations

from typing import Any

import click

from vani.advisors.catalogue import find, page_text, rules
from vani.cli.options import format_option
from vani.errors import InputError
from vani.render.formats import RULES


@click.command("explain")
@click.argument("rule", required=False)
@format_option(RULES, default=None, help="Without RULE: output format of the list.  [default: text]")
def command(rule: str | None, kind: str | None) -> None:
    """Explain RULE (LUS002, or stripe-count): what it checks, why, its source, an example.

    Without RULE, list all rules: id, name, family and finding.
    """
    if rule is None:
        click.echo(RULES.render(kind or "text", _rows()), nl=False)
    elif kind is not None:
        raise InputError("an explanation is text", where="--format", todo="leave it out, or leave RULE out")
    else:
        click.echo(page_text(find(rule)), nl=False)


def _rows() -> list[dict[str, Any]]:
    return [
        {
            "id": rule.id,
            "name": rule.name,
            "family": rule.family,
            "finding": rule.page().finding,
            "thresholds": rule.thresholds(),
        }
        for rule in rules()
    ]
