"""Colours and fonts of all plots; people with colour blindness can distinguish the colours, on light and dark."""

from __future__ import annotations

from typing import Any

GROUND = {"light": "#ffffff", "dark": "#15181b"}
"""Background of plots, as in the report. Plots are transparent, but letters over lines have a halo of this colour."""

# Okabe and Ito, "Color Universal Design" (2008): read, write, metadata, mixed, sync, others. Each has a
# contrast of at least 3 to its background (WCAG 2.2, 1.4.11), so some are lighter on dark and darker on
# light. Their yellow, which is next to orange and green, is a brown on light.
_ON_LIGHT = ["#0072B2", "#D55E00", "#007A5A", "#9A4F7F", "#5B3A00", "#2B87B8", "#595959"]
_ON_DARK = ["#56B4E9", "#F08A3C", "#2BC49B", "#E09CC4", "#F0E442", "#8FD0F5", "#B3B3B3"]
# Viridis (van der Walt and Smith, 2015), from few to many.
_VIRIDIS = [
    "#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c",
    "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725",
]  # fmt: skip

_STEPS = {
    "light": ["#bddf26", "#22a884", "#355f8d", "#440154"],
    "dark": ["#bddf26", "#22a884", "#6f9bd1", "#c68ae0"],
}
"""Four steps, from patterns that suit storage to those that do not, with the same hues on both backgrounds."""


def theme(dark: bool, paper: bool = False, letters: int = 12) -> dict[str, Any]:
    """Configuration of Vega-Lite for all plots.

    Parameters
    ----------
    dark
        For a dark background instead of a light one.
    paper
        For a printed page: black on white, larger letters, no rounded corners; takes precedence over `dark`.
    letters
        Font size of a printed page.
    """
    dark = dark and not paper
    ink = "#e8e8e8" if dark else "#1a1a1a"
    soft = "#9aa0a6" if dark else "#5f6368"
    line = "#3c4043" if dark else "#dfe1e5"
    ground = GROUND["dark" if dark else "light"]
    size = letters if paper else 11
    # Large amounts are bright on dark and dark on light, so that they stand out.
    ramp = _VIRIDIS if dark else _VIRIDIS[::-1]
    font = "Helvetica, Arial, 'Liberation Sans', sans-serif"
    return {
        "background": "#ffffff" if paper else "transparent",
        "font": font,
        "padding": 5,
        "view": {"stroke": None},
        "mark": {"color": (_ON_DARK if dark else _ON_LIGHT)[0]},
        "axis": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": size,
            "titleFontSize": size + 1,
            "titleFontWeight": "normal",
            "gridColor": line,
            "domainColor": soft,
            "tickColor": soft,
            "labelLimit": 220,
            "titlePadding": 8,
            "labelSeparation": 6,
        },
        # Names end where bars start.
        "axisY": {"labelPadding": 6},
        "axisX": {"labelBound": True},
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": size,
            "titleFontSize": size,
            "titleFontWeight": "normal",
            "orient": "top",
            "offset": 8,
            # Fits all kinds of calls side by side into a paper's column.
            **({"symbolSize": 50, "columnPadding": 6} if size < 10 else {}),
            "labelLimit": 220,
            "titleLimit": 400,
        },
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": size},
        "title": {"color": ink, "subtitleColor": soft, "fontSize": size + 3, "anchor": "start"},
        "text": {"color": ink, "fontSize": size},
        "rule": {"color": soft},
        "range": {
            "category": _ON_DARK if dark else _ON_LIGHT,
            "heatmap": ramp,
            "ramp": ramp,
            "ordinal": _STEPS["dark" if dark else "light"],
        },
        "style": {
            "ink": {"fill": ink, "color": ink},
            "halo": {
                "fill": ground,
                "color": ground,
                "stroke": ground,
                "strokeWidth": 4,
                "strokeJoin": "round",
            },
            "frame": {"stroke": soft, "fill": None},
            "mean": {"stroke": ink, "color": ink},
            "outlined": {"stroke": ground, "strokeWidth": 1.5},
            "outlined-thin": {"stroke": soft, "strokeWidth": 0.5},
            "edge": {"stroke": soft, "color": soft},
            "arrow": {"fill": soft, "color": soft},
            "gap": {"fill": soft, "color": soft, "opacity": 0.45},
        },
    }
