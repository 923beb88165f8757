"""Paths as code hosts know them."""

from __future__ import annotations

import pytest
from check_documents import check, judgement

from vani.render.check import in_repository, root_of
from vani.schema.check import PolicyPlace, Source


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "app" / ".git").mkdir(parents=True)
    (tmp_path / "app" / "ci").mkdir()
    return tmp_path / "app"


def placed(path):
    return check(
        judgement(place=PolicyPlace(path=str(path), line=3)), profile=Source(path=str(path), sha256="0")
    )


def paths(document):
    return document.judgements[0].place.path, document.profile.path


@pytest.mark.parametrize("path", ["../vani.toml", "{root}/vani.toml", "./../ci/../vani.toml"])
def test_paths_are_relative_to_the_root_wherever_the_command_ran(repository, path):
    found = in_repository(placed(path.format(root=repository)), folder=repository / "ci")
    assert paths(found) == ("vani.toml", "vani.toml")


def test_path_outside_the_repository_is_kept(repository, tmp_path):
    outside = str(tmp_path / "site.toml")
    assert paths(in_repository(placed(outside), folder=repository)) == (outside, outside)


def test_linked_policy_has_its_name_in_the_repository(repository, tmp_path):
    (tmp_path / "site.toml").write_text("")
    (repository / "vani.toml").symlink_to(tmp_path / "site.toml")
    assert paths(in_repository(placed("vani.toml"), folder=repository))[0] == "vani.toml"


def test_without_git_the_working_directory_is_the_root(tmp_path):
    if root_of(tmp_path) != tmp_path:
        pytest.skip("the folder for temporary files is in a repository")
    assert paths(in_repository(placed(tmp_path / "a.toml"), folder=tmp_path))[0] == "a.toml"


def test_nothing_else_changes(repository):
    before = placed("vani.toml")
    assert in_repository(before, folder=repository) == before


@pytest.mark.parametrize("path", ["a\0b", "", "\udc80", "x" * 5000])
def test_impossible_path_is_not_an_error(repository, path):
    in_repository(placed(path), folder=repository)
