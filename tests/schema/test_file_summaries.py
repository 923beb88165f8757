"""Promises about summaries of the files of a long profile: as the model says, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.render.profile import FORMATS
from vani.schema.file_summaries import file_summaries
from vani.schema.profile import Profile

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
OF_FILE = ("path", "format", "size", "role", "access", "processes", "format_attributes")
OF_IO = ("bytes", "ops", "time_s", "transfer_size", "access_pattern")


def written(profile, kind):
    return FORMATS.render(kind, profile).encode()


@pytest.mark.parametrize("kind", [*FORMATS])
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_summaries_of_a_real_profile_are_what_its_model_says(path, kind):
    profile = Profile.load(path)
    found = file_summaries(written(profile, kind))
    if found is None:
        # Layouts are known, or there is no file.
        assert not profile.files or any(file.stripe_count for file in profile.files)
        return
    assert len(found) == len(profile.files)
    for summary, file in zip(found, profile.files, strict=True):
        for name in OF_FILE:
            assert getattr(summary, name) == getattr(file, name)
        for name in OF_IO:
            assert getattr(summary.io, name) == getattr(file.io, name)


@pytest.mark.parametrize("kind", [*FORMATS])
def test_names_that_need_quotes_are_read_as_they_are(kind):
    profile = Profile.load(GOLDEN / "v3-cm1like-16r.yaml")
    names = ["/a b", "null", "12", "/x: y", '/quoted "so"', "/ümlaut", "\\", "- path: /z", "/line\nbreak", ""]
    names += ['"},{"path":"/z"', '"ops":{', '\\"', "/{x}[y]"]
    files = [profile.files[0].model_copy(update={"path": name}) for name in names]
    found = file_summaries(written(profile.model_copy(update={"files": files}), kind))
    assert found is not None and [one.path for one in found] == names


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("access: shared", "access: sahred"),
        ("processes: 16", "processes: -1"),
        ("    ops: {", "    opps: {"),
        ("    time_s: {read: ", "    time_s: {read: -9"),
        ("  size: ", "  size: x"),
        ("- path: /", "- path: [/"),
    ],
)
def test_a_value_that_the_schema_refuses_is_left_to_the_reader_of_all(part, wrong):
    text = written(Profile.load(GOLDEN / "v3-cm1like-16r.yaml"), "yaml").decode()
    head, files, tail = text.partition("\nfiles:")
    assert part in tail
    assert file_summaries((head + files + tail.replace(part, wrong, 1)).encode()) is None


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ('"access":"shared"', '"access":"sahred"'),
        ('"processes":16', '"processes":-1'),
        ('"ops":{', '"opps":{'),
        ('"time_s":{"read":', '"time_s":{"read":-9'),
        ('"time_s":{"read":0.0', '"time_s":{"read":NaN'),
        ('"size":', '"size":x'),
        ('{"path":"/', '{"path":["/'),
        ('{"path":"/', '{"path":"\\ud800/'),
        ('"opens":', '"stripe_count":4,"opens":'),
        ('"format":', '"format": '),
    ],
)
def test_a_value_in_json_that_the_schema_refuses_is_left_to_the_reader_of_all(part, wrong):
    text = written(Profile.load(GOLDEN / "v3-cm1like-16r.yaml"), "json").decode()
    head, files, tail = text.partition(',"files":[')
    assert part in tail
    assert file_summaries((head + files + tail.replace(part, wrong, 1)).encode()) is None
