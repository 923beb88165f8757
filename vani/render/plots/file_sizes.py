"""Sizes of the data set's files (paper, table X: "file size distribution")."""

from __future__ import annotations

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import by_size, chart, size_labels
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_bytes

KIND, TITLE = "file-sizes", "Sizes of files"


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del heat
    sizes = profile.dataset.size_distribution
    if sizes is None or not sizes.known:
        return "no file's size is known: `vani collect` inside the job writes them into job.yaml"
    bins = by_size(sizes.histogram)
    values = [{"size": b, "files": sizes.histogram.get(b, 0)} for b in bins]
    encoding = {
        "x": {
            "field": "size",
            "type": "ordinal",
            "sort": bins,
            "axis": {
                "title": "file size (bytes)",
                **size_labels(bins),
            },
        },
        "y": {
            "field": "files",
            "type": "quantitative",
            "axis": {"title": "files", "tickMinStep": 1, "tickCount": 5, "format": ",d"},
        },
    }
    spec = chart(
        values,
        200,
        layer=[
            {
                "mark": {"type": "bar", "width": {"band": 0.75}},
                "encoding": {
                    **encoding,
                    "tooltip": [
                        {"field": "size", "type": "ordinal"},
                        {"field": "files", "type": "quantitative", "format": ","},
                    ],
                },
            },
            {
                "transform": [{"filter": "datum.files > 0"}],
                "mark": {"type": "text", "style": "ink", "dy": -7},
                "encoding": {**encoding, "text": {"field": "files", "format": ","}},
            },
        ],
    )
    unknown = (profile.dataset.files or 0) - sizes.known
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption="How many files of the data set are how large. Many small files cost opens and closes "
        "rather than bandwidth; "
        "they can be packed together."
        + (
            f" The size of {counted(unknown, 'further file')} is not known: most such files were only read."
            if unknown > 0
            else ""
        ),
        description=f"{counted(sizes.known, 'file')} of known size"
        + (
            f", from {format_bytes(sizes.min)} to {format_bytes(sizes.max)}, "
            f"half of them up to {format_bytes(sizes.p50)}: "
            if sizes.min != sizes.max
            else f", {format_bytes(sizes.max)}: "
        )
        + ", ".join(f"{v['size']}: {v['files']:,}" for v in values if v["files"])
        + ".",
        spec=spec,
        table=(("size (bytes)", "files"), tuple((v["size"], v["files"]) for v in values)),
        sentence=_one_size(sizes.known, sizes.min, sizes.max) if len(values) == 1 else "",
    )


def _one_size(files: int, least: int | None, most: int | None) -> str:
    """Text about one bar."""
    if files == 1:
        return f"The one file of known size has {format_bytes(most)}."
    spread = (
        f"have {format_bytes(most)}"
        if least == most
        else f"have {format_bytes(least)} to {format_bytes(most)}"
    )
    return f"All {counted(files, 'file')} of known size {spread}."


PLOT = Plot(KIND, TITLE, "number of files by size", _draw, position=100)
