"""Every attribute in the paper's tables II to XI has a place in a profile, with a value or a reason for null."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vani
from vani.advisors.catalogue import rules
from vani.centre.papers.tables import ATTRIBUTES
from vani.render.report.unknowns import unknowns
from vani.schema.dataset_facts import Distribution
from vani.schema.job import DatasetSample, Job

TRACES = Path(__file__).parent / "data/traces"
PAPERS = Path(__file__).resolve().parents[1] / "docs/papers.md"
PAPER = Path(__file__).resolve().parents[2] / "shared/seeds/vani.txt"

PLACES = [place for table in ATTRIBUTES.values() for places in table.values() for place in places]


def values(item, parts):
    """All values at a path of a document; a null above it gives null."""
    if not parts or item is None:
        return [item]
    name, *rest = parts
    below = item[name.removesuffix("[]")]
    if name.endswith("[]") and below is not None:
        return [value for entry in below for value in values(entry, rest)]
    return values(below, rest)


def reason(place, profile):
    """Why an attribute is null: from provenance, by the longest matching path, or from the report."""
    plain = re.sub(r"\[\]", "", place)
    parts = plain.split(".")
    above = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    # Provenance gives reasons in IOSTATS once for all entities.
    above += [plain[plain.index("io.") :]] if ".io." in plain else []
    told = next((profile.provenance[key] for key in above if key in profile.provenance), None)
    if told is None:
        told = unknowns(profile).get(place)
    return told


@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
@pytest.mark.parametrize(
    "name", ["v3-cm1like-16r", "v3-ior-ssf-hdf5-4r", "v3-netcdf-pnetcdf-4r", "v2-posix-mix-nonmpi"]
)
@pytest.mark.parametrize("about", ["nothing", "machine", "job"])
@pytest.mark.sampled(8)
def test_each_attribute_is_present_or_null_with_its_reason(name, quick, about):
    given = {
        "nothing": {},
        "machine": {"system": "lassen"},
        "job": {"system": "generic-lustre", "job": Job(nodes=2, unknown={"time_limit_s": "the scheduler does not say"})},
    }[about]
    profile = vani.profile(TRACES / name, quick=quick, **given)
    document = profile.model_dump(by_alias=True)
    for place in PLACES:
        if None in values(document, place.split(".")):
            why = reason(place, profile)
            assert why, place
            assert why != "the profile gives no reason", place


def test_attributes_that_the_trace_cannot_hold_come_from_machine_and_job():
    law = Distribution(name="normal", closest="normal", test="by hand", values=1000, files=3)
    job = Job(
        nodes=2,
        processes_per_node=[8, 8],
        time_limit_s=7200.0,
        shared_bb_dirs=[],
        dataset=DatasetSample(root="/p", distribution=law),
    )
    profile = vani.profile(TRACES / "v3-ior-ssf-hdf5-4r", job=job, system="lassen")
    document = profile.model_dump(by_alias=True)
    missing = {
        place for place in PLACES if "[]" not in place and None in values(document, place.split("."))
    }
    # GPUs leave no calls; the memory for files on a lassen node, and the number of servers, are in no source.
    assert missing == {
        "workflow.gpus_used_per_node",
        "storage.node_local.capacity_per_node",
        "storage.shared.parallel_servers",
    }
    (data,) = [file for file in document["files"] if file["path"].endswith("ior.h5")]
    assert data["format_attributes"]["dims"] == 1


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper is not here")
def test_the_attributes_are_those_that_the_paper_prints():
    printed: dict[str, list[str]] = {}
    table = None
    for line in PAPER.read_text().splitlines():
        if title := re.match(r"TABLE ([IVX]+):", line):
            table = title[1]
        elif "\t" in line and table is not None and table != "I":
            printed.setdefault(table, []).append(line.partition("\t")[0])
    found = {name: [row for row in rows if row != "Attribute"] for name, rows in printed.items()}
    assert found == {name: list(rows) for name, rows in ATTRIBUTES.items()}


def test_each_optimisation_of_the_paper_names_rules_that_exist():
    section = PAPERS.read_text().partition("### Section IV-D")[2].partition("\n#")[0]
    rows = {cells[0].strip(): cells[2] for line in section.splitlines() if len(cells := line.strip("|").split("|")) == 3}
    # Section IV-D, 1, in its words.
    assert {"aggregation", "buffering", "caching", "compression", "prefetching"} <= set(rows)
    known = {rule.id for rule in rules()}
    named = {row: re.findall(r"[A-Z]{3}[0-9]{3}|[A-Z]{2}[0-9]{4}|BB[0-9]{3}", text) for row, text in rows.items()}
    assert {name for row in named.values() for name in row} <= known
    assert [row for row, names in named.items() if row not in ("of the paper", "---") and not names] == []
