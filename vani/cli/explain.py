"""`vani explain`: the explanation of a rule or a pattern, and the list of them."""

from typing import Any

import click

from vani.advisors.catalogue import explained, patterns, rules
from vani.cli.options import format_option
from vani.errors import InputError
from vani.render.formats import RULES


@click.command("explain")
@click.argument("rule", required=False)
@format_option(RULES, default=None, help="Without RULE: output format of the list.  [default: text]")
def command(rule: str | None, kind: str | None) -> None:
    """Explain RULE (LUS002, or stripe-count) or a pattern (small_requests): what it checks, why, its source.

    Without RULE, list all rules and patterns: id, name, family and finding.
    """
    if rule is None:
        click.echo(RULES.render(kind or "text", _rows()), nl=False)
    elif kind is not None:
        raise InputError("an explanation is text", where="--format", todo="leave it out, or leave RULE out")
    else:
        click.echo(explained(rule), nl=False)


def _rows() -> list[dict[str, Any]]:
    return [
        {
            "id": getattr(entry, "id", "pattern"),
            "name": entry.name,
            "family": getattr(entry, "family", ""),
            "finding": entry.page().finding,
            "thresholds": entry.thresholds(),
        }
        for entry in (*rules(), *patterns())
    ]
