"""A ranking of runs as a single HTML page without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from vani.centre.history.text.next_runs import ABOUT, TITLE, next_table
from vani.centre.history.text.rows import headline, next_step, table

if TYPE_CHECKING:
    from vani.centre.history.schema import Ranking
    from vani.centre.prediction.schema import BehaviourPrediction

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}"
    "body{color:#1a1a1a;background:#fff}"
    "table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;border-bottom:1px solid #ccc;text-align:left}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}th,td{border-color:#444}}"
)


def render(ranking: Ranking, next_runs: Sequence[BehaviourPrediction] = ()) -> str:
    """Write the page."""
    behaviours = (
        f"<h2>{escape(TITLE)}</h2>\n<p>{escape(ABOUT)}</p>\n{_table(*next_table(next_runs), last=False)}\n"
        if next_runs
        else ""
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Largest losses in I/O</title>\n<style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>Largest losses in I/O</h1>\n<p>{escape(headline(ranking))}</p>\n"
        f"{_table(*table(ranking), last=True)}\n"
        f"<p>{escape(next_step(ranking))}</p>\n{behaviours}</body></html>\n"
    )


def _table(head: tuple[str, ...], left: int, rows: list[tuple[str, ...]], *, last: bool) -> str:
    """An HTML table in which the first `left` columns are text and, with `last`, the last one too."""

    def row(cells: tuple[str, ...], tag: str) -> str:
        shown = []
        for number, cell in enumerate(cells):
            text = 0 < number < left or (last and number == len(cells) - 1)
            shown.append(
                f"<{tag}>{escape(cell)}</{tag}>" if text else f'<{tag} class="n">{escape(cell)}</{tag}>'
            )
        return f"<tr>{''.join(shown)}</tr>"

    body = "\n".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(head, 'th')}</thead>\n<tbody>\n{body}\n</tbody></table>"
