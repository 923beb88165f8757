"""Promises about what is not known: every null of a profile is named with its reason."""

from __future__ import annotations

import pytest
from report_inputs import golden

from vani.render.report.unknowns import unknowns


def nulls(value, path=""):
    """Paths of all nulls of a document, lists without positions: written without the code under test."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from nulls(entry, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for entry in value:
            yield from nulls(entry, f"{path}[]")


@pytest.mark.parametrize("name", ["v3-cm1like-16r", "v3-ior-ssf-hdf5-4r", "v2-posix-mix-nonmpi", "v3-netcdf-pnetcdf-4r"])
def test_every_null_of_a_real_profile_is_named_once_and_has_a_reason(name):
    profile = golden(name)
    found = unknowns(profile)
    assert sorted(one.attribute for one in found) == sorted(set(nulls(profile.model_dump(by_alias=True))))
    assert [one.attribute for one in found if one.reason == "the profile does not say why" or not one.reason] == []


def test_the_reason_is_that_of_the_provenance():
    one = next(one for one in unknowns(golden()) if one.attribute == "job.nodes")
    assert one.reason == golden().provenance["job.nodes"]
    assert not one.is_expected


def test_a_number_that_does_not_exist_is_not_called_missing():
    one = next(one for one in unknowns(golden()) if one.attribute == "files[].io.transfer_size.read")
    assert one.reason == "where there is no operation"
    assert one.is_expected


def test_nulls_of_a_list_are_counted():
    sizes = [file.size for file in golden().files]
    one = next(one for one in unknowns(golden()) if one.attribute == "files[].size")
    assert (one.null, one.looked_at) == (sizes.count(None), len(sizes))


def test_where_nothing_says_why_that_is_said():
    profile = golden().model_copy(update={"provenance": {}})
    one = next(one for one in unknowns(profile) if one.attribute == "storage.shared.type")
    assert one.reason == "the profile does not say why"


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
    one = next(one for one in unknowns(with_first_phase(read=0)) if one.attribute == "phases[].io.bandwidth.read")
    assert one.is_expected
    assert one.reason == "without a read, or where no time passed"


def test_a_phase_with_reads_but_no_bandwidth_lacks_it_and_is_counted_alone():
    profile = with_first_phase(read=5)
    (without, *_) = with_first_phase(read=0).phases
    why = {**profile.provenance, "io.bandwidth": "no clock"}
    profile = profile.model_copy(update={"phases": [profile.phases[0], without, without], "provenance": why})
    one = next(one for one in unknowns(profile) if one.attribute == "phases[].io.bandwidth.read")
    assert (one.null, one.looked_at, one.is_expected) == (1, 1, False)
    assert "no clock" in one.reason
