"""Parts of a profile that are read without checking the rest: as in the model, or one error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vani.errors import DocumentError
from vani.render.formats import PROFILE
from vani.schema.profile import Profile
from vani.schema.saved_profile import SavedProfile, columns_in_order, most_important

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
EXAMPLE = GOLDEN / "v3-cm1like-16r.yaml"
OPTIONAL = {
    *(("stripe_count",), ("stripe_size",), ("components",)),
    *(("direct_opens",), ("synchronous_opens",), ("synchronous_writes",), ("generations",), ("object_size",)),
}
OF_FILE = ("path", "format", "size", "role", "access", "processes", "format_attributes", "stripe_count", "stripe_size")
OF_IO = ("bytes", "ops", "time_s", "transfer_size", "access_pattern")


def saved(profile: Profile, kind: str = "json") -> SavedProfile:
    return SavedProfile(PROFILE.render(kind, profile).encode(), f"p.{kind}")


def with_times(times: list[float | None]) -> Profile:
    profile = Profile.load(EXAMPLE)
    files = []
    for time, file in zip(times, profile.files, strict=False):
        time_s = file.io.time_s.model_copy(update={"total": time})
        files.append(file.model_copy(update={"io": file.io.model_copy(update={"time_s": time_s})}))
    return profile.model_copy(update={"files": files})


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml"))[::3], ids=lambda path: path.stem)
def test_parts_of_a_real_profile_match_its_model(path):
    profile = Profile.load(path)
    part = saved(profile)
    for summary, file in zip(part.file_summaries(), profile.files, strict=True):
        assert all(getattr(summary, name) == getattr(file, name) for name in OF_FILE)
        assert all(getattr(summary.io, name) == getattr(file.io, name) for name in OF_IO)
    every = [column for column in columns_in_order() if column != ("io",) and column not in OPTIONAL]
    for entry, file in zip(part.file_columns(every), part.tree["files"], strict=True):
        assert all(file[key] == entry[key] for key in entry)
        assert {*entry, *(key for (key,) in OPTIONAL)} >= {*file}


@pytest.mark.parametrize("kind", [*PROFILE])
def test_columns_contain_the_requested_values(kind):
    entries = saved(Profile.load(EXAMPLE), kind).file_columns({("io", "bytes", "read"), ("size",)})
    assert {tuple(sorted(entry)) for entry in entries} == {("io", "path", "size")}
    assert {tuple(entry["io"]) for entry in entries} == {("bytes",)}


def test_optional_column_is_read_from_all_files():
    entries = saved(Profile.load(EXAMPLE)).file_columns({("stripe_count",)})
    assert entries[0]["path"] and "stripe_count" not in entries[0]


@pytest.mark.parametrize("kind", [*PROFILE])
def test_the_files_of_most_io_time_are_chosen(kind):
    profile = with_times([0.5, 2.0, 1.0])
    part = saved(profile, kind).most_important(2)
    assert part.positions == (1, 2)
    assert part.profile == profile.model_copy(update={"files": profile.files[1:]})
    assert (part.judged.listed, part.judged.judged) == (3, 2)
    assert part.judged.io_time_share == pytest.approx(3 / 3.5)


@pytest.mark.parametrize(("times", "count"), [([1.0, 2.0], 2), ([1.0, 2.0], None), ([1.0, None, 2.0], 1)])
def test_all_files_are_chosen_if_few_or_without_times(times, count):
    profile = with_times(times)
    part = saved(profile).most_important(count)
    assert (part.profile, part.positions, part.judged) == (profile, None, None)


def test_equal_times_choose_the_first_entries():
    assert most_important([1.0, 2.0, 1.0, 2.0, 0.0], 3) == ((0, 1, 3), 5 / 6)
    assert most_important([0.0, 0.0], 1) == ((0,), 1.0)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("access",), "sahred", "files[1].access is 'sahred'"),
        (("processes",), -1, "files[1].processes is -1"),
        (("path",), ["/"], "files[1].path is a list"),
        (("io", "ops"), None, "files[1].io.ops is null"),
        (("io", "bytes", "read"), "x", "files[1].io.bytes.read is 'x'"),
    ],
)
def test_wrong_value_is_named_with_its_place(keys, value, message):
    tree = json.loads(PROFILE.render("json", with_times([1.0, 2.0, 3.0])))
    entry = tree["files"][1]
    for key in keys[:-1]:
        entry = entry[key]
    entry[keys[-1]] = value
    content = json.dumps(tree, indent=1).encode()
    line = 1 + next(
        i for i, text in enumerate(content.decode().splitlines())
        if i > content.decode().count("\n", 0, content.index(b'"files"')) and f'"{keys[-1]}": ' in text and i > 0
    )  # fmt: skip
    for work in (lambda part: part.file_summaries(), lambda part: part.file_columns({keys[:2]}), lambda part: part.most_important(2)):
        with pytest.raises(DocumentError) as error:
            work(SavedProfile(content, "p.json"))
        assert message in str(error.value) and int(str(error.value).split(":")[1]) > line
