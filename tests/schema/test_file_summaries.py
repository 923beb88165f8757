"""Promises about summaries of the files of a long profile: as the model says, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.schema.document import dumps
from vani.schema.file_summaries import file_summaries
from vani.schema.profile import Profile

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
OF_FILE = ("path", "format", "size", "role", "access", "processes", "format_attributes")
OF_IO = ("bytes", "ops", "time_s", "transfer_size", "access_pattern")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_summaries_of_a_real_profile_are_what_its_model_says(path):
    profile = Profile.load(path)
    found = file_summaries(dumps(profile).encode())
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


def test_names_that_need_quotes_are_read_as_they_are():
    profile = Profile.load(GOLDEN / "v3-cm1like-16r.yaml")
    names = ["/a b", "null", "12", "/x: y", '/quoted "so"', "/ümlaut", "\\", "- path: /z", "/line\nbreak", ""]
    files = [profile.files[0].model_copy(update={"path": name}) for name in names]
    found = file_summaries(dumps(profile.model_copy(update={"files": files})).encode())
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
    text = dumps(Profile.load(GOLDEN / "v3-cm1like-16r.yaml"))
    head, files, tail = text.partition("\nfiles:")
    assert part in tail
    assert file_summaries((head + files + tail.replace(part, wrong, 1)).encode()) is None
