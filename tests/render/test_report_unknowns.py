"""Unknown attributes: every null of a profile is named with its reason."""

from __future__ import annotations

import pytest
from report_inputs import golden, profiled

from vani.render.report.unknowns import unknowns


def nulls(value, path=""):
    """Paths of all nulls in a document, without list positions; independent of the code under test."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, entry in value.items():
            if path == "" and key in ("verdict", "unseen") and entry is not None:
                # These state themselves why a figure is missing.
                continue
            yield from nulls(entry, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for entry in value:
            yield from nulls(entry, f"{path}[]")


@pytest.mark.parametrize("name", ["v3-cm1like-16r", "v3-ior-ssf-hdf5-4r", "v2-posix-mix-nonmpi", "v3-netcdf-pnetcdf-4r"])
def test_real_profile_explains_every_null_once(name):
    profile = golden(name)
    found = unknowns(profile)
    assert sorted(found) == sorted(set(nulls(profile.model_dump(by_alias=True))))
    assert [name for name, why in found.items() if why == "the profile gives no reason" or not why] == []


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", ["v3-ckpt-then-restart-8r", "v3-ior-ssf-hdf5-4r"])
def test_new_profile_explains_every_null_once(name, quick):
    profile = profiled(name, quick=quick)
    found = unknowns(profile)
    assert sorted(found) == sorted(set(nulls(profile.model_dump(by_alias=True))))
    assert [name for name, why in found.items() if why == "the profile gives no reason" or not why] == []


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("files[].io.bandwidth.write_synced", "without a flush"),
        ("excluded.io.metadata_kinds", "without a metadata operation"),
        ("workflow.io.calls[].bytes", "for calls that move no data"),
    ],
)
def test_attributes_that_calls_and_flushes_lack_are_not_missing(attribute, reason):
    assert unknowns(profiled())[attribute] == reason


def test_the_row_of_all_other_functions_lacks_no_name():
    profile = profiled()
    calls = [*profile.workflow.io.calls, profile.workflow.io.calls[-1].model_copy(update={"name": None})]
    io = profile.workflow.io.model_copy(update={"calls": calls})
    profile = profile.model_copy(update={"workflow": profile.workflow.model_copy(update={"io": io})})
    assert unknowns(profile)["workflow.io.calls[].name"] == "in the row of all other functions together"


def test_impossible_rate_is_unknown_with_the_reason():
    profile = profiled()
    io = profile.workflow.io
    io = io.model_copy(update={"bandwidth": io.bandwidth.model_copy(update={"write": None, "write_synced": None})})
    why = {**profile.provenance, "io.bandwidth.write": "no memory delivers that"}
    profile = profile.model_copy(
        update={"workflow": profile.workflow.model_copy(update={"io": io}), "provenance": why}
    )
    found = unknowns(profile)
    for side in ("write", "write_synced"):
        assert "no memory delivers that" in found[f"workflow.io.bandwidth.{side}"]


def test_reason_is_read_from_the_provenance():
    assert unknowns(golden())["job.nodes"] == golden().provenance["job.nodes"]


def test_a_number_that_does_not_exist_is_not_called_missing():
    assert unknowns(golden())["files[].io.transfer_size.read"] == "where there is no operation"


def test_missing_reason_is_reported_as_missing():
    profile = golden().model_copy(update={"provenance": {}})
    assert unknowns(profile)["storage.shared.type"] == "the profile gives no reason"


def with_first_phase(**ops):
    """A real profile whose first phase has these numbers of calls and no bandwidths."""
    first, *rest = golden().phases
    io = first.io.model_copy(
        update={
            "ops": first.io.ops.model_copy(update=ops),
            "bandwidth": first.io.bandwidth.model_copy(update={"read": None, "write": None}),
        }
    )
    return golden().model_copy(update={"phases": [first.model_copy(update={"io": io}), *rest]})


def test_a_phase_without_a_read_lacks_no_bandwidth_of_reads():
    reason = unknowns(with_first_phase(read=0))["phases[].io.bandwidth.read"]
    assert reason == "without reads, or if no time passed"


def test_phase_with_reads_but_no_bandwidth_gives_the_reason():
    profile = with_first_phase(read=5)
    (without, *_) = with_first_phase(read=0).phases
    why = {**profile.provenance, "io.bandwidth": "no clock"}
    profile = profile.model_copy(update={"phases": [profile.phases[0], without, without], "provenance": why})
    assert "no clock" in unknowns(profile)["phases[].io.bandwidth.read"]
